"""A session: what it was opened with, its runs, what of it is unfinished, and who drives it now.

Knows the transcript (tools/history/transcript.py) and how a run is found again in it; it must not know doors,
models or terminals. There is no other record of a session: what it stands at is what its events come to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from quoth.agent.run.run import Reply
from quoth.agent.session.quotation import Sources
from quoth.neuro.backends.base import Completion, Message, Messages, NativeCall, Usage
from quoth.tools.call.context import ToolResult
from quoth.tools.errors import UsageError
from quoth.tools.history.transcript import Event, Kind, Transcript, read_form
from quoth.tools.lisp.forms import CallForm
from quoth.tools.storage.file_lock import hold

FINISHED = ("done", "failed")
GOING_ON = ("request", "reply", "call", "receipt", "fault")  # none of them is the last event of a run


def alone(store: Path, session: str) -> contextlib.AbstractContextManager[None]:
    """Within it no other process drives the session; the lock ends with its process, however that ends.
    Raises UsageError when another has it."""
    return hold(f"{store} {session}", f"Session {session} is being driven by another process.")


# What is unfinished


@dataclass(frozen=True)
class Unfinished:
    """A run that has not ended, or a call of a person's that has no result. ``name`` is the run, or the key
    of the call; ``status`` is ``pending``, ``interrupted``, ``failed``, or empty for what was broken off."""

    kind: Literal["run", "call"]
    name: str
    status: str
    event: Event

    @property
    def waits(self) -> bool:
        """Whether it is to be gone on with of itself; a run that failed has ended."""
        return self.status != "failed"


class Session:
    """One session of a user in a workspace."""

    def __init__(self, transcript: Transcript, id: str, user: str, store: Path) -> None:
        self.transcript = transcript
        self.id = id
        self.user = user
        self._store = store
        self._opened = False
        self.sources = Sources(transcript, id)
        self._talks: dict[int, Talk] = {}  # by the identity of their Messages, which they hold

    def driven(self) -> contextlib.AbstractContextManager[None]:
        """Within it this process alone drives the session. Raises UsageError."""
        return alone(self._store, self.id)

    def open(self, given: Mapping[str, Any]) -> None:
        """Write down what the session goes on with, unless that is what it had."""
        if self._opened:
            return
        if self.given() != given or self.foreign():
            self.transcript.add(self.id, "session", given)
        self._opened = True

    def foreign(self) -> bool:
        """Whether what it goes on with was chosen elsewhere, and by nobody here."""
        opening = self.opening()
        return opening is not None and opening.seq <= self.transcript.imported(self.id)

    def given(self, before: int | None = None) -> dict[str, Any]:
        """What the user opened it with last, or last before that place; nothing for a session that was never
        opened."""
        event = self.opening(before)
        return {} if event is None else {name: value for name, value in event.data.items() if name != "from"}

    def opening(self, before: int | None = None) -> Event | None:
        """The event that says so."""
        found = None
        for event in self.transcript.events(self.id, kind="session"):
            if before is not None and event.seq >= before:
                break
            if event.data.get("user") == self.user:
                found = event
        return found

    def forget_opening(self) -> None:
        """Forget the secrets it was opened with, unless something is to be gone on with."""
        openings = [
            event for event in self.transcript.secret_openings(self.id) if event.said.get("user") == self.user
        ]
        if not openings or self.to_resume() or self._flies():
            return
        for event in openings:
            self.transcript.forget_secrets_in(event)

    def _flies(self) -> bool:
        """Whether a flight has not come to its end."""
        flights = {event.key: event.status for event in self.transcript.events(self.id, kind="flight")}
        return any(status != "done" for status in flights.values())

    # Runs

    def begin(self, data: Mapping[str, Any], after: str = "") -> str:
        """Write the stimulus of a new run, and return the run's name. ``after`` is the run whose conversation
        it goes on with."""
        count = sum(1 for event in self.transcript.events(self.id, kind="stimulus") if "/" not in event.run)
        name = f"r{count + 1}"
        parent = 0
        if after:
            last = self.transcript.last(self.id, "end", run=after)
            last = last or self.transcript.last(self.id, "stimulus", run=after)
            parent = last.seq if last is not None else 0
            data = {**data, "after": after}
        self.transcript.add(self.id, "stimulus", data, run=name, parent=parent)
        return name

    def past(self, run: str) -> Past:
        """What the transcript knows of a run."""
        return Past.of(self.transcript.events(self.id, run=run))

    def unfinished(self) -> list[Unfinished]:
        """All that has not come to its end, in the order it was begun."""
        found: dict[str, Unfinished] = {}
        begun: dict[str, Event] = {}
        for event in self.transcript.events(self.id):
            if "/" in event.run or (event.run == "" and event.kind not in ("call", "receipt")):
                continue
            if event.kind == "stimulus" and event.data["user"] == self.user:
                found[event.run] = Unfinished("run", event.run, "", event)
            elif event.kind == "end" and event.run in found:
                status = event.status
                if status == "done":
                    del found[event.run]
                else:
                    found[event.run] = Unfinished("run", event.run, status, found[event.run].event)
            elif event.kind in GOING_ON and event.run in found:  # it was gone on with, and broken off
                if found[event.run].status:
                    found[event.run] = Unfinished("run", event.run, "", found[event.run].event)
            elif event.run == "" and "/" not in event.key:
                if event.kind == "call" and event.data.get("user") == self.user:
                    begun[event.key] = event
                    found[event.key] = Unfinished("call", event.key, "", event)
                elif event.kind == "receipt" and event.key in begun:
                    status = event.status
                    if status == "pending":
                        found[event.key] = Unfinished("call", event.key, status, begun[event.key])
                    else:
                        found.pop(event.key, None)
        return list(found.values())

    def to_resume(self) -> list[Unfinished]:
        """What is to be gone on with: all that waits or was broken off; where nothing does, the last run, if
        it failed."""
        found = self.unfinished()
        if waiting := [one for one in found if one.waits]:
            return waiting
        last = self.last_run()
        return [one for one in found if one.name == last]

    def last_run(self) -> str:
        """The latest run of the user; empty if there is none."""
        return self._last(lambda data: True)

    def said(self) -> int:
        """How many messages the conversation has that ``AsyncAgent.say`` goes on with."""
        count, name = 0, self.last_talk()
        while name:
            count += 1
            stimulus = self.transcript.last(self.id, "stimulus", run=name)
            name = stimulus.data.get("after", "") if stimulus is not None else ""
        return count

    def last_talk(self) -> str:
        """The latest run that was said to a conversation; empty if there is none."""
        return self._last(lambda data: bool(data["turn"]))

    def _last(self, wanted: Callable[[Mapping[str, Any]], bool]) -> str:
        name = ""
        for event in self.transcript.events(self.id, kind="stimulus"):
            if "/" not in event.run and event.data["user"] == self.user and wanted(event.data):
                name = event.run
        return name

    def waiting_calls(self, one: Unfinished) -> list[CallForm]:
        """The forms of the calls of it that wait for a person."""
        if one.kind == "call":
            return [read_form(one.event.data["form"])] if one.status == "pending" else []
        return [
            read_form(call.begun.data["form"])
            for call in self.past(one.name).calls.values()
            if call.begun is not None and call.receipt is not None and call.receipt.status == "pending"
        ]

    # Conversations

    def talk_of(self, messages: Messages) -> Talk:
        """How far a conversation has been written down."""
        found = self._talks.get(id(messages))
        if found is None:
            found = self._talks[id(messages)] = Talk(messages)
        return found

    def let_go(self, messages: Messages) -> None:
        """A conversation is over."""
        self._talks.pop(id(messages), None)

    def conversation(self, run: str) -> list[Message]:
        """The messages of a run that has ended, with those of the conversation before it."""
        return _conversation(self.transcript, self.id, run)

    def messages_before(self, run: str) -> list[Message]:
        """The messages that a run began with; those of a new conversation are its opening alone, and none
        where the run was killed before it asked the model anything."""
        stimulus = self.transcript.last(self.id, "stimulus", run=run)
        after = stimulus.data.get("after", "") if stimulus is not None else ""
        if after:
            return self.conversation(after)
        for event in self.transcript.events(self.id, run=run, kind="request"):
            opening = [m for m in event.data["messages"] if m["role"] == "system"]
            return [_message(m) for m in opening[:1]]
        return []


def _conversation(transcript: Transcript, session: str, run: str) -> list[Message]:
    chain = [run]
    while after := _stimulus(transcript, session, chain[-1]).data.get("after", ""):
        chain.append(after)
    told: list[Message] = []
    for name in reversed(chain):
        _tell(told, transcript, session, name)
    return told


def _stimulus(transcript: Transcript, session: str, run: str) -> Event:
    found = transcript.last(session, "stimulus", run=run)
    if found is None:
        raise UsageError(f"There is no run {run} in session {session}.")
    return found


def _tell(told: list[Message], transcript: Transcript, session: str, run: str) -> None:
    """Add what was said in a run; of its conversations the one that it ended with."""
    end = _end_of(transcript, session, run)
    last = end or transcript.last(session, "request", run=run)
    talk = last.data.get("talk", 1) if last is not None else 1
    requests: set[int] = set()
    for event in transcript.events(session, run=run):
        if event.kind == "request":
            data = event.data
            if data["talk"] == talk:
                requests.add(event.seq)
                told[data["from"] :] = [_message(m) for m in data["messages"]]
        elif event.kind == "reply" and event.parent in requests:
            data = event.data
            if "raised" not in data:
                told.append(_assistant(data))
    if end is not None:
        data = end.data  # a request that was not answered may have held some of it
        told[data.get("from", len(told)) :] = [_message(m) for m in data.get("messages", ())]


def _end_of(transcript: Transcript, session: str, run: str) -> Event | None:
    """How a run ended, if it was not gone on with since."""
    end = transcript.last(session, "end", run=run)
    if end is not None:
        later = transcript.events(session, run=run, after=end.seq)
        if any(event.kind in GOING_ON for event in later):
            return None
    return end


def _message(data: Mapping[str, Any]) -> Message:
    message: Any = dict(data)
    if "calls" in message:
        message["calls"] = [_native(call) for call in message["calls"]]
    return message  # type: ignore[no-any-return]


def _native(call: Mapping[str, Any]) -> NativeCall:
    return NativeCall(id=call["id"], name=call["name"], arguments=call["arguments"])


def _assistant(data: Mapping[str, Any]) -> Message:
    message: Message = {"role": "assistant", "content": data["text"]}
    if data.get("calls"):
        message["calls"] = [_native(call) for call in data["calls"]]
    if data.get("kept"):
        message["kept"] = dict(data["kept"])
    return message


def read_messages(kept: list[Message]) -> Messages:
    """A conversation of these messages."""
    messages = Messages()
    for one in kept:
        messages.add(one)
    return messages


@dataclass
class Talk:
    """A conversation and how many of its messages are in the transcript. ``number`` tells it from the others
    of its run; ``reply`` is the text of the last answer, which is in the transcript as such."""

    messages: Messages
    count: int = 0
    reply: str | None = None

    def new(self) -> tuple[int, list[Message]]:
        """Where what is not written down yet begins, and what it is."""
        start = self.count
        if self.reply is not None and start < len(self.messages):
            message = self.messages[start]
            if message["role"] == "assistant" and message["content"] == self.reply:
                start += 1
        return start, list(self.messages)[start:] if start else list(self.messages)


# The past of a run


@dataclass
class PastCall:
    """What is known of a call: whether its body had begun, and the latest receipt."""

    begun: Event | None = None
    receipt: Event | None = None

    @property
    def finished(self) -> bool:
        """Whether it need not be made any more."""
        return self.receipt is not None and self.receipt.status not in ("pending", "cancelled")

    @property
    def own(self) -> bool:
        """Whether the run's loop made it, and no other call did."""
        event = self.receipt or self.begun
        return event is not None and "/" not in event.key.removeprefix(f"{event.run}/")

    def result(self) -> ToolResult:
        """What had come of it."""
        assert self.receipt is not None, "a finished call has a receipt"
        event, data = self.receipt, self.receipt.data
        tool = _tool_of(self.begun)
        audit = {
            "tool": tool,
            "status": data["status"],
            "stage": data.get("stage", "body"),
            "ts": event.at,
        }
        return ToolResult(
            data["id"],
            tool,
            data["status"],
            data.get("value"),
            data.get("message", ""),
            tuple(data.get("effects", ())),
            audit,
        )


