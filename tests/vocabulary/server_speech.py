"""How each kind of model server says the same things, so that one story is told of all of them.

Knows the shapes of their replies; it must not know what a back end makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from loopback import KEY, Answer, Sleeps, sse, status

from quoth.neuro.backends.anthropic import AnthropicBackend
from quoth.neuro.backends.http import HttpBackend
from quoth.neuro.backends.openai import OpenAIBackend

Event = dict[str, Any] | str


@dataclass(frozen=True)
class Speech:
    """One kind of server. ``begin`` and ``end`` are the events around those of ``words``; ``call`` are the
    events of a call whose arguments come in pieces, ``whole`` is a reply that is not streamed. A ``reason``
    is what the server calls the end of a reply that has none of these."""

    name: str
    path: str
    kind: str
    wants: str  # what the kind of server is said to have been without
    make: Callable[..., HttpBackend]
    whole: Callable[[str], Any]
    refusal: Callable[[str], Any]
    begin: Sequence[Event]
    words: Callable[..., list[Event]]
    call: Callable[..., list[Event]]
    end: Sequence[Event]
    refused: Callable[[str], list[Event]]

    def backend(self, url: str, **more: Any) -> HttpBackend:
        return self.make("model-x", **{"base_url": url, "api_key": KEY, "sleep": Sleeps(), **more})

    def reply(self, text: str = "hello") -> Answer:
        return status(200, self.whole(text))

    def stream(self, *pieces: str, cut: bool = False) -> Answer:
        """A whole stream; with ``cut`` the connection ends before its end."""
        return sse(*self.begin, *self.words(*pieces), *(() if cut else self.end), cut=cut)


def _choice(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _tool_call(name: str, *arguments: str) -> list[Event]:
    begun = {"index": 0, "id": "c1", "type": "function", "function": {"name": name, "arguments": ""}}
    return [
        _choice({"tool_calls": [begun]}),
        *(_choice({"tool_calls": [{"index": 0, "function": {"arguments": one}}]}) for one in arguments),
    ]


def _message(text: str | None, finish: str = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, **more}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


OPENAI = Speech(
    "openai",
    "/chat/completions",
    "an OpenAI-compatible server",
    "choices",
    OpenAIBackend,
    whole=_message,
    refusal=lambda words: _message(None, refusal=words) if words else _message("", "content_filter"),
    begin=[_choice({"role": "assistant", "content": ""})],
    words=lambda *pieces: [_choice({"content": piece}) for piece in pieces],
    call=_tool_call,
    end=[_choice({}, "stop"), "[DONE]"],
    refused=lambda words: [_choice({"refusal": words}), _choice({}, "stop"), "[DONE]"],
)


def _block(index: int, begun: dict[str, Any], *deltas: dict[str, Any]) -> list[Event]:
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
    ]


def _stop(reason: str) -> list[Event]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]


def _text_block(*pieces: str) -> list[Event]:
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return _block(0, {"type": "text", "text": ""}, *deltas)


def _tool_use(name: str, *arguments: str) -> list[Event]:
    deltas = [{"type": "input_json_delta", "partial_json": one} for one in arguments]
    return _block(1, {"type": "tool_use", "id": "c1", "name": name, "input": {}}, *deltas)


ANTHROPIC = Speech(
    "anthropic",
    "/messages",
    "Anthropic's Messages API",
    "content",
    AnthropicBackend,
    whole=lambda text: {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"},
    refusal=lambda words: {
        "content": [{"type": "text", "text": words}] if words else [],
        "stop_reason": "refusal",
    },
    begin=[{"type": "message_start", "message": {"usage": {"input_tokens": 5}}}, {"type": "ping"}],
    words=_text_block,
    call=_tool_use,
    end=_stop("end_turn"),
    refused=lambda words: [
        {
            "type": "message_delta",
            "delta": {"stop_reason": "refusal", "stop_details": {"type": "refusal", "explanation": words}},
        },
        {"type": "message_stop"},
    ],
)

SPEECHES = (OPENAI, ANTHROPIC)
