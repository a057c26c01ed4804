"""The past of a run, read from its events, in the form that answers the loop when it runs again.

Knows events; it must not know doors, models or terminals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from quoth.neuro.backends.base import Completion, Usage
from quoth.neuro.backends.messages import Message, Messages, NativeCall
from quoth.tools.call.call import ToolResult
from quoth.tools.history.event import GOING_ON, Event, tool_of, value_in
from quoth.tools.registry.table import ToolTable


class SentMessage(NamedTuple):
    """A message that a call of a run has sent. ``key`` is that of the loop's own call in which it was sent;
    ``told`` says that a Reply of the run has told of it before."""

    key: str
    text: str
    to: str
    told: bool = False


# Told what the loop does where the transcript is to answer: the event, and what it would say now (what a
# request tells the model, or the event itself where that is the same; or a call). There is no event for a
# call that was not made then.
Differs = Callable[[Event | None, Any], None]

FAILURES = ("model", "budget")  # of a reply that may come when it is asked for again


def has_failed(reply: Event) -> bool:
    """Whether a ``reply`` event tells of a failure. The form of one that does not say so is not even read."""
    return ":raised" in reply.text and reply.data.get("raised") in FAILURES


def _native(call: Mapping[str, Any]) -> NativeCall:
    return NativeCall(id=call["id"], name=call["name"], arguments=call["arguments"])


@dataclass
class Talk:
    """How far a conversation has been recorded: its first ``count`` messages, those that were sent. ``reply``
    is the text of the model's last reply, which has an event of its own."""

    messages: Messages
    reply: str | None = None
    surroundings: str = ""  # where its model was told that it is, if it has just begun
    known: dict[str, Any] | None = None  # the memory blocks it holds; None: as the transcript tells
    table: ToolTable | None = None  # the agent's tools as its model knows them; None: as they are

    @property
    def count(self) -> int:
        return self.messages.sent

    @count.setter
    def count(self, count: int) -> None:
        self.messages.sent = count

    def new(self) -> tuple[int, list[Message]]:
        """The place of the first message that is not recorded yet, and the messages from there on."""
        start = self.count
        if self.reply is not None and start < len(self.messages):
            message = self.messages[start]
            if message["role"] == "assistant" and message["content"] == self.reply:
                start += 1
        return start, self.messages.since(start)


@dataclass
class PastCall:
    """The recorded events of a call: that its body began, and its latest receipt."""

    begun: Event | None = None
    receipt: Event | None = None

    @property
    def finished(self) -> bool:
        """Whether the call has a result, so that it need not be made again."""
        return self.receipt is not None and self.receipt.status not in ("pending", "cancelled")

    @property
    def own(self) -> bool:
        """Whether the run's loop made the call, rather than another call."""
        event = self.receipt or self.begun
        return event is not None and "/" not in event.key.removeprefix(f"{event.run}/")

    def result(self) -> ToolResult:
        """The result in its receipt."""
        assert self.receipt is not None, "a finished call has a receipt"
        event, data = self.receipt, self.receipt.data
        tool = "" if self.begun is None else tool_of(self.begun.data["form"])
        audit = {"tool": tool, "status": data["status"], "stage": data.get("stage", "body"), "ts": event.at}
        said, effects = data.get("message", ""), tuple(data.get("effects", ()))
        told = data.get("follow-up") if data["status"] == "ok" else said or None
        return ToolResult(data["id"], tool, data["status"], value_in(data), said, effects, audit, told)