def _tool_of(event: Event | None) -> str:
    return "" if event is None else read_form(event.data["form"]).tool


@dataclass
class Past:
    """The past of a run, as far as it is not used up: what the model said, in order, and what came of the
    calls, by key."""

    stimulus: Event | None = None
    exchanges: list[tuple[Event, Event]] = field(default_factory=list)  # request and reply
    calls: dict[str, PastCall] = field(default_factory=dict)
    faults: set[str] = field(default_factory=set)
    spent: dict[str, Event] = field(default_factory=dict)
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
                    past.faults.add(event.key)
                case "spent":
                    past.spent[event.key] = event
                case "end":
                    past.end = event
        past.unused = sum(1 for call in past.calls.values() if call.finished and call.own)
        return past

    def without_failures(self) -> Past:
        """The same, but the model is asked again where it could not answer last."""
        while self.exchanges and self.exchanges[-1][1].data.get("raised") == "model":
            self.exchanges.pop()
        return self

    @property
    def left(self) -> bool:
        """Whether anything of it is still to come."""
        return self.place < len(self.exchanges) or self.unused > 0

    def next(self) -> tuple[Event, Event] | None:
        if self.place >= len(self.exchanges):
            return None
        self.place += 1
        return self.exchanges[self.place - 1]


def completion_of(data: Mapping[str, Any]) -> Completion:
    """The reply that an event tells of."""
    calls = tuple(_native(call) for call in data.get("calls", ()))
    usage = Usage(**data.get("usage", {}))
    return Completion(data["text"], usage, data.get("finish", "stop"), calls, data.get("kept"))


