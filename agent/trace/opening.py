"""Opens a tracer: for a file of JSON lines, or for OpenTelemetry. Without a trace, nothing else of this room
is imported."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.tools.errors import UsageError
from quoth.tools.installing import install_extra
from quoth.tools.storage.paths import real_path

if TYPE_CHECKING:
    from quoth.agent.trace.tracer import Exporter, Span, Tracer


# Spans as lines of a file, each a JSON object, for example for jq; ``quoth help traces`` lists its fields.


class JsonLines:
    """Appends each span to a file when it ends, in one write, so that several processes may share the file.
    Raises UsageError for a file that cannot be written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failed = False
        try:
            self._append("")
        except OSError as error:
            raise UsageError(f"The trace {path} cannot be written: {error.strerror}.") from None

    def begins(self, span: Span) -> None:
        """Do nothing: a span is written when it ends."""

    def ends(self, span: Span) -> None:
        try:
            self._append(json.dumps(line_of(span), ensure_ascii=False, default=str) + "\n")
        except OSError as error:
            if not self._failed:
                self._failed = True
                logging.getLogger("quoth").warning(f"The trace {self._path} is incomplete: {error.strerror}.")

    def _append(self, text: str) -> None:
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, text.encode("utf-8", "backslashreplace"))
        finally:
            os.close(file)


def line_of(span: Span) -> dict[str, Any]:
    """A span as one object."""
    return {
        "trace": span.trace,
        "span": span.id,
        "parent": span.parent.id if span.parent is not None else None,
        "kind": span.kind,
        "name": span.name,
        "start": _time(span.start),
        "seconds": round((span.end - span.start) / 1e9, 6),
        "status": "error" if span.error else "ok",
        **({"error": span.error} if span.error else {}),
        "attributes": span.attributes | ({"error.type": span.error} if span.error else {}),
        "events": [{"name": name, "time": _time(at), **said} for name, at, said in span.events],
    }


def _time(nanoseconds: int) -> str:
    return (
        datetime.fromtimestamp(nanoseconds / 1e9, UTC)
        .isoformat(timespec="microseconds")
        .replace("+00:00", "Z")
    )


OTEL = "otel"


def open_tracer(where: str | Path | None, *, content: bool = False) -> Tracer | None:
    """The tracer that writes to the file ``where``, or, for ``"otel"``, to OpenTelemetry; None for None.
    Raises UsageError."""
    if where is None:
        if content:
            raise UsageError("--trace-content (trace_content=True) needs --trace FILE (trace=…).")
        return None
    from quoth.agent.trace.tracer import Tracer

    return Tracer(_exporter(where), content=content)


def _exporter(where: str | Path) -> Exporter:
    if where != OTEL:
        return JsonLines(real_path(Path(where).parent) / Path(where).name)
    try:
        from quoth.agent.trace.otel import OpenTelemetry
    except ImportError:
        raise UsageError(f"OpenTelemetry is not installed: {install_extra('otel')}") from None
    return OpenTelemetry()
