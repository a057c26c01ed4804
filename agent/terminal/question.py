"""What a person sees before deciding on a call or answering a question of a tool: the form, what it would
change, line by line, where its arguments come from, and why it is asked.

Knows forms and texts before and after; it must not know answers, the store or events. Lines that do not fit
on the screen are left out with a note, and ``complete`` is then False. Texts of files and models are hostile:
each line comes after a margin and is broken here, so that none of it imitates a question, and each invisible
character is an escape. In the old text of a file, words that look like keys are hidden; the text that a call
would write is shown as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from quoth.agent.terminal.forms import (
    MARGIN,
    command_line,
    folded,
    laid_out,
    margined,
    shows,
    standing,
    stands,
)
from quoth.agent.terminal.output import colored, may_draw, set_in
from quoth.tools.call.call import TYPED, ArgumentOrigin, Change, Changes, differing, lines_of
from quoth.tools.call.redaction import SECRET, Redactor, redact
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import print_string
from quoth.tools.text import number_of
from quoth.tools.visible import mixed, visible

if TYPE_CHECKING:
    from quoth.tools.call.question import Question
    from quoth.tools.registry.table import CognitiveTool


# Differences


CONTEXT = 3  # unchanged lines shown around the changed ones
MORE = "│   … "
CHANGED = "The change differs from the one you were shown:"
STYLES = {"-": "red", "+": "green", "@": "cyan", " ": "", "!": "yellow"}
Kind = Literal["-", "+", "@", " ", "!"]
_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]{1,60}-----(?s:.*?)(?:-----END [A-Z0-9 ]{1,60}-----|\Z)")
_WORD = re.compile(r"""[^\s"'`=:@/,;()\[\]{}]{4,}""")


