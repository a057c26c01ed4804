"""The command ``quoth answer``: says in words what a call asks a person.

Knows options and requests; consent.py records it. A program that a tool has started cannot use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quoth.agent.cli.common import text_of
from quoth.agent.cli.consent import decide_request, find, opened
from quoth.agent.cli.options import Commands, Options, argument, switch
from quoth.agent.terminal.input import can_be_asked, require_person
from quoth.tools.errors import UsageError

if TYPE_CHECKING:
    from quoth.tools.call.question import Question


@dataclass(init=False, repr=False, eq=False)
class AnswerOptions(Options):
    groups = "asking"
    id: str = argument("ID", "the question, as quoth pending lists it")
    text: Sequence[str] = argument(
        "TEXT", "the answer, or the number of a choice; - reads it from stdin", nargs="*", default=()
    )
    resume: bool = switch("--resume", "then go on with its session, or fly its plan on")


def add(commands: Commands) -> None:
    commands.add("answer", "Answer in words what a call asks.", AnswerOptions, answer)


def answer(options: AnswerOptions) -> int:
    """Record an answer. Without one the question is asked, where somebody can be."""
    from quoth.tools.consent.requests import Decision

    require_person()
    said = text_of(options.text[0]) if len(options.text) == 1 else " ".join(options.text)
    if not options.text:
        with opened(options) as (_, broker):
            said = _asked(options, find(options, options.id, broker).question)
    return decide_request(options, options.id, Decision("answer", answer=said), resumes=options.resume)


def _asked(options: AnswerOptions, question: Question | None) -> str:
    """What the person says to a question; empty for a request that is none. Raises UsageError."""
    if question is None:
        return ""
    if not can_be_asked(options.no_input):
        raise UsageError(f"The answer is missing: {options.typed('answer', options.id, also=' TEXT')}")
    import asyncio

    from quoth.agent.terminal.ask import AskTerminal

    said = asyncio.run(AskTerminal().words(question))
    if said is None:
        raise UsageError("No answer was given; the question waits.")
    return said.answer
