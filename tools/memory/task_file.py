"""Reads and changes the file of tasks in a workspace, while Emacs and other processes change it too.

Knows where the file is; it must not know what a change does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from quoth.tools.call.workspace import Workspace, change_file, read_whole
from quoth.tools.memory.org_tasks import FILE, TaskFile
from quoth.tools.org.document import Org, dump

T = TypeVar("T")


def read_tasks(workspace: Workspace, path: str = FILE) -> TaskFile:
    """The tasks of a file; none where there is no file. Raises ToolError."""
    return TaskFile(read_whole(workspace, path), workspace.spelling(workspace.resolve(path)))


def change_tasks(
    workspace: Workspace,
    change: Callable[[TaskFile], tuple[Org, T]],
    path: str = FILE,
    say: Callable[[str], None] = lambda text: None,
) -> T:
    """Apply ``change`` to the file as it is now, and return its second result. It is applied again when an
    editor has written meanwhile. Raises ToolError."""
    name = workspace.spelling(workspace.resolve(path))

    def changed(data: bytes) -> tuple[bytes, T]:
        org, result = change(TaskFile(data, name))
        return dump(org), result

    return change_file(workspace, path, changed, say)
