"""``Blocks``: what a store of memory blocks must be able to do, inside of one transaction.

Operations are written over it, and stores implement it; it must not know either.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from quoth.tools.call.service_types import Block, BlockKind, BlockVersion
from quoth.tools.memory import checks
from quoth.tools.text import excerpt, number_of

# Earlier texts of a block, each stored as its difference from the next one.
#
# It knows texts only; it must not know stores, permissions or calls.


@dataclass(frozen=True)
class Delta:
    """What leads from a text back to the one before it, which was ``version``, written ``at`` a time ``by``
    somebody: its first ``head`` and last ``tail`` characters are still there, ``middle`` stood between."""

    version: int
    head: int
    tail: int
    middle: str
    at: str = ""
    by: str = ""

    def before(self, text: str) -> str:
        """The text that was there before ``text``."""
        return f"{text[: self.head]}{self.middle}{text[len(text) - self.tail :]}"


def delta(older: BlockVersion, text: str) -> Delta:
    """What leads from ``text`` back to the older version."""
    if text.startswith(older.text):  # something was appended
        return Delta(older.version, len(older.text), 0, "", older.at, older.by)
    head = common(older.text, text)
    tail = common(older.text[head:][::-1], text[head:][::-1])
    middle = older.text[head : len(older.text) - tail]
    return Delta(older.version, head, tail, middle, older.at, older.by)


def unrolled(text: str, deltas: Iterable[Delta]) -> Iterator[BlockVersion]:
    """The earlier versions of ``text``, the newest first, as the deltas are."""
    for one in deltas:
        text = one.before(text)
        yield BlockVersion(one.version, text, one.at, one.by)


def common(one: str, other: str) -> int:
    """How many characters both begin with. Compares slices, since a loop over characters is slow."""
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
    """The stored blocks of one agent, inside of one transaction. ``owner`` names the agent of a block that
    is shared with this one; empty is this agent. It checks nothing."""

    def get(self, label: str, owner: str = "") -> Block | None:
        """The block as it is stored, with ``owner`` as it was given."""
        ...

    def all(self, kind: BlockKind | None = None) -> Sequence[Block]:
        """The agent's own blocks, all or those of one kind, in any order."""
        ...

    def labels(self, beginning: str, most: int) -> Sequence[str]:
        """At most so many of the agent's own labels that begin so, in order."""
        ...

    def put(self, block: Block, before: Delta | None = None) -> None:
        """Store a block: a new one, or with ``before`` its next version, together with the way back."""
        ...

    def remove(self, label: str, owner: str = "") -> None:
        """Remove a block with its versions and shares."""
        ...

    def versions(self, label: str, owner: str = "") -> Sequence[Delta]:
        """The ways back from a block's text, that of the last change first."""
        ...

    def shared(self, label: str = "") -> Sequence[tuple[Block, str]]:
        """The blocks that others share with this agent, all or those of one label, each with its owner and
        its bound, in any order."""
        ...

    def shares(self, label: str) -> dict[str, str]:
        """The agents with which this one shares a block, each with its bound."""
        ...

    def share(self, label: str, agent: str, permission: str | None) -> None:
        """Share a block of this agent with this bound, a text that is kept as it is; None ends it."""
        ...


# What a person is asked before a block is changed: an approval covers what its name says, and nothing else.
#
# It must not know stores, calls or how a person is asked.


SHOWN: Final = 200  # characters of a text that a person is shown
BEFORE: Final = 20  # of them, so many before the first change of a longer one


class NeedsConsent(Exception):
    """An operation needs a person's approval first; nothing was changed. ``what`` they approve; ``reason``
    says why they are asked, ``shown`` what the block would hold."""

    def __init__(self, what: str, reason: str, shown: str, name: str) -> None:
        super().__init__(reason)
        self.what = what
        self.reason = reason
        self.shown = shown
        self.name = name


def approval(block: Block, access: checks.Access, changes: Mapping[str, Any]) -> str:
    """The name of the approval that an access needs: of an overwrite it says the version that is changed, and
    with the digest of both texts, what from and what to. So it holds for no other block, text or moment."""
    parts = [f"of {_plain(block.owner)}"] if block.owner else []
    if access != "append":
        parts.append(f"{access} version {block.version}")
        if changes.get("kind", block.kind) != block.kind:
            parts.append(f"kind {changes['kind']}")
        if "text" in changes:
            parts.append(f"text {_digest(block.text, changes['text'])}")
    return f"MemoryEdit {_plain(block.label)}" + (f" ({', '.join(parts)})" if parts else "")


def is_about(label: str, what: str) -> bool:
    """Whether an approval of that name is about an own block of that label."""
    name = f"MemoryEdit {_plain(label)}"
    return what == name or (what.startswith(f"{name} (") and not what.startswith(f"{name} (of "))


def shown(block: Block, changes: Mapping[str, Any]) -> str:
    """What a block would be, for a person; of its text the beginning, or of a long one what follows the first
    change."""
    would = []
    if changes.get("kind", block.kind) != block.kind:
        would.append(f"be {changes['kind']}")
    if "text" in changes:
        text, start = changes["text"], 0
        if len(text) > SHOWN:
            start = max(0, common(block.text, text) - BEFORE)
        part = ("…" if start else "") + text[start : start + SHOWN + 1].replace("\n", " ")
        would.append(
            f"hold {number_of(len(text), 'character')}" + (f': "{excerpt(part, SHOWN)}"' if text else "")
        )
    return f"{_plain(block.label)} would then {' and '.join(would)}" if would else ""


def _digest(before: str, text: str) -> str:
    """96 bits, so that no two texts are found that share it, one to be shown and one to be written."""
    return hashlib.sha256(json.dumps([before, text]).encode()).hexdigest()[:24]


def _plain(name: str) -> str:
    """A label or the name of an agent: in quotes if it could be read as something else."""
    return json.dumps(name, ensure_ascii=False) if {*'("'} & {*name} else name
