"""Lays out call forms, values and results for a person: long forms on several lines, long arguments folded.

A shortened text always has a note with the number of characters left out.
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
    """Return a value as text: a string unchanged, a list of more than three items with one item per line,
    other data as Lisp. An item with a line break is quoted. If a dictionary has one text of several lines,
    that text comes last, unchanged, below its name."""
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


# Words in a message of the door that already express the status.
_SAID = {
    "denied": "denied",
    "pending": "waits for",
    "limited": "is limited",
    "timeout": "did not finish",
    "cancelled": "was cancelled",
}


def failure_text(result: ToolResult) -> str:
    """Return the message of a failed call, preceded by its status unless the message already expresses it."""
    said = _SAID.get(result.status)
    return result.message if said and said in result.message else f"{result.status}: {result.message}"


Aside = Callable[[str, int], str]  # the note about an omitted text, from the text and the length of its head


def shortened(text: str, limit: int, aside: Aside = lambda text, head: "") -> str:
    """Return ``text`` if it has at most ``limit`` characters, otherwise its head and tail with a note between
    them. ``aside`` adds to the note."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    said = aside(text, head)
    left = len(text) - head - tail
    return f"{text[:head]}\n[… {left:,} characters left out{said} …]\n{text[-tail:]}"


def budget_text(spent: Mapping[str, Any], left: Mapping[str, Any]) -> str:
    """The used and remaining budget of a run: ``1,200 tokens, $0.01 spent; $0.04 left``."""
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


MARGIN = "│ "  # before each line but the first, so that no line imitates a message of quoth
LONG, HEAD = 400, 60  # a longer argument is folded; characters shown of a folded one
LINE = 80  # characters of an argument on the line of a call
WIDTH = 100
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash", "fish")
BRIEF = 600  # maximum number of characters of a form on its own line

_standing = ""  # the form that the last line on the terminal shows


def stands(form: str) -> None:
    """Remember the form that ``brief`` printed in the last line of the terminal (empty: another text is
    there), so that a question about the form need not repeat it."""
    global _standing
    _standing = form


def standing() -> str:
    """The form in the last line of the terminal; empty if another text is there."""
    return _standing


def folded(
    form: CallForm, covered: Collection[str] = (), *, others: bool = True, longest: int = LONG
) -> CallForm:
    """The form to show first. Of an argument longer than ``longest`` characters it has the beginning and the
    length, of a program the layout. A ``covered`` argument is shown elsewhere and here only as ``…``; without
    ``others``, only covered arguments are folded."""

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
    """The text of a form for its own line: texts that are long or have several lines are folded, then the
    whole is cut to BRIEF characters."""
    form = form_of(text)
    return shortened(text if form is None else str(folded(form, longest=LINE)), BRIEF)


def shows(line: CallForm, covered: Collection[str]) -> bool:
    """Whether ``brief`` shows the whole form except its ``covered`` arguments."""
    seen = folded(line, longest=LINE)
    whole = [name for name, value in line.args.items() if seen.args[name] == value]
    return (
        {*line.args} <= {*whole, *covered} and seen.positional == line.positional and len(str(seen)) <= BRIEF
    )


def form_of(text: str) -> CallForm | None:
    """The form in a stored text, or None if it cannot be read."""
    try:
        return from_model(read_one(text))
    except (ReadError, QuothError, RecursionError):
        return None


def command_line(form: CallForm) -> str:
    """The program that a call runs, as a person would type it in a shell; empty if the call runs no
    program."""
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
    """The form as text that reads back as the same form: on one line if that is short, otherwise with one
    argument per line. Programs are indented, and texts keep their line breaks."""
    line = str(form)
    if len(line) <= width and "\n" not in line:
        return line
    if not line.startswith(f"({form.tool}"):  # a name that forms cannot have: print it as a plist
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
    """A program on indented lines. A program with line breaks keeps its own lines and comments."""
    if "\n" in plain or len(plain) + indent <= width:
        return plain
    try:
        laid = pretty(read_one(str(code)), width, indent)
        if print_value(_only(laid)) == plain:  # the layout loses nothing
            return laid
    except (ReadError, QuothError, RecursionError):
        pass
    return plain


def _only(text: str) -> Any:
    return next(iter(from_model(read_one(f"(_ :form {text})")).args.values()))


def in_quotes(text: str) -> str:
    """A quoted text with real line breaks, which reads back as the same text."""
    return '"' + "\n".join(print_string(line)[1:-1] for line in text.split("\n")) + '"'


def margined(text: str, columns: int, first: int = 0) -> str:
    """A text for a question: invisible characters are escaped, and MARGIN begins each row but the first. The
    first row begins at column ``first``; the screen has ``columns`` columns (0: no screen)."""
    return set_in(visible(text, lines=True), MARGIN, columns, first)
