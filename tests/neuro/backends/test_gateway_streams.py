"""Streams as gateways between a model and its users send them: nothing is lost, and nothing is run twice."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

import pytest
from loopback import KEY, Answer, Sleeps, loopback, said, sse, status

from quoth.neuro.backends.answers import CallPieces, joined
from quoth.neuro.backends.anthropic import AnthropicBackend
from quoth.neuro.backends.base import Completion
from quoth.neuro.backends.openai import OpenAIBackend

TOOLS = b'[{"type":"function","function":{"name":"look","parameters":{}}}]'
PATH = '{"path":"a"}'
LOOK = ("look", PATH)


def piece(arguments: str | None = None, name: str | None = None, **more: Any) -> dict[str, Any]:
    """A piece of a call: the fields that a server sends, and no others."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"function": function, **more}


def delta(*pieces: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(pieces)}


def heard(deltas: Iterable[Any]) -> list[tuple[str, str]]:
    calls = CallPieces()
    for one in deltas:
        calls.add(one)
    return [(call["name"], call["arguments"]) for call in calls.made()]


ONE = {
    "the name is in every piece": [
        delta(piece('{"pa', "look", index=0, id="c1")),
        delta(piece('th":"a"}', "look", index=0, id="c1")),
    ],
    "the name is in every piece, without ids": [
        delta(piece('{"pa', "look", index=0)),
        delta(piece('th":"a"}', "look", index=0)),
    ],
    "the name is in every piece, with a new id each": [
        delta(piece("", "look", index=0, id="c1")),
        delta(piece('{"pa', "look", index=0, id="c2")),
        delta(piece('th":"a"}', "look", index=0, id="c3")),
    ],
    "the name comes in pieces": [
        delta(piece("", "lo", index=0, id="c1")),
        delta(piece("", "ok", index=0)),
        delta(piece(PATH, index=0)),
    ],
    "the name grows": [
        delta(piece("", "lo", index=0, id="c1")),
        delta(piece(PATH, "look", index=0, id="c1")),
    ],
    "another index for the arguments": [
        delta(piece("", "look", index=0, id="c1")),
        delta(piece('{"path"', index=1)),
        delta(piece(':"a"}', index=1)),
    ],
    "another index and the id again": [
        delta(piece('{"path"', "look", index=0, id="c1")),
        delta(piece(':"a"}', index=1, id="c1")),
    ],
    "an id for each piece": [
        delta(piece('{"path"', "look", index=0, id="c1")),
        delta(piece(':"a"}', index=0, id="c1-x")),
    ],
    "an id for each piece, and no index": [
        delta(piece('{"path"', "look", id="c1")),
        delta(piece(':"a"}', id="c2")),
    ],
    "all arguments again": [
        delta(piece('{"path"', "look", index=0, id="c1")),
        delta(piece(':"a"}', index=0)),
        delta(piece(PATH, "look", index=0, id="c1")),
    ],
    "all arguments again, spaced": [
        delta(piece(PATH, "look", index=0, id="c1")),
        delta(piece('{ "path": "a" }', index=0)),
    ],
    "all arguments so far in each piece": [
        delta(piece('{"pa', "look", index=0, id="c1")),
        delta(piece('{"path":', index=0)),
        delta(piece(PATH, index=0)),
    ],
    "an empty object first": [
        delta(piece("{}", "look", index=0, id="c1")),
        delta(piece('{"path"', index=0)),
        delta(piece(':"a"}', index=0)),
    ],
    "an empty object last": [
        delta(piece(PATH, "look", index=0, id="c1")),
        delta(piece("{}", index=0)),
    ],
    "a call without name and arguments behind it": [
        delta(piece(PATH, "look", index=0, id="c1"), piece("", "", index=1, id="")),
    ],
    "the older field": [
        {"function_call": {"name": "look", "arguments": '{"path"'}},
        {"function_call": {"arguments": ':"a"}'}},
    ],
    "both fields": [
        {**delta(piece(PATH, "look", index=0, id="c1")), "function_call": {"name": "look"}},
        {"function_call": {"arguments": PATH}},
    ],
}


@pytest.mark.parametrize("deltas", ONE.values(), ids=ONE.keys())
def test_one_call_is_heard_as_one(deltas: list[Any]) -> None:
    assert heard(deltas) == [LOOK]


REST = ("rest", "{}")
TWO = {
    "both in one piece, without index and id": (
        [delta(piece(PATH, "look"), piece("{}", "rest"))],
        [LOOK, REST],
    ),
    "one index for both, without ids": (
        [delta(piece(PATH, "look", index=0)), delta(piece("{}", "rest", index=0))],
        [LOOK, REST],
    ),
    "one tool twice at one index": (
        [delta(piece(PATH, "look", index=0)), delta(piece('{"path":"b"}', "look", index=0))],
        [LOOK, ("look", '{"path":"b"}')],
    ),
    "one tool twice at one index, by ids": (
        [delta(piece("", "look", index=0, id="a")), delta(piece(PATH, "look", index=0, id="b"))],
        [("look", ""), LOOK],
    ),
    "one id for both": (
        [delta(piece(PATH, "look", index=0, id="x")), delta(piece("{}", "rest", index=1, id="x"))],
        [LOOK, REST],
    ),
    "the same call twice, by ids": (
        [delta(piece(PATH, "look", index=0, id="a")), delta(piece(PATH, "look", index=1, id="b"))],
        [LOOK, LOOK],
    ),
    "pieces of both in turn": (
        [
            delta(piece("", "look", index=0, id="a"), piece("", "rest", index=1, id="b")),
            delta(piece('{"path":', index=0), piece("{", index=1)),
            delta(piece("}", index=1), piece('"a"}', index=0)),
        ],
        [LOOK, REST],
    ),
}


