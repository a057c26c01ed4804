"""Spans and metrics for OpenTelemetry, by its conventions for generative AI. The program that uses the agent
chooses their destination with the providers that it sets, as for all its other spans.
"""

from __future__ import annotations

import json
from typing import Any

from opentelemetry import context, metrics, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from quoth.agent.trace.tracer import Span

KINDS = {"request": SpanKind.CLIENT}  # all other spans are internal
TOKENS = {"input": "gen_ai.usage.input_tokens", "output": "gen_ai.usage.output_tokens"}
UNMEASURED = ("flight", "turn")
LABELS = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.tool.name")


class OpenTelemetry:
    """Sends each span to the tracer provider of the process, and its duration and tokens to the meters. The
    outermost span is inside the program's current span."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer("quoth")
        meter = metrics.get_meter("quoth")
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Number of input and output tokens used."
        )
        self._seconds = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "GenAI operation duration."
        )

    def begins(self, span: Span) -> None:
        around = None if span.parent is None else trace.set_span_in_context(span.parent.handle[0])
        kind = KINDS.get(span.kind, SpanKind.INTERNAL)
        made = self._tracer.start_span(span.name, around, kind, span.attributes, start_time=span.start)
        span.handle = made, context.attach(trace.set_span_in_context(made))

    def ends(self, span: Span) -> None:
        made, token = span.handle
        context.detach(token)
        made.set_attributes({name: _attribute(value) for name, value in span.attributes.items()})
        for name, at, said in span.events:
            made.add_event(name, said, at)
        if span.error:
            made.set_attribute("error.type", span.error)
            made.set_status(Status(StatusCode.ERROR))
        made.end(span.end)
        self._measure(span)

    def _measure(self, span: Span) -> None:
        if span.kind in UNMEASURED:
            return
        labels = {name: span.attributes[name] for name in LABELS if name in span.attributes}
        failed = {"error.type": span.error} if span.error else {}
        self._seconds.record((span.end - span.start) / 1e9, labels | failed)
        if span.kind == "request":  # the tokens of a run are the sum over its requests
            for which, name in TOKENS.items():
                if name in span.attributes:
                    self._tokens.record(span.attributes[name], labels | {"gen_ai.token.type": which})


def _attribute(value: Any) -> Any:
    """An attribute value; structured messages of a conversation become a text."""
    structured = isinstance(value, list) and any(isinstance(one, dict) for one in value)
    return json.dumps(value, ensure_ascii=False) if structured else value
