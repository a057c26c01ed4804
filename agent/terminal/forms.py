"""Lays out call forms, values and results for a person: long forms over several lines, long arguments folded.

Knows how they are printed; it must not know questions, requests or events. Nothing is cut without a note of
how much was left out.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping
from typing import Any

from quoth.agent.terminal.output import set_in
from quoth.tools.call.call import ToolResult
from quoth.tools.errors import QuothError
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.printer import Code, DisplayText, pretty, print_string, print_value
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.text import money, number_of
from quoth.tools.visible import visible

# Values and results


def show_value(value: Any) -> str:
    """Return a value as text: a string as it is, a list of over three items by lines, other data as Lisp. An
    item with a line break in it is quoted, so that each line is one item. A dictionary with one text of
    several lines ends with that, as it is, below its name."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and value:
        long = [name for name, one in value.items() if isinstance(one, str) and "\n" in one.rstrip("\n")]
        if len(long) == 1:
            rest = {name: one for name, one in value.items() if name != long[0]}
            head = f"{print_value(rest)}\n" if rest else ""
            return f"{head}{long[0]}:\n{value[long[0]]}"
    if isinstance(value, list) and len(value) > 3:
        return "\n".join(item if _is_line(item) else print_value(item) for item in value)
    return print_value(value)


def _is_line(item: Any) -> bool:
    return isinstance(item, str) and item.splitlines() in ([], [item])


# How the sentence of the door already says the status.
_SAID = {
    "denied": "denied",
    "pending": "waits for",
    "limited": "is limited",
    "timeout": "did not finish",
    "cancelled": "was cancelled",
}


def failure_text(result: ToolResult) -> str:
    """Return the message of a failed call, after its status unless the message implies that."""
    said = _SAID.get(result.status)
    return result.message if said and said in result.message else f"{result.status}: {result.message}"


Aside = Callable[[str, int], str]  # what is said beside a text that is left out, and the length of its head


def shortened(text: str, limit: int, aside: Aside = lambda text, head: "") -> str:
    """Return ``text``, or if it is longer than ``limit`` characters its head and tail with a note between
    them. ``aside`` adds to the note."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    said = aside(text, head)
    left = len(text) - head - tail
    return f"{text[:head]}\n[… {left:,} characters left out{said} …]\n{text[-tail:]}"


def budget_text(spent: Mapping[str, Any], left: Mapping[str, Any]) -> str:
    """What a run has spent and what is left of its budget: ``1,200 tokens, $0.01 spent; $0.04 left``."""
    took = _amounts({name: one for name, one in spent.items() if name != "seconds" or name in left})
    rest, today = _amounts(left), _amounts(left.get("today", {}))
    told = filter(None, (rest and f"{rest} left", today and f"{today} left for today"))
    return f"{took} spent; {' and '.join(told)}"


def _amounts(amounts: Mapping[str, Any]) -> str:
    known: dict[str, Callable[[Any], str]] = {
        "requests": lambda number: number_of(int(number), "request"),
        "tokens": lambda number: f"{number:,.0f} tokens",
        "cost": money,
        "seconds": lambda number: f"{number:.1f} s",
    }
    return ", ".join(say(amounts[name]) for name, say in known.items() if name in amounts)


# Call forms


MARGIN = "│ "  # before each line after the first, so that none imitates what quoth itself says
LONG, HEAD = 400, 60  # characters of an argument that is folded, and of it that is shown
LINE = 60  # characters of an argument on the line of a call
WIDTH = 100
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash", "fish")
BRIEF = 600  # characters of a form on a line of its own

_standing = ""  # the form that the last line on the terminal shows


def stands(form: str) -> None:
    """Remember that the last line on the terminal shows this form, by ``brief``; an empty one: something
    else. A question about the form then need not repeat it."""
    global _standing
    _standing = form


def standing() -> str:
    """The form that the last line on the terminal shows; empty if none."""
    return _standing


def folded(
    form: CallForm, covered: Collection[str] = (), *, others: bool = True, longest: int = LONG
) -> CallForm:
    """The form to show first: an argument of more than ``longest`` characters is only its beginning and its
    length; a program is laid out instead. A ``covered`` argument is shown elsewhere and here only as ``…``;
    without ``others`` only these are folded."""

    def short(name: str, value: Any) -> Any:
        text = str(value) if isinstance(value, str) else print_value(value)
        if name in covered and text and not isinstance(value, Code):
            return DisplayText("…")
        several = (
            longest < LONG and isinstance(value, str) and "\n" in (value[:-1] if len(text) <= 30 else value)
        )
        if (len(text) <= longest and not several) or isinstance(value, Code) or not others:
            return value
        length = f"… {len(text):,} characters"
        head = text[: HEAD // 2].split("\n")[0] if several else text[:HEAD]
        if not isinstance(value, str):
            return DisplayText(f"{head} {length}")
        return DisplayText(f'{print_string(head)[:-1]}{length}"')

    args = {name: short(name, value) for name, value in form.args.items()}
    return CallForm(form.tool, args, tuple(short("", value) for value in form.positional))


def brief(text: str) -> str:
    """The text of a form for a line of its own, with long texts and texts of several lines folded; a text
    that is still too long is cut."""
    form = form_of(text)
    return shortened(text if form is None else str(folded(form, longest=LINE)), BRIEF)


def shows(line: CallForm, covered: Collection[str]) -> bool:
    """Whether ``brief`` shows all of a form but what is ``covered``."""
    seen = folded(line, longest=LINE)
    whole = [name for name, value in line.args.items() if seen.args[name] == value]
    return (
        {*line.args} <= {*whole, *covered} and seen.positional == line.positional and len(str(seen)) <= BRIEF
    )


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
