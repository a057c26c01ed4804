"""Spans of an agent's work: a run, a turn, a request to a model, a passage of the door, each inside the span
that began it. The names of attributes follow the conventions of OpenTelemetry for generative AI."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from quoth.agent.reply import Reply
from quoth.neuro.backends.base import NO_OPTIONS, Backend, Completion, RequestOptions, Usage
from quoth.neuro.backends.messages import Messages
from quoth.tools.call.call import Call, ToolResult
from quoth.tools.call.redaction import KEPT_CHARS, SECRET, Redactor, redact
from quoth.tools.errors import ToolError
from quoth.tools.registry.table import ToolTable
from quoth.tools.registry.values import encodable, plain
from quoth.tools.text import short

SpanKind = Literal["flight", "run", "turn", "request", "call"]
AGENT = "quoth"
SECRETS_KEPT = 1000
# Providers with another name in the conventions.
NAMES = {"mistral": "mistral_ai", "gemini": "gcp.gemini", "openai-responses": "openai"}

_STATUS = re.compile(r" \((?:status )?([1-5]\d\d)\)")  # as failures.py writes it


@dataclass(eq=False)
class Span:
    """A piece of work with its start and end (nanoseconds since 1970). ``error`` is the kind of failure,
    empty if there was none. ``handle`` belongs to the exporter."""

    kind: SpanKind
    name: str
    tracer: Tracer
    parent: Span | None
    attributes: dict[str, Any]
    trace: str
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    start: int = field(default_factory=time.time_ns)
    end: int = 0
    error: str = ""
    events: list[tuple[str, int, dict[str, Any]]] = field(default_factory=list)
    handle: Any = None

    def event(self, name: str, **attributes: Any) -> None:
        self.events.append((name, time.time_ns(), attributes))


class Exporter(Protocol):
    """The destination of spans."""

    def begins(self, span: Span) -> None: ...

    def ends(self, span: Span) -> None: ...


_CURRENT: ContextVar[Span | None] = ContextVar("_CURRENT", default=None)


class Tracer:
    """Makes spans and sends each to its ``exporter``. ``content`` adds prompts, replies, arguments and
    results, without secrets."""

    def __init__(self, exporter: Exporter, *, content: bool = False) -> None:
        self.content = content
        self._exporter = exporter
        self._calls: dict[str, Span] = {}  # the running calls, by id
        self._secrets: dict[str, None] = {}  # the declared secrets of calls, the latest last

    def _bare(self, text: str) -> str:
        """The text without probable secrets and without the declared secrets of calls."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, SECRET)
        return redact(text)

    def _learn(self, secrets: Sequence[str]) -> None:
        self._secrets |= dict.fromkeys(secrets)
        for old in list(self._secrets)[:-SECRETS_KEPT]:
            del self._secrets[old]

    @contextmanager
    def _span(
        self, kind: SpanKind, name: str, within: str | None, attributes: dict[str, Any]
    ) -> Iterator[Span]:
        """A span inside the current one, or inside the span of the call ``within``, even in another
        context."""
        parent = _CURRENT.get()
        if parent is not None and parent.tracer is not self:
            parent = None
        if (call := self._calls.get(within or "")) is not None and call not in _upwards(parent):
            parent = call
        trace = secrets.token_hex(16) if parent is None else parent.trace
        span = Span(kind, name, self, parent, attributes, trace)
        self._exporter.begins(span)
        token = _CURRENT.set(span)
        try:
            yield span
        except BaseException as error:
            span.error = span.error or _kind_of(error)
            raise
        finally:
            _CURRENT.reset(token)
            span.end = time.time_ns()
            self._exporter.ends(span)

    @contextmanager
    def run(self, session: str, run: str, task: str, caller: str | None) -> Iterator[Callable[[Reply], None]]:
        """The span of a run; ``caller`` is the call that a sub-agent works for. The yielded function receives
        the Reply."""
        named = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": AGENT}
        where = {"gen_ai.conversation.id": session, "quoth.run": run}
        with self._span("run", f"invoke_agent {AGENT}", caller, named | where) as span:

            def ended(reply: Reply) -> None:
                told = {
                    "quoth.status": reply.status,
                    "quoth.steps": reply.steps,
                    "quoth.calls": len(reply.calls),
                }
                span.attributes |= told | _used(reply.usage)
                span.error = "" if reply.status in ("done", "pending") else reply.status
                if self.content:
                    span.attributes |= _said("input", [("user", self._bare(task))])
                    span.attributes |= _said("output", [("assistant", self._bare(reply.said))])

            yield ended

    @contextmanager
    def flight(self, session: str) -> Iterator[None]:
        """The span of a flight, around the spans of its steps."""
        attributes = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.conversation.id": session}
        with self._span("flight", "invoke_workflow flight", None, attributes):
            yield

    @contextmanager
    def turn(self, number: int) -> Iterator[None]:
        with self._span("turn", f"turn {number}", None, {"quoth.turn": number}):
            yield

    async def request(
        self,
        backend: Backend,
        messages: Messages,
        *,
        hide: Callable[[str], str] = str,
        learn: Callable[[Completion], Any] = lambda completion: None,
        options: RequestOptions = NO_OPTIONS,
        on_text: Callable[[str], None] | None = None,
        **asked: Any,
    ) -> Completion:
        """Ask a model, as ``backend.complete`` does, in its own span. ``hide`` removes secrets from texts
        after ``learn`` has searched the reply for them."""
        provider, _, model = backend.name.partition(":")
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": NAMES.get(provider, provider),
            "gen_ai.request.model": model or provider,
            "gen_ai.request.stream": on_text is not None,
        }
        if (most := asked.get("max_tokens")) is not None:
            attributes["gen_ai.request.max_tokens"] = most
        if options.temperature is not None:
            attributes["gen_ai.request.temperature"] = options.temperature
        with self._span("request", f"chat {model or provider}", None, attributes) as span:
            options = replace(options, on_wait=_Waits(span, options.on_wait))
            heard = None if on_text is None else _FirstText(span, on_text)
            try:
                done = await backend.complete(messages, options=options, on_text=heard, **asked)
            finally:
                if self.content:
                    new = [(one["role"], self._bare(hide(one["content"]))) for one in _new(messages)]
                    span.attributes |= _said("input", new)
            span.attributes |= {"gen_ai.response.finish_reasons": [done.finish], **_used(done.usage)}
            if self.content:
                learn(done)
                span.attributes |= _said("output", [("assistant", self._bare(hide(done.text)))])
            return done

    @contextmanager
    def passage(self, call: Call, table: ToolTable) -> Iterator[Callable[[ToolResult], None]]:
        """The span of a passage of the door. The yielded function receives the result."""
        tool = table.find(call.tool)
        unknown = encodable(call.tool)[:200] if self.content else "unknown"  # the model's words
        name = unknown if tool is None else tool.name
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.id,
            "gen_ai.conversation.id": call.session,
            "quoth.route": call.route,
            "quoth.depth": call.depth,
        }
        hide = Redactor(call.form, tool.params if tool else (), table.secrets) if self.content else None
        if hide is not None:
            self._learn(hide.found)
            attributes["gen_ai.tool.call.arguments"] = self._bare(hide.form_text())
        with self._span("call", f"execute_tool {name}", call.parent, attributes) as span:

            def ended(result: ToolResult) -> None:
                span.attributes |= {
                    "quoth.status": result.status,
                    "quoth.stage": result.audit.get("stage", ""),
                }
                span.error = "" if result.status in ("ok", "pending") else result.status
                if hide is not None:
                    span.attributes["gen_ai.tool.call.result"] = self._bare(hide.text(_value(result)))

            self._calls[call.id] = span
            try:
                yield ended
            finally:
                self._calls.pop(call.id, None)


