"""The events of a run that its listeners receive: one class, and a closed list of kinds. Data only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

from quoth.tools.lazy_dataclass import dataclass

EventKind = Literal[
    "turn",  # int: the model is asked for its Nth reply
    "text",  # str: a piece of its reply, as it arrives
    "said",  # str: a complete block of its words (a paragraph, a list, a fence), without its calls
    "written",  # str: a call that is complete in the text so far; it has not run yet
    "thought",  # Thought (neuro/think.hy): the whole reply, read
    "call",  # CallForm: a call begins; without declared secrets
    "result",  # CallRecord: the call and its result
    "output",  # str: whole lines of a program's output, without probable secrets; empty: it has ended
    "usage",  # Usage: tokens used by the run so far, its sub-agents included
    "question",  # Request (tools/consent/requests.py): a call waits for the decision of a person
    "waiting",  # Waiting: the seconds until a request is retried; sent each second
    "note",  # str: a notice for the person, not a fault of the model
    "message",  # str: a message of a tool to the user
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
    """The seconds until a request is retried, and the reason; 0 when the wait is over."""

    seconds: float
    reason: str

    def __str__(self) -> str:
        return f"Retrying in {max(1, round(self.seconds))} s: {self.reason}"


if TYPE_CHECKING:
    import typing_extensions

    Kind = typing_extensions.TypeVar("Kind", bound=EventKind, covariant=True, default=Any)
    Data = typing_extensions.TypeVar("Data", covariant=True, default=Any)
else:  # typing_extensions takes 5 ms
    Kind, Data = TypeVar("Kind"), TypeVar("Data")


@dataclass(frozen=True)
class AgentEvent(Generic[Kind, Data]):
    """One event of a run. EventKind gives the type of ``data`` for each ``kind``; RunEvent
    (agent/event_types.py) gives it to type checkers. ``path`` lists the sub-agents from the outermost to the
    one of the event; it is empty for the run itself. ``call`` is the id of the call that a ``call``,
    ``result`` or ``question`` is about, the same as in its receipt, result and audit row; ``parent`` is the
    id of the call that it is part of: a program, a tool or a sub-agent."""

    kind: Kind
    data: Data
    path: tuple[SubAgent, ...] = ()
    call: str = ""
    parent: str = ""

    def within(self, who: SubAgent) -> Self:
        """The same event, as the caller of a sub-agent receives it."""
        return replace(self, path=(who, *self.path))

    def to_json(self) -> dict[str, Any]:
        """The event as an object for one JSON line. Calls have no declared secrets; the pieces of a reply
        (``text``) are unchanged and may contain calls."""
        path = {"path": [vars(who) for who in self.path]} if self.path else {}
        ids = {name: value for name in ("call", "parent") if (value := getattr(self, name))}
        return {"event": self.kind, **path, **ids, "data": _plain(self.data)}


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
