"""Writes the text of a flight plan from planned calls: a headline and a program for each.

A text of a model is escaped, so that it is read back as the same call and cannot end its block.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quoth.agent.plan.model import TODO_LINE
from quoth.tools.call.redaction import SECRET
from quoth.tools.errors import QuothError
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.printer import Code, print_value
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.org.edit import escape
from quoth.tools.text import one_line
from quoth.tools.visible import visible

WIDTH = 100
TITLE = 70  # characters of a headline
NOT_KEPT = "(the-secret-is-not-kept)  ; replace [secret] by it, and delete this line"


@dataclass(frozen=True)
class DraftStep:
    """A step: its number, its call or program, and remarks for readers of the plan."""

    number: int
    call: CallForm
    remarks: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        """The text of its block. For a call of ``eval``, this is the program itself."""
        code = next(iter((*self.call.positional, *self.call.args.values())), "")
        text = str(code) if self.call.tool == "eval" else spelt(self.call)
        return f"{NOT_KEPT}\n{text}" if SECRET in text else text

    @property
    def title(self) -> str:
        """The headline: the tool and its first argument."""
        if self.call.tool == "eval":
            return f"{self.number}. a program"
        first = next(iter((*self.call.positional, *self.call.args.values())), "")
        listed = isinstance(first, list) and all(isinstance(one, str) for one in first)
        what = shlex.join(map(str, first)) if listed else first if isinstance(first, str) else ""
        words = one_line(visible(f"{self.call.tool} {what}"), TITLE)
        return f"{self.number}. {words}".rstrip(": ")  # colons at the end would be tags


def draft(title: str, remarks: Iterable[str], steps: Sequence[DraftStep]) -> str:
    """The text of a plan in Org."""
    lines = [f"#+TITLE: {one_line(visible(title), WIDTH)}", f"#+TODO: {TODO_LINE}", ""]
    lines += [f"# {one_line(visible(remark), 300)}" for remark in remarks]
    for step in steps:
        lines += ["", f"* PLAN {step.title}", "  :PROPERTIES:", f"  :ID:       step-{step.number}", "  :END:"]
        lines += [f"  # {one_line(visible(remark), 300)}" for remark in step.remarks]
        lines += ["#+begin_src hy", escape(step.program), "#+end_src"]
    return "\n".join(lines) + "\n"


def spelt(form: CallForm) -> str:
    """A call for a person to read and edit: with real line breaks in texts, if that reads back as the same
    call."""
    plain = CallForm(form.tool, {name: _text(value) for name, value in form.args.items()}, form.positional)
    text = str(plain)
    if len(text) <= WIDTH and "\\n" not in text:
        return text
    rest = "".join(f"\n  :{name} {_long(value)}" for name, value in plain.args.items())
    pretty = f"{str(CallForm(form.tool, {}, form.positional))[:-1]}{rest})"
    return pretty if _means(pretty, plain) else text


def _text(value: object) -> object:
    """A program in an argument as a text, because in a program it would run there."""
    return str(value) if isinstance(value, Code) else value


def _long(value: object) -> str:
    """A value as text; a text of several lines unchanged, unless it contains invisible characters."""
    if not isinstance(value, str) or "\n" not in value or visible(value, lines=True) != value:
        return print_value(value)
    mark = next((mark for mark in ("", "text", "text2") if f"]{mark}]" not in f"{value}]"), None)
    return print_value(value) if mark is None else f"#[{mark}[\n{value}]{mark}]"


def _means(text: str, form: CallForm) -> bool:
    """Whether a text is read back as exactly this call."""
    if re.search("[\ud800-\udfff\r]", text):
        return False
    try:
        return from_model(read_one(text)).identity == form.identity
    except (ReadError, QuothError):
        return False
