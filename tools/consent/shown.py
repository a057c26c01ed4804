"""The file changes that a person was shown for a call, to which an approval is bound.

An approval is bound to each file's bytes, or to the lines that would differ: another person's edit elsewhere
in the file does not invalidate it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from io import BufferedReader
from typing import Any, cast

from quoth.tools.call.call import Call, Change, Changes, differing, lines_of
from quoth.tools.call.canonical import arguments, paths_of
from quoth.tools.call.keeping import NO_FILE
from quoth.tools.call.workspace import Workspace
from quoth.tools.door.changes import changes_of
from quoth.tools.errors import InvalidCallError, ToolError
from quoth.tools.registry.table import CognitiveTool

UNREADABLE = "unreadable"

# By path: the SHA-256 of the file's bytes, NO_FILE or UNREADABLE; and that of the lines that would differ,
# empty where they are not known.
Files = Mapping[str, tuple[str, str]]


def look(tool: CognitiveTool, call: Call, workspace: Workspace) -> tuple[Changes | None, Files]:
    """The changes of a call to the present files, and the digests to which an approval is bound."""
    changes = changes_of(tool, call, workspace)
    if changes is None and not _is_bound(tool):
        return None, {}
    if changes is not None and changes.files:
        files = {change.path: _lines(change) for change in changes.files}
    else:
        files = dict.fromkeys(_paths(tool, call, workspace), "")
    found = {}
    for path, lines in files.items():
        with contextlib.suppress(ToolError):
            found[workspace.spelling(workspace.resolve(path))] = digest_of(path, workspace), lines
    return changes, found


def _is_bound(tool: CognitiveTool) -> bool:
    return not tool.remote and not {"writes", "deletes"}.isdisjoint(tool.effects)


def replaced(tool: CognitiveTool, args: Mapping[str, Any], workspace: Workspace) -> dict[str, str]:
    """The digests of the files that a call with these arguments would replace, by path."""
    found = {}
    for path in paths_of(tool, args) if _is_bound(tool) else ():
        with contextlib.suppress(ToolError):
            found[workspace.spelling(workspace.resolve(path))] = digest_of(path, workspace)
    return found


def digest_of(path: str, workspace: Workspace) -> str:
    """The SHA-256 of a file's bytes, read as a stream; or NO_FILE, or UNREADABLE."""
    try:
        if not workspace.exists(path):
            return NO_FILE
        with workspace.open_read(path) as file:
            return hashlib.file_digest(cast(BufferedReader, file), "sha256").hexdigest()
    except (ToolError, OSError):
        return UNREADABLE


def _paths(tool: CognitiveTool, call: Call, workspace: Workspace) -> list[str]:
    try:
        return paths_of(tool, arguments(tool, call.form, workspace))
    except InvalidCallError:
        return []


def _lines(change: Change) -> str:
    if change.binary is not None:
        return ""
    old, new = lines_of(change.before), lines_of(change.after)
    # The line before and the line after are included: otherwise an insertion would match anywhere.
    hunks = [[old[max(a - 1, 0) : b + 1], new[max(c - 1, 0) : d + 1]] for a, b, c, d in differing(old, new)]
    return hashlib.sha256(json.dumps([change.after is None, hunks]).encode()).hexdigest()


def fits(then: Files, now: Files) -> bool:
    """Whether the present changes equal the changes shown then."""
    return then.keys() == now.keys() and all(
        before[0] == now[path][0] or (before[1] != "" and before[1] == now[path][1])
        for path, before in then.items()
    )


def to_text(files: Files) -> str:
    return json.dumps(files) if files else ""


def of_text(text: str) -> Files:
    return {path: (digest, lines) for path, (digest, lines) in json.loads(text).items()} if text else {}
