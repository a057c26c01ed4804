"""Any server that speaks OpenAI's chat completions (OpenAI itself, Ollama, llama.cpp, vLLM, …), and OpenAI's
Responses API, without state on the server: each request has the whole conversation.

Native tools and calls pass through it as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quoth.neuro.backends import wire
from quoth.neuro.backends.answers import TEXTS, CallPieces, PartialReply, Stream, Thoughts
from quoth.neuro.backends.base import ToolChoice, Usage
from quoth.neuro.backends.failures import count_in
from quoth.neuro.backends.http import HttpBackend
from quoth.neuro.backends.messages import Messages, NativeCall, to_json
from quoth.neuro.backends.request import Adaptations, ModelRequest, endpoint, is_strict, owner_of
from quoth.neuro.backends.wire import ANY_ID, SHORT_ID, Roles
from quoth.neuro.backends.wordings import OPTIONS, ending_of, meaning_of, refused_name, says

THINKING = 4096  # additional tokens for thoughts, because the limit of a reasoning model includes them


class OpenAIBackend(HttpBackend):
    """One model on one server. The results of calls in text are ``user`` messages, because OpenAI refuses
    ``tool`` messages without call ids.
    ``stream_usage``: ask a stream for the usage; some servers send it without that.
    ``short_ids``: the ids of calls are nine letters and digits, and there is an assistant message between a
    result and the user.
    ``signed_calls``: send the signatures of Gemini's calls back with them.
    ``thoughts``: the field of a reply that is sent back with it.
    ``must_think``: each message with calls must have that field."""

    kind = "an OpenAI-compatible server"
    holds = "choices"
    tool_view = "openai"
    path = "/chat/completions"
    provider = "openai"

    thinking_tokens = THINKING

    def __init__(
        self,
        model: str,
        base_url: str = "https://api.openai.com/v1",
        api_key: str | None = None,
        name: str | None = None,
        *,
        extra: Mapping[str, Any] | None = None,
        takes_grammar: bool = False,
        key_variable: str = "OPENAI_API_KEY",
        stream_usage: bool = True,
        short_ids: bool = False,
        signed_calls: bool = False,
        thoughts: str = "reasoning_content",
        must_think: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(
            model,
            endpoint(base_url, self.path),
            api_key,
            name or f"{self.provider}:{model}",
            key_variable=key_variable,
            options={"temperature": 0, **(extra or {})},
            usual=Adaptations(strict=short_ids, must_think=must_think, signs=signed_calls),
            **more,
        )
        self.takes_grammar = takes_grammar
        self._stream_options = {"stream_options": {"include_usage": True}} if stream_usage else {}
        self._thoughts = thoughts
        self.owner = owner_of(self.name, self._url)
        self._ids = SHORT_ID if short_ids else ANY_ID

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._key}"}

    def _asked(
        self, messages: Messages, max_tokens: int, tools: bytes | None, choice: ToolChoice, streams: bool
    ) -> tuple[dict[str, Any], dict[str, list[bytes]]]:
        options: dict[str, Any] = {"max_tokens": max_tokens}
        if self._adapted.counts_thoughts:
            options = {"max_completion_tokens": max_tokens + THINKING}
        if streams:
            options |= {"stream": True, **self._stream_options}
        how = self._adapted
        roles = Roles(how.system, how.strict)
        if tools is None:
            return options, {"messages": self._pieces(messages, wire.Text(as_user=True, roles=roles))}
        if choice != "auto":
            options["tool_choice"] = choice
        thinks = self._thoughts if how.must_think else ""
        chat = wire.Chat(self.owner if how.thoughts else "", self._ids, thinks, how.signs, roles)
        return options, {"tools": [tools], "messages": self._pieces(messages, chat)}

    def _schema_fields(self, schema: dict[str, Any], calls: bool) -> dict[str, Any]:
        """The option for the schema. With it, other servers than OpenAI's prevent calls (llama.cpp: seen)."""
        if calls and self._url.host != "api.openai.com":
            return {}
        return {"response_format": {"type": "json_schema", "json_schema": named_schema(schema)}}

    def _adapt(self, error: dict[str, Any], request: ModelRequest) -> bool:
        """Adapt to a refusal: OpenAI's reasoning models take ``max_completion_tokens`` instead of
        ``max_tokens``; templates refuse roles, and some servers refuse thoughts."""
        if self._adapt_history(error, request):
            return True
        if "max_tokens" not in request.options or not says(error, "completion-tokens"):
            return False
        self._change(counts_thoughts=True)
        request.options["max_completion_tokens"] = request.options.pop("max_tokens") + THINKING
        return True

    def _adapt_history(self, error: dict[str, Any], request: ModelRequest) -> bool:
        """From now on write the conversation in another format, if the server refuses its roles or
        thoughts."""
        return any(self._rewrite(request, error, **change) for change in _changes(error, self._thoughts))

    def _whole(self, reply: dict[str, Any]) -> PartialReply:
        choice = self._checked(reply)
        message = choice.get("message") if choice else None
        if choice is None or not isinstance(message, dict):
            raise self.answerless()
        calls = CallPieces()
        calls.add(message, whole=True)
        usage = _usage(reply.get("usage"))
        said, finish = _text(message), _finish(choice)
        if refusal := _text(message, "refusal"):
            said, finish = refusal, "refused"
        kept = self.kept(self.collecting(message), calls)
        return PartialReply([said], calls.made(), finish=finish, usage=usage, kept=kept)

    def collecting(self, message: Any = None) -> Thoughts:
        """The collector of a reply's thoughts, with those of ``message`` if the reply is whole."""
        thoughts = Thoughts(self._thoughts)
        thoughts.add(message)
        return thoughts

    def kept(self, thoughts: Thoughts, calls: CallPieces) -> dict[str, Any] | None:
        """The data that must be sent back with a reply."""
        kept = calls.signed if self._adapted.signs else thoughts.fields
        return {self.owner: kept} if kept else None

    def _stream(self) -> Stream:
        return _ChatStream(self)

    def chunk(self, data: str) -> tuple[dict[str, Any], Any]:
        """The first choice in one event of a stream, and the token usage it reports, if any."""
        chunk = self.object_of(data)
        return self._checked(chunk) or {}, chunk.get("usage")

    def _checked(self, reply: dict[str, Any]) -> dict[str, Any] | None:
        """The first choice of a reply. An error in it is raised."""
        choice = _choice(reply)
        if choice and isinstance(choice.get("error"), dict):
            self._failed(choice)
        return choice