@dataclass(eq=False, repr=False)
class Past:
    """The recorded past of a run: the model's replies, and the outcome of its calls by key. ``place`` and
    ``unused`` count what has not yet been used to answer the loop."""

    stimulus: Event | None = None
    exchanges: list[tuple[Event, Event]] = field(default_factory=list)  # request and reply
    calls: dict[str, PastCall] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)  # what was wrong, by key
    spent: dict[str, Event] = field(default_factory=dict)
    memory: dict[int, Event] = field(default_factory=dict)  # what was shown of it, by turn
    tools: dict[int, Event] = field(default_factory=dict)  # what was told of changed tools, by turn
    sent: list[SentMessage] = field(default_factory=list)
    told: set[str] = field(default_factory=set)  # the calls whose follow-ups have gone out, by key
    end: Event | None = None
    place: int = 0  # of the next exchange
    unused: int = 0  # finished calls that nobody has asked for yet

    @classmethod
    def of(cls, events: Iterator[Event]) -> Past:
        past = cls()
        requests: dict[int, Event] = {}
        for event in events:
            if event.kind in GOING_ON:  # the end before it was none
                past.end = None
            match event.kind:
                case "stimulus":
                    past.stimulus = event
                case "request":
                    past.without_failures()  # it was got over
                    requests[event.seq] = event
                case "reply":
                    past.exchanges.append((requests[event.parent], event))
                case "call":
                    past.calls.setdefault(event.key, PastCall()).begun = event
                case "receipt":
                    past.calls.setdefault(event.key, PastCall()).receipt = event
                case "fault":
                    past.faults[event.key] = event.data.get("message", "")
                case "spent":
                    past.spent[event.key] = event
                case "memory":
                    past.memory[event.data["step"]] = event
                case "tools":
                    past.tools[event.data["step"]] = event
                case "sent" if event.data.get("follow-up"):
                    past.told.add(event.key)
                case "sent":
                    past.sent.append(SentMessage(event.key, event.data["text"], event.data["to"]))
                case "end":
                    past.end = event
                    past.sent = [one._replace(told=True) for one in past.sent]
        past.unused = sum(1 for call in past.calls.values() if call.finished and call.own)
        return past

    def without_failures(self) -> Past:
        """Remove the failures of model and memory at the end, to ask them again; returns itself."""
        while self.exchanges and has_failed(self.exchanges[-1][1]):
            self.exchanges.pop()
        for step in [step for step, event in self.memory.items() if event.data.get("unread")]:
            del self.memory[step]
        return self

    @property
    def answers(self) -> bool:
        """Whether a recorded reply is still unused."""
        return self.place < len(self.exchanges)

    @property
    def left(self) -> bool:
        """Whether a recorded reply or call is still unused."""
        return self.answers or self.unused > 0

    def sent_in(self, key: str) -> list[SentMessage]:
        """Take out the messages that were sent in the call with this key."""
        found = [one for one in self.sent if one.key == key]
        self.sent = [one for one in self.sent if one.key != key]
        return found

    def next(self) -> tuple[Event, Event] | None:
        if self.place >= len(self.exchanges):
            return None
        self.place += 1
        return self.exchanges[self.place - 1]


def remember(known: dict[str, Any], said: Mapping[str, Any]) -> None:
    """Bring the blocks that a model knows, by label, up to date with the data of a ``memory`` event."""
    known.update({block["label"]: block for block in said.get("blocks", ())})
    for label in said.get("gone", ()):
        known.pop(label, None)


def completion_of(data: Mapping[str, Any]) -> Completion:
    """The Completion in the data of a ``reply`` event."""
    calls = tuple(_native(call) for call in data.get("calls", ()))
    usage = Usage(**data.get("usage", {}))
    return Completion(data["text"], usage, data.get("finish", "stop"), calls, data.get("kept"))


def reply_data(completion: Completion) -> dict[str, Any]:
    """The data of a ``reply`` event for a Completion."""
    data: dict[str, Any] = {"text": completion.text}
    if completion.calls:
        data["calls"] = [dict(call) for call in completion.calls]
    if completion.finish != "stop":
        data["finish"] = completion.finish
    if completion.kept:
        data["kept"] = dict(completion.kept)
    data["usage"] = {k: v for k, v in vars(completion.usage).items() if v}
    return data
