"""Places in a user's code: the file and line of a function, or of an error that it raised.

Knows functions and tracebacks; it must not know tools or doors.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quoth.tools.registry.code_version import is_local


def place_of_function(function: Callable[..., Any] | None) -> str:
    """Where a function begins, as ``file:line``; empty if no file is known."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None) if function else None
    return _place(code.co_filename, code.co_firstlineno) if code else ""


def place_of_error(error: BaseException) -> str:
    """The last line of a user's own code that an error came through, as ``file:line``; empty for none."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return next(filter(None, (_place(frame.filename, frame.lineno or 1) for frame in frames)), "")


def users_traceback(error: BaseException) -> str:
    """The traceback of an error, from the first line of a user's own code on."""
    told = traceback.TracebackException.from_exception(error)
    first = next((at for at, frame in enumerate(told.stack) if _place(frame.filename, 1)), 0)
    told.stack = traceback.StackSummary.from_list(told.stack[first:])
    return "".join(told.format()).rstrip()


def _place(file: str, line: int) -> str:
    path = Path(file)
    if not path.is_file() or not is_local(path):
        return ""
    path = path.resolve()
    here = Path.cwd()
    return f"{path.relative_to(here) if path.is_relative_to(here) else path}:{line}"
