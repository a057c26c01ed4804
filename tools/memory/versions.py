"""Earlier texts of a block, each stored as its difference from the next one.

It knows texts only; it must not know stores, permissions or calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from quoth.tools.call.service_types import BlockVersion


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
