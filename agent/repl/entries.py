"""What an entry at the prompt is: a command, Lisp, a word such as ``exit``, or prose; and Lisp as typed.

Lisp as it is typed are its tokens, which bracket closes which, and what is still open at the end: one pass
over the text, in linear time, that takes what is unfinished or wrong as it is. Highlighting, indentation
and completion use it. Knows text and Hy's reader; it evaluates nothing and looks nothing up but names.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from quoth.agent.manual.pages import TOPICS

Kind = Literal["nothing", "command", "word", "lisp", "prose"]
# What they do, as commands; they are typed at the prompts of shells, editors and other agents.
WORDS = {
    **dict.fromkeys(["exit", "quit", "exit()", "quit()", "/exit", "/quit", ":q"], ",quit"),
    **dict.fromkeys(["help", "help()", "/help", "?"], ",help"),
}
LONGEST_DATUM = 10_000  # characters of an entry without a parenthesis at its start that may be a datum
# How Lisp with a parenthesis begins: what is not closed yet goes on in the next line.
_OPEN = re.compile(r"(['`~]|~@|#[^\s(]{0,20})?\(|#\{")
# How a datum may begin that has white space in it; prose that begins so holds more than one form.
_DATUM = re.compile(r"['`\"\[{]|#[\[({^:*]|[bfr]{1,2}\"", re.IGNORECASE)


def kind_of(text: str, bound: Callable[[str], bool]) -> Kind:
    """What an entry is. ``bound`` says whether a name, as it is written, has a value at the prompt.

    Lisp begins with ``(``, or is one datum that is hardly prose: a number, a string, ``[…]``, ``{…}``,
    ``'x``, a keyword, or a name with a value."""
    text = text.strip()
    if not text:
        return "nothing"
    if text.startswith(","):
        return "command"
    if as_command(text):
        return "word"
    if re.fullmatch(r"[)\]}\s]+|;.*", text):  # what is left of a form, as the reader says; or a comment
        return "lisp"
    if _OPEN.match(text):
        return "lisp"
    return "lisp" if _is_datum(text, bound) else "prose"


def as_command(text: str) -> str:
    """The command that a word such as ``exit`` stands for, or ``help policy``; empty if it is none."""
    word, _, topic = text.partition(" ")
    if word == "help" and topic and any(topic in names for names in TOPICS.values()):
        return f",help {topic}"
    return WORDS.get(text, "")


def _is_datum(text: str, bound: Callable[[str], bool]) -> bool:
    if len(text) > LONGEST_DATUM or (re.search(r"\s", text) and not _DATUM.match(text)):
        return False
    import hy.models as m

    forms = _read(text)
    if forms is None or len(forms) != 1:
        return False
    (form,) = forms
    if isinstance(form, m.Symbol):
        return str(form) in ("True", "False", "None") or bound(str(form))
    if isinstance(form, m.Expression):  # a.b is read as (. a b)
        dotted = len(form) > 1 and form[0] == m.Symbol(".") and isinstance(form[1], m.Symbol)
        return bound(str(form[1])) if dotted else bool(_DATUM.match(text))
    return True


def _read(text: str) -> list[Any] | None:
    import hy
    from hy.errors import HyError

    try:
        return list(hy.read_many(text))
    except (HyError, SyntaxError, ValueError, OverflowError, RecursionError):
        return None


def is_open(text: str) -> bool:
    """Whether an entry of Lisp goes on in the next line: a bracket or a string is not closed."""
    return _OPEN.match(text.lstrip()) is not None and read_typed(text).unfinished


# Lisp as it is typed


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
