"""What an undo would do, and has done, as data.

Knows contents of files, not where they are kept or how they are put back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from quoth.agent.terminal.question import Difference, differences
from quoth.tools.call.preview import Change, Changes
from quoth.tools.call.redaction import redact
from quoth.tools.history.versions import Written
from quoth.tools.text import number_of
from quoth.tools.visible import visible


@dataclass(frozen=True)
class PutBack:
    """A file to put back: what it holds ``now`` and held ``then``, None for no file. ``back`` is the oldest
    write that is taken back; ``note`` says what stays."""

    path: str
    now: bytes | None
    then: bytes | None
    back: Written
    note: str = ""

    @property
    def difference(self) -> Difference:
        return difference(self.path, self.now, self.then)

    def to_json(self) -> dict[str, Any]:
        return {**self.difference.to_json(), "note": self.note}


@dataclass(frozen=True)
class Left:
    """A file that is left as it is, why, and what putting it back would change, where that is known."""

    path: str
    why: str
    difference: Difference | None = None

    def to_json(self) -> dict[str, Any]:
        diff = {} if self.difference is None else {"diff": self.difference.to_json()["diff"]}
        return {"path": visible(self.path), "why": self.why, **diff}


@dataclass(frozen=True)
class Uncovered:
    """A call that may have changed what was not kept."""

    id: str
    form: str
    why: str

    def __str__(self) -> str:
        return f"{self.id} {self.form}: {self.why}"


@dataclass(frozen=True)
class UndoPlan:
    """What an act would do. Of a ``redo`` all words are the same, the other way round."""

    session: str
    files: tuple[PutBack, ...]
    left: tuple[Left, ...] = ()
    uncovered: tuple[Uncovered, ...] = ()
    redo: bool = False

    @property
    def empty(self) -> bool:
        return not self.files and not self.left

    def to_json(self) -> dict[str, Any]:
        return {
            "session": self.session,
            "redo": self.redo,
            "files": [one.to_json() for one in self.files],
            "left": [one.to_json() for one in self.left],
            "not_covered": [vars(one) for one in self.uncovered],
        }


@dataclass(frozen=True)
class Done:
    """What became of an act: its name, the files that were put back, those that could not be, and what else
    is to be said of them."""

    act: str
    files: tuple[str, ...]
    failed: tuple[Left, ...]
    said: tuple[str, ...]


def difference(path: str, old: bytes | None, new: bytes | None) -> Difference:
    """What lies between two contents of a file, without what looks like a secret."""
    before, after = _text(old), _text(new)
    if (before is None) != (old is None) or (after is None) != (new is None):
        sizes = [number_of(len(data), "byte") if data is not None else "no file" for data in (old, new)]
        return Difference(visible(path), f"{visible(path)}, which is no text: {' to '.join(sizes)}", ())
    (found,) = differences(Changes((Change(path, before, after),)))
    if after is not None and "-----BEGIN " in after:
        return replace(found, head=f"{found.head}, with a key in it that is not shown", lines=())
    return replace(found, lines=tuple(replace(line, text=redact(line.text)) for line in found.lines))


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None or b"\0" in data else data.decode("utf-8")
    except UnicodeDecodeError:
        return None
