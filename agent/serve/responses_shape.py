"""The shapes of OpenAI's responses: what a request may contain, and the answers.

A response is kept by its id unless the request refuses that (``store``): a later request continues after it,
or reads it again. Fields that are not known here are
ignored. Source: the reference of the API, and what the SDKs read of it (November 2026).
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from quoth.agent.serve.client_tools import ClientCall, read_tools
from quoth.agent.serve.openai_shape import (
    MOST_MESSAGES,
    ChatRequest,
    TalkMessage,
    TurnEnd,
    read_body,
    read_messages,
    read_model,
    read_number,
    read_schema,
    read_whole,
)
from quoth.tools.errors import UsageError

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}  # by why an answer ended


def read_response_request(body: bytes) -> tuple[ChatRequest, ResponseAnswer]:
    """A request from its JSON, and its answer, still empty. Raises UsageError with what is wrong."""
    said = read_body(body)
    model = read_model(said)
    instructions, previous = (_text(said, name) for name in ("instructions", "previous_response_id"))
    read = read_messages(_items(said.get("input")), "input", continues=bool(previous))
    before = [TalkMessage("response", previous)] if previous else []
    shape = said["text"].get("format") if isinstance(said.get("text"), dict) else None
    answer = ResponseAnswer(f"resp_{secrets.token_hex(16)}", model, said)
    request = ChatRequest(
        model,
        (*before, *read.history),
        read.text,
        read.images,
        "\n\n".join(filter(None, (instructions, read.instructions))),
        stream=said.get("stream") is True,
        temperature=read_number(said, "temperature", 0, 2),
        reply_tokens=read_whole(said, "max_output_tokens"),
        schema=read_schema(shape, "text.format"),
        response="" if said.get("store") is False else answer.id,
        tools=read_tools(said),
        results=read.results,
    )
    return request, answer


def _text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{name} is text, not this.")
    return value or ""


def _items(said: Any) -> list[Any]:
    """The messages of an input, as those of chat completions."""
    if isinstance(said, str):
        return [{"role": "user", "content": said}]
    if not isinstance(said, list) or not said:
        raise UsageError("input must be a text, or a list with at least one message.")
    if len(said) > MOST_MESSAGES:
        raise UsageError(f"There are more than {MOST_MESSAGES} items.")
    return [_as_message(item, f"input[{number}]") for number, item in enumerate(said)]


def _as_message(item: Any, place: str) -> Any:
    """An item as a message of chat completions."""
    kind = item.get("type", "message") if isinstance(item, dict) else "message"
    if kind == "message":
        return item
    if kind == "reasoning":  # clients send it back, and no session needs it
        return {"role": "function"}
    if kind not in ("function_call", "function_call_output"):
        raise UsageError(f"{place}: quoth takes messages, calls of functions and their output, not {kind!r}.")
    id = item.get("call_id")
    if not isinstance(id, str) or not id:
        raise UsageError(f"{place}.call_id must be the id of a call.")
    if kind == "function_call":
        return {"role": "assistant", "tool_calls": [{"id": id}]}
    if not isinstance(item.get("output"), str | list):
        raise UsageError(f"{place}.output must be a text or a list of parts.")
    return {"role": "tool", "tool_call_id": id, "content": item["output"]}


# The texts of an answer: an item each, with the name of its part, and of the events about the part.
PARTS = {"message": ("output_text", "msg"), "reasoning": ("reasoning_text", "rs")}


@dataclass
class ResponseAnswer:
    """A response: its thoughts, its words and the calls that the client is to run are items of their own. Its
    events are numbered. ``keep`` receives it once it is complete."""

    id: str
    model: str
    asked: Mapping[str, Any]  # the request: the answer repeats some of its fields
    created: int = field(default_factory=lambda: int(time.time()))
    keep: Callable[[dict[str, Any]], None] = lambda said: None
    _texts: dict[str, str] = field(default_factory=dict)  # so far, by the type of their item, in order
    _number: int = 0  # of the next event

    def whole(self, end: TurnEnd) -> dict[str, Any]:
        if not self._texts:  # nothing was streamed
            texts = {"reasoning": end.thoughts, "message": end.text}
            self._texts = {kind: text for kind, text in texts.items() if text}
        if not self._texts.keys() - {"reasoning"} and not end.calls:
            self._texts["message"] = end.text
        reason = INCOMPLETE.get(end.finish, "")
        status = "failed" if end.error else "incomplete" if reason else "completed"
        asked, said = end.usage.input_tokens, end.usage.output_tokens
        items = [
            self._item(kind, "incomplete" if reason else "completed", text)
            for kind, text in self._texts.items()
        ]
        done = self._response(status) | {
            "error": {"code": "server_error", "message": end.error} if end.error else None,
            "incomplete_details": {"reason": reason} if reason else None,
            "output": [*items, *map(_call_item, end.calls)],
            "usage": {
                "input_tokens": asked,
                "input_tokens_details": {
                    "cached_tokens": end.usage.cached_tokens,
                    "cache_write_tokens": end.usage.written_tokens,
                },
                "output_tokens": said,
                "output_tokens_details": {"reasoning_tokens": end.usage.reasoning_tokens},
                "total_tokens": asked + said,
            },
        }
        self.keep(done)
        return done

    def begin(self) -> bytes:
        begun = self._response("in_progress")
        return self._event("response.created", response=begun) + self._event(
            "response.in_progress", response=begun
        )

    def piece(self, text: str, *, thought: bool = False) -> bytes:
        kind = "reasoning" if thought else "message"
        begun = b"" if kind in self._texts else self._begun(kind)
        self._texts[kind] += text
        return begun + self._text_event(kind, "delta", delta=text)

    def end(self, end: TurnEnd) -> Iterator[bytes]:
        if not end.calls and "message" not in self._texts:
            yield self._begun("message")
        done = self.whole(end)
        for kind, text in self._texts.items():
            part = {"type": PARTS[kind][0], "text": text}
            yield self._text_event(kind, "done", text=text)
            yield self._event("response.content_part.done", **self._place(kind), part=_part(**part))
        for place, item in enumerate(done["output"]):
            if item["type"] == "function_call":
                yield self._call_begun(place, item)
            yield self._event("response.output_item.done", output_index=place, item=item)
        yield self._event(f"response.{done['status']}", response=done)

    def _response(self, status: str) -> dict[str, Any]:
        asked = self.asked
        metadata, shape = asked.get("metadata"), asked.get("text")
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": asked.get("instructions"),
            "max_output_tokens": asked.get("max_output_tokens"),
            "metadata": metadata if isinstance(metadata, dict) else {},
            "model": self.model,
            "output": [],
            "parallel_tool_calls": True,
            "previous_response_id": asked.get("previous_response_id"),
            "reasoning": {"effort": None, "summary": None},
            "store": asked.get("store") is not False,
            "temperature": asked.get("temperature"),
            "text": shape if isinstance(shape, dict) and "format" in shape else {"format": {"type": "text"}},
            "tool_choice": asked.get("tool_choice") or "auto",
            "tools": asked.get("tools") or [],
            "top_p": None,
            "truncation": "disabled",
            "usage": None,
        }

    def _begun(self, kind: str) -> bytes:
        """The events with which an item of text begins."""
        self._texts[kind] = ""
        place = self._place(kind)
        item = self._item(kind, "in_progress")
        added = self._event("response.output_item.added", output_index=place["output_index"], item=item)
        return added + self._event("response.content_part.added", **place, part=_part(PARTS[kind][0], ""))

    def _call_begun(self, place: int, item: Mapping[str, Any]) -> bytes:
        """The events of a call before its item is done."""
        begun = {**item, "status": "in_progress", "arguments": ""}
        told: dict[str, Any] = {"item_id": item["id"], "output_index": place}
        text = item["arguments"]
        kind = "response.function_call_arguments"
        return (
            self._event("response.output_item.added", output_index=place, item=begun)
            + self._event(f"{kind}.delta", **told, delta=text)
            + self._event(f"{kind}.done", **told, name=item["name"], arguments=text)
        )

    def _text_event(self, kind: str, what: str, **data: Any) -> bytes:
        more: dict[str, Any] = {"logprobs": []} if kind == "message" else {}
        return self._event(f"response.{PARTS[kind][0]}.{what}", **self._place(kind), **data, **more)

    def _place(self, kind: str) -> dict[str, Any]:
        id = f"{PARTS[kind][1]}_{self.id[5:]}"
        return {"item_id": id, "output_index": [*self._texts].index(kind), "content_index": 0}

    def _item(self, kind: str, status: str, text: str | None = None) -> dict[str, Any]:
        content = [] if text is None else [_part(PARTS[kind][0], text)]
        more: dict[str, Any] = {"role": "assistant"} if kind == "message" else {"summary": []}
        id = f"{PARTS[kind][1]}_{self.id[5:]}"
        return {"id": id, "type": kind, "status": status, **more, "content": content}

    def _event(self, kind: str, **data: Any) -> bytes:
        told = {"type": kind, "sequence_number": self._number, **data}
        self._number += 1
        return f"event: {kind}\ndata: {json.dumps(told, ensure_ascii=False)}\n\n".encode()


def _part(type: str, text: str) -> dict[str, Any]:
    more: dict[str, Any] = {"annotations": [], "logprobs": []} if type == "output_text" else {}
    return {"type": type, "text": text, **more}


def _call_item(call: ClientCall) -> dict[str, Any]:
    return {
        "id": f"fc_{call.id}",
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }
