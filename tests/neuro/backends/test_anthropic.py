"""The Anthropic backend against a real server on loopback: what is asked, heard, and what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from loopback import (
    KEY,
    Answer,
    Server,
    Sleeps,
    failure,
    loopback,
    said,
    silence,
    sse,
    status,
)
from sentences import GAVE_NO_ANSWER_FOR

from quoth.neuro.backends.anthropic import AnthropicBackend
from quoth.neuro.backends.base import Backend, ModelError, ToolsRefusedError
from quoth.neuro.backends.messages import Messages, NativeCall
from quoth.tools.errors import UsageError

TOOLS = b'[{"name":"look","input_schema":{"type":"object"}}]'
CACHED = {"type": "ephemeral"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(id: str, name: str, **input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def message(*blocks: dict[str, Any], reason: str = "end_turn", **usage: int) -> Answer:
    return status(200, {"content": list(blocks), "stop_reason": reason, "usage": usage})


def error(code: int, kind: str, words: str, **headers: str) -> Answer:
    return status(code, {"type": "error", "error": {"type": kind, "message": words}}, **headers)


# A stream is a list of events; these are its parts.
START = {"type": "message_start", "message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 3}}}
STOP = {"type": "message_stop"}
PING = {"type": "ping"}


def block(index: int, begun: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def words(*pieces: str) -> list[dict[str, Any]]:
    return [{"type": "text_delta", "text": piece} for piece in pieces]


def arguments(*pieces: str) -> list[dict[str, Any]]:
    return [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def end(reason: str = "end_turn", tokens: int = 2) -> list[dict[str, Any]]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": tokens}},
        STOP,
    ]


@pytest.fixture
def server() -> Iterator[Server]:
    with loopback(message(text("hello"))) as server:
        yield server


def backend_for(server: Server, **options: Any) -> AnthropicBackend:
    address = {"base_url": server.base_url, "api_key": KEY, "sleep": Sleeps()}
    return AnthropicBackend("claude-x", **{**address, **options})


async def test_a_reply_comes_with_its_usage(server: Server) -> None:
    server.answers = [
        message(
            text("hello"),
            input_tokens=5,
            cache_read_input_tokens=3,
            cache_creation_input_tokens=1,
            output_tokens=2,
        )
    ]
    backend = backend_for(server)
    assert isinstance(backend, Backend)
    messages = Messages()
    messages.append("system", "Be kind.")
    messages.append("user", "hi")
    completion = await backend.complete(messages, max_tokens=5)
    assert (completion.text, completion.finish, completion.calls) == ("hello", "stop", ())
    counted = completion.usage
    assert (counted.input_tokens, counted.output_tokens, counted.cached_tokens) == (9, 2, 3)
    path, headers, _ = server.requests[0]
    assert path == "/v1/messages"
    sent = {name.lower(): value for name, value in headers.items()}
    assert (sent["x-api-key"], sent["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in sent
    assert server.asked() == {
        "model": "claude-x",
        "cache_control": CACHED,
        "max_tokens": 5 + 8192,  # room to think
        "system": [{**text("Be kind."), "cache_control": CACHED}],
        "messages": [{"role": "user", "content": "hi"}],
    }
    await backend.aclose()


async def test_a_streamed_reply_is_told_piece_by_piece(server: Server) -> None:
    server.answers = [
        sse(START, PING, *block(0, text(""), *words("hé", "llo")), PING, *end("max_tokens", tokens=7))
    ]
    backend = backend_for(server)
    pieces: list[str] = []
    for _ in range(2):  # the second request uses the same connection
        completion = await backend.complete(said("hi"), on_text=pieces.append)
    assert pieces == ["hé", "llo"] * 2
    assert (completion.text, completion.finish) == ("héllo", "length")
    assert (completion.usage.input_tokens, completion.usage.output_tokens) == (8, 7)
    assert server.asked()["stream"] is True
    await backend.aclose()


STREAMED = sse(
    START,
    *block(0, text(""), *words("I look.")),
    *block(1, use("c1", "look"), *arguments('{"pa', 'th":"é"}')),
    *block(2, use("c2", "rest"), *arguments("")),
    *end("tool_use"),
)
WHOLE = message(text("I look."), use("c1", "look", path="é"), use("c2", "rest"), reason="tool_use")


@pytest.mark.parametrize(("answer", "streamed"), [(WHOLE, False), (WHOLE, True), (STREAMED, True)])
async def test_native_calls_come_with_their_ids_in_order(
    server: Server, answer: Answer, streamed: bool
) -> None:
    server.answers = [answer]
    backend = backend_for(server)
    pieces: list[str] = []
    listening = {"on_text": pieces.append} if streamed else {}
    completion = await backend.complete(said("hi"), tools=TOOLS, **listening)
    assert (completion.text, completion.finish, completion.kept) == ("I look.", "stop", None)
    assert "".join(pieces) == ("I look." if streamed else "")
    assert completion.calls == (
        NativeCall(id="c1", name="look", arguments='{"path":"é"}'),
        NativeCall(id="c2", name="rest", arguments="{}"),
    )
    assert server.asked()["tools"] == json.loads(TOOLS)
    await backend.aclose()


async def test_arguments_that_were_cut_are_handed_on_as_they_came(server: Server) -> None:
    server.answers = [sse(START, *block(0, use("c1", "look"), *arguments('{"path":"a')), *end("max_tokens"))]
    backend = backend_for(server)
    completion = await backend.complete(said("hi"), tools=TOOLS, on_text=lambda _: None)
    assert completion.finish == "length"
    assert completion.calls == (NativeCall(id="c1", name="look", arguments='{"path":"a'),)
    await backend.aclose()


@pytest.mark.parametrize(
    ("choice", "sent"), [("auto", None), ("required", {"type": "any"}), ("none", {"type": "none"})]
)
async def test_whether_a_call_must_be_made(server: Server, choice: Any, sent: object) -> None:
    backend = backend_for(server)
    await backend.complete(said("hi"), tools=TOOLS, tool_choice=choice)
    assert server.asked().get("tool_choice") == sent
    await backend.aclose()


async def test_the_results_of_one_turn_are_one_message_and_the_past_stays_as_it_was(server: Server) -> None:
    backend = backend_for(server)
    messages = said("hi")
    await backend.complete(messages, tools=TOOLS)
    calls = [
        NativeCall(id="c1", name="look", arguments='{"path":"a"}'),
        NativeCall(id="c2", name="rest", arguments="{"),
    ]
    messages.append("assistant", "I look.", calls=calls)
    messages.append("tool", "eins", "c1")
    messages.append("tool", "unreadable", "c2")
    messages.append("user", "Go on.")
    await backend.complete(messages, tools=TOOLS)
    messages.append("assistant", " ")  # Anthropic refuses a message without words
    messages.append("user", "Well?")
    await backend.complete(messages, tools=TOOLS)

    def history(index: int) -> bytes:
        return server.requests[index][2].partition(b'"messages":')[2].removesuffix(b"]}")

    assert history(1).startswith(history(0) + b",")
    assert history(2).startswith(history(1) + b",")
    unread = use("c2", "rest", unreadable_arguments="{")
    assert server.asked()["messages"] == [
        {"role": "user", "content": [text("hi")]},
        {"role": "assistant", "content": [text("I look."), use("c1", "look", path="a"), unread]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "eins"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "unreadable"},
                text("Go on."),
            ],
        },
        {"role": "assistant", "content": [text("[empty]")]},
        {"role": "user", "content": [text("Well?")]},
    ]
    await backend.complete(messages)  # and for a request without tools, all of it is text
    assert server.asked()["messages"][1:3] == [
        {"role": "assistant", "content": 'I look.\n(look :path "a")\n(rest {)'},
        {"role": "user", "content": "eins\n\nunreadable\n\nGo on."},
    ]
    await backend.aclose()


async def test_thoughts_go_back_with_the_calls_they_led_to(server: Server) -> None:
    thought = {"type": "thinking", "thinking": "Hm, so.", "signature": "sig"}
    deltas = [
        {"type": "thinking_delta", "thinking": "Hm, "},
        {"type": "thinking_delta", "thinking": "so."},
        {"type": "signature_delta", "signature": "sig"},
    ]
    begun = {"type": "thinking", "thinking": "", "signature": ""}
    server.answers = [
        sse(
            START,
            *block(0, begun, *deltas),
            *block(1, text(""), *words("\n")),
            *block(2, use("c1", "look"), *arguments('{"path":"a"}')),
            *end("tool_use"),
        ),
        message(text("hello")),
    ]
    backend = backend_for(server)
    messages = said("hi")
    pieces: list[str] = []
    completion = await backend.complete(messages, tools=TOOLS, on_text=pieces.append)
    assert pieces == ["\n"]
    messages.append("assistant", completion.text, calls=completion.calls, kept=completion.kept)
    messages.append("tool", "eins", "c1")
    await backend.complete(messages, tools=TOOLS)
    assert server.asked()["messages"][1] == {
        "role": "assistant",
        "content": [thought, use("c1", "look", path="a")],
    }
    await backend.complete(messages)
    assert server.asked()["messages"][1] == {"role": "assistant", "content": '\n\n(look :path "a")'}
    await backend.aclose()


async def test_what_a_server_does_not_know_is_given_up(server: Server) -> None:
    server.answers = [
        error(400, "invalid_request_error", "cache_control: Extra inputs are not permitted"),
        error(400, "invalid_request_error", "tool_choice forces tool use, which may not be when thinking"),
        message(text("hello")),
    ]
    backend = backend_for(server)
    for _ in range(2):
        answer = await backend.complete(said("hi"), tools=TOOLS, tool_choice="required")
        assert answer.text == "hello"
    assert "cache_control" not in server.asked()
    assert [("tool_choice" in server.asked(index)) for index in range(4)] == [True, True, False, False]
    await backend.complete(said("hi"), tools=TOOLS, tool_choice="none")
    assert server.asked()["tool_choice"] == {"type": "none"}
    await backend.aclose()


@pytest.mark.parametrize(
    ("base_url", "path"),
    [("", "/v1/messages"), ("/", "/v1/messages"), ("/v1/", "/v1/messages"), ("/claude", "/claude/messages")],
)
async def test_the_address_may_be_given_with_or_without_its_folder(
    server: Server, base_url: str, path: str
) -> None:
    backend = backend_for(server, base_url=server.base_url.removesuffix("/v1") + base_url)
    await backend.complete(said("hi"))
    assert server.requests[0][0] == path
    await backend.aclose()


async def test_a_block_may_begin_with_null_for_a_text(server: Server) -> None:
    begun = {"type": "text", "text": None}
    server.answers = [sse(START, *block(0, begun, *words("hello")), *end())]
    backend = backend_for(server)
    assert (await backend.complete(said("hi"), on_text=lambda _: None)).text == "hello"
    await backend.aclose()


async def test_a_server_that_is_overloaded_for_a_moment_is_asked_again(server: Server) -> None:
    server.answers = [error(529, "overloaded_error", "Overloaded"), message(text("hello"))]
    backend = backend_for(server)
    assert (await backend.complete(said("hi"))).text == "hello"
    await backend.aclose()


async def test_a_silent_server_is_not_waited_for_beyond_the_deadline(server: Server) -> None:
    server.answers = [silence]
    backend = backend_for(server, timeout=0.2)
    with pytest.raises(
        ModelError,
        match=rf"{GAVE_NO_ANSWER_FOR} 0\.2 s; it is slow or overloaded, or needs a longer timeout\.$",
    ):
        await backend.complete(said("hi"))
    await backend.aclose()


async def test_a_server_that_takes_no_tools_is_told_apart(server: Server) -> None:
    server.answers = [failure(400, "tools: Extra inputs are not permitted")]
    backend = backend_for(server)
    with pytest.raises(ToolsRefusedError):
        await backend.complete(said("hi"), tools=TOOLS)
    await backend.aclose()


async def test_a_missing_key_is_told_apart_from_a_refused_one(server: Server) -> None:
    server.answers = [status(401)]
    backend = backend_for(server, api_key=None)
    with pytest.raises(ModelError, match=r"set ANTHROPIC_API_KEY, or type quoth models login anthropic\.$"):
        await backend.complete(said("hi"))
    await backend.aclose()


def test_a_base_url_of_no_use_is_a_sentence() -> None:
    with pytest.raises(UsageError, match=r"^The base URL must look like "):
        AnthropicBackend("claude-x", "api.anthropic.com")
