"""``Blocks``: the operations that a store of memory blocks must implement, inside one transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from quoth.tools.call.service_types import Block, BlockKind, BlockVersion
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.memory import checks
from quoth.tools.text import excerpt, number_of

# Earlier texts of a block, each stored as its difference from the next one.


@dataclass(frozen=True)
class Delta:
    """The difference from a text back to the one before it, which was ``version``, written at the time ``at``
    by ``by``. The first ``head`` and last ``tail`` characters are the same; ``middle`` was between them."""

    version: int
    head: int
    tail: int
    middle: str
    at: str = ""
    by: str = ""

    def before(self, text: str) -> str:
        """The text before ``text``."""
        return f"{text[: self.head]}{self.middle}{text[len(text) - self.tail :]}"


def delta(older: BlockVersion, text: str) -> Delta:
    """The difference from ``text`` back to the older version."""
    if text.startswith(older.text):  # something was appended
        return Delta(older.version, len(older.text), 0, "", older.at, older.by)
    head = common(older.text, text)
    tail = common(older.text[head:][::-1], text[head:][::-1])
    middle = older.text[head : len(older.text) - tail]
    return Delta(older.version, head, tail, middle, older.at, older.by)


def unrolled(text: str, deltas: Iterable[Delta]) -> Iterator[BlockVersion]:
    """Yield the earlier versions of ``text``, newest first, like the deltas."""
    for one in deltas:
        text = one.before(text)
        yield BlockVersion(one.version, text, one.at, one.by)


def common(one: str, other: str) -> int:
    """The length of the common beginning, in characters. Compares slices, because a loop over characters is
    slow."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class Blocks(Protocol):
    """The stored blocks of one agent, inside one transaction. ``owner`` is the agent that shares a block with
    this one; empty means this agent. It checks nothing."""

    def get(self, label: str, owner: str = "") -> Block | None:
        """The block as it is stored, with the given ``owner``; None if it does not exist."""
        ...

    def all(self, kind: BlockKind | None = None) -> Sequence[Block]:
        """The agent's own blocks, all or only those of one kind, in any order."""
        ...

    def labels(self, beginning: str, most: int) -> Sequence[str]:
        """At most ``most`` of the agent's own labels that start with ``beginning``, in order."""
        ...

    def put(self, block: Block, before: Delta | None = None) -> None:
        """Store a new block or, with ``before``, the next version of a block and the delta back."""
        ...

    def remove(self, label: str, owner: str = "") -> None:
        """Remove a block with its versions and shares."""
        ...

    def versions(self, label: str, owner: str = "") -> Sequence[Delta]:
        """The deltas of a block, last change first."""
        ...

    def shared(self, label: str = "") -> Sequence[tuple[Block, str]]:
        """The blocks that other agents share with this one, all or those of one label, each with its stored
        share, in any order."""
        ...

    def shares(self, label: str) -> dict[str, str]:
        """The agents with which this one shares a block, each with its stored share."""
        ...

    def share(self, label: str, agent: str, permission: str | None) -> None:
        """Share a block of this agent. ``permission`` is stored as it is; None ends the share."""
        ...


# The question to a person before a block is changed. An approval covers only the change that its name
# describes.


SHOWN: Final = 200  # characters of a text that a person is shown
BEFORE: Final = 20  # characters shown before the first change of a longer text


class NeedsConsent(Exception):
    """An operation needs a person's approval first; nothing was changed. ``what`` is the name of the
    approval, ``reason`` says why it is needed, ``shown`` describes the block after the change."""

    def __init__(self, what: str, reason: str, shown: str, name: str) -> None:
        super().__init__(reason)
        self.what = what
        self.reason = reason
        self.shown = shown
        self.name = name


def approval(block: Block, access: checks.Access, changes: Mapping[str, Any]) -> str:
    """The name of the approval that an access needs. For an overwrite it contains the version and a digest of
    the old and new text. So it is valid only for this block, this text and this moment."""
    parts = [f"of {_plain(block.owner)}"] if block.owner else []
    if access != "append":
        parts.append(f"{access} version {block.version}")
        if changes.get("kind", block.kind) != block.kind:
            parts.append(f"kind {changes['kind']}")
        if "text" in changes:
            parts.append(f"text {_digest(block.text, changes['text'])}")
    return f"MemoryEdit {_plain(block.label)}" + (f" ({', '.join(parts)})" if parts else "")


def is_about(label: str, what: str) -> bool:
    """Whether the approval ``what`` is for the agent's own block of that label."""
    name = f"MemoryEdit {_plain(label)}"
    return what == name or (what.startswith(f"{name} (") and not what.startswith(f"{name} (of "))


def shown(block: Block, changes: Mapping[str, Any]) -> str:
    """A sentence for a person that describes the block after the changes. A long text is shown from just
    before the first change."""
    would = []
    if changes.get("kind", block.kind) != block.kind:
        would.append(f"be {changes['kind']}")
    if "text" in changes:
        text, start = changes["text"], 0
        if len(text) > SHOWN:
            start = max(0, common(block.text, text) - BEFORE)
        part = ("…" if start else "") + text[start : start + SHOWN + 1].replace("\n", " ")
        would.append(
            f"contain {number_of(len(text), 'character')}" + (f': "{excerpt(part, SHOWN)}"' if text else "")
        )
    return f"{_plain(block.label)} would then {' and '.join(would)}" if would else ""


def _digest(before: str, text: str) -> str:
    """A digest of 96 bits: long enough that a second text with the same digest cannot be found."""
    return hashlib.sha256(json.dumps([before, text]).encode()).hexdigest()[:24]


def _plain(name: str) -> str:
    """A label or an agent's name, in quotes if it could be misread."""
    return json.dumps(name, ensure_ascii=False) if {*'("'} & {*name} else name
