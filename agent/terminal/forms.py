"""Lays out a call form for a person: over several lines where it is long, with long arguments folded.

Knows forms and how they are printed; it must not know questions, requests or events. Nothing is cut without
saying so: a folded argument tells how much is behind it.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection
from typing import Any

from quoth.agent.terminal.output import set_in
from quoth.agent.terminal.text import shortened
from quoth.tools.errors import QuothError
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.printer import Code, DisplayText, pretty, print_string, print_value
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.visible import visible

MARGIN = "│ "  # before each line after the first, so that none imitates what quoth itself says
LONG, HEAD = 400, 60  # characters of an argument that is folded, and of it that is shown
COVERED = 60  # of one that is shown in another way, too
WIDTH = 100
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash", "fish")
BRIEF = 600  # characters of a form on a line of its own

_standing = ""  # the form that the last line on the terminal shows


def stands(form: str) -> None:
    """Remember that the last line on the terminal shows this form; an empty one: that it shows something
    else. A question about the form then need not repeat it."""
    global _standing
    _standing = form


def standing() -> str:
    """The form that the last line on the terminal shows; empty if none."""
    return _standing


def folded(form: CallForm, covered: Collection[str] = (), *, others: bool = True) -> CallForm:
    """The form to show first: each long argument is only its beginning and its length; a program is laid out
    instead. Arguments that are ``covered`` are shown otherwise, and folded sooner;
    without ``others`` they alone are."""

    def short(name: str, value: Any) -> Any:
        text = str(value) if isinstance(value, str) else print_value(value)
        longest = COVERED if name in covered else LONG
        if len(text) <= longest or isinstance(value, Code) or not (others or name in covered):
            return value
        length = f"… {len(text):,} characters"
        if name in covered:
            return DisplayText(length)
        head = text[:HEAD]
        if not isinstance(value, str):
            return DisplayText(f"{head} {length}")
        return DisplayText(f'{print_string(head)[:-1]}{length}"')

    args = {name: short(name, value) for name, value in form.args.items()}
    return CallForm(form.tool, args, tuple(short("", value) for value in form.positional))


def brief(text: str) -> str:
    """The text of a form for a line of its own, with long arguments folded; what is too long then is cut."""
    form = form_of(text)
    return shortened(text if form is None else str(folded(form)), BRIEF)


def form_of(text: str) -> CallForm | None:
    """The form that a stored text holds, if it can be read."""
    try:
        return from_model(read_one(text))
    except (ReadError, QuothError, RecursionError):
        return None


def command_line(form: CallForm) -> str:
    """The program of a call as a person types it at a prompt; of a shell, what it is to run. Empty for a call
    of no program."""
    argv = form.args.get("argv")
    if not isinstance(argv, list | tuple) or not argv or not all(isinstance(word, str) for word in argv):
        return ""
    name = argv[0].rpartition("/")[2]
    network = "with the network: " if form.args.get("network") is True else ""
    if name in SHELLS and len(argv) > 2 and argv[1].startswith("-") and argv[1].endswith("c"):
        more = f" (with {shlex.join(argv[3:])})" if argv[3:] else ""
        return f"{network}{name} runs the shell program{more}: {shortened(argv[2], LONG)}"
    return f"{network}$ {shortened(shlex.join(argv), LONG)}"


def laid_out(form: CallForm, width: int = WIDTH) -> str:
    """The form as text that reads back as the same form: on one line where that is short, else with each
    argument on its own; programs are indented, and the lines of a text are lines."""
    line = str(form)
    if len(line) <= width and "\n" not in line:
        return line
    if not line.startswith(f"({form.tool}"):  # names that no form can have: it is printed as a plist
        return line
    pieces = [_value(value, width - 2, 2) for value in form.positional]
    for name, value in form.args.items():
        label = f":{name} "
        pieces.append(label + _value(value, width - 2, 2 + len(label)))
    return "\n  ".join([f"({form.tool}", *pieces]) + ")"


def _value(value: Any, width: int, indent: int) -> str:
    plain = print_value(value)
    if isinstance(value, DisplayText):
        return plain
    if isinstance(value, Code):
        return _program(value, plain, width, indent)
    if isinstance(value, str) and "\n" in value:
        return in_quotes(value)
    return plain


def _program(code: Code, plain: str, width: int, indent: int) -> str:
    """A program on indented lines; one that has lines of its own keeps them, with its comments."""
    if "\n" in plain or len(plain) + indent <= width:
        return plain
    try:
        laid = pretty(read_one(str(code)), width, indent)
        if print_value(_only(laid)) == plain:  # nothing is lost by it
            return laid
    except (ReadError, QuothError, RecursionError):
        pass
    return plain


def _only(text: str) -> Any:
    return next(iter(from_model(read_one(f"(_ :form {text})")).args.values()))


def in_quotes(text: str) -> str:
    """A text in quotes whose line ends are line ends, and that reads back equal."""
    return '"' + "\n".join(print_string(line)[1:-1] for line in text.split("\n")) + '"'


def margined(text: str, columns: int, first: int = 0) -> str:
    """A text as it stands in a question: what cannot be seen is an escape, and a mark stands before each row
    after the first, which begins at column ``first``, on a screen of so many columns (0: there is none)."""
    return set_in(visible(text, lines=True), MARGIN, columns, first)
