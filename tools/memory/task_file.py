"""Reads and changes the file of tasks in a workspace, while Emacs and other processes change it too.

Knows the workspace, which alone opens files; it must not know what a change does. An editor takes none of our
locks, so a change is made to the text as it is at that moment, and made anew when the text has changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError
from quoth.tools.memory.org_tasks import FILE, TaskFile
from quoth.tools.org.document import Org, dump

MAX_BYTES = 5_000_000
TRIES = 20  # while somebody else writes all the time

T = TypeVar("T")


def read_tasks(workspace: Workspace, path: str = FILE) -> TaskFile:
    """The tasks of a file; none where there is no file. Raises ToolError."""
    return TaskFile(_bytes(workspace, path), workspace.spelling(workspace.resolve(path)))


def change_tasks(
    workspace: Workspace,
    change: Callable[[TaskFile], tuple[Org, T]],
    path: str = FILE,
    say: Callable[[str], None] = lambda text: None,
) -> T:
    """Apply ``change`` to the file as it is now, and return its second result. It is applied again when an
    editor has written meanwhile. Raises ToolError."""
    name = workspace.spelling(workspace.resolve(path))
    for attempt in range(TRIES):
        with workspace.alone(path):
            data = _bytes(workspace, path)
            org, result = change(TaskFile(data, name))
            if (new := dump(org)) == data:
                return result
            try:
                workspace.write(path, new, before=data, say=say)
            except ToolError:
                if attempt + 1 == TRIES or _bytes(workspace, path) == data:
                    raise
                continue
        real = workspace.resolve(path)
        if os.path.lexists(real.with_name(f".#{real.name}")):  # Emacs's own lock
            say(f"{name} has unsaved changes in Emacs, which will say that the file was changed.")
        return result
    raise AssertionError("the last attempt returns or raises")


def _bytes(workspace: Workspace, path: str) -> bytes:
    real = workspace.resolve(path)
    if not real.exists():
        return b""
    with workspace.open_read(path) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ToolError(f"{path} is larger than {MAX_BYTES} bytes; move what is done to another file.")
    return data
