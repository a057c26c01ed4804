"""Classifies an entry at the prompt (command, Lisp, a word such as ``exit``, or prose), and reads typed Lisp.

Typed Lisp is read into its tokens, the pairs of its brackets, and the brackets still open at the end, in one
pass of linear time that accepts unfinished and wrong text. Highlighting, indentation and completion use it.
Evaluates no entry.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import field
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from quoth.agent.manual.pages import TOPICS
from quoth.tools.lazy_dataclass import dataclass

Kind = Literal["nothing", "command", "word", "lisp", "prose"]
# Words known from the prompts of shells, editors and other agents, and the commands they mean here.
WORDS = {
    **dict.fromkeys(["exit", "quit", "exit()", "quit()", "/exit", "/quit", ":q"], ",quit"),
    **dict.fromkeys(["help", "help()", "/help", "?"], ",help"),
}
LONGEST_DATUM = (
    10_000  # maximum characters of an entry read as a datum if it does not begin with a parenthesis
)
# How Lisp with a parenthesis begins; an unclosed form continues in the next line.
_OPEN = re.compile(r"(['`~]|~@|#[^\s(]{0,20})?\(|#\{")
# How a datum with white space may begin. Prose that begins like this contains more than one form.
_DATUM = re.compile(r"['`\"\[{]|#[\[({^:*]|[bfr]{1,2}\"", re.IGNORECASE)


def kind_of(text: str, bound: Callable[[str], bool]) -> Kind:
    """The kind of an entry. ``bound`` says whether a name, in Hy's spelling, has a value at the prompt.

    Lisp begins with ``(``, or is one datum that is unlikely to be prose: a number, a string, ``[…]``,
    ``{…}``, ``'x``, a keyword, or a name with a value."""
    text = text.strip()
    if not text:
        return "nothing"
    if text.startswith(","):
        return "command"
    if as_command(text):
        return "word"
    if re.fullmatch(
        r"[)\]}\s]+|;.*", text
    ):  # the rest of a form, so that the reader reports it; or a comment
        return "lisp"
    if _OPEN.match(text):
        return "lisp"
    return "lisp" if _is_datum(text, bound) else "prose"


def as_command(text: str) -> str:
    """The command for a word such as ``exit`` or for ``help policy``; empty for other text."""
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
    """Whether an entry of Lisp continues in the next line, because a bracket or a string is not closed."""
    return _OPEN.match(text.lstrip()) is not None and read_typed(text).unfinished


# Typed Lisp


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
    """A piece of the text. ``kind`` is a group of _TOKEN, or ``form`` for a whole form in brackets."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass
class Frame:
    """An open bracket and its contents so far: words, strings and whole forms."""

    opener: Token
    items: list[Token] = field(default_factory=list)

    @property
    def head(self) -> str:
        """The called name, if this is a call."""
        called = self.opener.text == "(" and self.items and self.items[0].kind == "atom"
        return self.items[0].text if called else ""


@dataclass
class Typed:
    """A text after reading. ``partners`` maps each bracket to its partner, both ways; ``wrong`` are the
    places of closing brackets without a partner; ``heads`` the places of called names."""

    tokens: list[Token] = field(default_factory=list)
    open: list[Frame] = field(default_factory=list)  # open brackets, outermost first
    partners: dict[int, int] = field(default_factory=dict)
    wrong: set[int] = field(default_factory=set)
    heads: set[int] = field(default_factory=set)

    @property
    def last(self) -> Token | None:
        return self.tokens[-1] if self.tokens else None

    @property
    def in_string(self) -> bool:
        """Whether the text ends inside a string."""
        return self.last is not None and self.last.kind == "string" and not is_whole(self.last.text)

    @property
    def in_comment(self) -> bool:
        return self.last is not None and self.last.kind == "comment"

    @property
    def unfinished(self) -> bool:
        """Whether the text is unfinished: a bracket is open, and no bracket was closed by a wrong one."""
        return bool(self.open) and not self.wrong


def long_number(text: str) -> str:
    """The first decimal number with more digits than Python accepts, which Hy would read as infinity; empty
    if there is none."""
    most = sys.get_int_max_str_digits()
    if not 0 < most < len(text):
        return ""
    numbers = (token.text for token in read_typed(text).tokens if token.kind == "number")
    return next((one for one in numbers if re.fullmatch(r"[+-]?[\d_,]+", one) and len(one) > most), "")


def is_form(text: str) -> bool:
    """Whether the text begins like a form in brackets; other text may be prose."""
    return _FORM.match(text) is not None


def is_whole(string: str) -> bool:
    """Whether a string token is closed."""
    if string.startswith("#["):
        tag = string[2 : string.index("[", 2)]
        return len(string) >= 2 * len(tag) + 5 and string.endswith(f"]{tag}]")
    return re.fullmatch(r'[^"]*"(?:[^"\\]|\\.)*+"', string, re.DOTALL) is not None


@lru_cache(maxsize=16)
def read_typed(text: str) -> Typed:
    """Read typed text. Never raises."""
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
