"""Options that a server refuses in its own words are left out once and for all, and the user is told."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import KEY, Answer, Server, failure, loopback, said, sse, status
from server_speech import ANTHROPIC, OPENAI, RESPONSES, Speech

from quoth import AsyncAgent, ModelOptions
from quoth.neuro.backends.base import ModelError, RequestOptions, message_tokens
from quoth.neuro.backends.openai import OpenAIBackend
from quoth.neuro.backends.request import tools_without
from quoth.neuro.backends.wordings import KEYS, OPTIONS, refused_name

SCHEMA = {
    "type": "object",
    "properties": {
        "strict": {"type": ["string", "null"], "format": "date", "default": "x"},
        "kind": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
        "mode": {"const": "a"},
        "either": {"oneOf": [{"type": "string"}, {"type": "integer"}], "description": "any_of"},
    },
    "required": ["strict"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "look", "strict": True, "parameters": SCHEMA}}]
OWN = json.dumps(TOOLS, separators=(",", ":")).encode()


@pytest.fixture
def server() -> Iterator[Server]:
    with loopback(status(500)) as server:
        yield server


NAMED: list[tuple[str, str]] = [
    (
        "Extra parameters ['stream_options'] are not allowed when extra-parameters is not set.",
        "stream_options",
    ),
    ("Unknown parameter: 'stream_options'. (request id: 2024)", "stream_options"),
    ("stream_options: Extra inputs are not permitted", "stream_options"),
    ("body -> stream_options\n  Extra inputs are not permitted (type=extra_forbidden)", "stream_options"),
    ("`temperature` is deprecated for this model.", "temperature"),
    ("Unsupported value: 'temperature' does not support 0 with this model.", "temperature"),
    ("Unsupported parameter: 'parallel_tool_calls' is not supported with this model.", "parallel_tool_calls"),
    ("Thinking mode does not support this tool_choice", "tool_choice"),
    ("cache_control: Extra inputs are not permitted", "cache_control"),
    ("Unsupported parameter: store", "store"),
    (
        'Invalid JSON payload received. Unknown name "const" at \'tools[0].function_declarations[5].para'
        "meters.properties[8].value.any_of[0]': Cannot find field.",
        "const",
    ),
    (
        "Unknown name \"additionalProperties\" at 'tools[0].function_declarations[0].parameters': Cannot",
        "additionalProperties",
    ),
    (
        "Unknown name \"type\" at 'tools[0].function_declarations[6].parameters.properties[4].value': Proto "
        "field is not repeating, cannot start list.",
        "type",
    ),
    ("tools.0.function.strict: Extra inputs are not permitted", "strict"),
    ("Invalid schema for function 'look': additional_properties is not supported", "additionalProperties"),
    ("schema keyword anyOf is not supported", "anyOf"),
    ("Unrecognized key: `format`", "format"),
    ("the model is not strict enough", ""),
    ("Missing required parameter: 'tools[0].type'", ""),
    ("Unsupported type in tools[0].function.parameters", ""),
    ("no such field: messages[0].temperature_of_the_room", ""),
    ("strict and temperature", ""),  # nothing is refused
    ("", ""),
]


@pytest.mark.parametrize(("words", "name"), NAMED)
def test_what_is_refused_is_known_by_the_words(words: str, name: str) -> None:
    assert refused_name({"message": words}, [*OPTIONS, *KEYS]) == name


def test_a_key_is_left_out_of_schemas_and_not_of_what_is_named_so() -> None:
    keys = {
        "strict",
        "additionalProperties",
        "anyOf",
        "oneOf",
        "const",
        "format",
        "default",
        "type",
        "minimum",
    }
    (tool,) = json.loads(tools_without(OWN, frozenset(keys)))
    assert tool == {
        "type": "function",
        "function": {
            "name": "look",
            "parameters": {
                "type": "object",
                "properties": {
                    "strict": {"type": "string"},
                    "kind": {"type": "integer"},
                    "mode": {"enum": ["a"]},
                    "either": {"description": "any_of"},
                },
                "required": ["strict"],
            },
        },
    }
    assert tools_without(OWN, frozenset()) is OWN


def tools_of(body: dict[str, Any]) -> str:
    return json.dumps(body["tools"])


@pytest.mark.parametrize("code", [400, 422])
async def test_an_option_is_left_out_from_then_on_and_the_user_is_told(server: Server, code: int) -> None:
    refusal = status(
        code, {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}
    )
    server.answers = [refusal, OPENAI.stream("hello")]
    backend = OpenAIBackend("m", server.base_url, KEY)
    notes = []
    for _ in range(2):
        completion = await backend.complete(said("hi"), on_text=lambda piece: None)
        notes.append(completion.note)
    await backend.aclose()
    assert [("stream_options" in server.asked(place)) for place in range(3)] == [True, False, False]
    url = f"{server.base_url}/chat/completions"
    assert notes == [f"{url} does not accept stream_options; it is left out from now on.", ""]


REFUSES: list[tuple[Speech, str, str]] = [
    (OPENAI, "temperature is not supported", "temperature"),
    (OPENAI, "tool_choice: Input should be 'auto', not required", "tool_choice"),
    (ANTHROPIC, "cache_control: Extra inputs are not permitted", "cache_control"),
    (ANTHROPIC, "tool_choice: only auto may be given with thinking", "tool_choice"),
    (RESPONSES, "Unsupported parameter: store", "store"),
    (RESPONSES, "Unsupported parameter: 'include'", "include"),
]


@pytest.mark.parametrize(("speech", "words", "option"), REFUSES, ids=[f"{r[0].name}-{r[2]}" for r in REFUSES])
async def test_each_kind_of_server_may_refuse_its_options(
    server: Server, speech: Speech, words: str, option: str
) -> None:
    server.answers = [failure(400, words), speech.reply()]
    backend = speech.backend(server.base_url)
    for _ in range(2):
        await backend.complete(said("hi"), tools=OWN, tool_choice="required")
    await backend.aclose()
    assert [option in server.asked(place) for place in range(3)] == [True, False, False]


async def test_tools_are_shown_without_the_keys_that_are_refused(server: Server) -> None:
    server.answers = [
        failure(400, 'Unknown name "additionalProperties" at tools[0]: Cannot find field.'),
        failure(400, "tools.0.function.strict: Extra inputs are not permitted"),
        OPENAI.reply(),
    ]
    backend = OpenAIBackend("m", server.base_url, KEY)
    for _ in range(2):
        assert (await backend.complete(said("hi"), tools=OWN)).text == "hello"
    await backend.aclose()
    assert ["additionalProperties" in tools_of(server.asked(place)) for place in range(4)] == [
        True,
        *[False] * 3,
    ]
    assert ['"strict": true' in tools_of(server.asked(place)) for place in range(4)] == [
        True,
        True,
        False,
        False,
    ]


async def test_a_server_that_refuses_one_thing_for_ever_is_not_asked_for_ever(server: Server) -> None:
    server.answers = [failure(400, "temperature, strict and anyOf: 'strict' is not supported")]
    backend = OpenAIBackend("m", server.base_url, KEY)
    with pytest.raises(ModelError, match="'strict' is not supported"):
        await backend.complete(said("hi"), tools=OWN)
    await backend.aclose()
    assert len(server.requests) <= 4


OUT_OF_RANGE = [
    ("Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 5.", {}),
    ("temperature: Input should be less than or equal to 1", {}),
    ("it has a temperature value of 5 but the supported range is from 0 (inclusive) to 2", {}),
    ("Invalid temperature value, the valid range of temperature is [0, 2.0]", {}),
    ("'temperature' : number must be at most 2", {}),
    ("Invalid value", {"param": "temperature", "code": "decimal_above_max_value"}),
]


@pytest.mark.parametrize(("words", "more"), OUT_OF_RANGE)
@pytest.mark.parametrize("speech", [OPENAI, ANTHROPIC, RESPONSES], ids=lambda speech: speech.name)
async def test_a_temperature_out_of_range_is_told_and_not_left_out(
    server: Server, speech: Speech, words: str, more: dict[str, str]
) -> None:
    server.answers = [failure(400, words, **more)]
    backend = speech.backend(server.base_url)
    with pytest.raises(ModelError, match=re.escape(words)) as raised:
        await backend.complete(said("hi"), options=RequestOptions(temperature=5.0))
    assert type(raised.value) is ModelError  # a shorter conversation would not help
    assert len(server.requests) == 1
    await backend.aclose()


async def test_a_temperature_that_was_not_chosen_is_left_out_where_it_is_out_of_range(server: Server) -> None:
    server.answers = [failure(422, "`temperature` must be strictly positive"), OPENAI.reply()]
    backend = OpenAIBackend("m", server.base_url, KEY)
    assert (await backend.complete(said("hi"))).text == "hello"
    assert "temperature" not in server.asked()
    await backend.aclose()


async def test_a_value_that_responses_refuse_makes_no_thinking_model(server: Server) -> None:
    server.answers = [
        failure(400, "Invalid type: expected a number", code="invalid_type", param="temperature.unit"),
        RESPONSES.reply(),
    ]
    backend = RESPONSES.backend(server.base_url)
    with pytest.raises(ModelError):
        await backend.complete(said("hi"), max_tokens=50)
    await backend.complete(said("hi"), max_tokens=50)
    assert server.asked()["max_output_tokens"] == 50
    await backend.aclose()


async def test_a_request_that_is_too_long_loses_no_option(server: Server) -> None:
    server.answers = [failure(400, "prompt is too long: 9 tokens > 8 maximum; temperature is not the reason")]
    backend = OpenAIBackend("m", server.base_url, KEY)
    with pytest.raises(ModelError):
        await backend.complete(said("hi"))
    await backend.aclose()
    assert len(server.requests) == 1


async def test_a_run_tells_its_listener_once(server: Server, tmp_path: Path) -> None:
    def answer_of(*events: Any) -> Answer:
        return sse(*OPENAI.begin, *events, *OPENAI.end)

    call = OPENAI.call("list-files", "{}")
    server.answers = [
        failure(400, "`temperature` is deprecated"),
        answer_of(*call),
        answer_of(*OPENAI.words("ok")),
    ]
    backend = OPENAI.backend(server.base_url)
    notes: list[str] = []

    def listen(event: Any) -> None:
        if event.kind == "note":
            notes.append(event.data)

    model = ModelOptions(backend, dialect="native")
    async with AsyncAgent(workspace=tmp_path, model=model, on_event=listen) as agent:
        assert (await agent.run("hi")).text == "ok"
    await backend.aclose()
    assert notes == [
        f"{server.base_url}/chat/completions does not accept temperature; it is left out from now on."
    ]


async def test_a_resumed_conversation_asks_as_the_server_was_last_asked(
    server: Server, tmp_path: Path
) -> None:
    """In another process, which knows only the session."""
    options = failure(400, "`temperature` is deprecated")
    roles = failure(400, "System role not supported")
    keys = failure(400, 'Unknown name "additionalProperties" at tools[0]: Cannot find field.')
    server.answers = [options, roles, keys, OPENAI.reply()]
    notes: list[str] = []

    async def say(words: str, session: str | None = None) -> str:
        backend = OPENAI.backend(server.base_url)
        agent = AsyncAgent(
            workspace=tmp_path,
            model=ModelOptions(backend, dialect="native"),
            session=session,
            on_event=lambda event: notes.append(event.data) if event.kind == "note" else None,
        )
        async with agent:
            reply = await agent.say(words)
        await backend.aclose()
        return reply.session

    session = await say("hi")
    assert (len(server.requests), len(notes)) == (4, 1)
    assert await say("and now?", session) == session
    assert (len(server.requests), len(notes)) == (5, 1)
    first, last = server.asked(3), server.asked()
    for body in (first, last):
        assert "temperature" not in body
        assert "additionalProperties" not in tools_of(body)
        assert body["messages"][0]["role"] == "user"
    assert last["messages"][: len(first["messages"])] == first["messages"]
    await say("hi")  # another session begins as ever
    assert "temperature" in server.asked(5)


async def test_adaptations_to_one_server_say_nothing_of_another(server: Server) -> None:
    server.answers = [failure(400, "`temperature` is deprecated"), OPENAI.reply()]
    backend = OPENAI.backend(server.base_url)
    reply = await backend.complete(said("hi"))
    await backend.aclose()
    messages = said("hi")
    messages.append("assistant", reply.text, kept=reply.kept)
    messages.append("user", "and now?")
    for name, sent in ((backend.name, False), ("openai:another", True)):
        other = OpenAIBackend(name.partition(":")[2], server.base_url, KEY, name)
        await other.complete(messages)
        await other.aclose()
        assert ("temperature" in server.asked()) == sent
    assert message_tokens(messages[1]) == message_tokens({"role": "assistant", "content": reply.text})
