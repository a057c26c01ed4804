"""Lisp as it is being typed: its tokens, which bracket closes which, and what is still open at the end.

One pass over the text, in linear time, that takes what is unfinished or wrong as it is; the highlighting, the
indentation and the completion of the prompt are made of it. It reads no forms (tools/lisp/reader.py does) and
must not know tools or terminals.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

_PLAIN: Final = r"""[^\s()\[\]{};"'`~]"""
_TOKEN: Final = re.compile(
    rf"""(?P<space>\s++)
    | (?P<comment>;[^\n]*+)
    | (?P<string>[bfrBFR]{{0,2}}+"(?:[^"\\]|\\.)*+"?+ | \#\[(?P<tag>[^\[\]\n]*+)\[(?:.*?\](?P=tag)\]|.*+))
    | (?P<open>\#?[({{]|\[)
    | (?P<close>[)\]}}])
    | (?P<prefix>['`]|~@?|\#(?:\*\*?|\^|_))
    | (?P<keyword>:{_PLAIN}*+)
    | (?P<number>[+-]?\.?\d[\w.+-]*+(?!{_PLAIN}))
    | (?P<atom>{_PLAIN}++)
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
CLOSER: Final = {"(": ")", "[": "]", "{": "}"}
_FORM: Final = re.compile(r"\s*(?:['`]|~@?|#[*^]*)*[(\[{]")


class Token(NamedTuple):
    """A piece of the text. ``kind`` is a group of _TOKEN, or ``form`` for a whole one in brackets."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass
class Frame:
    """A bracket that is open, and what stands in it so far: words, strings and whole forms."""

    opener: Token
    items: list[Token] = field(default_factory=list)

    @property
    def head(self) -> str:
        """The name that is called, if this is a call."""
        called = self.opener.text == "(" and self.items and self.items[0].kind == "atom"
        return self.items[0].text if called else ""


@dataclass
class Typed:
    """A text as it was read. ``partners`` leads from each bracket to the one that belongs to it, both ways;
    ``wrong`` are the places of those that close nothing; ``heads`` those of the names that are called."""

    tokens: list[Token] = field(default_factory=list)
    open: list[Frame] = field(default_factory=list)  # what is not closed, the outermost first
    partners: dict[int, int] = field(default_factory=dict)
    wrong: set[int] = field(default_factory=set)
    heads: set[int] = field(default_factory=set)

    @property
    def last(self) -> Token | None:
        return self.tokens[-1] if self.tokens else None

    @property
    def in_string(self) -> bool:
        """Whether the text ends inside of a string."""
        return self.last is not None and self.last.kind == "string" and not is_whole(self.last.text)

    @property
    def in_comment(self) -> bool:
        return self.last is not None and self.last.kind == "comment"

    @property
    def unfinished(self) -> bool:
        """Whether more must come: a bracket is open, and none was closed by another's."""
        return bool(self.open) and not self.wrong


def long_number(text: str) -> str:
    """The first decimal number with more digits than Python reads, which Hy would read as infinity; else
    empty."""
    most = sys.get_int_max_str_digits()
    if not 0 < most < len(text):
        return ""
    numbers = (token.text for token in read_typed(text).tokens if token.kind == "number")
    return next((one for one in numbers if re.fullmatch(r"[+-]?[\d_,]+", one) and len(one) > most), "")


def is_form(text: str) -> bool:
    """Whether what is typed begins as a form in brackets; all else may be prose."""
    return _FORM.match(text) is not None


def is_whole(string: str) -> bool:
    """Whether a string token has its end."""
    if string.startswith("#["):
        tag = string[2 : string.index("[", 2)]
        return len(string) >= 2 * len(tag) + 5 and string.endswith(f"]{tag}]")
    return re.fullmatch(r'[^"]*"(?:[^"\\]|\\.)*+"', string, re.DOTALL) is not None


@lru_cache(maxsize=16)
def read_typed(text: str) -> Typed:
    """Read what is typed; it never fails."""
    typed = Typed()
    add, frames = typed.tokens.append, typed.open
    for match in _TOKEN.finditer(text):
        kind, start = match.lastgroup or "", match.start()
        kind = "string" if kind == "tag" else kind
        token = Token(kind, match[0], start)
        add(token)
        if kind == "open":
            frames.append(Frame(token))
        elif kind == "close":
            if frames and CLOSER[frames[-1].opener.text[-1]] == token.text:
                opener = frames.pop().opener
                typed.partners[opener.end - 1], typed.partners[start] = start, opener.end - 1
                if frames:
                    frames[-1].items.append(Token("form", text[opener.start : token.end], opener.start))
            else:
                typed.wrong.add(start)
        elif frames and kind not in ("space", "comment", "prefix"):
            frame = frames[-1]
            if kind == "atom" and not frame.items and frame.opener.text == "(":
                typed.heads.add(start)
            frame.items.append(token)
    return typed
