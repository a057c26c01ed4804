"""Finds the changes that a call would make, by the ``:changes`` of its tool, so that a person can see them.

No call runs here: the files are read as they are now, and the workspace that the tool receives is read-only.
A file that is read here does not count as read by the model.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from quoth.tools.call.call import Call, Change, Changes
from quoth.tools.call.canonical import arguments
from quoth.tools.call.context import ToolContext, enter_context
from quoth.tools.call.workspace import Workspace
from quoth.tools.door.execution import brief, offered_to
from quoth.tools.errors import PERMISSION, InvalidCallError, QuothError
from quoth.tools.registry.table import CognitiveTool

SECONDS = 5.0  # short, because a person waits for the question
MAX_FILES = 100
SHAPE = "its :changes must return [[path old-text new-text] …]"


class ReadOnly(Workspace):
    """The same folder, read-only, without a record of the files that were read."""

    def __init__(self, of: Workspace) -> None:
        self.__dict__.update(of.__dict__)

    def saw(self, reader: str, path: str, data: bytes) -> None:
        return

    def write(self, path: str | Path, data: bytes, **more: Any) -> bool:
        raise InvalidCallError("files cannot be written while a question is prepared")

    def remove(self, path: str, before: bytes) -> None:
        raise InvalidCallError("files cannot be removed while a question is prepared")


def changes_of(tool: CognitiveTool, call: Call, workspace: Workspace) -> Changes | None:
    """The changes of a call to the present files; None if its tool has no ``:changes``. Raises nothing: the
    Changes contain any error."""
    find = tool._changes
    if find is None or PERMISSION in call.form.args:
        return None
    try:
        args = tool.python_values(arguments(tool, call.form, workspace), workspace.root)
        context = ToolContext(ReadOnly(workspace), user=call.user, session=call.session, tool=tool.name)
        given = offered_to(find, {"call": call, "ctx": context}, args)
        found = _within(SECONDS, lambda: list(_files(enter_context(context).run(lambda: find(**given)))))
    except TimeoutError:
        return Changes(trouble=f"Its changes could not be computed within {SECONDS:g} s.")
    except _Shape as error:
        return Changes(trouble=f"Its changes are not known: {error}.")
    except QuothError as error:
        return Changes(trouble=f"It would fail now: {error}", fails=True)
    except Exception as error:
        return Changes(trouble=f"Its changes are not known: {brief(error)}.")
    return Changes(tuple(found))


class _Shape(Exception):
    """The result of ``:changes`` has the wrong shape."""


def _files(found: Any) -> Iterator[Change]:
    if not isinstance(found, (list, tuple)) or len(found) > MAX_FILES:
        raise _Shape(f"{SHAPE}, for at most {MAX_FILES} files")
    for one in found:
        if not isinstance(one, (list, tuple)) or len(one) != 3:
            raise _Shape(SHAPE)
        path, before, after = one
        texts = before is None or isinstance(before, (str, bytes)), after is None or isinstance(after, str)
        if not isinstance(path, (str, Path)) or not all(texts):
            raise _Shape(f"{SHAPE}; a text is a string, or None for a missing file")
        yield _change(str(path), before, after)


def _change(path: str, before: str | bytes | None, after: str | None) -> Change:
    if not isinstance(before, bytes):
        return Change(path, before, after)
    try:
        if b"\0" not in before:
            return Change(path, before.decode("utf-8"), after)
    except UnicodeDecodeError:
        pass
    return Change(path, None, after, binary=len(before))


def _within(seconds: float, work: Callable[[], Any]) -> Any:
    """The value of ``work``, run in a thread that is abandoned if it takes longer. Raises its exception, or
    TimeoutError."""
    done: list[tuple[Any, BaseException | None]] = []

    def run() -> None:
        try:
            done.append((work(), None))
        except BaseException as error:
            done.append((None, error))

    thread = threading.Thread(target=run, name="quoth-changes", daemon=True)
    thread.start()
    thread.join(seconds)
    if not done:
        raise TimeoutError
    value, error = done[0]
    if isinstance(error, Exception):
        raise error
    if error is not None:  # SystemExit and its like must not end this process
        raise RuntimeError(f"it raised {type(error).__name__}")
    return value
