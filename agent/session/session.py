"""A session: its opening, its runs, its unfinished work, and the lock of the process that drives it.

The transcript (tools/history/transcript.py) is the only record of a session: its state is computed from its
events.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from quoth.agent.reply import Reply
from quoth.agent.session.origins import HostOrigins, LiveOrigins
from quoth.agent.session.past import Past, Talk, _native, remember
from quoth.neuro.backends.messages import Image, Message, Messages
from quoth.tools.errors import UsageError
from quoth.tools.history.event import GOING_ON, Event, Kind, read_form
from quoth.tools.history.transcript import Transcript
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm
from quoth.tools.origin.quotations import ReadText
from quoth.tools.registry.table import ToolTable
from quoth.tools.storage.file_lock import Use, hold, in_use, is_held, not_in_use

TALK_RUNS = 50
FILE_TOOLS = {"read-file", "edit-file", "write-file"}  # their caller knows the content of the file


def alone(store: Path, session: str) -> contextlib.AbstractContextManager[None]:
    """A lock: in this context no other process may drive the session. Raises UsageError if one does."""
    return hold(_lock(store, session), f"Session {session} is being driven by another process.")


@contextlib.contextmanager
def to_itself(store: Path | str, session: str) -> Iterator[None]:
    """Context in which no other process drives the session or writes to it. Raises BusyError."""
    with not_in_use(store, session), alone(Path(store), session):
        yield


def is_driven(store: Path, session: str) -> bool:
    """Whether any process drives the session now."""
    return is_held(_lock(store, session))


def _lock(store: Path, session: str) -> str:
    return f"{store} {session}"


def had_worktree(transcript: Transcript, session: str) -> bool:
    """Whether a session has worked in a git worktree of its own."""
    return any(event.data.get("worktree") is True for event in transcript.events(session, kind="session"))


# Unfinished work


class Unfinished(NamedTuple):
    """A run without an end, or a person's call without a result. ``name`` is the run, or the key of the call;
    ``status`` is ``pending``, ``interrupted``, ``failed``, or empty if it was broken off."""

    kind: Literal["run", "call"]
    name: str
    status: str
    event: Event

    @property
    def waits(self) -> bool:
        """Whether ``resume`` continues it without a question; a failed run has ended."""
        return self.status != "failed"


class Session:
    """One session of a user in a workspace."""

    def __init__(
        self, transcript: Transcript, id: str, user: str, store: Path, origins: HostOrigins | None = None
    ) -> None:
        self.transcript = transcript
        self.id = id
        self.user = user
        self._store = store
        self._open: tuple[int, str] | None = None  # the number and digest of the current opening
        self._origins = origins
        self._live: LiveOrigins | None = None  # kept, because the model remembers deleted secrets
        self._talks: dict[int, Talk] = {}  # by the identity of their Messages, which they keep alive

    @contextlib.contextmanager
    def driven(self, kind: Use = "run") -> Iterator[None]:
        """In this context only this process drives the session, and it cannot be removed. Raises
        BusyError."""
        with alone(self._store, self.id), self.used(kind):
            yield

    def used(self, kind: Use) -> contextlib.AbstractContextManager[None]:
        """In this context the session cannot be removed or rewritten. Its events are written in such a
        context. Raises BusyError."""
        return in_use(self.transcript.outline.store_path, self.id, kind)  # this opens the store first

    def open(self, given: Callable[[], Mapping[str, Any]]) -> None:
        """Record an opening with the options ``given``, unless the last one is the same. The options describe
        every tool, so they are computed once. Raises UsageError for a session without its worktree."""
        if self._is_open():
            return
        event, told = self.opening(), given()
        if not told.get("worktree") and had_worktree(self.transcript, self.id):
            raise UsageError(
                f"The git worktree of session {self.id} was removed, and the session does not work in the"
                " project. Begin another session, or make the worktree again: quoth run --worktree --session"
                f" {self.id} TASK (in Python: worktree=True)."
            )
        if event is None or self.given() != told or self.foreign():
            with self.transcript.together(synced=False):  # alone it need not be on disk
                event = self.transcript.append(self.id, "session", told)
        self._open = event.seq, event.digest

    def open_again(self, given: Callable[[], Mapping[str, Any]]) -> None:
        """Record a new opening of an open session, because its options have changed."""
        if self._open is None:
            return
        with self.used("call"):
            if self._is_open():
                self._open = None
                self.open(given)

    def _is_open(self) -> bool:
        """Whether the session was opened here and was not removed since; a removed session begins again."""
        return self._open is not None and self.transcript.outline.holds(self.id, *self._open)

    def foreign(self) -> bool:
        """Whether the current opening was imported and the session was not opened here since."""
        opening = self.opening()
        return opening is not None and opening.seq <= self.transcript.imported(self.id)

    def given(self, before: int | None = None) -> dict[str, Any]:
        """The options of the user's last opening (before event ``before``); empty if there is none."""
        event = self.opening(before)
        return {} if event is None else {name: value for name, value in event.data.items() if name != "from"}

    def opening(self, before: int | None = None) -> Event | None:
        """The event of the user's last opening (before event ``before``)."""
        found = None
        for event in self.transcript.events(self.id, kind="session"):
            if before is not None and event.seq >= before:
                break
            if event.data.get("user") == self.user:
                found = event
        return found

    def forget_secrets(self, run: str) -> None:
        """Delete the secrets of a run that has ended; texts the model may still quote stay in memory."""
        if self.transcript.has_secrets(self.id):
            self._seen()
        self.transcript.forget_secrets(self.id, run=run)
        self.forget_opening()

    def read(self, before: int) -> Iterator[ReadText]:
        """The texts that the model has read before event ``before``, in order; searched at the first use."""
        yield from self._seen().read(before)

    def new_words(self, user: str) -> str:
        """The person's texts if there is a new one: see SessionOrigins."""
        return self._seen().origins.new_words(user)

    @property
    def asked_intent(self) -> bool:
        """Whether a model was asked which tools the person's words need, so foreign texts may have been
        read."""
        return self._seen().origins.asked_intent

    def _seen(self) -> LiveOrigins:
        if self._origins is None:  # no host drives it
            self._origins = HostOrigins(self.transcript, ToolTable, lambda call: None)
        self._live = self._origins.live(self.id)
        return self._live

    def forget_opening(self) -> None:
        """Delete the secrets in the openings, unless some work may still be resumed."""
        if not self.transcript.has_secrets(self.id):
            return
        openings = [
            event for event in self.transcript.secret_openings(self.id) if event.said.get("user") == self.user
        ]
        if not openings:
            return
        flights = {event.key: event.status for event in self.transcript.events(self.id, kind="flight")}
        flies = any(status != "done" for status in flights.values())
        if self.to_resume() or flies:
            return
        for event in openings:
            self.transcript.forget_secrets_in(event)

    # Runs

    def begin(self, data: Mapping[str, Any], after: str = "", key: str = "") -> str:
        """Record a new run, which continues the conversation of the run ``after``. Returns its name. ``key``
        finds it again."""
        name = f"r{self.transcript.runs(self.id) + 1}"
        parent = 0
        if after:
            last = self.transcript.last(self.id, "end", run=after) or self.stimulus(after)
            parent = last.seq if last is not None else 0
            data = {**data, "after": after}
        with self.transcript.together(synced=False):  # the run has no effect before the model is asked
            self.transcript.add(self.id, "stimulus", data, run=name, parent=parent, key=key)
        return name

    def stimulus(self, run: str) -> Event | None:
        """The first event of a run; None if the run does not exist, for example for an empty name."""
        return self.transcript.last(self.id, "stimulus", run=run) if run else None

    def run_of(self, key: str) -> str:
        """The run with this key; empty if there is none."""
        return self.transcript.run_of(self.id, key)

    def past(self, run: str, after: int = 0) -> Past:
        """The recorded past of a run after event ``after``, with its stimulus."""
        past = Past.of(self.transcript.events(self.id, run=run, after=after))
        if after:
            past.stimulus = self.stimulus(run)
        return past

    def latest_past(self, run: str) -> tuple[Past, int]:
        """The past of a resumed run, without failures, since its last checkpoint before a reply; and the
        event of that checkpoint, 0 if there is none."""
        for place in reversed(self.transcript.checkpoints(self.id, run).places()):
            if (past := self.past(run, place).without_failures()).exchanges:
                return past, place
        return self.past(run).without_failures(), 0

    def files(self) -> set[str]:
        """The files that calls of this session have read or written, as the calls named them."""
        begun: dict[str, Event] = {}
        found: set[str] = set()
        for event in self.transcript.events(self.id):
            if event.kind == "call":
                begun[event.key] = event
            elif event.kind == "receipt" and event.status == "ok" and event.key in begun:
                form = read_form(begun[event.key].data["form"])
                path = form.args.get("path", next(iter(form.positional), None))
                if form.tool in FILE_TOOLS and isinstance(path, str):
                    found.add(path)
            elif event.kind == "undo":
                found.difference_update(event.data["files"])
        return found

    def unfinished(self) -> list[Unfinished]:
        """The runs and calls that are unfinished, in the order in which they began."""
        found: list[Unfinished] = []
        for name, seq, status in self.transcript.outline.unfinished(self.id):
            event = self.transcript.at(self.id, seq)
            if event is None:
                continue
            if (event.data["user"] if event.run else event.data.get("user")) == self.user:
                found.append(Unfinished("run" if event.run else "call", name, status, event))
        return found

    def to_resume(self) -> list[Unfinished]:
        """The work that waits or was broken off; if there is none, the last run if it failed."""
        found = self.unfinished()
        if waiting := [one for one in found if one.waits]:
            return waiting
        last = self.last_run()
        return [one for one in found if one.name == last]

    def last_run(self) -> str:
        """The user's latest run; empty if there is none."""
        return self._last(lambda data: True)

    def said(self) -> int:
        """The number of runs in the conversation that ``AsyncAgent.say`` continues."""
        return self.said_in(self.last_talk())

    def said_in(self, run: str | None) -> int:
        """The number of runs in the conversation that ends with this one."""
        count, name = 0, run or ""
        while name:
            count, name = count + 1, self._before(name)[0]
        return count

    def last_talk(self) -> str:
        """The user's latest run in a conversation of ``say``; empty if there is none."""
        return self._last(lambda data: bool(data["turn"]))

    def _last(self, wanted: Callable[[Mapping[str, Any]], bool]) -> str:
        for event in self.transcript.backwards(self.id, "stimulus"):
            if "/" not in event.run and (data := event.data)["user"] == self.user and wanted(data):
                return event.run
        return ""

    def waiting_calls(self, one: Unfinished) -> list[CallForm]:
        """The forms of its calls that wait for a person."""
        if one.kind == "call":
            return [read_form(one.event.data["form"])] if one.status == "pending" else []
        if not self.transcript.outline.has_pending(self.id, one.name):
            return []
        return [
            read_form(call.begun.data["form"])
            for call in self.past(one.name).calls.values()
            if call.begun is not None and call.receipt is not None and call.receipt.status == "pending"
        ]

    # Conversations

    def talk_of(self, messages: Messages) -> Talk:
        """The record of the part of a conversation that is in the transcript."""
        return self._talks.setdefault(id(messages), Talk(messages))

    def let_go(self, messages: Messages) -> None:
        """Forget a conversation that is over."""
        self._talks.pop(id(messages), None)

    def conversation(self, run: str, until: int = 0) -> list[Message]:
        """The messages of an ended run and of the runs that it continued, in order; up to event ``until`` if
        that is given."""
        parts = [self._said(run, until)]
        while not any(place == 0 for place, _ in parts[-1]):  # its beginning, or that after compaction
            run, until = self._before(run)
            if not run:
                break
            parts.append(self._said(run, until))
        told: list[Message] = []
        for place, messages in (one for part in reversed(parts) for one in part):
            told[len(told) if place is None else place :] = messages
        return told

    def talk(self, run: str) -> list[tuple[str, str]]:
        """The words of people and the model (``assistant``) up to a run, in order: the message and the reply
        of the last TALK_RUNS runs, without added data and results of calls."""
        said: list[tuple[str, str]] = []
        for _ in range(TALK_RUNS):
            stimulus = self.stimulus(run)
            if stimulus is None:
                break
            told, end = stimulus.data, self.transcript.last(self.id, "end", run=run)
            if end is not None and end.status == "done" and end.data["text"]:
                said.append(("assistant", end.data["text"]))
            said.append((told.get("speaker") or told["user"], told["text"]))
            if not (run := str(told.get("after", ""))):
                break
        return said[::-1]

    def known_before(self, run: str) -> dict[str, Any]:
        """The memory blocks, by label, that the model knew when a run began."""
        known: dict[str, Any] = {}
        shown = list(self.transcript.events(self.id, kind="memory"))
        chain = set(self._chain(run)[:-1]) if shown else ()
        for event in shown:
            if event.run in chain:
                remember(known, event.data)
        return known

    def _chain(self, run: str) -> list[str]:
        """The runs of a conversation in order, up to this one."""
        chain = [run]
        while after := self._before(chain[-1])[0]:
            chain.append(after)
        return chain[::-1]

    def messages_before(self, run: str) -> list[Message]:
        """The messages at the start of a run; for a new conversation only its system message, and none if the
        run was killed before its first request."""
        if self.stimulus(run) and (before := self._before(run))[0]:
            return self.conversation(*before)
        for event in self.transcript.events(self.id, run=run, kind="request"):
            opening = [m for m in event.data["messages"] if m["role"] == "system"]
            return [_message(m) for m in opening[:1]]
        return []

    def goes_on(self, run: str) -> bool:
        """Whether a run continues the conversation of another."""
        return bool(self._before(run)[0])

    def _before(self, run: str) -> tuple[str, int]:
        """The run whose conversation a run continues, and the last event of that run then; empty and 0 if
        there is none."""
        stimulus = self.stimulus(run)
        if stimulus is None:
            raise UsageError(f"There is no run {run} in session {self.id}.")
        return str(stimulus.data.get("after", "")), stimulus.parent

    def _said(self, run: str, until: int = 0) -> list[tuple[int | None, list[Message]]]:
        """The messages of the last conversation of a run, each list with the index from which it replaces
        earlier messages, or None to append. ``until`` is the event at which the next run continued: later
        events of the run are not part of that conversation."""
        events = list(self.transcript.events(self.id, run=run))
        if any(event.seq == until and event.kind == "end" for event in events):
            events = [event for event in events if event.seq <= until]
        last = next((e for e in reversed(events) if e.kind == "end" or e.kind in GOING_ON), None)
        end = last if last is not None and last.kind == "end" else None  # otherwise it was continued since
        asked = [event for event in events if event.kind == "request"]
        latest = end or (asked[-1] if asked else None)
        talk = latest.data.get("talk", 1) if latest is not None else 1
        requests: set[int] = set()
        said: list[tuple[int | None, list[Message]]] = []
        for event in events:
            data = event.data if event.kind in ("request", "reply") else {}
            if event.kind == "request" and data["talk"] == talk:
                requests.add(event.seq)
                said.append((data["from"], [_message(m) for m in data["messages"]]))
            elif event.kind == "reply" and event.parent in requests and "raised" not in data:
                said.append((None, [_assistant(data)]))
        if end is not None and "messages" in (data := end.data):  # or an unanswered request has them
            said.append((data["from"], [_message(m) for m in data["messages"]]))
        return said


