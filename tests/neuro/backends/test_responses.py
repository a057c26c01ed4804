"""The Responses backend against a real server on loopback: what is asked, heard, and what goes wrong.

The streams that OpenAI documents are in test_recorded_streams.py, a real model in test_llama_server.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from loopback import KEY, Answer, Server, Sleeps, failure, loopback, said, sse, status

from quoth.neuro.backends.base import Backend, ModelError
from quoth.neuro.backends.messages import Messages, NativeCall
from quoth.neuro.backends.openai import THINKING, ResponsesBackend

TOOLS = b'[{"type":"function","name":"look","parameters":{"type":"object"}}]'
CALLED = NativeCall(id="c1", name="look", arguments='{"path":"a"}')
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}


def text(words: str) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": words}]}


def call(id: str = "c1", name: str = "look", arguments: str = '{"path":"a"}') -> dict[str, Any]:
    return {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": name, "arguments": arguments}


def reply(*items: dict[str, Any], state: str = "completed", **more: Any) -> dict[str, Any]:
    return {"status": state, "error": None, "output": list(items), **more}


def told(*items: dict[str, Any], **more: Any) -> Answer:
    return status(200, reply(*items, **more))


# A stream is a list of events; these are its parts.


def words(*pieces: str, kind: str = "output_text") -> list[dict[str, Any]]:
    return [{"type": f"response.{kind}.delta", "item_id": "msg_1", "delta": piece} for piece in pieces]


def done(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "item": item}


def end(*items: dict[str, Any], kind: str = "completed", **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": reply(*items, state=kind, **more)}


@pytest.fixture
def server() -> Iterator[Server]:
    with loopback(told(text("hello"))) as server:
        yield server


def backend_for(server: Server, **options: Any) -> ResponsesBackend:
    address = {"base_url": server.base_url, "api_key": KEY, "sleep": Sleeps()}
    return ResponsesBackend("gpt-x", **{**address, **options})


async def test_a_request_holds_the_whole_conversation_and_nothing_is_stored(server: Server) -> None:
    used = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 5},
    }
    server.answers = [told(text("hello"), usage=used)]
    backend = backend_for(server)
    assert isinstance(backend, Backend)
    assert (backend.name, backend.tool_view) == ("openai-responses:gpt-x", "responses")
    messages = Messages()
    messages.append("system", "Be kind.")
    messages.append("user", "hi")
    completion = await backend.complete(messages, max_tokens=50, tools=TOOLS)
    assert (completion.text, completion.finish, completion.calls, completion.kept) == (
        "hello",
        "stop",
        (),
        None,
    )
    usage = completion.usage
    assert (usage.input_tokens, usage.output_tokens) == (9, 7)
    assert (usage.cached_tokens, usage.reasoning_tokens) == (3, 5)
    path, headers, _ = server.requests[0]
    assert path == "/v1/responses"
    assert {name.lower(): value for name, value in headers.items()}["authorization"] == f"Bearer {KEY}"
    assert server.asked() == {
        "model": "gpt-x",
        "temperature": 0,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 50,
        "tools": json.loads(TOOLS),
        "input": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}],
    }
    await backend.aclose()


STREAMED = sse(
    {"type": "response.created", "response": reply(state="in_progress")},
    *words("I ", "look."),
    done(text("I look.")),
    {"type": "response.function_call_arguments.delta", "delta": '{"pa'},
    done(call()),
    end(text("I look."), call()),
)
EMPTY_END = sse(*words("I look."), done(text("I look.")), done(call()), end())
NO_PIECES = sse(done(text("I look.")), done(call()), end(), "[DONE]")
WHOLE = told(text("I look."), call())


@pytest.mark.parametrize(
    ("answer", "streamed"),
    [(WHOLE, False), (WHOLE, True), (STREAMED, True), (EMPTY_END, True), (NO_PIECES, True)],
    ids=["whole", "whole for a stream", "streamed", "an end without items", "items without pieces"],
)
async def test_words_and_calls_come_in_order_however_they_are_told(
    server: Server, answer: Answer, streamed: bool
) -> None:
    server.answers = [answer]
    backend = backend_for(server)
    pieces: list[str] = []
    listening = {"on_text": pieces.append} if streamed else {}
    completion = await backend.complete(said("hi"), tools=TOOLS, **listening)
    assert (completion.text, completion.finish, completion.calls) == ("I look.", "stop", (CALLED,))
    assert "".join(pieces) == ("I look." if streamed else "")
    await backend.aclose()


async def test_words_whose_item_never_ends_are_not_lost(server: Server) -> None:
    server.answers = [sse(*words("hel", "lo"), end())]
    backend = backend_for(server)
    assert (await backend.complete(said("hi"), on_text=lambda _: None)).text == "hello"
    await backend.aclose()


async def test_thoughts_go_back_as_they_came_and_the_past_stays_as_it_was(server: Server) -> None:
    server.answers = [told(THOUGHT, text("I look."), call()), told(text("hello"))]
    backend = backend_for(server)
    messages = said("hi")
    completion = await backend.complete(messages, tools=TOOLS)
    messages.append("assistant", completion.text, calls=completion.calls, kept=completion.kept)
    messages.append("tool", "eins", "c1")
    await backend.complete(messages, tools=TOOLS)
    first, second = (server.requests[place][2].partition(b'"input":')[2][:-2] for place in (0, 1))
    assert second.startswith(first + b",")
    assert server.asked()["input"][1:] == [
        THOUGHT,
        text("I look."),
        call(),
        {"type": "function_call_output", "call_id": "c1", "output": "eins"},
    ]
    await backend.aclose()


async def test_a_reply_without_thoughts_goes_back_by_its_words_and_calls(server: Server) -> None:
    backend = backend_for(server)
    messages = said("hi")
    messages.append("assistant", "I look.", calls=[CALLED])
    messages.append("tool", "eins", "c1")
    messages.append("assistant", " ")  # an empty reply says so
    messages.append("tool", "of a call in text")
    await backend.complete(messages, tools=TOOLS)
    assert server.asked()["input"][1:] == [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"path":"a"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "eins"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "[empty]"}]},
        {"role": "user", "content": "of a call in text"},
    ]
    await backend.complete(messages)  # and for a request without tools, all of it is text
    assert server.asked()["input"][1:3] == [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": 'I look.\n(look :path "a")'}],
        },
        {"role": "user", "content": "eins"},
    ]
    await backend.aclose()


CUT = {"incomplete_details": {"reason": "max_output_tokens"}}
FILTERED = {"incomplete_details": {"reason": "content_filter"}}
REFUSAL = {"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("items", "state", "more", "finish", "words_"),
    [
        ([THOUGHT], "incomplete", CUT, "length", ""),
        ([THOUGHT, text("hel")], "incomplete", CUT, "length", "hel"),
        ([text("hel")], "incomplete", FILTERED, "refused", "hel"),
        ([THOUGHT, REFUSAL], "completed", {}, "refused", "I will not."),
    ],
    ids=["cut in its thoughts", "cut in its words", "filtered", "refused"],
)
async def test_how_a_reply_ended(
    server: Server, items: Any, state: str, more: Any, finish: str, words_: str, streamed: bool
) -> None:
    server.answers = [told(*items, state=state, **more)]
    listening: dict[str, Any] = {}
    if streamed:
        server.answers = [sse(*map(done, items), end(*items, kind=state, **more))]
        listening = {"on_text": lambda _: None}
    backend = backend_for(server)
    completion = await backend.complete(said("hi"), **listening)
    # Thoughts that led to nothing are not kept: the server would refuse them.
    assert (completion.finish, completion.text, completion.kept) == (finish, words_, None)
    await backend.aclose()


async def test_a_reply_as_long_as_its_limit_was_cut_whatever_the_server_says(server: Server) -> None:
    """The server of llama.cpp calls it complete."""
    server.answers = [told(text("hel"), usage={"output_tokens": 16})]
    backend = backend_for(server)
    assert (await backend.complete(said("hi"), max_tokens=2)).finish == "length"
    assert server.asked()["max_output_tokens"] == 16, "OpenAI refuses less"
    await backend.aclose()


async def test_what_a_model_does_not_take_is_given_up(server: Server) -> None:
    server.answers = [
        failure(400, "Encrypted content is not supported with this model.", param="include"),
        failure(400, "Unsupported parameter", code="unsupported_parameter", param="temperature"),
        told(text("hello")),
    ]
    backend = backend_for(server)
    for _ in range(2):
        assert (await backend.complete(said("hi"), max_tokens=50)).text == "hello"
    assert len(server.requests) == 4
    # A model that refuses a temperature thinks, and its limit counts the thoughts too.
    limits = [server.asked(place)["max_output_tokens"] for place in range(4)]
    assert limits == [50, 50, 50 + THINKING, 50 + THINKING]
    assert {"include", "temperature"}.isdisjoint(server.asked())
    await backend.aclose()


async def test_thoughts_that_the_server_cannot_read_are_left_out(server: Server) -> None:
    """Thoughts of a session that is resumed with another account."""
    server.answers = [
        failure(400, "The encrypted content gAAA could not be verified.", code="invalid_encrypted_content"),
        told(text("hello")),
    ]
    backend = backend_for(server)
    messages = said("hi")
    messages.append("assistant", "", calls=[CALLED], kept={backend.owner: [THOUGHT, call()]})
    messages.append("tool", "eins", "c1")
    assert (await backend.complete(messages, tools=TOOLS)).text == "hello"
    kinds = [[item.get("type") for item in server.asked(place)["input"]] for place in (0, 1)]
    assert kinds == [
        [None, "reasoning", "function_call", "function_call_output"],
        [None, "function_call", "function_call_output"],
    ]
    await backend.aclose()


KIND = "Is it OpenAI's Responses API?"
# Beside what test_failures.py tries of every back end.
FAILURES: list[tuple[str, Answer, bool, str]] = [
    (
        "another shape",
        status(200, {"output": ["hello"]}),
        False,
        f"{{url}} answered with a reply of another shape. {KIND}",
    ),
    (
        "a stream that fails",
        sse({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "oh"}}}),
        True,
        "After 3 tries: {url} failed: oh",
    ),
    (
        "an error in the stream",
        sse({"type": "error", "code": "ERR", "message": "oh", "param": None, "sequence_number": 1}),
        True,
        "{url} failed: oh",
    ),
    (
        "an error in an error in the stream",
        sse({"type": "error", "error": {"type": "server_error", "message": "oh"}}),
        True,
        "After 3 tries: {url} failed: oh",
    ),
    (
        "an event without its item",
        sse({"type": "response.output_item.done"}),
        True,
        f"{{url}} answered with a reply of another shape. {KIND}",
    ),
]


@pytest.mark.parametrize(
    ("answer", "streamed", "sentence"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES]
)
async def test_failures_that_only_responses_has(
    server: Server, answer: Answer, streamed: bool, sentence: str
) -> None:
    server.answers = [answer]
    backend = backend_for(server)
    listening: dict[str, Any] = {"on_text": lambda _: None} if streamed else {}
    with pytest.raises(ModelError) as raised:
        await backend.complete(said("hi"), **listening)
    assert str(raised.value) == sentence.replace("{url}", f"{server.base_url}/responses")
    await backend.aclose()
