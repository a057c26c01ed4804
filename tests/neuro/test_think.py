"""think: the belt comes first, the past is never rewritten, and the forms of the reply are read."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from words import Story, scripted, story, table_of, tool

from neuro.backends.base import Completion, Messages, ModelError
from neuro.belt import belt
from neuro.grammar import grammar
from tools.table import ToolTable, cognitive_tools

THINK: Any = import_module("neuro.think")


class GrammarModel:
    """A model that obeys grammars and remembers which it was given."""

    name = "grammar"

    def __init__(self, takes_grammar: bool = True) -> None:
        self.takes_grammar = takes_grammar
        self.grammars: list[str | None] = []

    async def complete(self, messages: Messages, *, grammar: str | None = None, **options: Any) -> Completion:
        self.grammars.append(grammar)
        return Completion("An answer.")

    async def aclose(self) -> None:
        """Nothing to free."""


def one_tool() -> ToolTable:
    return table_of(tool("look", params={"path": {"type": str}}))


def six_steps(workspace: Path) -> Story:
    (workspace / "a.txt").write_text("eins\n")
    return story(
        workspace,
        '(echo :text "one")',
        "(echo :text",
        '(read-file :path "a.txt")\n(read-file :path "b.txt")',
        "",
        "(eval (* 6 7))",
        "It is 42.",
    )


def test_a_conversation_opens_with_the_belt_and_nothing_before_it() -> None:
    table = one_tool()
    (opening,) = THINK.begin_conversation(table)
    assert opening["role"] == "system"
    assert opening["content"].startswith(belt(table))


def test_the_belt_of_a_conversation_may_be_of_another_view() -> None:
    table = one_tool()
    (opening,) = THINK.begin_conversation(table, view="plist", rules="Be kind.")
    assert opening["content"] == belt(table, "plist") + "Be kind."


def test_each_request_is_a_prefix_of_the_next_byte_for_byte(tmp_path: Path) -> None:
    told = six_steps(tmp_path)
    assert told.reply.text == "It is 42."
    assert len(told.requests) == 6
    for before, after in zip(told.requests, told.requests[1:], strict=False):
        assert before.endswith(b"]")
        assert after.startswith(before.removesuffix(b"]") + b",")


def test_belt_then_task_then_history_in_order(tmp_path: Path) -> None:
    messages = json.loads(six_steps(tmp_path).requests[-1])
    assert [message["role"] for message in messages[:3]] == ["system", "user", "assistant"]
    said = [message["content"] for message in messages if message["role"] == "assistant"]
    assert said[1:4] == ["(echo :text", '(read-file :path "a.txt")\n(read-file :path "b.txt")', ""]
    assert messages[-1]["role"] in ("user", "tool")
    assert messages[0]["content"].startswith("AVAILABLE TOOLS:")
    assert messages[1]["content"] == "Do it."
    assert messages[2]["content"] == '(echo :text "one")'


async def test_a_thought_holds_the_reply_its_calls_and_its_cost() -> None:
    messages = Messages()
    messages.append("user", "Look.")
    thought = await THINK.think(messages, scripted('I look.\n(look :path "a")'), one_tool())
    assert thought.text == 'I look.\n(look :path "a")'
    assert [str(call.form) for call in thought.reading.calls] == ['(look :path "a")']
    assert thought.reading.text == "I look."
    assert (thought.finish, thought.usage.output_tokens) == ("stop", 0)
    assert messages[1] == {"role": "assistant", "content": thought.text}


async def test_a_model_that_fails_adds_nothing_to_the_conversation() -> None:
    messages = Messages()
    with pytest.raises(ModelError):
        await THINK.think(messages, scripted(), one_tool())
    assert len(messages) == 0


@pytest.mark.parametrize(
    ("must", "may"),
    [
        ({}, {}),
        ({"must_act": True}, {"may_answer": False}),
        ({"must_answer": True}, {"may_call": False}),
    ],
)
async def test_what_a_model_must_do_becomes_a_grammar(must: dict[str, bool], may: dict[str, bool]) -> None:
    model, table = GrammarModel(), one_tool()
    await THINK.think(Messages(), model, table, **must)
    assert model.grammars == [grammar(table, **may)]


async def test_a_model_that_takes_no_grammar_is_given_none() -> None:
    model = GrammarModel(takes_grammar=False)
    await THINK.think(Messages(), model, one_tool(), must_act=True)
    assert model.grammars == [None]


async def test_the_reply_is_streamed_to_who_asks_for_it() -> None:
    pieces: list[str] = []
    await THINK.think(Messages(), scripted("Hello."), one_tool(), on_text=pieces.append)
    assert "".join(pieces) == "Hello."


async def test_ask_neuro_only_asks() -> None:
    messages = Messages()
    messages.append("user", "Hi.")
    completion = await THINK.ask_neuro(messages, scripted("(echo :text 1)"))
    assert completion.text == "(echo :text 1)"
    assert len(messages) == 1


def test_the_rules_name_only_tools_that_ship() -> None:
    import re

    import_module("tools.builtin")
    named = set(re.findall(r"\(([a-z]+-[a-z]+) :", THINK.RULES))
    assert named <= set(cognitive_tools.names())
