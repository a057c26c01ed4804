"""RunEvent: the events of a run as one union, so that ``match event.kind`` narrows the type of
``event.data``. It names types of other rooms and calls nothing there.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, Union

from quoth.agent.events import AgentEvent, Waiting
from quoth.agent.flight.report import FlightReport, StepReport
from quoth.agent.plan.model import Plan
from quoth.agent.reply import CallRecord, Reply
from quoth.agent.run.compaction import Compaction
from quoth.neuro.backends.base import Usage
from quoth.neuro.reading.result import Reading
from quoth.tools.consent.requests import Request
from quoth.tools.lisp.forms import CallForm


class Thought(Protocol):
    """A whole reply of the model: its text, the calls, words and faults read from it, and why it ended."""

    @property
    def text(self) -> str: ...
    @property
    def reading(self) -> Reading: ...
    @property
    def usage(self) -> Usage: ...
    @property
    def finish(self) -> str: ...


RunEvent = Union[  # noqa: UP007  generic classes do not support |
    AgentEvent[Literal["turn"], int],
    AgentEvent[Literal["text", "said", "written", "output", "note", "message", "fault"], str],
    AgentEvent[Literal["thought"], Thought],
    AgentEvent[Literal["call"], CallForm],
    AgentEvent[Literal["result"], CallRecord],
    AgentEvent[Literal["usage"], Usage],
    AgentEvent[Literal["question"], Request],
    AgentEvent[Literal["waiting"], Waiting],
    AgentEvent[Literal["compaction"], Compaction],
    AgentEvent[Literal["end"], Reply[Any]],
    AgentEvent[Literal["flight"], Plan],
    AgentEvent[Literal["step"], StepReport],
    AgentEvent[Literal["landed"], FlightReport],
]
