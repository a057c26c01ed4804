"""Shows a question that wants an answer in words, so that it cannot pass for one that wants an approval: each
row of it stands behind a mark, and above it is said that an answer allows nothing.

Knows questions as data; it must not know calls, requests or who answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quoth.agent.terminal.forms import MARGIN
from quoth.agent.terminal.output import set_in
from quoth.tools.visible import mixed, visible

if TYPE_CHECKING:
    from quoth.tools.call.question import Question

ASKS = "A question for you; an answer is only words, and allows nothing:"


def rows(question: Question, columns: int) -> list[str]:
    """The question and its choices, each row behind a mark, on a screen of so many columns (0: there is
    none). What cannot be seen is an escape."""
    lines = [question.text, *(f"{number}  {one}" for number, one in enumerate(question.choices, 1))]
    notes = [note for note in (mixed("\n".join(lines)),) if note]
    shown = [f"{MARGIN}{set_in(visible(one, lines=True), MARGIN, columns, len(MARGIN))}" for one in lines]
    return [*shown, *(f"  {set_in(note, '  ', columns, 2)}" for note in notes)]


def prompt(question: Question) -> str:
    """What stands before the answer that is typed."""
    if not question.choices:
        return "  Your answer: "
    return f"  Your answer, {question.range}{'' if question.only else ' or your own words'}: "
