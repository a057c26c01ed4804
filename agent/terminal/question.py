"""What a person sees before deciding on a call: its form, what it would change, and why it is asked.

Knows forms and differences as text; it must not know answers, the store or events. What does not fit on the
screen is left out with a note, and ``complete`` then says that not all was shown.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quoth.agent.terminal.diff import MARGIN, Difference, differences, drawn
from quoth.agent.terminal.forms import command_line, folded, laid_out, margined, standing, stands
from quoth.agent.terminal.output import may_draw, set_in
from quoth.tools.call.preview import Changes
from quoth.tools.call.redaction import Redactor
from quoth.tools.lisp.forms import CallForm
from quoth.tools.text import number_of
from quoth.tools.visible import mixed, visible

if TYPE_CHECKING:
    from quoth.tools.call.call import ArgumentOrigin
    from quoth.tools.registry.table import CognitiveTool

ROOM = 10  # lines of the screen for what stands around the form
NARROWEST, LOWEST = 20, 6


@dataclass(frozen=True)
class Question:
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
) -> Question:
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
    from quoth.agent.terminal.origins import origin_lines  # here: few runs ask

    notes = origin_lines(origins, route, columns, margin="  ", color=color)
    notes += _notes(form, hide.text(reason), columns)
    told = [first.args[name] == value for name, value in form.args.items() if name not in covered]
    complete = cut == head and all_drawn and all(told) and first.positional == form.positional
    whole, _ = changes_text(different, changes, columns, color=color)
    begin = [] if standing() == str(form) else ["", cut]
    stands("")
    return Question(
        "\n".join([*begin, *below, *notes]),
        "\n".join([margined(laid_out(form, columns - 4), columns), *whole]),
        complete,
    )


def changes_text(
    different: Sequence[Difference],
    changes: Changes | None,
    columns: int,
    *,
    color: bool,
    rows: int | None = None,
) -> tuple[list[str], bool]:
    """What would change as lines, at most so many ``rows`` of differences; and whether that is all."""
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
    """A sentence of ours with a name of somebody else's in it, broken so that each row is set in."""
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