def reply_data(completion: Completion) -> dict[str, Any]:
    """What is written down of a reply."""
    data: dict[str, Any] = {"text": completion.text}
    if completion.calls:
        data["calls"] = [dict(call) for call in completion.calls]
    if completion.finish != "stop":
        data["finish"] = completion.finish
    if completion.kept:
        data["kept"] = dict(completion.kept)
    data["usage"] = {k: v for k, v in vars(completion.usage).items() if v}
    return data


class RunLog:
    """Writes the events of one run. ``reply`` is the place of the model's latest words, and ``recalled`` says
    that they are of an earlier process, which may have begun with what they ask for."""

    def __init__(self, session: Session, run: str) -> None:
        self.session = session
        self.run = run
        self.reply = 0
        self.recalled = False
        self.broken = ""  # why what has happened could not be written down
        self.numbers: dict[int, int] = {}  # of the run's conversations, by identity

    def add(
        self, kind: Kind, data: Mapping[str, Any], *, parent: int = 0, key: str = "", status: str = ""
    ) -> int:
        return self.session.transcript.add(
            self.session.id, kind, data, run=self.run, parent=parent, key=key, status=status
        )

    def number(self, messages: Messages) -> int:
        """Which of the run's conversations this is, from 1."""
        return self.numbers.setdefault(id(messages), len(self.numbers) + 1)

    def ended(self, reply: Reply, messages: Messages) -> None:
        """The run has ended; what was told to the model last is kept for whoever goes on with it."""
        talk = self.session.talk_of(messages)
        start, rest = talk.new()
        data: dict[str, Any] = {"status": reply.status, "text": reply.text, "steps": reply.steps}
        if (number := self.number(messages)) != 1:
            data["talk"] = number
        if rest:
            data |= {"from": start, "messages": rest}
            talk.count, talk.reply = len(messages), None
        self.add("end", data, parent=self.reply, status=reply.status)
        if reply.status == "done":
            self.session.transcript.forget_secrets(self.session.id, run=self.run)
            self.session.forget_opening()
