"""What happens in a run, as its listeners hear it: one class of events, and a closed list of kinds.

Data only; it must not know runs, or who listens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

EventKind = Literal[
    "turn",  # int: the model is asked for the so-manieth reply
    "text",  # str: a piece of its reply, as it comes
    "said",  # str: a block of its words that is complete (a paragraph, a list, a fence), without its calls
    "written",  # str: a call that is complete in what has come; it is not made yet
    "thought",  # Thought (neuro/think.hy): the whole reply, read
    "call",  # CallForm: a call that is made, without declared secrets
    "result",  # CallRecord: that call and its result
    "output",  # str: what a program writes, by whole lines, without what looks secret; empty: it has ended
    "usage",  # Usage: what the run has used so far, its sub-agents included
    "question",  # Request (tools/consent/requests.py): a call waits for the decision of a person
    "waiting",  # Waiting: for how long the next try of a request is put off; told each second
    "note",  # str: what a person should know, and is no fault of the model
    "message",  # str: what a tool sends to the user
    "fault",  # str: why a reply could not be used
    "compaction",  # Compaction: the conversation was shortened
    "end",  # Reply: the last event of a run
    "flight",  # Plan: a flight begins
    "step",  # StepReport: a step of it begins, ends or waits
    "landed",  # FlightReport: the flight is over
]


@dataclass(frozen=True)
class SubAgent:
    """Names a sub-agent, or a step of a flight: the id of the call that started it, and its task."""

    call: str
    task: str


@dataclass(frozen=True)
class Waiting:
    """How many seconds are still waited before a request is tried again, and why; 0 when it is over."""

    seconds: float
    reason: str

    def __str__(self) -> str:
        return f"Trying again in {max(1, round(self.seconds))} s: {self.reason}"


if TYPE_CHECKING:
    import typing_extensions

    Kind = typing_extensions.TypeVar("Kind", bound=EventKind, covariant=True, default=Any)
    Data = typing_extensions.TypeVar("Data", covariant=True, default=Any)
else:  # typing_extensions takes 5 ms
    Kind, Data = TypeVar("Kind"), TypeVar("Data")


@dataclass(frozen=True)
class AgentEvent(Generic[Kind, Data]):
    """One thing that has happened. EventKind says of each ``kind`` what its ``data`` is; RunEvent
    (agent/event_types.py) says it to type checkers. ``path`` holds the sub-agents from the outermost to the
    one it happened in; it is empty for the run itself."""

    kind: Kind
    data: Data
    path: tuple[SubAgent, ...] = ()

    def within(self, who: SubAgent) -> Self:
        """The same event as the caller of a sub-agent hears it."""
        return replace(self, path=(who, *self.path))

    def to_json(self) -> dict[str, Any]:
        """The event as an object for one JSON line. Calls are shown without declared secrets; the pieces of
        a reply (``text``) are as they came, calls among them."""
        path = {"path": [vars(who) for who in self.path]} if self.path else {}
        return {"event": self.kind, **path, "data": _plain(self.data)}


Listener = Callable[[AgentEvent], None]


def _plain(data: Any) -> Any:
    if hasattr(data, "to_json"):
        return data.to_json()
    if isinstance(data, int | str):
        return data
    if hasattr(data, "reading"):  # a Thought; its calls follow, without declared secrets
        thought = {"reasoning": data.reading.reasoning} if data.reading.reasoning else {}
        return {"text": data.reading.text, "finish": data.finish, **thought}
    if isinstance(data, Waiting) or hasattr(data, "input_tokens"):
        return dict(vars(data))
    return str(data)