def _message(data: Mapping[str, Any]) -> Message:
    message: Any = dict(data)
    if "calls" in message:
        message["calls"] = [_native(call) for call in message["calls"]]
    return message  # type: ignore[no-any-return]


def _assistant(data: Mapping[str, Any]) -> Message:
    message: Message = {"role": "assistant", "content": data["text"]}
    if data.get("calls"):
        from quoth.neuro.prompt.dialects import sound_calls  # here: a call of a person has no dialect

        message["calls"] = sound_calls(map(_native, data["calls"]), data.get("finish", ""))
    if data.get("kept"):
        message["kept"] = dict(data["kept"])
    return message


def read_messages(kept: list[Message], image: Callable[[Mapping[str, Any]], Image] = Image) -> Messages:
    """A conversation with these recorded messages; ``image`` gives a recorded image its data."""
    messages = Messages()
    for one in kept:
        messages.add({**one, "images": [*map(image, one["images"])]} if "images" in one else one)
    return messages


# Writes the events of one run into the transcript of its session.


SPECIAL: Final[tuple[Kind, ...]] = ("tools", "sent", "plan")


@dataclass(eq=False)
class RunLog:
    """Writes the events of one run, if it is ``live``. ``reply`` is the number of the model's latest reply;
    ``recalled``: that reply came from an earlier process, which may have begun its calls."""

    session: Session
    run: str
    reply: int = 0
    recalled: bool = False
    broken: str = ""  # why an event could not be recorded
    numbers: dict[int, int] = field(default_factory=dict)  # the run's conversations by identity
    live: bool = True
    plain: bool = True  # a checkpoint can express all its events

    def add(
        self, kind: Kind, data: Mapping[str, Any], *, parent: int = 0, key: str = "", status: str = ""
    ) -> int:
        """Append an event and return its sequence number. It is on disk after ``on_disk``."""
        if not self.live:
            return 0
        if kind in SPECIAL or (kind == "reply" and "raised" in data):
            self.plain = False
        transcript, session = self.session.transcript, self.session.id
        with transcript.together(synced=False):
            return transcript.add(session, kind, data, run=self.run, parent=parent, key=key, status=status)

    async def on_disk(self) -> None:
        """Wait until all events so far are on disk. Raises StoreError."""
        if self.live:
            await self.session.transcript.on_disk(self.session.id)

    def number(self, messages: Messages) -> int:
        """The number of a conversation in the run, from 1; compaction begins a new one."""
        return self.numbers.setdefault(id(messages), len(self.numbers) + 1)

    def ended(self, reply: Reply, messages: Messages, after_tags: str = "") -> None:
        """Write the end of the run, with the messages that are not recorded yet; it is on disk after
        ``on_disk``. ``after_tags`` is recorded if it differs from the run's start."""
        if not self.live:
            return
        talk = self.session.talk_of(messages)
        start, rest = talk.new()
        data: dict[str, Any] = {"status": reply.status, "text": reply.said, "steps": reply.steps}
        if reply.bounded:
            data |= {"spent": dict(reply.spent), "left": dict(reply.left)}
        if (number := self.number(messages)) != 1:
            data["talk"] = number
        if after_tags:
            data["after-tags"] = after_tags
        if rest:
            data |= {"from": start, "messages": rest}
            talk.count, talk.reply = len(messages), None
        self.add("end", data, parent=self.reply, status=reply.status)
        if reply.status == "done":
            self.session.forget_secrets(self.run)
