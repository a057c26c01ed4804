"""The decorator twin of def-cognitive-tool, and the function both go through."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from sentences import (
    AN_EXAMPLE_HAS_THE_UNKNOWN,
    CANNOT_BE_READ,
    EXAMPLES_CALL_THE_TOOL_ITSELF,
    IS_NOT_DEFINED,
    IS_NOT_OF_ITS_TYPE,
    THE_MODEL_CHOOSES_BY_IT,
)
from words import Gateway, complaint, form, gateway, tool

from quoth import Call, ToolContext, cognitive_tool, cognitive_tools, deny, registering_in, tool_of
from quoth.tools.errors import DefinitionError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import ToolTable


def at(table: ToolTable) -> Gateway:
    return gateway(*table.tools())


def test_a_decorated_function_is_a_tool_of_the_current_table(table: ToolTable) -> None:
    @cognitive_tool
    def count_words(text: str, least: int = 1) -> int:
        """Count the words.

        Those of one letter too.
        """
        return len([word for word in text.split() if len(word) >= least])

    made = table.get("count-words")
    assert made is tool_of(count_words)
    assert count_words("a bc", 2) == 1
    assert made.description == "Count the words.\n\nThose of one letter too."
    assert made.signature() == "(count-words :text str [:least int = 1])"
    assert made.source.startswith("@cognitive_tool\ndef count_words")
    assert "count-words" not in cognitive_tools
    assert at(table).pass_through('(count-words "a bc" :least 2)').value == 1


def test_options_name_guard_and_documentation_reach_the_tool(table: ToolTable) -> None:
    @cognitive_tool(
        name="peek",
        description="Look.",
        guard=lambda path: deny("not there") if path == "x" else True,
        effects=["reads"],
        cost="cheap",
        timeout=3,
        examples=['(peek :path "a")'],
    )
    def anything(path: Annotated[str, "Where to look"], mode: Annotated[str, 3] = "r") -> str:
        return path + mode

    made = table.get("peek")
    assert (made.description, made.effects, made.cost, made.timeout) == ("Look.", ("reads",), "cheap", 3)
    assert [param.doc for param in made.params] == ["Where to look", ""]
    assert made.examples == (form('(peek :path "a")'),)
    assert at(table).pass_through('(peek "a")').value == "ar"
    assert at(table).pass_through('(peek "x")').message == "peek was denied: not there."


def test_call_and_ctx_are_given_by_the_door_and_not_shown(table: ToolTable) -> None:
    @cognitive_tool
    def who(text: str, call: Call, ctx: ToolContext) -> list[Any]:
        """Say who calls."""
        ctx.effect("looked:around")
        return [call.user, call.depth, ctx.tool_names, text]

    assert list(table.get("who").schema["properties"]) == ["text"]
    result = at(table).pass_through('(who "a")', user="ann")
    assert result.value == ["ann", 0, ["who"], "a"]
    assert result.side_effects == ("looked:around",)
    assert at(table).pass_through('(who "a" :ctx 1)').status == "invalid"


def test_an_asynchronous_body_is_awaited(table: ToolTable) -> None:
    @cognitive_tool
    async def later(text: str) -> str:
        """Wait a little."""
        await asyncio.sleep(0)
        return text

    assert at(table).pass_through('(later "a")').value == "a"


def test_a_python_keyword_with_an_underscore_keeps_its_name(table: ToolTable) -> None:
    @cognitive_tool
    def pick(type_: str) -> str:
        """Pick one."""
        return type_

    assert at(table).pass_through('(pick :type- "a")').value == "a"


def test_the_tool_does_not_give_its_function_away(table: ToolTable) -> None:
    ran: list[int] = []

    @cognitive_tool
    def once() -> None:
        """Run."""
        ran.append(1)

    made = tool_of(once)
    assert complaint(TypeError, made).startswith("once is called through the door")
    assert not hasattr(made, "__wrapped__")
    assert "function" not in repr(made)
    assert not ran


def no_annotation(x) -> None:  # type: ignore[no-untyped-def]
    "Doc."


def stars(*xs: int) -> None:
    "Doc."


def double_stars(**xs: int) -> None:
    "Doc."


def only_positional(x: int, /) -> None:
    "Doc."


def camel(maxLines: int = 3) -> None:
    "Doc."


def no_description(x: int) -> None: ...


def unknown_annotation(x: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
    "Doc."


def wrong_default(x: int = "a") -> None:  # type: ignore[assignment]
    "Doc."


def reserved(deny: str) -> None:
    "Doc."


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (no_annotation, "no-annotation, parameter x: it needs a type annotation."),
        (stars, "stars: *xs cannot be a tool's parameter; each needs its own name."),
        (double_stars, "double-stars: **xs cannot be a tool's parameter; each needs its own name."),
        (
            only_positional,
            "only-positional: x cannot be a tool's parameter; a tool's arguments are given by name; leave out"
            " the /.",
        ),
        (
            camel,
            "camel, parameter maxLines: a parameter's name is lower-case letters, digits and underscores. "
            "Write max_lines.",
        ),
        (no_description, f"no-description needs a description: {THE_MODEL_CHOOSES_BY_IT}."),
        (
            unknown_annotation,
            f"unknown-annotation: its annotations {CANNOT_BE_READ} (name 'Nowhere' {IS_NOT_DEFINED}).",
        ),
        (wrong_default, f'wrong-default, parameter x: the default "a" {IS_NOT_OF_ITS_TYPE}, int.'),
        (reserved, "reserved, parameter deny: deny is reserved; choose another name."),
    ],
)
def test_a_function_that_is_no_tool_is_refused(table: ToolTable, function: Any, sentence: str) -> None:
    assert complaint(DefinitionError, lambda: cognitive_tool(function)) == sentence
    assert len(table) == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"efects": []}, "probe: unknown option :efects. Did you mean effects?"),
        ({"zzz": 1}, "probe: unknown option :zzz."),
        ({"effects": 3}, "probe: :effects must be a list, such as [:reads]."),
        ({"cost": "dear"}, "probe: :cost is :free, :cheap or :expensive, not :dear."),
        ({"examples": ["(other)"]}, f"probe: an example calls other; {EXAMPLES_CALL_THE_TOOL_ITSELF}."),
        (
            {"examples": ["(probe :txt 1)"], "params": {"text": {}}},
            f"probe: {AN_EXAMPLE_HAS_THE_UNKNOWN} :txt. Did you mean text?",
        ),
        ({"examples": ["(probe)"], "params": {"text": {}}}, "probe: an example lacks the argument :text."),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], sentence: str) -> None:
    assert complaint(DefinitionError, lambda: tool(**options)) == sentence


def once() -> None: ...


def test_definitions_go_to_the_innermost_table_and_back() -> None:
    outer, inner = ToolTable(), ToolTable()
    with registering_in(outer):
        with registering_in(inner):
            cognitive_tool(once, name="a", description="A.")
        cognitive_tool(once, name="b", description="B.")
    assert (outer.names(), inner.names()) == (["b"], ["a"])


def test_an_example_may_be_a_form_already() -> None:
    example = CallForm("probe", {"text": "a"})
    assert tool(params={"text": {}}, examples=[example]).examples == (example,)
