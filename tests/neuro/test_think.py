"""think: the belt comes first, the past is never rewritten, and the forms of the reply are read."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from sentences import CALL_FORMS_IN_TEXT, IT_IS_ASKED_FOR, TAKES_NO_NATIVE_TOOLS
from words import Story, scripted, story, table_of, tool

from quoth.neuro.backends.base import Completion, ModelError, ToolsRefusedError
from quoth.neuro.backends.messages import Messages
from quoth.neuro.prompt.belt import belt, belt_bytes
from quoth.neuro.prompt.dialects import CALL_FORM, DIALECTS, NATIVE
from quoth.neuro.prompt.grammar import grammar
from quoth.tools.registry.table import ToolTable, cognitive_tools

THINK: Any = import_module("quoth.neuro.think")


class GrammarModel:
    """A model that obeys grammars and remembers which it was given."""

    name, tool_view = "grammar", ""

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
    assert model.grammars == [grammar(table, several=False, **may)]  # one call, as the rules say


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


# Native tools


class Picky:
    """A model on a server that refuses tools, and answers without them."""

    name = "picky"
    takes_grammar = False

    def __init__(self, tool_view: str = "openai") -> None:
        self.tool_view = tool_view
        self.asked: list[tuple[bytes, bytes | None]] = []

    async def complete(self, messages: Messages, *, tools: bytes | None = None, **options: Any) -> Completion:
        self.asked.append((messages.as_json(), tools))
        if tools is not None:
            raise ToolsRefusedError("It takes no tools (400).")
        return Completion('(look :path "a")')

    async def aclose(self) -> None:
        """Nothing to free."""


def call(id: str, **arguments: object) -> dict[str, object]:
    return {"id": id, "name": "look", "arguments": arguments}


async def test_native_calls_are_thoughts_and_stay_in_the_conversation() -> None:
    table, model = one_tool(), scripted({"text": "I look.", "tool_calls": [call("c1", path="a")]})
    messages = THINK.begin_conversation(table, dialect=NATIVE)
    thought = await THINK.think(messages, model, table, dialect=NATIVE)
    (found,) = thought.reading.calls
    assert (str(found.form), found.id, thought.reading.text) == ('(look :path "a")', "c1", "I look.")
    assert (thought.dialect, thought.note) == (NATIVE, "")
    assert model.tools == [belt_bytes(table, "openai")]
    assert messages[1]["calls"] == [{"id": "c1", "name": "look", "arguments": '{"path": "a"}'}]


@pytest.mark.parametrize(
    ("must", "choice"),
    [({}, "auto"), ({"must_act": True}, "required"), ({"must_answer": True}, "none")],
)
async def test_what_a_model_must_do_is_a_choice_of_tools(must: dict[str, bool], choice: str) -> None:
    model = scripted("Hello.")
    await THINK.think(Messages(), model, one_tool(), dialect=NATIVE, **must)
    assert model.choices == [choice]


@pytest.mark.parametrize(
    ("tool_view", "reason", "asked"),
    [("openai", "It takes no tools (400).", 2), ("", f"picky {TAKES_NO_NATIVE_TOOLS}.", 1)],
)
async def test_a_server_that_takes_no_tools_is_asked_in_text_and_that_is_told(
    tool_view: str, reason: str, asked: int
) -> None:
    table, model = one_tool(), Picky(tool_view)
    messages = THINK.begin_conversation(table, dialect=NATIVE)
    messages.append("user", "Look.")
    thought = await THINK.think(messages, model, table, dialect=NATIVE)
    assert [str(found.form) for found in thought.reading.calls] == ['(look :path "a")']
    assert thought.dialect is CALL_FORM
    assert thought.note == f"{reason} {IT_IS_ASKED_FOR} {CALL_FORMS_IN_TEXT}."
    assert len(model.asked) == asked
    first, last = model.asked[0], model.asked[-1]
    assert last[1] is None
    assert last[0].startswith(first[0].removesuffix(b"]"))  # the past is not changed
    assert messages[2] == {"role": "user", "content": CALL_FORM.opening(table)}
    assert len(messages) == 4


@pytest.mark.parametrize(
    ("dialect", "opened"),
    [
        ("call-form", '"(look"'),
        ("plist", '"(:target :tool :action :call :tool \\"look\\" :args ("'),
        ("json", '"{\\"tool\\": \\"look\\", \\"args\\": {"'),
    ],
)
async def test_a_model_is_bound_to_its_own_dialect(dialect: str, opened: str) -> None:
    model = GrammarModel()
    await THINK.think(Messages(), model, one_tool(), dialect=DIALECTS[dialect])
    assert f"call-look ::= {opened}" in (model.grammars[0] or "")


async def test_a_dialect_of_tags_binds_to_the_tools_that_have_one() -> None:
    model, tagged = GrammarModel(), tool("look", tag="LOOK")
    await THINK.think(Messages(), model, table_of(tagged, tool("other")), dialect=DIALECTS["tags"])
    assert "call ::= call-look\n" in (model.grammars[0] or "")


def test_the_rules_name_only_tools_that_ship() -> None:
    import re

    import_module("quoth.tools.builtin")
    named = set(re.findall(r"\(([a-z]+-[a-z]+) :", THINK.RULES))
    assert named <= set(cognitive_tools.names())
