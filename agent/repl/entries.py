"""What an entry at the prompt is: a command, Lisp, a word such as ``exit``, or prose for the agent.

Knows text and Hy's reader; it evaluates nothing and looks nothing up but names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

from quoth.agent.manual.pages import TOPICS
from quoth.agent.repl.typed import read_typed

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
