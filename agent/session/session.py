"""A session: what it was opened with, its runs, what of it is unfinished, and who drives it now.

Knows the transcript (tools/history/transcript.py) and how a run is found again in it; it must not know doors,
models or terminals. There is no other record of a session: what it stands at is what its events come to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from quoth.agent.session.past import GOING_ON, Past, Talk, _native
from quoth.agent.session.quotation import Sources
from quoth.neuro.backends.messages import Message, Messages
from quoth.tools.errors import UsageError
from quoth.tools.history.event import Event, read_form
from quoth.tools.history.transcript import Transcript
from quoth.tools.lisp.forms import CallForm
from quoth.tools.storage.file_lock import hold


def alone(store: Path, session: str) -> contextlib.AbstractContextManager[None]:
    """Drive the session alone until its process ends. Raises UsageError when another process has it."""
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
        """What the user opened it with last (before that place); nothing if it was never opened."""
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

    def forget_secrets(self, run: str) -> None:
        """A run has ended; what its model was shown is remembered here as long as the model may quote it."""
        if self.transcript.has_secrets(self.id):
            self.sources.read()
        self.transcript.forget_secrets(self.id, run=run)
        self.forget_opening()

    def forget_opening(self) -> None:
        """Forget the secrets it was opened with, unless something is to be gone on with."""
        openings = [
            event for event in self.transcript.secret_openings(self.id) if event.said.get("user") == self.user
        ]
        flights = {event.key: event.status for event in self.transcript.events(self.id, kind="flight")}
        flies = any(status != "done" for status in flights.values())
        if not openings or self.to_resume() or flies:
            return
        for event in openings:
            self.transcript.forget_secrets_in(event)

    # Runs

    def begin(self, data: Mapping[str, Any], after: str = "") -> str:
        """Write the stimulus of a new run that goes on with the run ``after``; its name."""
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
        begun: dict[str, Unfinished] = {}
        for event in self.transcript.events(self.id):
            name, of_run = event.run or event.key, bool(event.run)
            if "/" in name:
                continue
            if event.kind == "stimulus" or (event.kind == "call" and not of_run):
                if (event.data["user"] if of_run else event.data.get("user")) == self.user:
                    begun[name] = found[name] = Unfinished("run" if of_run else "call", name, "", event)
            elif of_run and name in found:
                if event.kind == "end" and event.status == "done":
                    del found[name]
                elif event.kind == "end" or event.kind in GOING_ON:  # it was gone on with, and broken off
                    found[name] = replace(found[name], status=event.status if event.kind == "end" else "")
            elif not of_run and event.kind == "receipt" and name in begun:
                if event.status == "pending":
                    found[name] = replace(begun[name], status="pending")
                else:
                    found.pop(name, None)
        return list(found.values())

    def to_resume(self) -> list[Unfinished]:
        """What waits or was broken off; where nothing does, the last run, if it failed."""
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
            count, name = count + 1, self._after(name)
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
        return self._talks.setdefault(id(messages), Talk(messages))

    def let_go(self, messages: Messages) -> None:
        """A conversation is over."""
        self._talks.pop(id(messages), None)

    def conversation(self, run: str) -> list[Message]:
        """The messages of a run that has ended, with those of the conversation before it."""
        chain = [run]
        while after := self._after(chain[-1]):
            chain.append(after)
        told: list[Message] = []
        for name in reversed(chain):
            self._tell(told, name)
        return told

    def messages_before(self, run: str) -> list[Message]:
        """The messages that a run began with; those of a new conversation are its opening alone, and none
        where the run was killed before it asked the model anything."""
        if self.transcript.last(self.id, "stimulus", run=run) and (after := self._after(run)):
            return self.conversation(after)
        for event in self.transcript.events(self.id, run=run, kind="request"):
            opening = [m for m in event.data["messages"] if m["role"] == "system"]
            return [_message(m) for m in opening[:1]]
        return []

    def _after(self, run: str) -> str:
        """The run whose conversation a run goes on with; empty if there is none."""
        stimulus = self.transcript.last(self.id, "stimulus", run=run)
        if stimulus is None:
            raise UsageError(f"There is no run {run} in session {self.id}.")
        return str(stimulus.data.get("after", ""))

    def _tell(self, told: list[Message], run: str) -> None:
        """Add what was said in a run; of its conversations the one that it ended with."""
        end = self.transcript.last(self.id, "end", run=run)
        if end is not None:
            later = self.transcript.events(self.id, run=run, after=end.seq)
            if any(event.kind in GOING_ON for event in later):  # it was gone on with since
                end = None
        last = end or self.transcript.last(self.id, "request", run=run)
        talk = last.data.get("talk", 1) if last is not None else 1
        requests: set[int] = set()
        for event in self.transcript.events(self.id, run=run):
            data = event.data if event.kind in ("request", "reply") else {}
            if event.kind == "request" and data["talk"] == talk:
                requests.add(event.seq)
                told[data["from"] :] = [_message(m) for m in data["messages"]]
            elif event.kind == "reply" and event.parent in requests and "raised" not in data:
                told.append(_assistant(data))
        if end is not None:
            data = end.data  # a request that was not answered may have held some of it
            told[data.get("from", len(told)) :] = [_message(m) for m in data.get("messages", ())]


def _message(data: Mapping[str, Any]) -> Message:
    message: Any = dict(data)
    if "calls" in message:
        message["calls"] = [_native(call) for call in message["calls"]]
    return message  # type: ignore[no-any-return]


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
