"""The past of a run, read from its events, in the form that answers the loop when it runs again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, NamedTuple

from quoth.neuro.backends.base import Completion, Usage
from quoth.neuro.backends.messages import Message, Messages, NativeCall
from quoth.tools.call.call import ToolResult
from quoth.tools.history.event import GOING_ON, Event, tool_of, value_in
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.registry.table import ToolTable


class SentMessage(NamedTuple):
    """A message that a call of a run has sent. ``key`` is the key of the loop's call in which it was sent;
    ``told``: an earlier Reply of the run contains it."""

    key: str
    text: str
    to: str
    told: bool = False


# Called when the transcript answers the loop: with the event, and its content in today's loop (the data of a
# request, or the event itself if they are equal; or a call). A call without a recorded one has no event.
Differs = Callable[[Event | None, Any], None]

FAILURES = ("model", "budget")  # failures after which the request may be repeated


def has_failed(reply: Event) -> bool:
    """Whether a ``reply`` event reports a failure. The form of a reply without the mark is not parsed."""
    return ":raised" in reply.text and reply.data.get("raised") in FAILURES


def _native(call: Mapping[str, Any]) -> NativeCall:
    return NativeCall(id=call["id"], name=call["name"], arguments=call["arguments"])


@dataclass
class Talk:
    """The recorded part of a conversation: its first ``count`` messages, which were sent. ``reply`` is the
    text of the model's last reply, which has its own event."""

    messages: Messages
    reply: str | None = None
    surroundings: str = ""  # the message about the place, if it has just begun
    few: tuple[str, ...] = ()  # the tools that its model was shown in full, if not all and it has just begun
    known: dict[str, Any] | None = None  # the memory blocks in it; None: as in the transcript
    table: ToolTable | None = None  # the agent's tools known to its model; None: the current ones

    @property
    def count(self) -> int:
        return self.messages.sent

    @count.setter
    def count(self, count: int) -> None:
        self.messages.sent = count

    def new(self) -> tuple[int, list[Message]]:
        """The index of the first message that is not recorded, and the messages from there on."""
        start = self.count
        if self.reply is not None and start < len(self.messages):
            message = self.messages[start]
            if message["role"] == "assistant" and message["content"] == self.reply:
                start += 1
        return start, self.messages.since(start)


@dataclass
class PastCall:
    """The recorded events of a call: the start of its body, and its latest receipt."""

    begun: Event | None = None
    receipt: Event | None = None

    @property
    def finished(self) -> bool:
        """Whether the call has a result and need not run again."""
        return self.receipt is not None and self.receipt.status not in ("pending", "cancelled")

    @property
    def own(self) -> bool:
        """Whether the call comes from the run's loop and not from another call."""
        event = self.receipt or self.begun
        return event is not None and "/" not in event.key.removeprefix(f"{event.run}/")

    def result(self) -> ToolResult:
        """The result in its receipt."""
        assert self.receipt is not None, "a finished call has a receipt"
        event, data = self.receipt, self.receipt.data
        tool = "" if self.begun is None else tool_of(self.begun.data["form"])
        audit = {"tool": tool, "status": data["status"], "stage": data.get("stage", "body"), "ts": event.at}
        if request := data.get("request"):
            audit["request"] = request
        said, effects = data.get("message", ""), tuple(data.get("effects", ()))
        told = data.get("follow-up") if data["status"] == "ok" else said or None
        return ToolResult(data["id"], tool, data["status"], value_in(data), said, effects, audit, told)


REVIEW = ".review"  # ends the key of what the review of a call took


@dataclass(eq=False, repr=False)
class Past:
    """The recorded past of a run: the model's replies, and the outcome of its calls by key. ``place`` and
    ``unused`` count what has not yet been used to answer the loop."""

    stimulus: Event | None = None
    exchanges: list[tuple[Event, Event]] = field(default_factory=list)  # request and reply
    calls: dict[str, PastCall] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)  # faults of replies, by key
    spent: dict[str, Event] = field(default_factory=dict)
    reviews: dict[str, list[Event]] = field(default_factory=dict)  # what reviews of calls took, by key
    memory: dict[int, Event] = field(default_factory=dict)  # its messages, by turn
    tools: dict[int, Event] = field(default_factory=dict)  # messages about changed tools, by turn
    intents: dict[str, list[Event]] = field(default_factory=dict)  # answers about needed tools, by key
    sent: list[SentMessage] = field(default_factory=list)
    told: set[str] = field(default_factory=set)  # the keys of calls with a sent follow-up
    end: Event | None = None
    place: int = 0  # the index of the next exchange
    unused: int = 0  # the number of finished calls not used yet

    @classmethod
    def of(cls, events: Iterator[Event]) -> Past:
        past = cls()
        requests: dict[int, Event] = {}
        for event in events:
            if event.kind in GOING_ON:  # the run continued after its recorded end
                past.end = None
            match event.kind:
                case "stimulus":
                    past.stimulus = event
                case "request":
                    past.without_failures()  # the run recovered from it
                    requests[event.seq] = event
                case "reply":
                    past.exchanges.append((requests[event.parent], event))
                case "call":
                    past.calls.setdefault(event.key, PastCall()).begun = event
                case "receipt":
                    past.calls.setdefault(event.key, PastCall()).receipt = event
                case "fault":
                    past.faults[event.key] = event.data.get("message", "")
                case "spent" if event.key.endswith(REVIEW):
                    past.reviews.setdefault(event.key.removesuffix(REVIEW), []).append(event)
                case "spent":
                    past.spent[event.key] = event
                case "memory":
                    past.memory[event.data["step"]] = event
                case "tools":
                    past.tools[event.data["step"]] = event
                case "intent":
                    past.intents.setdefault(event.key, []).append(event)
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
        """Remove the failures of model and memory at the end, so that they are asked again. Returns
        itself."""
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
        """Remove and return the messages that were sent in the call with this key."""
        found = [one for one in self.sent if one.key == key]
        self.sent = [one for one in self.sent if one.key != key]
        return found

    def next(self) -> tuple[Event, Event] | None:
        if self.place >= len(self.exchanges):
            return None
        self.place += 1
        return self.exchanges[self.place - 1]


def remember(known: dict[str, Any], said: Mapping[str, Any]) -> None:
    """Update the blocks that a model knows, by label, with the data of a ``memory`` event."""
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
