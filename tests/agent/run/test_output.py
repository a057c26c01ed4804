"""agent.run(task, output=Model): the answer is a checked object; one that is none is asked for again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field, field_validator
from sentences import COULD_NOT_BE_USED
from typing_extensions import TypedDict
from words import agent, complaint, scripted

from quoth import Agent, ModelOptions, RunLimits
from quoth.agent.replay.replay import Replay
from quoth.agent.run.spec import OutputType
from quoth.neuro.backends.base import NO_OPTIONS, Completion, RequestOptions
from quoth.neuro.backends.messages import Messages
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import UsageError


class Person(BaseModel):
    name: str
    age: int = Field(ge=0)

    @field_validator("name")
    @classmethod
    def is_known(cls, name: str) -> str:
        if name != "Ann":
            raise ValueError("nobody is called so")
        return name


@dataclass
class Pair:
    left: int
    right: int


class Row(TypedDict):
    word: str


class Tree(BaseModel):
    name: str
    below: list[Tree] = []


ANN = '{"name": "Ann", "age": 31}'


def test_an_answer_is_an_object_and_calls_may_come_before_it(tmp_path: Path) -> None:
    (tmp_path / "ann.txt").write_text("31 years")
    with agent(tmp_path, '(read-file :path "ann.txt")', ANN) as it:
        reply = it.run("How old is Ann?", output=Person)
    assert (reply.output, reply.text, len(reply.calls)) == (Person(name="Ann", age=31), ANN, 1)


@pytest.mark.parametrize(
    "answer",
    [
        f"```json\n{ANN}\n```",
        f"Here it is:\n\n{ANN}\n\nCall me again!",
        '{\n  "name": "Ann",\n  "age": 31\n}\n',
        '{"name": "Ann", "age": "31"}',
    ],
)
def test_words_around_an_answer_do_not_hurt(tmp_path: Path, answer: str) -> None:
    with agent(tmp_path, answer) as it:
        assert it.run("How old is Ann?", output=Person).output == Person(name="Ann", age=31)


@pytest.mark.parametrize(
    ("wanted", "answer", "value"),
    [
        (Pair, '{"left": 1, "right": 2}', Pair(1, 2)),
        (Row, '{"word": "a"}', {"word": "a"}),
        (list[int], "[1, 2]", [1, 2]),
        (int, "42", 42),
        (Tree, '{"name": "a", "below": [{"name": "b"}]}', Tree(name="a", below=[Tree(name="b")])),
    ],
)
def test_any_type_with_a_schema_will_do(tmp_path: Path, wanted: Any, answer: str, value: Any) -> None:
    with agent(tmp_path, answer) as it:
        assert it.run("Tell me.", output=wanted).output == value


FAULTS = [
    ("I do not know.", "Your answer is not JSON."),
    ('{"name": "Ann", "age": ', "Your answer is not JSON."),
    ('{"name": "Ann"}', "Your answer does not fit the schema: age is missing."),
    (
        '{"name": 1, "age": -1}',
        "Your answer does not fit the schema: name: input should be a valid string, not 1; "
        "age: input should be greater than or equal to 0, not -1.",
    ),
    (
        '{"name": "Ben", "age": 3}',
        'Your answer does not fit the schema: name: value error, nobody is called so, not "Ben".',
    ),
    (
        "[]",
        "Your answer does not fit the schema: input should be an object, not [].",
    ),
]


@pytest.mark.parametrize(("answer", "fault"), FAULTS)
def test_another_answer_is_asked_for_with_its_fault(tmp_path: Path, answer: str, fault: str) -> None:
    model = scripted(answer, ANN)
    with Agent(workspace=tmp_path, model=model) as it:
        reply = it.run("How old is Ann?", output=Person)
        assert reply.output == Person(name="Ann", age=31)
        assert json.loads(model.seen[1])[-1]["content"].startswith(f"{fault} Give the answer as JSON alone")
        told = [event.data["message"] for event in it._agent.transcript.events(it.session, kind="fault")]
    assert told == [fault]


def test_three_answers_with_faults_end_the_run(tmp_path: Path) -> None:
    with agent(tmp_path, "No.", "No.", "No.") as it:
        reply = it.run("How old is Ann?", output=Person)
    assert (reply.ok, reply.output, reply.text) == (False, None, "")
    assert f"3 replies in a row {COULD_NOT_BE_USED}. The last fault: Your answer is not JSON." in reply.error


def test_what_is_no_type_is_told_before_the_model_is_asked(tmp_path: Path) -> None:
    with agent(tmp_path, ANN) as it:
        said = complaint(UsageError, lambda: it.run("Tell me.", output=print))
        assert said.startswith("output is a type with a JSON Schema, such as a pydantic model, not <built-in")
    with agent(tmp_path, ANN, after_tags="stop") as it:
        said = complaint(UsageError, lambda: it.run("Tell me.", output=Person))
    assert said == 'output needs after_tags="continue", because the last reply of the run must be the answer.'


# How the model is bound to it


class Bound:
    """A model that remembers how its replies were to be bound."""

    context = None

    def __init__(self, *replies: str, grammar: bool = False, tools: bool = False) -> None:
        self.name = "mine"
        self.takes_grammar, self.tool_view = grammar, "openai" if tools else ""
        self.replies = list(replies)
        self.asked: list[tuple[str, bool]] = []  # the root of the grammar, and whether there was a schema

    async def complete(
        self,
        messages: Messages,
        *,
        options: RequestOptions = NO_OPTIONS,
        grammar: str | None = None,
        **_: Any,
    ) -> Completion:
        root = (grammar or "").partition("\n")[0].removeprefix("root ::= ")
        self.asked.append((root, options.schema is not None))
        return Completion(self.replies.pop(0))

    async def aclose(self) -> None:
        """Nothing to free."""


def bound(folder: Path, model: Bound, dialect: str, wanted: Any = Person) -> list[tuple[str, bool]]:
    options = ModelOptions(model, dialect=dialect, must_act=False)
    with Agent(workspace=folder, model=options) as it:
        assert it.run("How old is Ann?", output=wanted).ok
    return model.asked


def test_a_grammar_holds_calls_and_json_and_after_a_fault_the_schema_alone_binds(tmp_path: Path) -> None:
    model = Bound("(echo :text 1)", "{}", ANN, grammar=True)
    assert bound(tmp_path, model, "call-form") == [("calls | jdict", False)] * 2 + [("", True)]
    assert bound(tmp_path, Bound("[1]", grammar=True), "json", list[int]) == [("calls | jlist", False)]


def test_a_server_with_native_tools_is_given_the_schema_beside_them(tmp_path: Path) -> None:
    assert bound(tmp_path, Bound(ANN, tools=True), "native") == [("", True)]


def test_a_model_that_calls_in_text_is_given_the_schema_once_it_has_answered(tmp_path: Path) -> None:
    model = Bound("Let me see.", "I think so.", ANN)
    assert bound(tmp_path, model, "call-form") == [("", False), ("", False), ("", True)]


# Another process


def test_a_run_that_goes_on_in_another_process_is_checked_by_the_schema(tmp_path: Path) -> None:
    limits = RunLimits(steps=9)
    with agent(tmp_path, '(write-file :path "a" :content "b")', limits=limits) as it:
        reply = it.run("How old is Ann?", output=Person)
        (request,) = it.broker.requests()
        it.broker.decide(request.id, Decision("once", "ann"))
    assert reply.status == "pending"
    with agent(tmp_path, '{"age": 3}', ANN, session=reply.session, limits=limits) as again:
        (resumed,) = again.resume()
    assert resumed.output == {"name": "Ann", "age": 31}


def test_a_replay_gives_the_same_prompts_though_it_does_not_know_the_type(tmp_path: Path) -> None:
    with agent(tmp_path, '{"name": "Ben", "age": 3}', ANN) as it:
        it.run("How old is Ann?", output=Person)
        replayed: Replay = it.replay()
    assert (replayed.same, replayed.differences) == (True, [])


def test_a_schema_that_cannot_be_checked_here_still_wants_json() -> None:
    wanted = OutputType.known_by({"type": "object", "unevaluatedProperties": False})
    assert wanted.read('{"a": 1}') == ({"a": 1}, "")
    assert wanted.read("no") == (None, "Your answer is not JSON.")
