"""A question in words that a call asks a person, and which texts answer it.

An answer permits nothing: it is only the value that the body receives.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quoth.tools.errors import ANSWER, InvalidCallError, ToolFailure, UsageError
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.text import short

MOST_CHARS = 4_000  # of a question
MOST_CHOICES = 9  # one key each
CHOICE_CHARS = 200
ANSWER_CHARS = 20_000
PROGRAM_CHARS = 1_000_000  # of a program's answer


@dataclass(frozen=True)
class Question:
    """A question's text and its choices. With ``only``, an answer must be one of the choices; without it,
    the person may also answer in free words. With a ``form`` of another program (answer_form.py), the words
    fill it in, and the answer is its JSON text. If a ``program`` is named, it answers itself, with any text,
    which is kept as it is."""

    text: str
    choices: tuple[str, ...] = ()
    only: bool = False
    form: Mapping[str, Any] | None = None
    program: str = ""

    def to_data(self) -> dict[str, Any]:
        form = {} if self.form is None else {"fields": json.dumps(self.form)}
        form |= {"program": self.program} if self.program else {}
        return {"question": self.text, "choices": list(self.choices), "only": self.only, **form}

    @property
    def range(self) -> str:
        """The numbers of the choices: ``1 to 3``."""
        return f"1 to {len(self.choices)}"

    def answer(self, said: str) -> str:
        """The person's answer: a choice, given by its number or its words, otherwise the person's own words.
        Raises UsageError."""
        text = said if self.program else said.strip()
        if not text and not self.program:
            raise UsageError("The answer is empty.")
        most = PROGRAM_CHARS if self.program else ANSWER_CHARS
        if len(text) > most:
            raise UsageError(f"The answer has {len(text):,} characters; the limit is {most:,}.")
        if self.program:
            return text
        if self.form is not None:
            from quoth.tools.call.answer_form import read_form  # here: few questions have one

            return read_form(self.form).answer(text)
        named = {choice.casefold(): choice for choice in self.choices}
        numbered = {str(number): choice for number, choice in enumerate(self.choices, 1)}
        if chosen := named.get(text.casefold()) or numbered.get(text):
            return chosen
        if self.only:
            known = ", ".join(f"{number} {short(one, 60)}" for number, one in numbered.items())
            raise UsageError(f"{short(text, 60)} is none of the answers: {known}.")
        return text


def asked(text: str, choices: list[str] | None, only: bool = False) -> Question:
    """A question that can be asked. Raises ToolFailure, ``invalid``."""
    given = tuple(choice.strip() for choice in choices or ())
    many, longest = len(text), max(map(len, given), default=0)
    twice = next((one for one in given if [*map(str.casefold, given)].count(one.casefold()) > 1), "")
    for wrong, why in (
        (not text.strip(), "The question is empty."),
        (many > MOST_CHARS, f"The question has {many:,} characters; the limit is {MOST_CHARS:,}."),
        (choices is not None and not 2 <= len(given) <= MOST_CHOICES, _number(len(given))),
        ("" in given, "A choice is empty."),
        (longest > CHOICE_CHARS, f"A choice has {longest:,} characters; the limit is {CHOICE_CHARS}."),
        (any("\n" in one for one in given), "A choice must be one line."),
        (twice, f"The choice {short(twice, 60)} is given twice."),
        (only and not given, ":only needs :choices: give :choices, or leave :only out."),
    ):
        if wrong:
            raise ToolFailure("invalid", why)
    return Question(text.strip(), given, only)


def _number(given: int) -> str:
    few = "none" if not given else "one" if given == 1 else str(given)
    return f":choices needs 2 to {MOST_CHOICES} answers, not {few}; leave it out for an answer in free words."


def marked(form: CallForm, question: Question) -> CallForm:
    """The form of a request for an answer: the call, with its question."""
    return CallForm(form.tool, {**form.args, ANSWER: question.to_data()})


def question_in(shown: str) -> tuple[str, Question] | None:
    """The form and the question of a stored request; None for a request for approval."""
    try:
        form = from_model(read_one(shown))
    except (ReadError, InvalidCallError):
        return None
    data = form.args.get(ANSWER)
    if not isinstance(data, Mapping):
        return None
    plain = CallForm(form.tool, {name: value for name, value in form.args.items() if name != ANSWER})
    choices = tuple(map(str, data.get("choices", ())))
    fields = json.loads(data["fields"]) if isinstance(data.get("fields"), str) else None
    text, program = str(data.get("question", "")), str(data.get("program", ""))
    return str(plain), Question(text, choices, data.get("only") is True, fields, program)
