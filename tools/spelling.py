"""Which of many known names is nearest to a misspelt one.

It answers as difflib.get_close_matches does, but compares in full only the names that may be the nearest. It
knows no tool and no error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Final

CLOSE: Final = 0.6  # a ratio of SequenceMatcher, as all below


class Spelling:
    """Names, to be searched more than once. A name counts in any case; of two that differ in nothing else,
    the last is meant."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)
        self._spelt = {name.lower(): name for name in self._names}
        self._bits: dict[tuple[str, int], int] = {}  # one for the nth of a character
        self._known: dict[int, tuple[list[str], list[int]]] = {}  # names and their characters, by length
        for name in self._spelt:
            names, characters = self._known.setdefault(len(name), ([], []))
            names.append(name)
            characters.append(self._characters(name, new=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def _characters(self, word: str, *, new: bool = False) -> int:
        """The characters of a word as a set of bits, so that two words share as many as have both bits."""
        bits, seen, found = self._bits, dict[str, int](), 0
        for char in word:
            nth = seen[char] = seen.get(char, 0) + 1
            bit = bits.get((char, nth))
            if bit is None and new:
                bit = bits[char, nth] = 1 << len(bits)
            found |= bit or 0
        return found

    def nearest(self, word: str) -> str | None:
        """The closest of the names, or None when nothing is close."""
        word = word.lower()
        length, longest = len(word), max(self._known, default=0)
        if _ratio(longest, longest + length) < CLOSE:
            return None
        wanted = self._characters(word)
        near = []  # how near at most those are that share so many characters
        for size, (names, characters) in self._known.items():
            shared = [(one & wanted).bit_count() for one in characters]
            near += [(_ratio(many, size + length), many, names, shared) for many in set(shared)]
        near.sort(key=lambda one: one[0], reverse=True)
        matcher = SequenceMatcher()
        matcher.set_seq2(word)
        order = _Order(word)
        least, found = CLOSE, None
        for most, many, names, shared in near:
            if most < least:
                break
            for name in (name for name, own in zip(names, shared, strict=True) if own == many):
                if _ratio(order.shared(name), len(name) + length) < least:
                    continue
                matcher.set_seq1(name)
                ratio = matcher.ratio()
                if ratio > least or (ratio == least and (found is None or name > found)):
                    least, found = ratio, name
        return None if found is None else self._spelt[found]


class _Order:
    """How many characters in their order another word shares with this one: SequenceMatcher, which takes the
    longest common pieces first, never finds more. Bits stand for places (Hyyrö's common subsequence)."""

    def __init__(self, word: str) -> None:
        self._all = (1 << len(word)) - 1
        self._places: dict[str, int] = {}
        for place, char in enumerate(word):
            self._places[char] = self._places.get(char, 0) | 1 << place

    def shared(self, name: str) -> int:
        free = self._all
        for char in name:
            if used := free & self._places.get(char, 0):
                free = (free + used) | (free - used)
        return (~free & self._all).bit_count()


def _ratio(shared: int, length: int) -> float:
    return 2.0 * shared / length if length else 1.0