@dataclass(frozen=True)
class DiffLine:
    """A line of a difference: taken away (-), put there (+), where it is (@), unchanged, or a note (!)."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class FileDifference:
    """What becomes of one file: a sentence, and the lines."""

    path: str
    head: str
    lines: tuple[DiffLine, ...]
    added: int = 0
    removed: int = 0

    def to_json(self) -> dict[str, Any]:
        diff = "".join(f"{'' if line.kind in '@!' else line.kind}{line.text}\n" for line in self.lines)
        counts = {"added": self.added, "removed": self.removed}
        return {"path": self.path, "summary": self.head, **counts, "diff": diff}


def differences(changes: Changes | None, hide: Redactor | None = None) -> list[FileDifference]:
    """What a call would change, without the secrets that ``hide`` has found in it."""
    return [_difference(change, hide) for change in (changes.files if changes else ())]


def _difference(change: Change, hide: Redactor | None) -> FileDifference:
    path = visible(change.path)
    old, new = lines_of(change.before), lines_of(change.after)
    if change.binary is not None:
        head = f"replaces binary file {path} ({number_of(change.binary, 'byte')}) with {_count(new)}"
        return FileDifference(path, head, tuple(_told("+", new, hide)), len(new))
    if change.before is None:
        head = f"new file {path}, {_count(new)}" if new else f"new file {path}, empty"
        return FileDifference(path, head, tuple(_told("+", new, hide)), len(new))
    known = _known(old)
    if change.after is None:
        return FileDifference(
            path, f"removes {path}, {_count(old)}", tuple(_told("-", known, hide)), 0, len(old)
        )
    if change.before == change.after:
        return FileDifference(path, f"no change to {path}", ())
    blocks = list(differing(old, new))
    removed, added = sum(b - a for a, b, _, _ in blocks), sum(d - c for _, _, c, d in blocks)
    lines = tuple(_hunks(known, _without(_words(old) - _words(known), new), blocks, hide))
    return FileDifference(path, _head(path, len(old), len(new), removed, added), lines, added, removed)


def _count(lines: list[str]) -> str:
    return number_of(len(lines), "line")


def _head(path: str, old: int, new: int, removed: int, added: int) -> str:
    if removed == old and old:
        by = f" with {number_of(added, 'line')}" if added else " and leaves it empty" if not new else ""
        return f"replaces {'the only line' if old == 1 else f'all {old} lines'} of {path}{by}"
    if not removed:
        return f"adds {number_of(added, 'line')} to {path}, which has {old or 'none'}"
    if not added:
        return f"removes {removed} of {number_of(old, 'line')} of {path}"
    return f"replaces {removed} of {number_of(old, 'line')} of {path} with {added}"


# Comparing


def _hunks(
    old: list[str], new: list[str], blocks: list[tuple[int, int, int, int]], hide: Redactor | None
) -> Iterator[DiffLine]:
    """The lines of a unified difference; neighbouring places share the lines between them."""
    shown = 0  # lines of the old text that are behind us
    for at, (a, b, c, d) in enumerate(blocks):
        first = max(shown, a - CONTEXT)
        if at == 0 or first > shown:
            yield DiffLine("@", f"@@ line {first + 1} @@")
        yield from _told(" ", old[first:a], hide)
        yield from _told("-", old[a:b], hide)
        yield from _told("+", new[c:d], hide)
        following = blocks[at + 1][0] if at + 1 < len(blocks) else len(old)
        shown = min(b + CONTEXT, following)
        yield from _told(" ", old[b:shown], hide)


def _known(lines: list[str]) -> list[str]:
    """The lines of a file with words that look like keys hidden; their number stays the same."""
    text = _KEY_BLOCK.sub(lambda found: "\n".join([SECRET] * (found[0].count("\n") + 1)), "".join(lines))
    return [redact(line) for line in lines_of(text)]


def _words(lines: list[str]) -> set[str]:
    return {word for line in lines for word in _WORD.findall(line)}


def _without(held: set[str], lines: list[str]) -> list[str]:
    """New lines without the keys of the old text, if the call keeps them."""
    return [
        _WORD.sub(lambda word: SECRET if word[0] in held else word[0], line) for line in lines if held
    ] or lines


def _told(kind: Kind, lines: Iterable[str], hide: Redactor | None) -> Iterator[DiffLine]:
    for line in lines:
        text = line.removesuffix("\n")
        yield DiffLine(kind, _seen(hide.text(text) if hide else text, kind))
        if not line.endswith("\n"):
            yield DiffLine("!", "\\ no line end at the end of the file")


def _seen(text: str, kind: Kind) -> str:
    """A line as it can be seen; in one that changes, tabs and blanks at the end are marked."""
    if kind != " ":
        text = re.sub(r" +(?=\r?\Z)", lambda blanks: "·" * len(blanks[0]), text.replace("\t", "⇥\t"))
    return visible(text.expandtabs())


# Drawing


def drawn(lines: Iterable[DiffLine], width: int, *, color: bool) -> list[str]:
    """The lines behind a margin, broken so that the terminal breaks none by itself."""
    rows = []
    for line in lines:
        text = line.text if line.kind in "@!" else f"{line.kind} {line.text}"
        for at, piece in enumerate(
            _pieces(text, max(width - len(MARGIN) - 1, 10), max(width - len(MORE) - 1, 10))
        ):
            style = STYLES[line.kind] if color else ""
            rows.append((MORE if at else MARGIN) + (colored(piece, style) if style else piece.rstrip()))
    return rows


def _pieces(text: str, first: int, others: int) -> Iterator[str]:
    """The text in pieces of these widths, cut after a blank where the piece has one in its second half."""
    from rich.cells import chop_cells

    width = first
    while len(pieces := chop_cells(text, width)) > 1:
        piece = pieces[0]
        cut = piece.rfind(" ", len(piece) // 2) + 1 or len(piece)
        yield text[:cut]
        text, width = text[cut:], others
    yield text


# Origins: where arguments come from


SIGN, NO_SIGN = "! ", "  "
ORIGIN_MORE = "    … "


def origin_lines(
    origins: Sequence[ArgumentOrigin],
    route: str,
    columns: int = 0,
    *,
    margin: str = "",
    color: bool = False,
) -> list[str]:
    """The origins as lines for a screen of this width (0: no screen), each after ``margin``. ``!`` marks
    destinations and links that come from a text or from the model alone. A call that a person has typed gets
    no lines."""
    if route in TYPED and all(one.kind == "task" for one in origins):
        return []
    told: dict[tuple[bool, str, str], list[str]] = {}  # whole arguments with one origin share a line
    for one in origins:
        names = told.setdefault((one.marked, one.words, one.argument if one.values else ""), [])
        names.append(_label(one))
    lines = []
    for (marked, words, _), names in told.items():
        sign = f"{margin}{SIGN if marked else NO_SIGN}"
        text = visible(f"{', '.join(dict.fromkeys(names))}: {words}")
        line = f"{sign}{set_in(text, margin + ORIGIN_MORE, columns, len(sign), words=True)}"
        lines.append(colored(line, "yellow") if marked and color else line)
    return lines


def _label(one: ArgumentOrigin) -> str:
    """The argument, and those of its values that are meant."""
    more = f" and {one.more:,} more" if one.more else ""
    return f"{one.argument} {' '.join(map(print_string, one.values))}{more}" if one.values else one.argument


# Questions


ROOM = 10  # lines of the screen for the text around the form
NARROWEST, LOWEST = 20, 6


@dataclass(frozen=True)
class CallQuestion:
    """A question's text, with what is long folded (``brief``), and as a whole."""

    brief: str
    whole: str
    complete: bool  # whether the brief one shows all


