"""Shows where the arguments of a call come from: a line for each origin, and a sign where to look.

Knows origins as data, colours and columns; it must not know how origins are found. What a model or a text has
written stands in quotes, with what cannot be seen as escapes, and each further row behind a mark, so that
none imitates another line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quoth.agent.terminal.output import colored, set_in
from quoth.tools.call.call import TYPED
from quoth.tools.lisp.printer import print_string
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.tools.call.call import ArgumentOrigin

SIGN, NO_SIGN = "! ", "  "
MORE = "    … "


def origin_lines(
    origins: Sequence[ArgumentOrigin],
    route: str,
    columns: int = 0,
    *,
    margin: str = "",
    color: bool = False,
) -> list[str]:
    """The origins as lines for a screen of so many columns (0: there is none), each behind ``margin``. ``!``
    stands before what comes from a text or from the model alone. Nothing is said of a call that a person has
    typed."""
    if route in TYPED and all(one.kind == "task" for one in origins):
        return []
    told: dict[tuple[bool, str, str], list[str]] = {}  # whole arguments with one origin share a line
    for one in origins:
        names = told.setdefault((one.known, one.words, one.argument if one.values else ""), [])
        names.append(_label(one))
    lines = []
    for (known, words, _), names in told.items():
        sign = f"{margin}{NO_SIGN if known else SIGN}"
        text = visible(f"{', '.join(dict.fromkeys(names))}: {words}")
        line = f"{sign}{set_in(text, margin + MORE, columns, len(sign), words=True)}"
        lines.append(line if known or not color else colored(line, "yellow"))
    return lines


def _label(one: ArgumentOrigin) -> str:
    """The argument, and those of its values that are meant."""
    more = f" and {one.more:,} more" if one.more else ""
    return f"{one.argument} {' '.join(map(print_string, one.values))}{more}" if one.values else one.argument
