"""Any server that speaks OpenAI's chat completions, over httpx: OpenAI itself, Ollama, llama.cpp, vLLM, …

Must not know tools, forms or the loop; native tools and calls pass through it as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quoth.neuro.backends import wire
from quoth.neuro.backends.answers import Answer, Stream
from quoth.neuro.backends.base import ToolChoice, Usage
from quoth.neuro.backends.call_pieces import Calls
from quoth.neuro.backends.failures import count_in
from quoth.neuro.backends.history import ANY_ID, SHORT_ID, Roles
from quoth.neuro.backends.http import HttpBackend
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.output_schema import is_strict
from quoth.neuro.backends.request import Adaptations, Request, endpoint
from quoth.neuro.backends.thoughts import TEXTS, Thoughts, owner_of
from quoth.neuro.backends.wordings import ending_of, says

THINKING = 4096  # tokens a reasoning model may think, for its limit counts thoughts and reply together


class OpenAIBackend(HttpBackend):
    """One model on one server. The results of calls in text are ``user`` messages, because OpenAI refuses
    ``tool`` messages without call ids.
    ``stream_usage`` asks a stream for the usage, which some tell unasked; with ``short_ids`` the ids of calls
    are nine letters and digits, and the assistant speaks between a result and the user; with ``signed_calls``
    the signatures of Gemini's calls go back with them. ``thoughts`` is the field of a reply that goes back
    with it; with ``must_think`` each message with calls has to have it."""

    kind = "an OpenAI-compatible server"
    holds = "choices"
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
        self.tool_view = "openai"
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
        """Other servers than OpenAI's own bind the model to the schema so that it cannot call (llama.cpp:
        seen)."""
        if calls and self._url.host != "api.openai.com":
            return {}
        return {"response_format": {"type": "json_schema", "json_schema": named_schema(schema)}}

    def _adapt(self, error: dict[str, Any], request: Request) -> bool:
        """OpenAI's reasoning models take ``max_completion_tokens`` for ``max_tokens``; templates refuse
        roles, and some servers thoughts."""
        if self._adapt_history(error, request):
            return True
        if "max_tokens" not in request.options or not says(error, "completion-tokens"):
            return False
        self._change(counts_thoughts=True)
        request.options["max_completion_tokens"] = request.options.pop("max_tokens") + THINKING
        return True

    def _adapt_history(self, error: dict[str, Any], request: Request) -> bool:
        """Write the conversation in another way, from now on, if the server refuses its roles or thoughts."""
        return any(self._rewrite(request, error, **change) for change in _changes(error, self._thoughts))

    def _whole(self, reply: dict[str, Any]) -> Answer:
        choice = self._checked(reply)
        message = choice.get("message") if choice else None
        if choice is None or not isinstance(message, dict):
            raise self.answerless()
        calls = Calls()
        calls.add(message, whole=True)
        usage = _usage(reply.get("usage"))
        said, finish = _text(message), _finish(choice)
        if refusal := _text(message, "refusal"):
            said, finish = refusal, "refused"
        kept = self.kept(self.collecting(message), calls)
        return Answer([said], calls.made(), finish=finish, usage=usage, kept=kept)

    def collecting(self, message: Any = None) -> Thoughts:
        """What collects the thoughts of a reply, from its message if that is whole."""
        thoughts = Thoughts(self._thoughts)
        thoughts.add(message)
        return thoughts

    def kept(self, thoughts: Thoughts, calls: Calls) -> dict[str, Any] | None:
        """What has to come back with a reply."""
        kept = calls.signed if self._adapted.signs else thoughts.fields
        return {self.owner: kept} if kept else None

    def _stream(self) -> Stream:
        return _Stream(self)

    def chunk(self, data: str) -> tuple[dict[str, Any], Any]:
        """The first choice in one event of a stream, and the token usage it reports, if any."""
        chunk = self.object_of(data)
        return self._checked(chunk) or {}, chunk.get("usage")

    def _checked(self, reply: dict[str, Any]) -> dict[str, Any] | None:
        """The first choice of a reply; an error told in it is raised."""
        choice = _choice(reply)
        if choice and isinstance(choice.get("error"), dict):
            self._failed(choice)
        return choice


def _changes(error: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    """The adaptations to try, in this order, where a server refuses the roles of a conversation, or how
    thoughts go back: it lacks them in ``field``, or cannot use these. Nothing where its words are about
    something else."""
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


class _Stream:
    def __init__(self, backend: OpenAIBackend) -> None:
        self.done = False
        self._backend = backend
        self._answer = Answer()
        self._calls = Calls()
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
        if not delta and not self._said:  # some gateways send the whole message in its place
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

    def end(self) -> Answer:
        if self.done and not self._heard:
            raise self._backend.answerless()
        self._answer.calls = self._calls.made()
        self._answer.kept = self._backend.kept(self._thoughts, self._calls)
        if self._refusal and self._answer.finish is not None:
            self._answer.pieces, self._answer.finish = self._refusal, "refused"
        return self._answer


def _text(message: Any, key: str = "content") -> str:
    content = message.get(key) if isinstance(message, dict) else None
    if isinstance(
        content, list
    ):  # Mistral's thinking models: parts, of which those with a text are the reply
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
