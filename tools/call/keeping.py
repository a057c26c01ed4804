"""What a file held before it is written, handed to whoever keeps it so that it can be put back.

The door says who keeps the writes of the call whose body is running; outside of a call nobody does, unless
``kept_by`` says so. It must not know stores, tools or how files are written.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

NO_FILE = "no file"  # in place of a digest
MAX_FILE = 20_000_000  # bytes of one file that are kept


class Held(NamedTuple):
    """What a file holds: the digest and size, and the bytes of one that is not larger than MAX_FILE."""

    digest: bytes
    size: int
    data: bytes | None


class FileWrite(NamedTuple):
    """One file that is about to change. ``path`` is its canonical spelling below ``root``. ``before`` is None
    where there is no file, ``after`` is the digest of what is to be there, None where it is removed; ``mode``
    is that of the old file, and ``folders`` how many of those around it were made for it."""

    root: Path
    path: str
    before: Held | None
    after: bytes | None
    mode: int = 0
    folders: int = 0


Keeper = Callable[[FileWrite], str]  # keeps it, on disk at once; a sentence where it cannot be put back later

_keeper: contextvars.ContextVar[Keeper | None] = contextvars.ContextVar("quoth_keeper", default=None)


def current_keeper() -> Keeper | None:
    """Who keeps the writes that are made here and now."""
    return _keeper.get()


def use_keeper(keeper: Keeper | None) -> None:
    """Let ``keeper`` have the writes of the present context from now on."""
    _keeper.set(keeper)


@contextlib.contextmanager
def kept_by(keeper: Keeper | None) -> Iterator[None]:
    """Within this context ``keeper`` has the writes."""
    before = _keeper.set(keeper)
    try:
        yield
    finally:
        _keeper.reset(before)
