"""The shapes of OpenAI's responses: what a request may contain, and the answers.

A response is kept by its id, so that a later request continues after it. Fields that are not known here are
ignored. Source: the reference of the API, and what the SDKs read of it (November 2026).
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

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
LEFT_OUT = ("reasoning",)  # items that clients send back, and that no session needs


def read_response_request(body: bytes) -> tuple[ChatRequest, ResponseAnswer]:
    """A request from its JSON, and its answer, still empty. Raises UsageError with what is wrong."""
    said = read_body(body)
    model = read_model(said)
    instructions, previous = (_text(said, name) for name in ("instructions", "previous_response_id"))
    read = read_messages(_items(said.get("input")), "input")
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
        response=answer.id,
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
    kept = []
    for number, item in enumerate(said):
        kind = item.get("type", "message") if isinstance(item, dict) else "message"
        if kind not in ("message", *LEFT_OUT):
            raise UsageError(f"input[{number}]: quoth takes items of the type message, not {kind!r}.")
        kept += [item] if kind == "message" else []
    return kept


@dataclass
class ResponseAnswer:
    """A response: one message with one text. Its events are numbered."""

    id: str
    model: str
    asked: Mapping[str, Any]  # the request: the answer repeats some of its fields
    created: int = field(default_factory=lambda: int(time.time()))
    _number: int = 0  # of the next event

    @property
    def _place(self) -> dict[str, Any]:
        return {"item_id": f"msg_{self.id[5:]}", "output_index": 0, "content_index": 0}

    def whole(self, end: TurnEnd) -> dict[str, Any]:
        reason = INCOMPLETE.get(end.finish, "")
        status = "failed" if end.error else "incomplete" if reason else "completed"
        asked, said = end.usage.input_tokens, end.usage.output_tokens
        return self._response(status) | {
            "error": {"code": "server_error", "message": end.error} if end.error else None,
            "incomplete_details": {"reason": reason} if reason else None,
            "output": [self._message("incomplete" if reason else "completed", end.text)],
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

    def begin(self) -> bytes:
        begun = self._response("in_progress")
        return b"".join(
            (
                self._event("response.created", response=begun),
                self._event("response.in_progress", response=begun),
                self._event("response.output_item.added", output_index=0, item=self._message("in_progress")),
                self._event("response.content_part.added", **self._place, part=_part("")),
            )
        )

    def piece(self, text: str, *, thought: bool = False) -> bytes:
        """A piece of the text. Thoughts are not sent."""
        if thought:
            return b""
        return self._event("response.output_text.delta", **self._place, delta=text, logprobs=[])

    def end(self, end: TurnEnd) -> Iterator[bytes]:
        done = self.whole(end)
        yield self._event("response.output_text.done", **self._place, text=end.text, logprobs=[])
        yield self._event("response.content_part.done", **self._place, part=_part(end.text))
        yield self._event("response.output_item.done", output_index=0, item=done["output"][0])
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
            "store": True,
            "temperature": asked.get("temperature"),
            "text": shape if isinstance(shape, dict) and "format" in shape else {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "truncation": "disabled",
            "usage": None,
        }

    def _message(self, status: str, text: str | None = None) -> dict[str, Any]:
        content = [] if text is None else [_part(text)]
        id = self._place["item_id"]
        return {"id": id, "type": "message", "status": status, "role": "assistant", "content": content}

    def _event(self, kind: str, **data: Any) -> bytes:
        told = {"type": kind, "sequence_number": self._number, **data}
        self._number += 1
        return f"event: {kind}\ndata: {json.dumps(told, ensure_ascii=False)}\n\n".encode()


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
