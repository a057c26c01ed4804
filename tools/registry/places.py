"""Places in a user's code: whether a file is theirs, and the file and line of a function or an error.

Knows functions and tracebacks; it must not know tools or doors.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

INSTALLED = frozenset(("site-packages", "dist-packages"))
_OURS = Path(__file__).resolve().parents[2]


def is_local(path: Path) -> bool:
    """Whether a file is a person's own: outside of the standard library, installed packages and quoth."""
    return not _is_foreign(path.resolve())


def place_of_function(function: Callable[..., Any] | None) -> str:
    """Where a function begins, as ``file:line``; empty if no file is known."""
    while isinstance(function, partial):
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
    shown = _shown(file, Path.cwd())
    return f"{shown}:{line}" if shown else ""


@lru_cache(256)  # thousands of tools stand in one file
def _shown(file: str, here: Path) -> str:
    path = Path(file)
    if not path.is_file() or not is_local(path):
        return ""
    path = path.resolve()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


@lru_cache(4096)
def _is_foreign(path: Path) -> bool:
    if not INSTALLED.isdisjoint(path.parts):  # also those of another environment that this one can see
        return True
    return any(folder == path or folder in path.parents for folder in _foreign())


@lru_cache(1)
def _foreign() -> tuple[Path, ...]:
    import sysconfig

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    ours = [_OURS / package for package in ("agent", "neuro", "tools")]
    return tuple({*ours, *(Path(sysconfig.get_paths()[name]).resolve() for name in names)})