@pytest.mark.parametrize(("deltas", "calls"), TWO.values(), ids=TWO.keys())
def test_two_calls_are_heard_as_two(deltas: list[Any], calls: list[tuple[str, str]]) -> None:
    assert heard(deltas) == calls


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        ([], ""),
        (["{}", "{}"], "{}"),
        ([PATH, '{"path":"b"}'], PATH + '{"path":"b"}'),  # which of the two is not known
        (['{"a":', '{"a":{}}', "}"], '{"a":{"a":{}}}'),
        (["null"], "null"),
        (["1", "2"], "12"),
        (["{'path': 'a'}"], "{'path': 'a'}"),
    ],
)
def test_arguments_with_more_than_one_reading_stay_as_they_came(pieces: list[str], arguments: str) -> None:
    assert joined(pieces) == arguments


def test_arguments_that_are_cut_anywhere_are_joined_again() -> None:
    """A property: calls as OpenAI documents them, cut at random places, with and without each gateway's
    repeats."""
    chance = random.Random(37)
    for _ in range(2_000):
        text = json.dumps({"a": chance.choice(['"', "\\", "{", "}{", "é", "\n", "[]"]) * 2, "b": [1, {}]})
        cuts = sorted(chance.sample(range(1, len(text)), chance.randint(0, 4)))
        pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        named, ids = chance.random() < 0.5, chance.choice([None, "one", "each"])
        deltas = [
            delta(
                piece(
                    one,
                    "look" if named or not place else None,
                    index=0,
                    **({"id": f"c{place if ids == 'each' else 0}"} if ids else {}),
                )
            )
            for place, one in enumerate(pieces)
        ]
        again = [delta(piece(text, index=0))] if chance.random() < 0.5 else []
        assert heard([*deltas, *again]) == [("look", text)]


async def answered(answer: Answer, *, streams: bool = True) -> Completion:
    with loopback(answer) as server:
        backend = OpenAIBackend("m", server.base_url, KEY, sleep=Sleeps())
        pieces: list[str] = []
        completion = await backend.complete(
            said("hi"), tools=TOOLS, on_text=pieces.append if streams else None
        )
        await backend.aclose()
        assert not streams or "".join(pieces) == completion.text
        return completion


def choice(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, **fields, "finish_reason": finish}]}


async def test_a_message_in_a_stream_is_heard() -> None:
    message = {"role": "assistant", "content": "hello", **delta(piece(PATH, "look", id="c1"))}
    completion = await answered(sse(choice("stop", message=message), "[DONE]"))
    assert (completion.text, len(completion.calls)) == ("hello", 1)


async def test_a_message_that_repeats_the_stream_is_heard_once() -> None:
    events = [choice(delta={"content": "hel"}), choice(delta={"content": "lo"})]
    completion = await answered(sse(*events, choice("stop", message={"content": "hello"}), "[DONE]"))
    assert completion.text == "hello"


EVENTS = "".join(
    f"data: {json.dumps(one)}\n\n"
    for one in (choice(delta={"content": "hel"}), choice(delta={"content": "lo"}), choice("stop", delta={}))
)


@pytest.mark.parametrize("kind", ["application/octet-stream", "text/plain", "application/json"])
@pytest.mark.parametrize("begin", ["", ": PROCESSING\n\n", "\ufeff", "\n\n", "event: message\n"])
@pytest.mark.parametrize("streams", [True, False])
async def test_events_are_known_by_what_they_look_like(kind: str, begin: str, streams: bool) -> None:
    raw = f"{begin}{EVENTS}data: [DONE]\n\n".encode()
    assert (await answered(status(200, raw, kind=kind), streams=streams)).text == "hello"


async def test_a_whole_reply_may_come_as_an_event_stream() -> None:
    reply = json.dumps(choice("stop", message={"content": "hello"})).encode()
    assert (await answered(status(200, reply, kind="text/event-stream"))).text == "hello"


async def test_arguments_that_are_sent_again_are_joined_in_anthropics_format_too() -> None:
    block = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    pieces = ["{}", '{"path":', '"a"}', PATH]
    events = [
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": p},
            }
            for p in pieces
        ),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    with loopback(sse(*events)) as server:
        backend = AnthropicBackend("m", server.base_url, KEY, sleep=Sleeps())
        completion = await backend.complete(said("hi"), tools=TOOLS, on_text=lambda piece: None)
        await backend.aclose()
    assert [call["arguments"] for call in completion.calls] == [PATH]


@pytest.mark.parametrize(
    "end", ["data: [DONE]\n", 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n']
)
async def test_a_last_event_without_an_empty_line_is_heard(end: str) -> None:
    word = json.dumps({"choices": [{"delta": {"content": "hello"}}]})
    events = f"data: {word}\n\n{end}".encode()
    with loopback(lambda handler: handler.send(200, events, "text/event-stream")) as server:
        backend = OpenAIBackend("m", server.base_url, KEY, retries=0)
        assert (await backend.complete(said("hi"), on_text=lambda _: None)).text == "hello"
        await backend.aclose()
