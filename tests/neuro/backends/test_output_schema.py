"""The schema of an answer: how each provider is told of it, what is left out of it, and what happens where it
is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from loopback import KEY, Answer, Sleeps, failure, loopback, said, status
from pydantic import BaseModel, Field, TypeAdapter

from quoth.neuro.backends.anthropic import AnthropicBackend
from quoth.neuro.backends.base import RequestOptions
from quoth.neuro.backends.openai import OpenAIBackend, ResponsesBackend
from quoth.neuro.backends.request import is_strict, portable_schema

SCHEMA = {
    "type": "object",
    "title": "Town",
    "properties": {
        "title": {"type": "string", "title": "Title", "minLength": 1},
        "people": {"type": "integer", "title": "People", "minimum": 0, "description": "Who live there"},
    },
    "required": ["title", "people"],
}
SENT = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "description": "(characters: at least 1)"},
        "people": {"type": "integer", "description": "Who live there (at least 0)"},
    },
    "required": ["title", "people"],
    "additionalProperties": False,
}
NAMED = {"name": "answer", "schema": SENT, "strict": True}
TOOLS = b'[{"name":"look"}]'

CHAT: Answer = status(200, {"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}]})
RESPONSE: Answer = status(200, {"output": []})
MESSAGE: Answer = status(200, {"content": [], "stop_reason": "end_turn"})
WIRES: list[tuple[Callable[..., Any], Answer, str, Any]] = [
    (OpenAIBackend, CHAT, "response_format", {"type": "json_schema", "json_schema": NAMED}),
    (ResponsesBackend, RESPONSE, "text", {"format": {"type": "json_schema", **NAMED}}),
    (AnthropicBackend, MESSAGE, "output_config", {"format": {"type": "json_schema", "schema": SENT}}),
]
each_wire = pytest.mark.parametrize(
    ("make", "answer", "name", "sent"), WIRES, ids=["chat", "responses", "messages"]
)


@each_wire
async def test_each_wire_says_in_its_own_way_how_to_answer(
    make: Callable[..., Any], answer: Answer, name: str, sent: object
) -> None:
    with loopback(answer) as server:
        backend = make("m", base_url=server.base_url, api_key=KEY)
        await backend.complete(said("hi"), options=RequestOptions(schema=SCHEMA))
        assert server.asked()[name] == sent
        await backend.complete(said("hi"))
        assert name not in server.asked()
        await backend.aclose()


@each_wire
async def test_a_server_that_refuses_a_schema_is_asked_without(
    make: Callable[..., Any], answer: Answer, name: str, sent: object
) -> None:
    with loopback(answer) as server:
        server.answers = [failure(400, f"{name}: json_schema is not supported by this model"), answer]
        backend = make("m", base_url=server.base_url, api_key=KEY, sleep=Sleeps())
        for _ in range(2):
            await backend.complete(said("hi"), options=RequestOptions(schema=SCHEMA))
        assert [name in server.asked(place) for place in range(3)] == [True, False, False]
        await backend.aclose()


async def test_only_openai_itself_gets_a_schema_where_its_chat_completions_may_call() -> None:
    """On other servers it would forbid the calls."""
    with loopback(CHAT) as server:
        backend = OpenAIBackend("m", server.base_url)
        await backend.complete(said("hi"), tools=TOOLS, options=RequestOptions(schema=SCHEMA))
        assert "response_format" not in server.asked()
        options = RequestOptions(schema=SCHEMA)
        await backend.complete(said("hi"), tools=TOOLS, tool_choice="none", options=options)
        assert "response_format" in server.asked()
        await backend.aclose()
    assert OpenAIBackend("m")._schema_fields(SENT, calls=True)


async def test_a_grammar_holds_the_schema_already() -> None:
    with loopback(CHAT) as server:
        backend = OpenAIBackend("m", server.base_url, takes_grammar=True)
        await backend.complete(said("hi"), grammar='root ::= "x"', options=RequestOptions(schema=SCHEMA))
        assert "grammar" in server.asked()
        assert "response_format" not in server.asked()
        await backend.aclose()


class Street(BaseModel):
    name: str = Field(description="Without its number", max_length=30)


@dataclass
class Town:
    main: Annotated[Street, Field(description="The longest")]
    kind: Literal["village", "city"]
    default: int


class House(BaseModel):
    number: int | None = None


@dataclass
class Dog:
    sort: Literal["dog"]


@dataclass
class Cat:
    sort: Literal["cat"]


@dataclass
class Owner:
    pet: Annotated[Dog | Cat, Field(discriminator="sort")]
    more: dict[str, int] = field(default_factory=dict)


def test_a_schema_of_pydantic_loses_what_a_provider_may_refuse() -> None:
    shown = portable_schema(TypeAdapter(Town).json_schema())
    assert shown == {
        "$defs": {
            "Street": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "Without its number (characters: at most 30)"}
                },
                "required": ["name"],
                "additionalProperties": False,
            }
        },
        "type": "object",
        "properties": {
            "main": {"anyOf": [{"$ref": "#/$defs/Street"}], "description": "The longest"},
            "kind": {"type": "string", "enum": ["village", "city"]},
            "default": {"type": "integer"},
        },
        "required": ["main", "kind", "default"],
        "additionalProperties": False,
    }
    assert "oneOf" not in str(portable_schema(TypeAdapter(Owner).json_schema()))


@pytest.mark.parametrize(
    ("output", "strict"), [(Town, True), (House, False), (Owner, False), (list[Street], True), (int, True)]
)
def test_only_a_schema_whose_fields_are_all_there_is_strict(output: Any, strict: bool) -> None:
    assert is_strict(portable_schema(TypeAdapter(output).json_schema())) is strict
