"""What an undo would do, and what a session has changed, as lines for a person.

Knows plans as data; it must not know how they are made. Contents of files stand behind a margin.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from quoth.agent.terminal.question import Difference, drawn
from quoth.tools.text import number_of
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.agent.session.undo_plan import Done, Left, PutBack, UndoPlan

MOST = 10  # calls that are not covered, shown one by one


def file_lines(one: Difference, note: str, *, color: bool) -> list[str]:
    """One file: what becomes of it, and the lines that differ."""
    width = max(shutil.get_terminal_size().columns, 40)
    return [one.head + (f" ({note})" if note else ""), *drawn(one.lines, width, color=color)]


def plan_lines(plan: UndoPlan, *, color: bool) -> Iterator[str]:
    """What an act would do, what it leaves as it is, and what it does not cover."""
    yield from changed_lines(plan.files, plan.left, color=color)
    yield from uncovered_lines(plan)


def left_lines(left: Iterable[Left], *, color: bool) -> Iterator[str]:
    for one in left:
        yield f"left as it is: {visible(one.path)}; {visible(one.why)}"
        if one.difference is not None and one.difference.lines:
            yield "  to put it back would change:"
            yield from file_lines(one.difference, "", color=color)[1:]


def uncovered_lines(plan: UndoPlan) -> Iterator[str]:
    yield from (f"not covered: {one}" for one in plan.uncovered[:MOST])
    if len(plan.uncovered) > MOST:
        yield f"not covered: {number_of(len(plan.uncovered) - MOST, 'more call')} (all: --json)"


def changed_lines(found: Iterable[PutBack], left: Iterable[Left], *, color: bool) -> Iterator[str]:
    """What a session has changed, and of which files that is not known."""
    for one in found:
        yield from file_lines(one.difference, one.note, color=color)
    yield from left_lines(left, color=color)


def done_text(plan: UndoPlan, done: Done, redo: str) -> str:
    """What was done, and how that is taken back."""
    files = number_of(len(done.files), "file")
    if plan.redo:
        return f"Took the undo of {files} back."
    return f"Put back {files}. To take that back: {redo}"