def question(
    tool: CognitiveTool,
    hide: Redactor,
    reason: str,
    changes: Changes | None,
    origins: Sequence[ArgumentOrigin] = (),
    route: str = "",
) -> CallQuestion:
    """The question about a call of ``tool``, which ``hide`` shows without its secrets; ``origins`` are those
    of its arguments, ``route`` is how it came."""
    columns, rows = _screen()
    color = may_draw(sys.stderr)
    form, different = hide.form, differences(changes, hide)
    covered = covered_by(tool, form, changes)
    first = folded(form, covered)
    head = margined(laid_out(first, columns - 4), columns)
    cut = _cut(head, rows)
    left = max(rows - cut.count("\n"), LOWEST)
    below, all_drawn = changes_text(different, changes, columns, color=color, rows=left)
    notes = origin_lines(origins, route, columns, margin="  ", color=color)
    notes += _notes(form, hide.text(reason), columns)
    told = [first.args[name] == value for name, value in form.args.items() if name not in covered]
    complete = cut == head and all_drawn and all(told) and first.positional == form.positional
    whole, _ = changes_text(different, changes, columns, color=color)
    begin = ["", cut] if standing() != str(form) or not shows(form, covered) else []
    stands("")
    return CallQuestion(
        "\n".join([*begin, *below, *notes, ""]),
        "\n".join([margined(laid_out(form, columns - 4), columns), *whole]),
        complete,
    )


def changes_text(
    different: Sequence[FileDifference],
    changes: Changes | None,
    columns: int,
    *,
    color: bool,
    rows: int | None = None,
) -> tuple[list[str], bool]:
    """The changes as lines, at most ``rows`` of differences; and whether these are all."""
    lines: list[str] = []
    complete = True
    for one in different:
        lines += _broken(one.head, columns)
        shown = drawn(one.lines, columns, color=color)
        if rows is not None and len(shown) > rows:
            more = number_of(len(shown) - rows + 1, "more line")
            shown, complete = [*shown[: rows - 1], f"{MARGIN}[… {more}; v shows all …]"], False
        if rows is not None:
            rows = max(rows - len(shown), LOWEST)
        lines += shown
    if changes and changes.trouble:
        lines += _broken(visible(changes.trouble), columns)
    return lines, complete


def covered_by(tool: CognitiveTool, form: CallForm, changes: Changes | None) -> Collection[str]:
    """The arguments whose text the differences show: the whole new text of a file; for a tool that ships, a
    part of one, too. Of another tool it is not known what else becomes of a text that is also in a file."""
    files = changes.files if changes else ()
    whole = {one.after for one in files}
    parts = [text for one in files for text in (one.before, one.after) if text and tool.ships]
    paths = {param.name for param in tool.path_params}
    return {
        name
        for name, value in form.args.items()
        if isinstance(value, str) and name not in paths
        if value in whole or any(value in text for text in parts)
    }


def _notes(form: CallForm, reason: str, columns: int) -> list[str]:
    runs = visible(command_line(form), lines=True)
    notes = [runs, visible(f"asked because {reason}", lines=True), mixed(f"{form} {reason}")]
    return [f"  {set_in(note, '    ', columns, 2, words=note is not runs)}" for note in notes if note]


def _broken(text: str, columns: int) -> list[str]:
    """A sentence of ours that contains a foreign name, broken so that each row is indented."""
    from rich.cells import chop_cells

    width = max(columns - 6, NARROWEST)
    rows = [piece for row in textwrap.wrap(text, width) or [""] for piece in chop_cells(row, width) or [""]]
    return [f"    {row}" if at else f"  {row}" for at, row in enumerate(rows)]


def columns() -> int:
    """The columns of the screen that results are printed on; 80 where there is none."""
    return max(shutil.get_terminal_size().columns, NARROWEST)


def _screen() -> tuple[int, int]:
    """The columns of the screen, and the rows that a form may fill."""
    try:
        columns, rows = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):
        columns, rows = 80, 24
    return max(columns or 80, NARROWEST), max((rows or 24) - ROOM, LOWEST)


def _cut(text: str, rows: int) -> str:
    """Return the text if it fits on the screen, else its head and tail with the length of the gap."""
    lines = text.split("\n")
    if len(lines) <= rows:
        return text
    head, tail = lines[: rows * 2 // 3], lines[-(rows // 3) :]
    total, kept = sum(map(len, lines)), sum(map(len, [*head, *tail]))
    gap = f"[… {total - kept} of {total} characters are not shown here; v shows all …]"
    return "\n".join([*head, gap, *tail])


# Questions of a tool, which want an answer in words: they cannot pass for one that wants an approval


ASKS = "A question for you; an answer is only words, and allows nothing:"
FORM_ASKS = "A form for you; your answer is sent to the server that asks, not to the model:"


def words_rows(question: Question, columns: int) -> list[str]:
    """The question and its choices, each row after a mark, on a screen of this width (0: no screen).
    Invisible characters are escapes."""
    lines = [question.text, *(f"{number}  {one}" for number, one in enumerate(question.choices, 1))]
    notes = [note for note in (mixed("\n".join(lines)),) if note]
    shown = [
        f"{MARGIN}{set_in(visible(one, lines=True), MARGIN, columns, len(MARGIN), words=True)}"
        for one in lines
    ]
    return [*shown, *(f"  {set_in(note, '  ', columns, 2, words=True)}" for note in notes)]


def words_prompt(question: Question) -> str:
    """The text before the typed answer."""
    if not question.choices:
        return "  Your answer: "
    return f"  Your answer, {question.range}{'' if question.only else ' or your own words'}: "