def _kind_of(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    return getattr(error, "why", "") or type(error).__name__


def _upwards(span: Span | None) -> Iterator[Span]:
    while span is not None:
        yield span
        span = span.parent


class _Waits:
    """Records on a span each wait before a retry of its request. It is called repeatedly with the seconds
    left and the reason."""

    def __init__(self, span: Span, also: Callable[[float, str], None] | None) -> None:
        self._span = span
        self._also = also
        self._left = 0.0

    def __call__(self, seconds: float, why: str) -> None:
        if seconds > self._left:
            status = _STATUS.search(why)
            told: dict[str, Any] = {"http.response.status_code": int(status[1])} if status else {}
            if self._span.tracer.content:  # a server may quote the request
                told["reason"] = redact(why)
            self._span.event("retry", seconds=round(seconds, 3), **told)
        self._left = seconds
        if self._also is not None:
            self._also(seconds, why)


class _FirstText:
    """Records on a span the time of the first piece of its reply."""

    def __init__(self, span: Span, also: Callable[[str], None]) -> None:
        self._span = span
        self._also = also

    def __call__(self, piece: str) -> None:
        if (name := "gen_ai.response.time_to_first_chunk") not in self._span.attributes:
            self._span.attributes[name] = round((time.time_ns() - self._span.start) / 1e9, 6)
        self._also(piece)


def _used(usage: Usage) -> dict[str, int]:
    told = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    more = {
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return told | {name: tokens for name, tokens in more.items() if tokens}


def _new(messages: Messages) -> Sequence[Mapping[str, Any]]:
    """The messages that a model has not answered yet."""
    told = list(messages)
    while told and told[-1]["role"] == "assistant":  # its reply, or a reply that it continues
        told.pop()
    last = max((place for place, one in enumerate(told) if one["role"] == "assistant"), default=-1)
    return told[last + 1 :]


def _said(which: Literal["input", "output"], messages: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Messages in the format of the conventions, each shortened as in the audit."""
    told = [
        {"role": role, "parts": [{"type": "text", "content": short(text, KEPT_CHARS)}]}
        for role, text in messages
    ]
    return {f"gen_ai.{which}.messages": told}


def _value(result: ToolResult) -> str:
    if not result.ok:
        return result.message
    try:
        return json.dumps(plain(result.value), ensure_ascii=False)
    except ToolError:
        return result.message
