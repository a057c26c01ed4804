"""Opens a tracer: for a file of JSON lines, or for OpenTelemetry. Where nothing is traced, nothing else of
this room is imported.

Knows names and paths only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quoth.tools.errors import UsageError
from quoth.tools.installing import install_extra
from quoth.tools.storage.paths import real_path

if TYPE_CHECKING:
    from quoth.agent.trace.tracer import Exporter, Tracer

OTEL = "otel"


def open_tracer(where: str | Path | None, *, content: bool = False) -> Tracer | None:
    """The tracer that writes to the file ``where``, or, for ``"otel"``, to OpenTelemetry; None for None.
    Raises UsageError."""
    if where is None:
        if content:
            raise UsageError("--trace-content (trace_content=True) goes with --trace FILE (trace=…).")
        return None
    from quoth.agent.trace.tracer import Tracer

    return Tracer(_exporter(where), content=content)


def _exporter(where: str | Path) -> Exporter:
    if where != OTEL:
        from quoth.agent.trace.json_lines import JsonLines

        return JsonLines(real_path(Path(where).parent) / Path(where).name)
    try:
        from quoth.agent.trace.otel import OpenTelemetry
    except ImportError:
        raise UsageError(f"OpenTelemetry is not installed: {install_extra('otel')}") from None
    return OpenTelemetry()
