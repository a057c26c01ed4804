"""Quickly excludes files that a pattern cannot match: a text that each match must contain is missing, or the
whole file does not match a weaker pattern that ignores lines.

Without it, a search spends most of its time in files without a hit. A file that passes is still opened
normally, and searched line by line. A pattern that is not plain excludes nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quoth.tools.errors import ToolError
from quoth.tools.safe_regex import compiled

if TYPE_CHECKING:
    from regex import Pattern

Token = tuple[str, str, str]
SECONDS = 1.0

BLOCK = 1 << 16
LARGEST = 5_000_000  # bytes; as in tools/builtin/search.hy
_TOKEN = re.compile(
    r"(?P<space>\\[bBdDwWsSAZ]|[.^$]|\[\^?\]?(?:\\.|[^\]\\])*\])"  # the end of a text
    r"|\\(?P<escaped>[^\w\s])"
    r"|(?P<maybe>[*?]|\{\d*,?\d*\})"
    r"|(?P<more>\+)"
    r"|(?P<open>\((?!\?)|\(\?:)|(?P<close>\))|(?P<or>\|)"
    r"|(?P<plain>[^\\\[\](){}*+?|.^$\ufffd])"
)
_PLACES = {"^", "$", r"\b", r"\B", r"\A", r"\Z"}
_FOLDED = set("iksIKS")  # letters that equal letters outside A to Z if case is ignored


@dataclass(frozen=True)
class Needles:
    """Texts of which a file must contain one; with ``any_case`` in small letters."""

    texts: tuple[bytes, ...]
    any_case: bool

    def may_be_in(self, file: Path) -> bool:
        """Whether a file may contain a match. True for a file that cannot be read: the search reports it."""
        try:
            data = _bytes_of(file)
        except OSError:
            return True
        data = data.lower() if self.any_case else data
        return any(text in data for text in self.texts)


@dataclass(frozen=True)
class Wide:
    """The pattern without the assertions about the beginning or end of a line or word."""

    expression: Pattern[str]

    def may_be_in(self, file: Path) -> bool:
        try:
            text = _bytes_of(file).decode("utf-8", "replace")
            return self.expression.search(text, timeout=SECONDS, concurrent=True) is not None
        except (OSError, TimeoutError):
            return True


def _bytes_of(file: Path) -> bytes:
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        data = os.read(descriptor, BLOCK)
        if len(data) == BLOCK:
            data += b"".join(iter(lambda: os.read(descriptor, LARGEST), b""))
        return data
    finally:
        os.close(descriptor)


def sieve(pattern: str) -> Needles | Wide | None:
    """The filter for a pattern; None for a pattern that is not plain."""
    any_case = pattern.startswith("(?i)")
    try:
        tokens = list(_tokens(pattern.removeprefix("(?i)")))
        texts = tuple(max(texts, key=len, default="").encode() for texts in _branches(tokens, any_case))
    except ValueError:  # or an unpaired surrogate
        return None
    if all(texts):
        return Needles(texts, any_case)
    with contextlib.suppress(ToolError):
        return Wide(compiled(f"{'(?i)' if any_case else ''}{_widened(tokens)}"))
    return None


def _tokens(pattern: str) -> Iterator[Token]:
    """A pattern in pieces: the kind of each, its character, and its text. Raises ValueError if it is not
    plain."""
    at = 0
    while at < len(pattern):
        if (found := _TOKEN.match(pattern, at)) is None:
            raise ValueError(pattern)
        at, kind = found.end(), str(found.lastgroup)
        yield kind, found[kind], found[0]


def _branches(tokens: Iterable[Token], any_case: bool) -> list[list[str]]:
    """The texts in each branch of a pattern, outside its groups."""
    depth, run, branches = 0, "", list[list[str]]([[]])
    for kind, char, _ in (*tokens, ("end", "", "")):
        if kind in ("plain", "escaped") and not (any_case and (char in _FOLDED or not char.isascii())):
            run += char if depth == 0 else ""
            continue
        if run := run[:-1] if kind == "maybe" else run:
            branches[-1].append(run.lower() if any_case else run)
        run = ""
        depth += {"open": 1, "close": -1}.get(kind, 0)
        if kind == "or" and depth == 0:
            branches.append([])
    return branches


def _widened(tokens: Iterable[Token]) -> str:
    """The pattern for a whole text: it matches if the given pattern matches a line."""
    wide, before = "", ""
    for kind, _, text in tokens:
        if text in _PLACES:
            wide += "(?:)"
        elif not (kind == "more" and before in ("maybe", "more")):  # it would become possessive
            wide += text
        before = kind
    return wide
