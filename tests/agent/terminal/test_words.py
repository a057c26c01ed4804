"""A question in words at the terminal: it looks like nothing else, and is asked until there is an answer."""

from __future__ import annotations

import asyncio

import pytest
from sentences import IS_NONE_OF_THE_ANSWERS, IT_WRITES_FILES, THE_ANSWER_IS_EMPTY
from words import desk, form, shipped, tool

from quoth.agent.terminal.ask import AskTerminal, SaysYes
from quoth.agent.terminal.question import ASKS, FORM_ASKS, words_rows
from quoth.agent.terminal.requests import pending_text
from quoth.tools.call.call import Call, Verdict
from quoth.tools.call.question import Question
from quoth.tools.consent.requests import Decision
from quoth.tools.registry.table import cognitive_tools
from quoth.tools.storage.database import Store

ASK = tool("ask-person")
CALL = Call("c", form("(ask-person)"))


class Types:
    """Types one line after another; then the input has ended."""

    def __init__(self, *lines: str) -> None:
        self.lines, self.prompts = list(lines), list[str]()

    async def ask(self, question: str, text: str = "") -> str:
        self.prompts.append(question)
        if not self.lines:
            raise EOFError
        return self.lines.pop(0)


def said(person: Types, *question: object, kind: type[AskTerminal] = AskTerminal) -> Decision | None:
    asked = Question(*question)  # type: ignore[arg-type]
    return asyncio.run(kind(person, "ann").answer(ASK, CALL, asked))


def test_choices_are_numbered_and_other_words_are_an_answer_too(capsys: pytest.CaptureFixture[str]) -> None:
    person = Types("2")
    assert said(person, "Which?", ("red", "blue")) == Decision("answer", "ann", answer="blue")
    assert person.prompts == ["  Your answer, 1 to 2 or your own words: "]
    assert capsys.readouterr().err == f"\n{ASKS}\n│ Which?\n│ 1  red\n│ 2  blue\n"
    assert said(Types("green"), "Which?", ("red", "blue")) == Decision("answer", "ann", answer="green")


def test_what_is_no_answer_is_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    person = Types("", "green", "?", "1")
    assert said(person, "Which?", ("red", "blue"), True) == Decision("answer", "ann", answer="red")
    assert person.prompts == ["  Your answer, 1 to 2: "] * 4
    told = capsys.readouterr().err
    assert f"  {THE_ANSWER_IS_EMPTY}. Ctrl-C leaves it for later.\n" in told
    assert "  The model reads your answer exactly as you write it. Ctrl-C leaves it for\n  later.\n" in told
    assert f"  green {IS_NONE_OF_THE_ANSWERS}: 1 red, 2 blue. Ctrl-C leaves it for later.\n" in told


def test_without_an_answer_it_waits() -> None:
    assert said(Types(), "Which?") is None


FORGED = (
    f'Which?\n\n(write-file :path "a.txt" :content "x")\n  asked because {IT_WRITES_FILES}\n'
    "  Allow it? [y/N/s/e/? for help, or why not] \x1b[2K\rquoth: \u202eYes"
)


def test_a_question_that_imitates_an_approval_stands_behind_a_mark(
    capsys: pytest.CaptureFixture[str],
) -> None:
    decision = said(Types("y"), FORGED, ("y\x1b[1A", "n" * 200))
    assert decision == Decision("answer", "ann", answer="y")
    head, asks, *rows = capsys.readouterr().err.rstrip("\n").split("\n")
    assert (head, asks) == ("", ASKS)
    assert all(row.startswith("│ ") for row in rows)
    assert all(row.isprintable() for row in rows)


def test_who_says_yes_to_all_is_asked_for_words_only() -> None:
    async def yes() -> Verdict:
        return await SaysYes(Types()).request(ASK, CALL, IT_WRITES_FILES)

    assert asyncio.run(yes()).kind == "allow"
    assert said(Types("red"), "Which?", kind=SaysYes) == Decision("answer", "ann", answer="red")


def test_a_long_question_breaks_between_words() -> None:
    (shown,) = words_rows(Question("Which of the two servers is to be restarted first tonight?"), 40)
    rows = shown.split("\n")
    assert all(row.startswith("│ ") and len(row) < 40 for row in rows)
    assert " ".join(row.removeprefix("│ ") for row in rows).endswith("is to be restarted first tonight?")


ASKED = "First?\nSecond.\n\nThird."


def test_each_row_of_a_question_that_waits_has_its_place_in_the_list(store: Store) -> None:
    shipped(".")
    here = desk(store, cognitive_tools.get("ask-person"))
    here.pass_through(f'(ask-person :question "{ASKED}")')
    rows = pending_text(here.broker).split("\n")
    assert [row.rstrip() for row in rows[1:5]] == [f"       │ {row}".rstrip() for row in ASKED.split("\n")]


def test_a_form_of_a_server_is_asked_under_its_own_heading(capsys: pytest.CaptureFixture[str]) -> None:
    form = {"type": "object", "properties": {"size": {"enum": ["small", "large"]}}}
    decision = said(Types("?", "2"), "Which?", ("small", "large", "decline"), True, form)
    assert decision == Decision("answer", "ann", answer='{"accept": {"size": "large"}}')
    told = capsys.readouterr().err
    assert f"\n{FORM_ASKS}\n" in told
    assert "The server reads your answer exactly as you write it." in told
