"""Thoughts that go back to the server they came from, as its provider demands, and to no other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from loopback import Answer, Server, failure, loopback, sse, status

from quoth.neuro.backends.base import Completion, ModelError, message_tokens
from quoth.neuro.backends.messages import Message, Messages
from quoth.neuro.backends.providers import ROWS, ServerSettings
from quoth.neuro.backends.request import owner_of
from quoth.neuro.backends.select import choose_backend
from quoth.tools.storage.lean_httpx import httpx

KEYS = {row.key: "sk-1" for row in ROWS if row.key}
LOOK = {"index": 0, "id": "abcdefghi", "function": {"name": "look", "arguments": "{}"}}
ENCRYPTED = {"type": "reasoning.encrypted", "data": "AAAA", "id": "c1", "index": 1}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "reasoning.text", "text": words, "index": 0, **more}


def streamed(*deltas: dict[str, Any]) -> Answer:
    pieces = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    return sse(*pieces, {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}, "[DONE]")


def whole(**message: Any) -> Answer:
    return status(200, {"choices": [{"message": message, "finish_reason": "tool_calls"}]})


async def asked(server: Server, spec: str, messages: Messages, *, streams: bool = False) -> Completion:
    """The reply of a model, which the conversation grows by."""
    backend = choose_backend(spec, ServerSettings(server.base_url), environ=KEYS)
    hear = print if streams else None
    completion = await backend.complete(messages, tools=b"[]", on_text=hear)
    messages.append("assistant", completion.text, calls=completion.calls, kept=completion.kept)
    for call in completion.calls:
        messages.append("tool", "eins", call["id"])
    if not completion.calls:
        messages.append("user", "Well?")
    await backend.aclose()
    return completion


# What the first reply holds, in pieces, and what goes back with it.
CASES: list[tuple[str, list[dict[str, Any]], dict[str, Any]]] = [
    (
        "deepseek:deepseek-v4-flash",
        [{"reasoning_content": "I have "}, {"reasoning_content": "to look."}, {"tool_calls": [LOOK]}],
        {"reasoning_content": "I have to look."},
    ),
    ("deepseek:deepseek-v4-flash", [{"tool_calls": [LOOK]}], {"reasoning_content": ""}),
    (  # of a turn with calls, those of its answer too
        "deepseek:deepseek-v4-flash",
        [{"reasoning_content": "So it is 3."}, {"content": "It is 3."}],
        {"reasoning_content": "So it is 3."},
    ),
    ("moonshot:kimi-k3", [{"tool_calls": [LOOK]}], {"reasoning_content": ""}),
    ("zai:glm-5.1", [{"reasoning_content": "Hm."}, {"tool_calls": [LOOK]}], {"reasoning_content": "Hm."}),
    ("vllm:qwen3", [{"reasoning": "Hm."}, {"tool_calls": [LOOK]}], {"reasoning": "Hm."}),
    ("vllm:qwen3", [{"tool_calls": [LOOK]}], {}),
    (
        "openrouter:google/gemini-3-flash-preview",
        [
            {"reasoning": "H", "reasoning_details": [text("H", format="x")]},
            {"reasoning": "m.", "reasoning_details": [text("m.", signature="s"), ENCRYPTED]},
            {"tool_calls": [LOOK]},
        ],
        {"reasoning_details": [text("Hm.", format="x", signature="s"), ENCRYPTED]},
    ),
    ("groq:openai/gpt-oss-20b", [{"reasoning": "Hm."}, {"tool_calls": [LOOK]}], {}),
    ("mistral:magistral", [{"reasoning_content": "Hm."}, {"tool_calls": [LOOK]}], {}),
]


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize(("spec", "pieces", "back"), CASES)
async def test_thoughts_go_back_as_the_provider_demands(
    spec: str, pieces: list[dict[str, Any]], back: dict[str, Any], streams: bool
) -> None:
    message: dict[str, Any] = {"content": None, **pieces[-1]}
    for name in back:
        message[name] = back[name]
    with loopback(streamed(*pieces) if streams else whole(**message)) as server:
        messages = Messages.of([Message(role="user", content="Look.")])
        await asked(server, spec, messages, streams=streams)
        await asked(server, spec, messages, streams=streams)
        sent = server.asked()["messages"][1]
    assert {name: value for name, value in sent.items() if name.startswith("reasoning")} == back


@pytest.mark.parametrize(
    "other",
    ["openai:gpt-x", "vllm:qwen3", "mistral:x", "openrouter:openai/x", "anthropic:x", "openai-responses:x"],
)
async def test_no_thought_is_shown_to_another_provider(other: str) -> None:
    thought = {"reasoning_content": "secret thought", "reasoning_details": [text("secret thought")]}
    reply = {"content": None, "tool_calls": [LOOK], **thought}
    for first in ("deepseek:x", "openrouter:anthropic/x"):
        messages = Messages.of([Message(role="user", content="Look.")])
        with loopback(whole(**reply)) as server:
            await asked(server, first, messages)
        assert "secret thought" in json.dumps(list(messages))
        with loopback(
            status(200, {"content": [], "output": [], "choices": [{"message": {"content": "x"}}]})
        ) as server:
            await asked(server, other, messages)
            assert b"secret" not in server.requests[0][2]


@pytest.mark.parametrize(
    ("name", "url", "owner"),
    [
        ("deepseek:deepseek-chat", "https://api.deepseek.com/v1", "deepseek"),
        ("deepseek:deepseek-chat", "https://other.example/v1", "deepseek@other.example"),
        ("openrouter:google/gemini-3", "https://openrouter.ai/api/v1", "openrouter:google"),
        ("anthropic:claude-x", "https://api.anthropic.com", "anthropic"),
        ("openai-responses:gpt-x", "https://api.openai.com/v1", "responses"),  # as in older sessions
        ("work:a/b", "https://work.example/v1", "work:a@work.example"),
    ],
)
def test_thoughts_belong_to_a_provider_a_maker_and_a_server(name: str, url: str, owner: str) -> None:
    assert owner_of(name, httpx.URL(url)) == owner


# A server's words, and what is then sent of thoughts with the call of another model.
WORDS = [
    (
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
        ["content", "reasoning_content", "role", "tool_calls"],
    ),
    (
        "The reasoning_content in the thinking mode must be passed back to the API.",
        ["content", "reasoning_content", "role", "tool_calls"],
    ),
    (
        "Function call is missing a thought_signature in functionCall parts.",
        ["content", "role", "tool_calls"],
    ),
]


@pytest.mark.parametrize(("words", "fields"), WORDS)
async def test_a_server_that_lacks_thoughts_of_another_model_says_so(words: str, fields: list[str]) -> None:
    messages = Messages.of([Message(role="user", content="Look.")])
    messages.append("assistant", "", calls=[{"id": "c1", "name": "look", "arguments": "{}"}])
    messages.append("tool", "eins", "c1")
    with loopback(failure(400, words)) as server:
        server.answers.append(whole(content="Done."))
        assert (await asked(server, "openai:x", messages)).text == "Done."
        sent = server.asked()["messages"][1]
    assert sorted(sent) == fields
    assert ("extra_content" in sent["tool_calls"][0]) == ("signature" in words)


@pytest.mark.parametrize(
    "words",
    [
        "'messages.1' : property 'reasoning_content' is unsupported",
        "Extra inputs are not permitted: reasoning_content",
    ],
)
async def test_a_server_that_takes_no_thoughts_is_asked_without_them(words: str) -> None:
    messages = Messages.of([Message(role="user", content="Look.")])
    with loopback(whole(content=None, tool_calls=[LOOK], reasoning_content="Hm.")) as server:
        await asked(server, "openai:x", messages)
        server.answers = [failure(400, words), whole(content="Done.")]
        assert (await asked(server, "openai:x", messages)).text == "Done."
        assert b"Hm." in server.requests[-2][2]
        assert b"Hm." not in server.requests[-1][2]


async def test_words_about_something_else_leave_the_thoughts_as_they_are() -> None:
    """Nothing of the conversation would change by it."""
    messages = Messages.of([Message(role="user", content="Look.")])
    with loopback(failure(400, "the value of 'reasoning' is not one of low, high")) as server:
        backend = choose_backend("deepseek:x", ServerSettings(server.base_url), environ=KEYS)
        with pytest.raises(ModelError):
            await backend.complete(messages, tools=b"[]")
        server.answers = [
            whole(content=None, tool_calls=[LOOK], reasoning_content="Hm."),
            whole(content="Done."),
        ]
        first = await backend.complete(messages, tools=b"[]")
        messages.append("assistant", first.text, calls=first.calls, kept=first.kept)
        messages.append("tool", "eins", first.calls[0]["id"])
        await backend.complete(messages, tools=b"[]")
        assert server.asked()["messages"][1]["reasoning_content"] == "Hm."
        await backend.aclose()


async def test_anthropic_is_asked_without_thoughts_that_it_cannot_use() -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    use = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    messages = Messages.of([Message(role="user", content="Look.")])
    with loopback(status(200, {"content": [thought, use]})) as server:
        await asked(server, "anthropic:x", messages)
        words = "messages.1.content.0: Invalid `signature` in `thinking` block"
        server.answers = [failure(400, words), status(200, {"content": [{"type": "text", "text": "Done."}]})]
        assert (await asked(server, "anthropic:x", messages)).text == "Done."
        assert [block["type"] for block in server.asked()["messages"][1]["content"]] == ["tool_use"]


def test_thoughts_beside_a_reply_are_counted_with_it() -> None:
    said = Message(role="assistant", content="word " * 100)
    beside = {**said, "kept": {"deepseek": {"reasoning_content": "word " * 100}}}
    instead = {**said, "kept": {"anthropic": [{"type": "text", "text": "word " * 100}]}}
    assert message_tokens(beside) > 1.9 * message_tokens(said)
    assert message_tokens(instead) < 1.2 * message_tokens(said)
