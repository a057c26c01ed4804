"""``Blocks``: what a store of memory blocks must be able to do, inside of one transaction.

Operations are written over it, and stores implement it; it must not know either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from quoth.tools.call.service_types import Block, BlockKind, BlockVersion

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
