"""Anthropic's Messages API over httpx. Native tools and calls pass through it as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from quoth.neuro.backends import wire
from quoth.neuro.backends.answers import PartialReply, joined
from quoth.neuro.backends.base import ToolChoice, Usage
from quoth.neuro.backends.failures import count_in
from quoth.neuro.backends.http import HttpBackend
from quoth.neuro.backends.messages import Messages, NativeCall, to_json
from quoth.neuro.backends.request import ModelRequest, endpoint, owner_of
from quoth.neuro.backends.wire import as_object
from quoth.neuro.backends.wordings import ending_of, says

VERSION = "2023-06-01"
THINKING = 8192  # additional tokens: newer models always think, and their limit includes thoughts
CACHED = {"type": "ephemeral"}


class AnthropicBackend(HttpBackend):
    """One of Anthropic's models. The tools and the system prompt are one cached prefix; the conversation is
    cached up to its end at each request."""

    kind = "Anthropic's Messages API"
    holds = "content"
    tool_view = "anthropic"
    thinking_tokens = THINKING

    def __init__(
        self,
        model: str,
        base_url: str = "https://api.anthropic.com",
        api_key: str | None = None,
        name: str | None = None,
        *,
        extra: Mapping[str, Any] | None = None,
        key_variable: str = "ANTHROPIC_API_KEY",
        **more: Any,
    ) -> None:
        super().__init__(
            model,
            endpoint(base_url, "/messages", "/v1"),
            api_key,
            name or f"anthropic:{model}",
            key_variable=key_variable,
            # No temperature, because newer models refuse it.
            options={"cache_control": CACHED, **(extra or {})},
            **more,
        )
        self.owner = owner_of(self.name, self._url)

    def _headers(self) -> dict[str, str]:
        return {"x-api-key": str(self._key), "anthropic-version": VERSION}

    def _asked(
        self, messages: Messages, max_tokens: int, tools: bytes | None, choice: ToolChoice, streams: bool
    ) -> tuple[dict[str, Any], dict[str, list[bytes]]]:
        options: dict[str, Any] = {"max_tokens": max_tokens + THINKING}
        if streams:
            options["stream"] = True
        parts: dict[str, list[bytes]] = {}
        if tools is not None:
            parts["tools"] = [tools]
            if choice != "auto":
                options["tool_choice"] = {"type": {"required": "any", "none": "none"}[choice]}
        if system := messages.system:
            parts["system"] = [_system_json(system)]
        owner = self.owner if self._adapted.thoughts else ""
        writes = wire.Anthropic(owner) if tools is not None else wire.anthropic_text
        parts["messages"] = self._pieces(messages, writes)
        return options, parts

    def _schema_fields(self, schema: dict[str, Any], calls: bool) -> dict[str, Any]:
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}

    def _adapt(self, error: dict[str, Any], request: ModelRequest) -> bool:
        """From now on, leave out thoughts that the server cannot use."""
        return says(error, "bad-signature") and self._rewrite(request, error, thoughts=False)

    def _whole(self, reply: dict[str, Any]) -> PartialReply:
        blocks = reply.get("content")
        if not isinstance(blocks, list):
            raise self.answerless()
        found = {index: block for index, block in enumerate(blocks) if isinstance(block, dict)}
        finish = _finish(reply.get("stop_reason"))
        return _explained(_answer(found, {}, finish, reply.get("usage"), self.owner), reply)

    def _stream(self) -> _MessagesStream:
        return _MessagesStream(self)


class _MessagesStream:
    """Collects content blocks. Each begins, grows by deltas and ends at its index."""

    def __init__(self, backend: AnthropicBackend) -> None:
        self.done = False
        self._backend = backend
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}  # of growing values, by block and key
        self._used: dict[str, Any] = {}
        self._finish: str | None = None
        self._ended: dict[str, Any] = {}

    def hear(self, data: str) -> str:
        event = self._backend.object_of(data)
        index = event.get("index", 0)
        match event.get("type"):
            case "message_start":
                self._used |= _dict(_dict(event.get("message")).get("usage"))
            case "content_block_start":
                self._blocks[index] = {**_dict(event.get("content_block"))}
                return _text(self._blocks[index])
            case "content_block_delta":
                return self._grow(index, _dict(event.get("delta")))
            case "message_delta":
                self._used |= _dict(event.get("usage"))
                self._ended |= _dict(event.get("delta"))
                if reason := self._ended.get("stop_reason"):
                    self._finish = _finish(reason)
            case "message_stop":
                self.done = True
        return ""

    def _grow(self, index: int, delta: dict[str, Any]) -> str:
        self._blocks.setdefault(index, {"type": "text"})
        for key in ("text", "thinking", "signature", "partial_json"):
            if isinstance(delta.get(key), str):
                self._pieces.setdefault((index, key), []).append(delta[key])
        return _text(delta)

    def end(self) -> PartialReply:
        if self.done and not self._blocks and self._finish is None:
            raise self._backend.answerless()
        inputs: dict[int, str] = {}
        for (index, key), pieces in self._pieces.items():
            block = self._blocks[index]
            if key == "partial_json":
                inputs[index] = joined(pieces)
            else:
                block[key] = (block.get(key) or "") + "".join(pieces)
        owner = self._backend.owner
        return _explained(_answer(self._blocks, inputs, self._finish, self._used, owner), self._ended)


def _answer(
    blocks: Mapping[int, dict[str, Any]], inputs: Mapping[int, str], finish: str | None, used: Any, owner: str
) -> PartialReply:
    """The answer in the content blocks, by index; ``inputs`` are arguments that arrived in pieces, as
    text."""
    answer = PartialReply(finish=finish, usage=_usage(used))
    whole = []
    for index, block in sorted(blocks.items()):
        if block.get("type") == "tool_use":
            arguments = inputs.get(index) or to_json(block.get("input") or {}).decode()
            answer.calls.append(
                NativeCall(id=str(block.get("id") or ""), name=str(block.get("name")), arguments=arguments)
            )
            block = {**block, "input": as_object(arguments)}
        answer.pieces.append(_text(block))
        whole.append(block)
    # Thoughts are signed, and must be sent back unchanged with the calls after them.
    if any(block.get("type") not in ("text", "tool_use") for block in whole):
        answer.kept = {owner: [block for block in whole if _text(block).strip() or "text" not in block]}
    return answer


def _explained(answer: PartialReply, ended: Mapping[str, Any]) -> PartialReply:
    """The answer; a refusal without words gets the provider's explanation."""
    if answer.finish == "refused" and not "".join(answer.pieces).strip():
        answer.pieces = [str(_dict(ended.get("stop_details")).get("explanation") or "")]
    return answer


@lru_cache(maxsize=8)
def _system_json(system: str) -> bytes:
    """The JSON of the system message, cached."""
    return to_json([{"type": "text", "text": system, "cache_control": CACHED}])


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(block: dict[str, Any]) -> str:
    text = block.get("text")
    return text if isinstance(text, str) else ""


def _finish(reason: Any) -> str:
    return ending_of(reason or "stop")


def _usage(usage: Any) -> Usage:
    """The usage; Anthropic counts tokens read from and written to its cache separately from the other
    input."""
    cached = count_in(usage, "cache_read_input_tokens")
    written = count_in(usage, "cache_creation_input_tokens")
    details = usage.get("output_tokens_details") if isinstance(usage, dict) else None
    return Usage(
        count_in(usage, "input_tokens") + cached + written,
        count_in(usage, "output_tokens"),
        cached_tokens=cached,
        reasoning_tokens=count_in(details, "thinking_tokens"),
        written_tokens=written,
    )
