"""What may be asked in words, and which words are an answer."""

from __future__ import annotations

import pytest
from sentences import IS_GIVEN_TWICE, IS_NONE_OF_THE_ANSWERS, THE_ANSWER_IS_EMPTY
from words import complaint, form, shipped

from quoth.tools.call.question import ANSWER_CHARS, MOST_CHARS, Question, asked, marked, question_in
from quoth.tools.errors import UsageError

TOO_LONG = f'(ask-person :question "{"x" * (MOST_CHARS + 1)}")'
WRONG = [
    ('(ask-person :question "  ")', "The question is empty."),
    (TOO_LONG, "The question has 4,001 characters; the limit is 4,000."),
    (
        '(ask-person :question "Q" :choices ["a"])',
        ":choices needs 2 to 9 answers, not one; leave it out for an answer in free words.",
    ),
    (
        '(ask-person :question "Q" :choices [])',
        ":choices needs 2 to 9 answers, not none; leave it out for an answer in free words.",
    ),
    ('(ask-person :question "Q" :choices ["a" " "])', "A choice is empty."),
    ('(ask-person :question "Q" :choices ["yes" "Yes "])', f"The choice yes {IS_GIVEN_TWICE}."),
    ('(ask-person :question "Q" :choices ["a" "b\\nc"])', "A choice must be one line."),
    (
        f'(ask-person :question "Q" :choices ["a" "{"b" * 201}"])',
        "A choice has 201 characters; the limit is 200.",
    ),
    (
        '(ask-person :question "Q" :only True)',
        ":only needs :choices: give :choices, or leave :only out.",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), WRONG, ids=[sentence for _, sentence in WRONG])
def test_a_question_that_cannot_be_asked_is_told_and_asks_nobody(call: str, sentence: str) -> None:
    here = shipped(".")
    said = here.pass_through(call)
    assert (said.status, said.message) == ("invalid", sentence)


ANSWERS = [
    (Question("Q"), "  two words \n", "two words"),
    (Question("Q"), "1", "1"),
    (Question("Q", ("red", "blue")), "2", "blue"),
    (Question("Q", ("red", "blue")), "BLUE", "blue"),
    (Question("Q", ("red", "blue")), "3", "3"),
    (Question("Q", ("2", "1")), "1", "1"),  # what stands there counts before its number
    (Question("Q", ("red", "blue"), only=True), "1", "red"),
]


@pytest.mark.parametrize(("question", "said", "meant"), ANSWERS)
def test_what_a_person_says_is_a_choice_or_their_own_words(question: Question, said: str, meant: str) -> None:
    assert question.answer(said) == meant


def test_an_answer_that_is_none_is_told() -> None:
    only = Question("Q", ("red", "blue"), only=True)
    told = [complaint(UsageError, lambda said=said: only.answer(said)) for said in ("green", "3")]  # type: ignore[misc]
    assert told == [f"{said} {IS_NONE_OF_THE_ANSWERS}: 1 red, 2 blue." for said in ("green", "3")]
    assert complaint(UsageError, lambda: Question("Q").answer(" \n")) == f"{THE_ANSWER_IS_EMPTY}."
    long = complaint(UsageError, lambda: Question("Q").answer("x" * (ANSWER_CHARS + 1)))
    assert long == "The answer has 20,001 characters; the limit is 20,000."


@pytest.mark.parametrize(
    ("text", "choices", "only"),
    [
        ("x" * MOST_CHARS, None, False),
        ("Q", ["a", "b"], False),
        ("Q", [str(number) for number in range(9)], True),
        ("Q", ["a", "b" * 200], True),
        ("Q", ["yes", "no"], True),
    ],
)
def test_a_question_may_be_just_so_large(text: str, choices: list[str] | None, only: bool) -> None:
    question = asked(f" {text}" if len(text) < MOST_CHARS else text, choices, only)
    assert question == Question(text, tuple(choices or ()), only)
    shown = str(marked(form('(ask-person :question "Q")'), question))
    assert question_in(shown) == ('(ask-person :question "Q")', question)


def test_ten_choices_are_too_many() -> None:
    choices = " ".join(['"a"'] * 10)
    said = shipped(".").pass_through(f'(ask-person :question "Q" :choices [{choices}])')
    assert said.message.startswith(":choices needs 2 to 9 answers, not 10;")


def test_an_answer_may_be_just_so_long_and_a_choice_is_named_in_short() -> None:
    assert Question("Q").answer("x" * ANSWER_CHARS) == "x" * ANSWER_CHARS
    only = Question("Q", ("y" * 80, "blue"), only=True)
    said = complaint(UsageError, lambda: only.answer("x" * 80))
    assert said == f"{'x' * 59}… {IS_NONE_OF_THE_ANSWERS}: 1 {'y' * 59}…, 2 blue."
    assert only.range == "1 to 2"
