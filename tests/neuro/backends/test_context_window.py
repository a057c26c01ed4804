"""How much a model can read: by its name, by what its server says, and about how much a request takes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import KEY, Handler, Server, failure, loopback, said, sse
from loopback import status as status_of

from quoth.neuro.backends.anthropic import AnthropicBackend
from quoth.neuro.backends.base import (
    UNKNOWN,
    ContextFullError,
    Gauge,
    ModelError,
    RequestRefusedError,
    Window,
    message_tokens,
    tokens_in,
    window_of,
)
from quoth.neuro.backends.http import HttpBackend
from quoth.neuro.backends.local import LocalBackend
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.openai import OpenAIBackend
from quoth.neuro.backends.select import ScriptedBackend
from quoth.neuro.backends.wordings import reply_limit, window_in


@pytest.mark.parametrize(
    ("name", "tokens", "known"),
    [
        ("openai:gpt-5-mini", 272_000, True),
        ("openai:gpt-5-chat-latest", 128_000, True),
        ("openai:gpt-4.1-nano", 1_047_576, True),
        ("openai:gpt-4o-mini", 128_000, True),
        ("openai:gpt-4", 8_192, True),
        ("openai:o1-mini", 128_000, True),
        ("openai:o4-mini", 200_000, True),
        ("openai:gpt-oss-20b", 131_072, True),
        ("openai:somebody/gpt-oss-120b", 131_072, True),
        ("anthropic:claude-haiku-5-5", 200_000, True),
        ("openai:somebody/claude-sonnet", 200_000, True),
        ("ollama:gpt-oss", 4_096, False),
        ("llamacpp:qwen3", UNKNOWN, False),
        ("openai:qwen3", UNKNOWN, False),
        ("scripted", UNKNOWN, False),
    ],
)
def test_the_window_of_a_model_is_known_by_its_name(name: str, tokens: int, known: bool) -> None:
    assert window_of(ScriptedBackend([], name)) == Window(tokens, known)
    assert window_of(ScriptedBackend([], name), 5_000) == Window(5_000)


def test_the_embedded_model_says_itself_how_much_it_reads() -> None:
    assert window_of(LocalBackend("local-small", n_ctx=2_048)) == Window(2_048)
    assert window_of(LocalBackend()) == Window(16_384)
    assert window_of(LocalBackend(), 1_000) == Window(1_000)


# What servers say

FULL = [
    (
        {
            "message": "This model's maximum context length is 8192 tokens. However, your messages "
            "resulted in 9001 tokens. Please reduce the length of the messages.",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        },
        8192,
    ),
    ({"message": "Too long.", "code": "context_length_exceeded"}, 0),
    ({"message": "Your input exceeds the context window of this model."}, 0),
    (
        {"message": "prompt is too long: 208310 tokens > 200000 maximum", "type": "invalid_request_error"},
        200_000,
    ),
    ({"message": "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"}, 200_000),
    (
        {
            "message": "request (4390 tokens) exceeds the available context size (4096 tokens), try "
            "increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 4390,
            "n_ctx": 4096,
        },
        4096,
    ),
    ({"message": "the request exceeds the available context size. try increasing the context size"}, 0),
    ({"message": "Context size has been exceeded.", "type": "server_error"}, 0),
    ({"message": "Requested tokens (2285) exceed context window of 2048"}, 2048),
    ({"message": "The decoder prompt (length 5000) is longer than the maximum model length of 4096."}, 4096),
    ({"message": "Prompt is too large for model with 32,768 maximum context length"}, 32_768),
    (
        {
            "message": "The input token count (1200000) exceeds the maximum number of tokens "
            "allowed (1048576)."
        },
        1_048_576,
    ),
]


@pytest.mark.parametrize(("error", "window"), FULL)
def test_a_request_that_is_too_long_is_known_by_what_the_server_says(error: Any, window: int) -> None:
    assert window_in(error) == window


@pytest.mark.parametrize(
    "message",
    [
        "",
        "context too long to explain",
        "unknown field context_length",
        "max_tokens is too large: 99",
        "no model",
    ],
)
def test_no_other_error_is_taken_for_one(message: str) -> None:
    assert window_in({"message": message, "code": "invalid"}) is None


FEWER = [
    ("max_tokens is too large: 16384. This model supports at most 4096 completion tokens, whereas …", 4_096),
    (
        "max_tokens: 24576 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku",
        8_192,
    ),
    ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8_192),
    ("`max_completion_tokens` must be less than or equal to `32,768`, the maximum value for it", 32_768),
    ("max_tokens is too large: 99", 0),
    ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", 0),
    ("", 0),
]


@pytest.mark.parametrize(("message", "most"), FEWER)
def test_a_server_may_say_that_it_gives_fewer_tokens(message: str, most: int) -> None:
    assert reply_limit({"message": message}) == most


@pytest.mark.parametrize(("backend", "most"), [(OpenAIBackend, 9_000), (AnthropicBackend, 17_192)])
async def test_fewer_tokens_are_asked_for_once_it_has_said_so(backend: Any, most: int) -> None:
    refusal = failure(400, f"max_tokens: {most} > 4096, which is the maximum allowed number of output tokens")
    reply = {"choices": [{"message": {"content": "hello"}}], "content": [{"type": "text", "text": "hello"}]}
    with loopback(refusal) as server:
        server.answers = [refusal, status_of(200, reply)]
        model = backend("m", base_url=server.base_url, api_key=KEY, retries=0)
        for _ in range(2):
            assert (await model.complete(said("hi"), max_tokens=9_000)).text == "hello"
        await model.aclose()
        assert [server.asked(place)["max_tokens"] for place in range(3)] == [most, 4_096, 4_096]


async def test_a_server_that_wants_ever_fewer_is_not_followed() -> None:
    def less(handler: Handler) -> None:
        most = handler.server.asked()["max_tokens"]
        failure(400, f"max_tokens: {most} > {most - 1}, which is too many")(handler)

    with loopback(less) as server:
        model = OpenAIBackend("m", server.base_url, KEY, retries=0)
        with pytest.raises(ModelError, match="which is too many"):
            await model.complete(said("hi"))
        await model.aclose()
        assert len(server.requests) == 2


def openai(server: Server) -> HttpBackend:
    return OpenAIBackend("m", server.base_url, KEY, retries=0)


def anthropic(server: Server) -> HttpBackend:
    return AnthropicBackend("m", server.base_url, KEY, retries=0)


@pytest.mark.parametrize("kind", [openai, anthropic])
@pytest.mark.parametrize("status", [400, 413, 500])
async def test_a_backend_raises_an_error_of_its_own_for_it(kind: Any, status: int) -> None:
    with loopback(failure(status, "prompt is too long: 9 tokens > 8 maximum")) as server:
        backend = kind(server)
        with pytest.raises(ContextFullError) as caught:
            await backend.complete(said("hi"))
        await backend.aclose()
    assert caught.value.window == 8
    assert str(caught.value).endswith(
        f" refused the request ({status}): prompt is too long: 9 tokens > 8 maximum"
    )


@pytest.mark.parametrize("kind", [openai, anthropic])
async def test_it_may_be_told_in_a_stream_too(kind: Any) -> None:
    error = {"error": {"message": "maximum context length is 8 tokens"}}
    with loopback(sse(error)) as server:
        backend = kind(server)
        with pytest.raises(ContextFullError) as caught:
            await backend.complete(said("hi"), on_text=lambda piece: None)
        await backend.aclose()
    assert caught.value.window == 8


async def test_it_may_be_told_beside_a_reply_without_choices() -> None:
    """As MiniMax does, with status 200."""
    told = {"choices": None, "base_resp": {"status_code": 2013, "status_msg": "context window exceeds limit"}}
    with loopback(status_of(200, told)) as server:
        backend = openai(server)
        with pytest.raises(ContextFullError, match="failed: context window exceeds limit"):
            await backend.complete(said("hi"))
        await backend.aclose()


async def test_another_refusal_is_a_plain_error() -> None:
    with loopback(failure(400, "temperature must be a number")) as server:
        backend = openai(server)
        with pytest.raises(ModelError) as caught:
            await backend.complete(said("hi"))
        await backend.aclose()
    assert caught.type is RequestRefusedError


# How much a request takes


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("1234567", 2), ("é" * 7, 4), ("漢" * 7, 6), (b"1234567", 2)]
)
def test_a_text_takes_two_tokens_for_seven_bytes(text: Any, tokens: int) -> None:
    assert tokens_in(text) == tokens


def test_calls_and_what_a_provider_wants_back_are_counted_too() -> None:
    messages = Messages()
    messages.append("assistant", "")
    messages.append("assistant", "", calls=[{"id": "c1", "name": "look", "arguments": "x" * 70}])
    messages.append("assistant", "", kept={"anthropic": ["x" * 700]})
    plain, with_call, with_kept = map(message_tokens, messages)
    assert (plain, with_call) == (4, 4 + 8 + 2 + 20)
    assert 200 < with_kept < 220


def test_the_count_grows_with_the_messages_and_each_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []

    def count(message: Any) -> int:
        counted.append(message["content"])
        return 10

    monkeypatch.setattr("quoth.neuro.backends.base.message_tokens", count)
    gauge, messages = Gauge(Window(100)), said("a", "b")
    assert gauge.tokens(messages) == 20
    messages.append("user", "c")
    assert (gauge.tokens(messages), gauge.tokens(messages)) == (30, 30)
    assert counted == ["a", "b", "c"]
    assert gauge.tokens(said("d")) == 10


def test_what_a_request_really_took_corrects_the_count() -> None:
    gauge, messages = Gauge(Window(1_000)), said("x" * 336)
    assert gauge.tokens(messages) == 100
    messages.append("assistant", "y" * 336)
    gauge.told(messages, 1, 150)
    assert gauge.tokens(messages) == 300
    gauge.told(messages, 2, 0)  # a server that says nothing
    assert gauge.tokens(messages) == 300
    gauge.told(messages, 2, 1)  # one that cannot mean it
    assert gauge.tokens(messages) == 100
    gauge.told(messages, 2, 10**9)
    assert gauge.tokens(messages) == 600


def test_a_refusal_says_that_the_count_was_wrong() -> None:
    messages = said("x" * 336)
    knows, learns, guesses = Gauge(Window(1_000)), Gauge(Window(1_000)), Gauge(Window(1_000, known=False))
    knows.refused(messages, 80)
    assert (knows.window, knows.tokens(messages)) == (Window(80), 100)
    learns.refused(messages, 500)
    assert (learns.window, learns.tokens(messages)) == (Window(500), 501)
    guesses.refused(messages, 0)
    assert (guesses.window, guesses.tokens(messages)) == (Window(99), 100)


@given(st.lists(st.text(), max_size=5), st.integers(0, 10**6), st.integers(0, 10**5))
def test_after_a_refusal_the_request_is_always_too_long(texts: list[str], took: int, window: int) -> None:
    gauge, messages = Gauge(Window(50_000)), said("hi", *texts)
    gauge.told(messages, len(messages), took)
    gauge.refused(messages, window)
    assert gauge.tokens(messages) > gauge.window.tokens
