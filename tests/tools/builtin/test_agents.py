"""think and cognitive-loop: what they hand to the services behind them, and who is shown them."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

import pytest
from sentences import CHARACTERS_LEFT_OUT, THE_TASK_IS_EMPTY, THERE_IS_NO_MODEL, THERE_IS_NO_TOOL_NAMED
from words import Gateway, gateway, shipped, tool

from quoth import Services, UnknownToolError
from quoth.neuro.prompt.belt import JSON_VIEWS, TEXT_VIEWS, BeltCatalog, belt, belt_json
from quoth.neuro.prompt.dialects import CALL_FORM, DIALECTS
from quoth.neuro.prompt.grammar import grammar
from quoth.tools.call.call import ALLOW, Call, Verdict, ask
from quoth.tools.call.context import ToolContext
from quoth.tools.door.door import Door
from quoth.tools.errors import ToolError, ToolFailure
from quoth.tools.loading import with_search
from quoth.tools.registry.table import ToolTable, cognitive_tools

import_module("quoth.tools.builtin")
HIDDEN = ("cognitive-loop", "think")
PER_VALUE = import_module("quoth.tools.builtin.agents").VALUE_CHARS


class Parrot:
    """A model that says what it was asked."""

    def __init__(self, name: str = "own") -> None:
        self.name = name

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int = 1024) -> str:
        return "|".join(filter(None, [self.name, system, prompt]))


class Crew:
    """A team that remembers what it was asked to do."""

    def __init__(self, end: Exception | None = None) -> None:
        self.end = end
        self.tasks: list[tuple[str, dict[str, Any]]] = []

    async def may_use(self, model: str) -> Verdict:
        return ask("it costs") if model == "dear" else ALLOW

    async def model(self, spec: str) -> Parrot:
        if spec == "none":
            raise ToolError(f"{THERE_IS_NO_MODEL} none.")
        return Parrot(spec)

    async def run(self, task: str, *, call: Call, context: ToolContext, **given: Any) -> str:
        assert (call.tool, context.team) == ("cognitive-loop", self)
        self.tasks.append((task, {name: value for name, value in given.items() if value not in (None, "")}))
        if self.end is not None:
            raise self.end
        return "done"


def here(crew: Crew | None = None) -> Gateway:
    return shipped(".", given={"services": Services(model=Parrot(), team=crew or Crew())})


# think


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ('(think "Why?")', "own|Why?"),
        ('(think "Why?" "It is")', "own|Why?\n\nVALUE:\nIt is"),
        ('(think "Which?" ["a" 1 None])', 'own|Which?\n\nVALUE:\n["a" 1 None]'),
        ('(think "Which?" {"a" [True]})', 'own|Which?\n\nVALUE:\n{"a" [True]}'),
        ('(think "How many?" 0)', "own|How many?\n\nVALUE:\n0"),
        ('(think "What?" "")', "own|What?\n\nVALUE:\n"),
        ('(think :prompt "Why?" :system "Be brief.")', "own|Be brief.|Why?"),
        ('(think "Why?" :model "other")', "other|Why?"),
        ('(eval (let [data [1 2 3]] (think "Sum?" (cut data 2))))', "own|Sum?\n\nVALUE:\n[1 2]"),
        ('(eval (lfor x [1 2] (think "Odd?" x)))', ["own|Odd?\n\nVALUE:\n1", "own|Odd?\n\nVALUE:\n2"]),
    ],
)
def test_a_model_is_asked_and_shown_the_value(call: str, value: Any) -> None:
    result = here().pass_through(call)
    assert (result.status, result.value, result.message) == ("ok", value, "")


def test_a_value_that_is_too_long_is_cut_and_both_are_told() -> None:
    result = here().pass_through(f'(think "Sum?" "{"x" * (PER_VALUE + 7)}")')
    assert result.value == f"own|Sum?\n\nVALUE:\n{'x' * PER_VALUE}\n[… 7 {CHARACTERS_LEFT_OUT} …]"
    assert result.message == (
        f"Only the first {PER_VALUE} of the value's {PER_VALUE + 7} characters were shown; "
        "ask about slices of it."
    )
    whole = here().pass_through(f'(think "Sum?" "{"x" * PER_VALUE}")')
    assert (len(whole.value), whole.message) == (len("own|Sum?\n\nVALUE:\n") + PER_VALUE, "")


@pytest.mark.parametrize(
    ("call", "status", "message"),
    [
        ('(think " ")', "invalid", "The prompt is empty."),
        ('(think "Why?" :model "none")', "error", f"{THERE_IS_NO_MODEL} none."),
        ('(think "Why?" :model "dear")', "pending", "think waits for a person's approval: it costs."),
        ('(cognitive-loop "")', "invalid", f"{THE_TASK_IS_EMPTY}."),
        (
            '(cognitive-loop "Go." :model "dear")',
            "pending",
            "cognitive-loop waits for a person's approval: it costs.",
        ),
    ],
)
def test_what_cannot_be_is_told(call: str, status: str, message: str) -> None:
    result = here().pass_through(call)
    assert (result.status, result.message) == (status, message)


@pytest.mark.parametrize("call", ['(cognitive-loop "Go." :steps 0)', '(cognitive-loop "Go." :calls -1)'])
def test_a_share_is_no_debt(call: str) -> None:
    assert here().pass_through(call).status == "invalid"


# cognitive-loop


@pytest.mark.parametrize(
    ("call", "given"),
    [
        ('(cognitive-loop "Go.")', {}),
        (
            '(cognitive-loop "Go." :tools ["echo"] :model "other" :steps 3 :calls 0)',
            {"tools": ["echo"], "model": "other", "steps": 3, "calls": 0},
        ),
        ('(cognitive-loop "Go." :tools [])', {"tools": []}),
        ('(eval (cognitive-loop "Go." :value {"a" 1}))', {"data": 'VALUE:\n{"a" 1}'}),
    ],
)
def test_a_sub_agent_is_given_its_task(call: str, given: dict[str, Any]) -> None:
    crew = Crew()
    assert here(crew).pass_through(call).value == "done"
    assert crew.tasks == [("Go.", given)]


@pytest.mark.parametrize("status", ["error", "pending", "limited", "cancelled"])
def test_how_a_sub_agent_ends_is_how_its_call_ends(status: Any) -> None:
    crew = Crew(ToolFailure(status, "So it was."))
    result = here(crew).pass_through('(cognitive-loop "Go.")')
    assert (result.status, result.message) == (status, "So it was.")


@pytest.mark.parametrize("call", ['(think "Why?" :model "x")', '(cognitive-loop "Go.")'])
def test_where_there_is_no_team_it_is_told(call: str) -> None:
    result = shipped(".").pass_through(call)
    assert result.status in ("denied", "error")
    assert "No other models or agents are configured" in result.message


# Who is shown that they are there


@pytest.mark.parametrize("view", sorted((set(TEXT_VIEWS) | set(JSON_VIEWS)) - {"run"}))
def test_a_belt_is_as_if_they_were_not_there(view: str) -> None:
    without = ToolTable(tuple(tool for tool in cognitive_tools if tool.name not in HIDDEN))
    assert len(cognitive_tools) == len(without) + 2
    assert belt_json(cognitive_tools, view) == belt_json(without, view)
    for bounds in ({}, {"may_answer": False}):
        assert grammar(cognitive_tools, **bounds) == grammar(without, **bounds)


def test_who_writes_programs_is_shown_them() -> None:
    shown = belt(cognitive_tools, "run")
    assert all(f"\n- {name}: " in shown for name in HIDDEN)


def test_who_looks_for_them_finds_them() -> None:
    catalog = BeltCatalog(with_search(cognitive_tools))
    assert asyncio.run(catalog.search("sub-agent", 1))[0].startswith("- cognitive-loop: ")
    assert catalog.describe("think").startswith("- think: ")


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("(think about it)", []),
        ("Let me (think carefully) first.", []),
        ('(think :prompt "Why?")', ['(think :prompt "Why?")']),
        ('(cognitive-loop "Go." :tools ["echo"])', ['(cognitive-loop "Go." :tools ["echo"])']),
    ],
)
def test_prose_is_no_call_of_a_tool_that_is_not_shown(text: str, heard: list[str]) -> None:
    calls = [str(call.form) for call in CALL_FORM.read_text(text, cognitive_tools).calls]
    assert [text for text in calls if text.startswith(("(think", "(cogn"))] == heard


def test_in_a_program_it_is_a_call() -> None:
    (call,) = DIALECTS["run"].read_text('(run :program (think "Why?"))', cognitive_tools).calls
    assert 'think "Why?"' in str(call.form)


# A narrower door


def test_a_narrowed_door_has_no_other_tools_and_the_same_judges() -> None:
    one, two = tool("one"), tool("two")
    wide = gateway(one, two)
    narrow = wide.door.narrowed(ToolTable((one,)))
    assert isinstance(narrow, Door)
    assert (narrow.table.names(), wide.door.table.names()) == (["one"], ["one", "two"])
    for part in ("policy", "limits", "gate", "consent", "audit", "receipts", "max_depth"):
        assert getattr(narrow, part) is getattr(wide.door, part)


def test_a_door_cannot_be_narrowed_to_what_it_has_not() -> None:
    with pytest.raises(UnknownToolError, match=f"{THERE_IS_NO_TOOL_NAMED} two"):
        gateway(tool("one")).door.narrowed(ToolTable((tool("two"),)))
