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
from quoth.neuro.backends.openai import OpenAIBackend, ResponsesBackend

Event = dict[str, Any] | str


@dataclass(frozen=True)
class Speech:
    """One kind of server. ``begin`` and ``end`` are the events around those of ``words``; ``call`` are the
    events of a call whose arguments come in pieces, ``whole`` is a reply that is not streamed."""

    name: str
    path: str
    kind: str
    wants: str  # what the kind of server is said to have been without
    variable: str  # of its key
    make: Callable[..., HttpBackend]
    whole: Callable[[str], Any]
    refusal: Callable[[str], Any]
    begin: Sequence[Event]
    words: Callable[..., list[Event]]
    call: Callable[..., list[Event]]
    end: Sequence[Event]
    refused: Callable[[str], list[Event]]
    answerless: Sequence[Event]  # a stream that ends well and has no answer in it
    strange: Sequence[Event]  # what has the right fields, and other things in them than they should have

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
    "OPENAI_API_KEY",
    OpenAIBackend,
    whole=_message,
    refusal=lambda words: _message(None, refusal=words) if words else _message("", "content_filter"),
    begin=[_choice({"role": "assistant", "content": ""})],
    words=lambda *pieces: [_choice({"content": piece}) for piece in pieces],
    call=_tool_call,
    end=[_choice({}, "stop"), "[DONE]"],
    refused=lambda words: [_choice({"refusal": words}), _choice({}, "stop"), "[DONE]"],
    answerless=[{"choices": []}, {"choices": None, "usage": {"prompt_tokens": 3}}, "[DONE]"],
    strange=[_choice({"tool_calls": [{"index": [1], "function": {"name": "a"}}]})],
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
    "ANTHROPIC_API_KEY",
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
    answerless=[{"type": "message_start", "message": {}}, {"type": "message_stop"}],
    strange=[{"type": "content_block_start", "index": index} for index in (1, "a")],
)


def _output(*items: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"status": status, "error": None, "output": list(items), **more}


def _said(kind: str, words: str) -> dict[str, Any]:
    key = "refusal" if kind == "refusal" else "text"
    return {"type": "message", "id": "m1", "content": [{"type": kind, key: words}]}


def _function_call(name: str, *arguments: str) -> list[Event]:
    item = {"type": "function_call", "id": "f1", "call_id": "c1", "name": name}
    whole = "".join(arguments)
    done = {"type": "response.output_item.done", "item": {**item, "arguments": whole}}
    return [
        {"type": "response.output_item.added", "item": {**item, "arguments": ""}},
        *({"type": "response.function_call_arguments.delta", "delta": one} for one in arguments),
        *([done] if whole.endswith("}") else []),
    ]


_COMPLETED: list[Event] = [{"type": "response.completed", "response": _output()}, "[DONE]"]
_FILTERED = _output(status="incomplete", incomplete_details={"reason": "content_filter"})

RESPONSES = Speech(
    "openai-responses",
    "/responses",
    "OpenAI's Responses API",
    "output",
    "OPENAI_API_KEY",
    ResponsesBackend,
    whole=lambda text: _output(_said("output_text", text)),
    refusal=lambda words: _output(_said("refusal", words)) if words else _FILTERED,
    begin=[{"type": "response.created", "response": _output(status="in_progress")}],
    words=lambda *pieces: [{"type": "response.output_text.delta", "delta": piece} for piece in pieces],
    call=_function_call,
    end=_COMPLETED,
    refused=lambda words: [
        {"type": "response.output_item.done", "item": _said("refusal", words)},
        *_COMPLETED,
    ],
    answerless=[{"type": "response.completed", "response": {"status": "completed", "output": None}}],
    strange=[{"type": "response.output_item.done"}],
)

SPEECHES = (OPENAI, ANTHROPIC, RESPONSES)
