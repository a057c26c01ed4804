"""Reads the words of one simple command as bash does: quotes removed, nothing expanded.

A word whose value depends on anything but its own characters (a variable, a substitution, a glob, braces, a
tilde) is unknown; its text is then its source without quotes. Linear in the length of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

HOLE = "\0"  # stands for an expansion in the source of a command
_PIECE = re.compile(
    r"""(?P<blank>[ \t]+)
    |(?P<join>\\\n)
    |\\(?P<escape>.)
    |'(?P<single>[^']*)'
    |\$'(?P<ansi>(?:[^'\\]|\\.)*)'
    |"(?P<double>(?:[^"\\]|\\.)*)"
    |(?P<plain>[^\s\\'"$`;|&()<>\#*?\[{}~=\x00]+)
    |(?P<open>[$`*?\[{}~=\#\x00])""",
    re.VERBOSE | re.DOTALL,
)
_IN_DOUBLE = re.compile(r'\\(?:\n|([$`"\\]))|[$`\x00]')
_ANSI = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_LETTERS = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))
_GLOB = frozenset("*?[")
_COMPUTED = frozenset("$`\0")


class Word(NamedTuple):
    """A word: its value, or if it is not ``known`` its source without quotes."""

    text: str
    known: bool = True


class _WordPart(NamedTuple):
    text: str
    literal: bool  # quoted, or without a meaning to the shell
    known: bool = True


def read_words(source: str, holes: Iterable[str] = ()) -> list[Word] | None:
    """The words of a simple command; None if the source is not words and blanks alone. ``holes`` are the
    sources of the expansions that are holes in it."""
    words: list[Word] = []
    parts: list[_WordPart] = []
    filling = iter(holes)
    place = 0
    while place < len(source):
        piece = _PIECE.match(source, place)
        if piece is None:
            return None  # an operator, a newline, or a quote that is not closed
        place = piece.end()
        if (kind := piece.lastgroup) == "blank":
            if parts:
                words.append(_word(parts))
            parts = []
        elif kind == "open" and piece.group() == "#" and not parts:
            return None  # a comment
        elif kind is not None and kind != "join":
            parts.append(_part(kind, piece[kind], filling))
    if parts:
        words.append(_word(parts))
    return words


def _part(kind: str, text: str, holes: Iterator[str]) -> _WordPart:
    if kind == "double":
        return _double(text, holes)
    if kind == "ansi":
        return _ansi(text)
    if kind == "open" and text == HOLE:
        return _WordPart(next(holes, ""), False, known=False)
    return _WordPart(text, kind != "open", known=text not in _COMPUTED or kind != "open")


def _double(text: str, holes: Iterator[str]) -> _WordPart:
    known = True

    def plain(found: re.Match[str]) -> str:
        nonlocal known
        piece = found.group()
        if piece in _COMPUTED:
            known = False
            return next(holes, "") if piece == HOLE else piece
        return found[1] or ""

    value = _IN_DOUBLE.sub(plain, text)
    return _WordPart(value, True, known)


def _ansi(text: str) -> _WordPart:
    known = True

    def character(found: re.Match[str]) -> str:
        nonlocal known
        octal, hexadecimal, letter = found.groups()
        if letter is not None:
            known = known and letter not in "uUc" and letter != "x"
            return _LETTERS.get(letter, f"\\{letter}")
        code = int(octal, 8) if octal else int(hexadecimal, 16)
        known = known and 0 < code < 128  # NUL ends the word, and other bytes depend on the locale
        return chr(code)

    value = _ANSI.sub(character, text)
    return _WordPart(value, True, known)


def _word(parts: list[_WordPart]) -> Word:
    text = "".join(part.text for part in parts)
    return Word(text, all(part.known for part in parts) and not _expands(parts))


def _expands(parts: list[_WordPart]) -> bool:
    """Whether a shell expands a word: a glob, braces, a tilde, ``=program`` (zsh)."""
    shown = "".join(part.text if not part.literal else "'" for part in parts)
    if not _GLOB.isdisjoint(shown) or (parts[0].text in ("~", "=") and not parts[0].literal):
        return True
    text = "".join(part.text for part in parts)
    if "{" in shown or "}" in shown:
        return "," in text or ".." in text
    return "~" in shown and ("=" in shown or ":" in text)
