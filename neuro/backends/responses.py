"""OpenAI's Responses API over httpx, without state on the server: each request holds the whole conversation.

Must not know tools, forms or the loop; native tools and calls pass through it as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quoth.neuro.backends import wire
from quoth.neuro.backends.answers import Answer
from quoth.neuro.backends.base import ToolChoice, Usage
from quoth.neuro.backends.failures import count_in
from quoth.neuro.backends.messages import Messages, NativeCall, to_json
from quoth.neuro.backends.openai import THINKING, OpenAIBackend, named_schema
from quoth.neuro.backends.request import Request
from quoth.neuro.backends.wordings import OPTIONS, ending_of, meaning_of, refused_name, says

LEAST = 16  # tokens of a reply; a limit below is refused
ENCRYPTED = "reasoning.encrypted_content"


class ResponsesBackend(OpenAIBackend):
    """One of OpenAI's models. Nothing is stored there: what the model thought comes back encrypted, is kept
    with its reply, and goes back as it came."""

    kind = "OpenAI's Responses API"
    holds = "output"
    path = "/responses"
    provider = "openai-responses"

    def __init__(self, model: str, *given: Any, extra: Mapping[str, Any] | None = None, **more: Any) -> None:
        stateless = {"store": False, "include": [ENCRYPTED]}
        super().__init__(model, *given, extra={**stateless, **(extra or {})}, **more)
        self.tool_view = "responses"

    def _asked(
        self, messages: Messages, max_tokens: int, tools: bytes | None, choice: ToolChoice, streams: bool
    ) -> tuple[dict[str, Any], dict[str, list[bytes]]]:
        limit = max(max_tokens, LEAST) + (THINKING if self._adapted.counts_thoughts else 0)
        options: dict[str, Any] = {"max_output_tokens": limit}
        if streams:
            options["stream"] = True
        if tools is None:
            return options, {"input": self._pieces(messages, wire.responses_text)}
        if choice != "auto":
            options["tool_choice"] = choice
        owner = self.owner if self._adapted.thoughts else ""
        return options, {"tools": [tools], "input": self._pieces(messages, wire.Responses(owner))}

    def _schema_fields(self, schema: dict[str, Any], calls: bool) -> dict[str, Any]:
        return {"text": {"format": {"type": "json_schema", **named_schema(schema)}}}

    def _adapt(self, error: dict[str, Any], request: Request) -> bool:
        """Models that do not think have nothing to encrypt, those that do refuse ``temperature``. Thoughts
        that were encrypted for another account, or too long ago, are left out from now on."""
        if says(error, "seals"):
            return self._drop("include", request)
        if says(error, "sealed"):
            return self._rewrite(request, error, thoughts=False)
        refused = meaning_of(error) is None and not says(error, "range") and refused_name(error, OPTIONS)
        if refused == "temperature" and not self._adapted.counts_thoughts:
            self._change(counts_thoughts=True)
            request.options["max_output_tokens"] += THINKING
        return super()._adapt(error, request)

    def _whole(self, reply: dict[str, Any]) -> Answer:
        if not isinstance(reply.get("output"), list):
            raise self.answerless()
        return _answer(reply["output"], reply, self.owner)

    def _stream(self) -> _Stream:
        return _Stream(self)

    def event(self, data: str) -> dict[str, Any]:
        """The JSON of one event of a stream. Raises ModelError when the event reports an error."""
        event = self.object_of(data)
        if event.get("type") == "error":  # its fields stand in the event itself
            self._failed({"error": event})
        response = event.get("response")
        if isinstance(response, dict) and response.get("error"):
            self._failed(response)
        return event


class _Stream:
    """Collects the items of the output. Each is told whole at its end, and all of them once more with the
    last event, which some servers leave empty; the pieces before are for whoever watches."""

    def __init__(self, backend: ResponsesBackend) -> None:
        self.done = False
        self._backend = backend
        self._items: list[Any] = []
        self._reply: dict[str, Any] | None = None
        self._shown = ""  # of the item that is being written

    def hear(self, data: str) -> str:
        if data == "[DONE]":  # some servers end every stream so
            return ""
        event = self._backend.event(data)
        match event.get("type"):
            case "response.output_text.delta":
                piece = event.get("delta")
                piece = piece if isinstance(piece, str) else ""
                self._shown += piece
                return piece
            case "response.output_item.done":
                item, shown, self._shown = event["item"], self._shown, ""
                self._items.append(item)
                text, refused = _said(item)
                return "" if shown or refused else text
            case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
                self._reply, self.done = event["response"], True
        return ""

    def end(self) -> Answer:
        if self._shown:  # the end of the item never came
            self._items.append({"type": "message", "content": [{"type": "output_text", "text": self._shown}]})
        reply = self._reply or {}
        if self.done and not self._items and not isinstance(reply.get("output"), list):
            raise self._backend.answerless()
        items = reply.get("output") or self._items
        return _answer(items, reply, self._backend.owner, finished=self.done)


def _answer(items: list[Any], reply: dict[str, Any], owner: str, *, finished: bool = True) -> Answer:
    """The Answer in the items of an output; ``reply`` says how it ended and what was used."""
    answer = Answer(finish=_finish(reply) if finished else None, usage=_usage(reply.get("usage")))
    for item in items:
        if item.get("type") == "function_call":
            arguments = item.get("arguments")
            arguments = arguments if isinstance(arguments, str) else to_json(arguments or {}).decode()
            id = str(item.get("call_id") or item.get("id") or "")
            answer.calls.append(NativeCall(id=id, name=str(item.get("name")), arguments=arguments))
        text, refused = _said(item)
        answer.pieces.append(text)
        if refused and finished:
            return Answer([text], finish="refused", usage=answer.usage)
    # Thoughts go back with the calls they led to. Without an end of their own they would be refused there.
    if answer.finish == "stop" and any(
        item.get("type") not in ("message", "function_call") for item in items
    ):
        answer.kept = {owner: items}
    return answer


def _said(item: Any) -> tuple[str, bool]:
    """The text of an item, and whether the model refuses in it."""
    parts = item.get("content") if item.get("type") == "message" else None
    parts = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    refused = any(part.get("type") == "refusal" for part in parts)
    texts = (part.get("refusal" if part.get("type") == "refusal" else "text") for part in parts)
    return "".join(text for text in texts if isinstance(text, str)), refused


def _finish(reply: dict[str, Any]) -> str:
    status, details = reply.get("status") or "completed", reply.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return ending_of((reason or "length") if status == "incomplete" else status)


def _usage(usage: Any) -> Usage:
    told = usage if isinstance(usage, dict) else {}
    return Usage(
        count_in(told, "input_tokens"),
        count_in(told, "output_tokens"),
        cached_tokens=count_in(told.get("input_tokens_details"), "cached_tokens"),
        reasoning_tokens=count_in(told.get("output_tokens_details"), "reasoning_tokens"),
    )
