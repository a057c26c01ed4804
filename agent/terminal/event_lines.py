"""Prints each event of a run as a line of JSON, for ``--json --stream``; the last is ``end``, with the object
that ``--json`` prints.

Knows events and stdout. Where a tool has secret parameters the pieces of a reply are left out, for they may
hold a part of one; the blocks of its words are printed all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from quoth.agent.events import RunEvent
from quoth.agent.reply import Reply
from quoth.agent.terminal.output import OutputError, print_json
from quoth.tools.call.call import ToolResult
from quoth.tools.registry.table import ToolTable


class Watched(Protocol):
    """The agent whose events are printed."""

    @property
    def table(self) -> ToolTable: ...

    def interrupt(self) -> object: ...


class EventLines:
    """A listener that prints the events of the agent that ``watch`` was given. When they cannot be printed,
    as when their reader has gone, the run is stopped, and ``finish`` raises that."""

    def __init__(self) -> None:
        self._agent: Watched | None = None
        self._failure: Exception | None = None

    def watch(self, agent: Watched) -> None:
        self._agent = agent

    def __call__(self, event: RunEvent) -> None:
        if event.kind == "end" and not event.path:  # its Reply comes last, by ``finish``
            return
        if event.kind == "text" and self._agent is not None and self._agent.table.secrets:
            return
        if self._failure is None:
            try:
                print_json(event.to_json())
            except (OutputError, OSError) as error:
                self._failure = error
                if self._agent is not None:
                    self._agent.interrupt()

    def finish(self, one: Reply | ToolResult, more: Mapping[str, Any]) -> None:
        """Print how the run ended, or the result of a call that was resumed alone."""
        if self._failure is not None:
            raise self._failure
        kind = "end" if isinstance(one, Reply) else "result"
        print_json({"event": kind, "data": one.to_json() | dict(more)})

    def stop(self) -> None:
        """Do nothing: every line is whole."""
