"""Changes a file of the workspace that editors and other processes change too.

Knows the workspace, which alone opens files; it must not know what a file holds. An editor takes none of our
locks, so a change is made to the content as it is at that moment, and made anew when that has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError
from quoth.tools.storage.missing import is_missing

MAX_BYTES = 5_000_000
MOVE = "move what is done to another file"
TRIES = 20  # while somebody else writes all the time

T = TypeVar("T")


def read_whole(workspace: Workspace, path: str) -> bytes:
    """The content of a file; nothing where there is none. Raises ToolError, also for more than MAX_BYTES."""
    if not workspace.resolve(path).exists():
        return b""
    with workspace.open_read(path) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ToolError(f"{path} is larger than {MAX_BYTES} bytes; {MOVE}.")
    return data


def change_file(
    workspace: Workspace,
    path: str,
    change: Callable[[bytes], tuple[bytes | None, T]],
    say: Callable[[str], None] = lambda text: None,
) -> T:
    """Apply ``change`` to the content as it is now, and return its second result; None removes the file.
    It is applied again when an editor has written meanwhile. Raises ToolError."""
    for attempt in range(TRIES):
        with workspace.alone(path):
            data = read_whole(workspace, path)
            new, result = change(data)
            if new == data:
                return result
            if new is not None and len(new) > MAX_BYTES:  # it could not be read again
                raise ToolError(f"{path} would be larger than {MAX_BYTES} bytes; {MOVE}.")
            try:
                if new is None:
                    workspace.remove(path, data)
                    return result
                workspace.write(path, new, before=data, say=say)
            except ToolError:
                if attempt + 1 == TRIES or read_whole(workspace, path) == data:
                    raise
                continue
        real = workspace.resolve(path)
        if not is_missing(real.with_name(f".#{real.name}")):  # Emacs's own lock
            name = workspace.spelling(real)
            say(f"{name} has unsaved changes in Emacs, which will say that the file was changed.")
        return result
    raise AssertionError("the last attempt returns or raises")