def _changes(error: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    """The adaptations to try, in order, if a server refuses the roles of a conversation or its thoughts: it
    requires them in ``field``, or cannot use the given ones. Empty if the error is about something else."""
    if says(error, "alternate"):
        return [{"strict": True}, {"strict": True, "system": False}]
    if says(error, "system", "only-users"):
        return [{"system": False}]
    if says(error, "lacks-thoughts"):
        return [{"must_think": True}] if field in TEXTS else []
    if says(error, "lacks-signature"):
        return [{"signs": True}]
    return [{"thoughts": False, "must_think": False}] if says(error, "bad-signature", "thoughts") else []


def _choice(reply: dict[str, Any]) -> dict[str, Any] | None:
    choices = reply.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None


def named_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": "answer", "schema": schema, "strict": is_strict(schema)}


class _ChatStream:
    def __init__(self, backend: OpenAIBackend) -> None:
        self.done = False
        self._backend = backend
        self._answer = PartialReply()
        self._calls = CallPieces()
        self._thoughts = backend.collecting()
        self._refusal: list[str] = []
        self._heard = False  # whether any event had a choice
        self._said = False  # whether any had a part of the message

    def hear(self, data: str) -> str:
        self.done = self.done or data == "[DONE]"
        if self.done:
            return ""
        choice, usage = self._backend.chunk(data)
        self._heard |= bool(choice)
        if usage:
            self._answer.usage = _usage(usage)
        delta = choice.get("delta")
        if not delta and not self._said:  # some gateways send the whole message instead
            delta = choice.get("message")
        piece = _text(delta)
        self._said |= bool(delta)
        self._thoughts.add(delta)
        self._answer.pieces.append(piece)
        if refusal := _text(delta, "refusal"):
            self._refusal.append(refusal)
        self._calls.add(delta)
        if choice.get("finish_reason"):
            self._answer.finish = _finish(choice)
        return piece

    def end(self) -> PartialReply:
        if self.done and not self._heard:
            raise self._backend.answerless()
        self._answer.calls = self._calls.made()
        self._answer.kept = self._backend.kept(self._thoughts, self._calls)
        if self._refusal and self._answer.finish is not None:
            self._answer.pieces, self._answer.finish = self._refusal, "refused"
        return self._answer


def _text(message: Any, key: str = "content") -> str:
    content = message.get(key) if isinstance(message, dict) else None
    if isinstance(content, list):  # Mistral's thinking models: the parts with a text are the reply
        return "".join(_text(part, "text") for part in content)
    return content if isinstance(content, str) else ""


def _finish(choice: dict[str, Any]) -> str:
    return ending_of(choice.get("finish_reason") or "stop")


def _usage(usage: Any) -> Usage:
    told = usage if isinstance(usage, dict) else {}
    return Usage(
        count_in(told, "prompt_tokens"),
        count_in(told, "completion_tokens"),
        cached_tokens=count_in(told.get("prompt_tokens_details"), "cached_tokens"),
        reasoning_tokens=count_in(told.get("completion_tokens_details"), "reasoning_tokens"),
    )


LEAST = 16  # tokens of a reply; a lower limit is refused
ENCRYPTED = "reasoning.encrypted_content"


class ResponsesBackend(OpenAIBackend):
    """One of OpenAI's models. Nothing is stored there: the model's thoughts arrive encrypted, are kept with
    the reply, and are sent back unchanged."""

    kind = "OpenAI's Responses API"
    tool_view = "responses"
    holds = "output"
    path = "/responses"
    provider = "openai-responses"

    def __init__(self, model: str, *given: Any, extra: Mapping[str, Any] | None = None, **more: Any) -> None:
        stateless = {"store": False, "include": [ENCRYPTED]}
        super().__init__(model, *given, extra={**stateless, **(extra or {})}, **more)

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

    def _adapt(self, error: dict[str, Any], request: ModelRequest) -> bool:
        """Adapt to a refusal: models without thoughts refuse their encryption, and models with thoughts
        refuse ``temperature``. Thoughts encrypted for another account, or too long ago, are left out from now
        on."""
        if says(error, "seals"):
            return self._drop("include", request)
        if says(error, "sealed"):
            return self._rewrite(request, error, thoughts=False)
        refused = meaning_of(error) is None and not says(error, "range") and refused_name(error, OPTIONS)
        if refused == "temperature" and not self._adapted.counts_thoughts:
            self._change(counts_thoughts=True)
            request.options["max_output_tokens"] += THINKING
        return super()._adapt(error, request)

    def _whole(self, reply: dict[str, Any]) -> PartialReply:
        if not isinstance(reply.get("output"), list):
            raise self.answerless()
        return _answer_of(reply["output"], reply, self.owner)

    def _stream(self) -> Stream:
        return _ResponsesStream(self)

    def event(self, data: str) -> dict[str, Any]:
        """The JSON of one event of a stream. Raises ModelError when the event reports an error."""
        event = self.object_of(data)
        if event.get("type") == "error":  # its fields are in the event itself
            self._failed({"error": event})
        response = event.get("response")
        if isinstance(response, dict) and response.get("error"):
            self._failed(response)
        return event


class _ResponsesStream:
    """Collects the items of the output. Each arrives whole at its end, and all of them again with the last
    event, which is empty from some servers. The earlier pieces are only for display."""

    def __init__(self, backend: ResponsesBackend) -> None:
        self.done = False
        self._backend = backend
        self._items: list[Any] = []
        self._reply: dict[str, Any] | None = None
        self._shown = ""  # the shown text of the current item

    def hear(self, data: str) -> str:
        if data == "[DONE]":  # some servers end every stream with it
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

    def end(self) -> PartialReply:
        if self._shown:  # the end of the item is missing
            self._items.append({"type": "message", "content": [{"type": "output_text", "text": self._shown}]})
        reply = self._reply or {}
        if self.done and not self._items and not isinstance(reply.get("output"), list):
            raise self._backend.answerless()
        items = reply.get("output") or self._items
        return _answer_of(items, reply, self._backend.owner, finished=self.done)


def _answer_of(items: list[Any], reply: dict[str, Any], owner: str, *, finished: bool = True) -> PartialReply:
    """The answer in the items of an output; ``reply`` has its end and usage."""
    answer = PartialReply(
        finish=_output_finish(reply) if finished else None, usage=_output_usage(reply.get("usage"))
    )
    for item in items:
        if item.get("type") == "function_call":
            arguments = item.get("arguments")
            arguments = arguments if isinstance(arguments, str) else to_json(arguments or {}).decode()
            id = str(item.get("call_id") or item.get("id") or "")
            answer.calls.append(NativeCall(id=id, name=str(item.get("name")), arguments=arguments))
        text, refused = _said(item)
        answer.pieces.append(text)
        if refused and finished:
            return PartialReply([text], finish="refused", usage=answer.usage)
    # Thoughts are sent back with the calls after them. Unfinished thoughts would be refused.
    if answer.finish == "stop" and any(
        item.get("type") not in ("message", "function_call") for item in items
    ):
        answer.kept = {owner: items}
    return answer


def _said(item: Any) -> tuple[str, bool]:
    """The text of an item, and whether it is a refusal."""
    parts = item.get("content") if item.get("type") == "message" else None
    parts = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    refused = any(part.get("type") == "refusal" for part in parts)
    texts = (part.get("refusal" if part.get("type") == "refusal" else "text") for part in parts)
    return "".join(text for text in texts if isinstance(text, str)), refused


def _output_finish(reply: dict[str, Any]) -> str:
    status, details = reply.get("status") or "completed", reply.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return ending_of((reason or "length") if status == "incomplete" else status)


def _output_usage(usage: Any) -> Usage:
    told = usage if isinstance(usage, dict) else {}
    return Usage(
        count_in(told, "input_tokens"),
        count_in(told, "output_tokens"),
        cached_tokens=count_in(told.get("input_tokens_details"), "cached_tokens"),
        reasoning_tokens=count_in(told.get("output_tokens_details"), "reasoning_tokens"),
    )
