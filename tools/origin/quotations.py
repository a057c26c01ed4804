"""Texts that a model has read, searched for the words of a call: ignoring case, spaces and escapes, and also
word by word, to find another spelling of the same call."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cached_property

from quoth.tools import lazy_regex
from quoth.tools.lazy_dataclass import dataclass

_ESCAPE = lazy_regex.compile(r"\\[ntr]")
_SPACE = lazy_regex.compile(r"[\s\\]+")
_NO_WORD = lazy_regex.compile(r"[\W_]+")
_NOTHING = lazy_regex.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_ENVELOPE = lazy_regex.compile(r" (?:args|arguments|parameters|params|input)(?= )")


def _plain(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _NOTHING.sub("", text))
    return _ESCAPE.sub(" ", text)


def letters(text: str) -> str:
    """The text without spaces, backslashes and invisible characters."""
    return _SPACE.sub("", _plain(text))


def close(text: str) -> str:
    """The text normalised, without spaces and backslashes."""
    return letters(text).casefold()


def words(text: str) -> str:
    """The words of the normalised text, each between spaces."""
    return _ENVELOPE.sub("", f" {_NO_WORD.sub(' ', _plain(text).casefold()).strip()} ")


@dataclass(frozen=True)
class ReadText:
    """A text shown to a model in event ``seq``; ``name`` is its name for people. ``said`` marks a message of
    a chat: people ask for a call in words, so a call is a quotation only if the message contains it letter by
    letter."""

    seq: int
    name: str
    text: str
    said: bool = False

    @cached_property
    def close(self) -> str:
        return letters(self.text) if self.said else close(self.text)

    @cached_property
    def words(self) -> str:
        return words(self.text)

    def quotes(self, typed: Iterable[str], folded: Iterable[str], rows: Iterable[str] = ()) -> bool:
        """Whether the text contains one of the needles: a ``typed`` one in a message of a chat; in any other
        text a ``folded`` one, or one of the ``rows`` of words."""
        if self.said:
            return any(needle in self.close for needle in typed)
        return any(needle in self.close for needle in folded) or any(row in self.words for row in rows)
