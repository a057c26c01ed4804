"""Replay: runs a session again, with all replies and results from the transcript, and compares.

No model is asked, no tool called, nothing written: the agent has no model, and its store is a copy of the
transcript in memory. The output of today's loop, tool descriptions and dialect rules is compared with the
recording.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from quoth.agent.flight.plan_file import is_flown
from quoth.agent.replay.again import Make, opening_before, tools_since
from quoth.agent.reply import Reply
from quoth.agent.run.calls import Calls
from quoth.agent.run.driver import Driver
from quoth.agent.run.host import SessionHost
from quoth.agent.run.limits import RunLimits
from quoth.agent.run.subagents import begin
from quoth.agent.session.past import Past, has_failed
from quoth.agent.terminal.forms import shortened
from quoth.neuro.backends.messages import Messages
from quoth.neuro.prompt.dialects import choose_dialect, dialect_named
from quoth.tools.call.call import PROGRAMS, Call, ToolResult, new_call
from quoth.tools.call.canonical import bound_form
from quoth.tools.call.ports import NoCallLog, NoReceipts
from quoth.tools.call.redaction import SECRET
from quoth.tools.errors import InvalidCallError, UsageError, did_you_mean
from quoth.tools.history.event import GOING_ON, Event, TranscriptError, read_form
from quoth.tools.history.receipts import key_in
from quoth.tools.history.transcript import Transcript
from quoth.tools.lisp.forms import CallForm, canonical
from quoth.tools.lisp.printer import print_string, print_value
from quoth.tools.policy.limits import only_reads
from quoth.tools.storage.database import Store
from quoth.tools.text import count


@dataclass
class Replay:
    """The result of a replay. ``same``: every request, call and end of every run is as recorded. ``looks`` is
    the number of calls that really ran again, ``changed`` lists their changed results. ``notes`` name the
    parts that were not compared or could not be restored."""

    session: str
    runs: int = 0
    requests: int = 0
    calls: int = 0
    looks: int = 0
    differences: list[ReplayDifference] = field(default_factory=list)
    changed: list[ReplayDifference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def same(self) -> bool:
        return not self.differences

    @property
    def diff(self) -> str:
        """The diffs of all differences and changed results."""
        return "\n".join(one.diff for one in (*self.differences, *self.changed))

    def __str__(self) -> str:
        what = ", ".join(
            count(n, word)
            for n, word in ((self.runs, "run"), (self.requests, "request"), (self.calls, "call"))
        )
        said = "as recorded" if self.same else count(len(self.differences), "difference")
        if self.looks:
            said += f"; of {count(self.looks, 'call')} run again {len(self.changed) or 'none'} changed"
        return f"{self.session}: {what}: {said}."

    def to_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "same": self.same,
            "differences": [one.to_json() for one in self.differences],
            "changed": [one.to_json() for one in self.changed],
        }


# The replay


async def replay(
    session: str, events: Sequence[Event], make: Make, live: Make | None = None, *, foreign: int = 0
) -> Replay:
    """Replay the runs of a session, each with an agent from ``make``, which is closed here. ``live`` returns
    an agent, which is not closed here: the calls that only read are really run through its door, but the runs
    still continue with the recorded results. The first ``foreign`` events were imported. Raises
    UsageError."""
    found = Replay(session)
    by_run: dict[str, list[Event]] = {}
    for event in events:
        by_run.setdefault(event.run, []).append(event)
    async with AsyncExitStack() as opened:
        agents: dict[str, SessionHost] = {}
        for run, happened in by_run.items():
            if not run:
                continue
            if is_flown(run):
                found.notes.append("The steps of a flight are not replayed; fly its plan again.")
                continue
            stimulus = next((event for event in happened if event.kind == "stimulus"), None)
            if stimulus is None:
                raise TranscriptError(f"Run {run} of session {session} has no beginning.")
            _known_limits(stimulus)
            given = opening_before(events, stimulus.seq, stimulus.data["user"], foreign)
            key = print_value(given.said)
            if key not in agents:
                agents[key] = await opened.enter_async_context(make(given))
                _set_apart(agents[key], session, events)
                found.notes += tools_since(given.said, agents[key].given())
            await _Replayed(found, agents[key], run, happened).go()
    if live is not None:
        await _look_again(found, events, live, foreign)
    found.notes = list(dict.fromkeys(found.notes + _not_compared(by_run)))
    return found


def _known_limits(stimulus: Event) -> None:
    known = {one.name for one in fields(RunLimits)}
    for name in stimulus.data["limits"]:
        if name not in known:
            hint = did_you_mean(name, known)
            raise TranscriptError(f"Event {stimulus.id} cannot be replayed: there is no limit {name}.{hint}")


def _set_apart(agent: SessionHost, session: str, events: Sequence[Event]) -> None:
    """Give the agent its own store in memory, with this session alone."""
    store = Store(":memory:")
    agent.use_store(store)
    Transcript(lambda: store).copy(iter(events), session)


def _not_compared(by_run: Mapping[str, Sequence[Event]]) -> list[str]:
    person = {event.key for event in by_run.get("", ()) if event.kind == "call" and "/" not in event.key}
    if not person:
        return []
    return [f"{count(len(person), 'call')} by a person: taken from the record, not compared."]


class _Replayed:
    """The replay of one run."""

    def __init__(self, found: Replay, agent: SessionHost, run: str, events: Sequence[Event]) -> None:
        self._found = found
        self._agent = agent
        self._driver = Driver(agent)
        self._run = run
        self._events = events
        self._past = _without_retried(Past.of(iter(events)))
        self._made: set[str] = set()
        self._end = self._last_end()

    def _last_end(self) -> Event | None:
        """The end of the run, unless it was resumed and then broken off."""
        last = [e for e in self._events if e.kind == "end" or e.kind in GOING_ON]
        return last[-1] if last and last[-1].kind == "end" else None

    async def go(self) -> None:
        past, agent, found = self._past, self._agent, self._found
        assert past.stimulus is not None, "a run begins with a stimulus"
        told = past.stimulus.data
        found.runs += 1
        try:
            messages = await self._opening(past.stimulus, told)
        except UsageError as error:  # no conversation can begin with these settings now
            self._differ("stimulus", past.stimulus.id, dialect_text(told["dialect"]), f"; {error}")
            return
        reply, messages = await self._driver.go(self._run, past, messages, live=False, differs=self._told)
        agent.record.let_go(messages)
        self._compare_end(reply)

    async def _opening(self, stimulus: Event, told: Mapping[str, Any]) -> Messages:
        """The system message of the run today. Raises UsageError."""
        agent = self._agent
        dialect = agent.models.chosen = dialect_named(told["dialect"], in_text=told["in-text"])
        if "/" in self._run:
            return begin(
                self._driver.table_of(told), dialect, told["search"], "", told.get("surroundings", "")
            )
        self._compare_dialect(stimulus, told)
        if told.get("after"):
            return await self._driver.brought_back(told["after"], stimulus.parent)
        return self._driver.begin_talk(told)

    def _differ(self, what: What, event: str, recorded: str, now: str) -> None:
        if not is_same(recorded, now):
            self._found.differences.append(ReplayDifference(event, what, self._run, recorded, now))

    def _compare_dialect(self, stimulus: Event, told: Mapping[str, Any]) -> None:
        """The dialect is chosen by the model's name, without the model."""
        view = told.get("tool-view", "")
        wanted, search = self._agent.models.options.dialect, self._agent.models.search
        chosen, _ = choose_dialect(told["model"], wanted, takes_tools=bool(view), search=search)
        if chosen.name != told["dialect"] or chosen.native is told["in-text"]:
            recorded = dialect_text(told["dialect"], told["in-text"])
            self._differ("stimulus", stimulus.id, recorded, dialect_text(chosen.name, not chosen.native))

    def _told(self, event: Event | None, now: Any) -> None:
        """Compare a request or a call of today's loop with the recorded one."""
        if isinstance(now, Call):
            self._compare_call(event, now)
            return
        assert event is not None, "a recalled request has an event"
        self._found.requests += 1
        if now is event:
            return
        self._differ("request", event.id, request_text(event.data), request_text(now))

    def _compare_call(self, event: Event | None, call: Call) -> None:
        key = key_in(call)
        self._made.add(key)
        if event is None:
            over = self._end is None and self._past.place >= len(self._past.exchanges)
            if not over:  # a run that was broken off had not reached its last calls
                self._differ("call", f"{self._found.session} {key}", "", call_text(call.form))
            return
        self._found.calls += 1
        recorded = read_form(event.data["form"])
        spellings = [call.form, *_checked(call.form, self._agent)]
        if not any(is_same(canonical(recorded), canonical(form)) for form in spellings):
            self._differ("call", event.id, call_text(recorded), call_text(spellings[-1]))

    def _compare_end(self, reply: Reply) -> None:
        past, found = self._past, self._found
        if past.place < len(past.exchanges):
            request, _ = past.exchanges[past.place]
            self._differ("request", request.id, request_text(request.data), "")
        else:
            for key, call in past.calls.items():
                own = "/" not in key.removeprefix(f"{self._run}/")
                if own and key not in self._made and call.begun is not None:
                    form = read_form(call.begun.data["form"])
                    self._differ("call", call.begun.id, call_text(form), "")
        if self._end is None:
            found.notes.append(f"Run {self._run} was broken off; only its recorded part is compared.")
            return
        data = self._end.data
        recorded = end_text(data["status"], data["text"])
        self._differ("end", self._end.id, recorded, end_text(reply.status, reply.said))


def _without_retried(past: Past) -> Past:
    """The past without the model's failures, except the last: after the others the run was resumed."""
    last = len(past.exchanges) - 1
    past.exchanges = [
        one for place, one in enumerate(past.exchanges) if place == last or not has_failed(one[1])
    ]
    return past


def _checked(form: CallForm, agent: SessionHost) -> list[CallForm]:
    """The call as the door would record it now; empty if it is not valid."""
    if form.tool not in agent.table:
        return []
    try:
        return [bound_form(agent.table.get(form.tool), form, agent.workspace)]
    except InvalidCallError:
        return []


# Calls that only read, once more


async def _look_again(found: Replay, events: Sequence[Event], live: Make, foreign: int) -> None:
    """Run the calls that only read again, if their bodies had run, and compare the results. The door ensures
    that they only read and that no person is asked; its audit has a row for each."""
    begun = {event.key: event for event in events if event.kind == "call"}
    users = {event.run: event.data["user"] for event in events if event.kind == "stimulus"}
    agents: dict[str, SessionHost] = {}
    for receipt in events:
        call = begun.get(receipt.key)
        if receipt.kind != "receipt" or call is None or "stage" in (said := receipt.data):
            continue
        form = read_form(call.data["form"])
        user = str(users.get(call.run) or call.data.get("user") or "")
        given = opening_before(events, call.seq, user, foreign)
        if (key := print_value(given.said)) not in agents:
            agents[key] = live(given)
        agent = agents[key]
        tool = agent.table.find(form.tool)
        if tool is None or not only_reads(tool) or tool.name == PROGRAMS or said["status"] == "pending":
            continue
        if SECRET in str(form):
            found.notes.append(f"A call of {form.tool} was not run again: its secret is not kept.")
            continue
        found.looks += 1
        recorded = result_text(said["status"], said.get("value"), said.get("message", ""))
        result = await _look(agent, found.session, user, form)
        now = result_text(result.status, result.value, result.message)
        if not is_same(recorded, now):
            found.changed.append(
                ReplayDifference(receipt.id, "receipt", receipt.run, recorded, now, canonical(form))
            )


async def _look(agent: SessionHost, session: str, user: str, form: CallForm) -> ToolResult:
    """One call through the real door, without receipts and without writing to the transcript."""
    door = agent.door.narrowed(agent.table)
    door.receipts, door.log = NoReceipts(), NoCallLog()
    call = new_call(form, route="replay", user=user, session=session)
    return await door.dispatch(call, replace(Calls(agent).context(), dry=True))


CALL_CHARS = 100  # maximum of characters of a call in the head of a diff
What = Literal["stimulus", "request", "call", "end", "receipt"]


@dataclass(frozen=True)
class ReplayDifference:
    """One difference. ``event`` is the id of the event, or the key of a call without one; ``recorded`` and
    ``now`` are forms of several lines, empty on a side without an event. ``call`` is the call of a
    receipt."""

    event: str
    what: What
    run: str
    recorded: str
    now: str
    call: str = ""

    @property
    def diff(self) -> str:
        """A unified diff of ``recorded`` and ``now``."""
        of = f": {shortened(self.call, CALL_CHARS)}" if self.call else ""
        lines = difflib.unified_diff(
            self.recorded.splitlines(),
            self.now.splitlines(),
            f"{self.event} recorded{of}",
            f"{self.event} now{of}",
            n=2,
            lineterm="",
        )
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "diff": self.diff}


def is_same(recorded: str, now: str) -> bool:
    """Whether two texts are equal; a hidden secret in ``recorded`` matches any text."""
    if recorded == now:
        return True
    first, *parts = recorded.split(SECRET)
    if not parts or not now.startswith(first):
        return False
    place = len(first)
    for part in parts[:-1]:
        place = now.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return len(now) - len(parts[-1]) >= place and now.endswith(parts[-1])


def _spread(value: Any) -> str:
    """A value as Lisp text that reads back as an equal value; a text keeps its lines."""
    if type(value) is str:
        return '"' + "\n".join(print_string(line)[1:-1] for line in value.split("\n")) + '"'
    return print_value(value)


def request_text(data: Mapping[str, Any]) -> str:
    """The new messages of a request as a form, each on its own lines."""
    marks = [f":from {data['from']}"]
    marks += [f":{name} {print_value(data[name])}" for name in ("tools", "choice") if name in data]
    if data["talk"] != 1:
        marks.append(f":talk {data['talk']}")
    return "\n".join([f"(request {' '.join(marks)}", *(f"  {_message(m)}" for m in data["messages"])]) + ")"


def _message(message: Mapping[str, Any]) -> str:
    more = [
        f"\n    :{name} {print_value(message[name])}"
        for name in ("call_id", "calls", "kept")
        if message.get(name)
    ]
    return f"({message['role']} {_spread(message['content'])}{''.join(more)})"


def call_text(form: CallForm) -> str:
    """A call with one argument per line."""
    values = [_spread(value) for value in form.positional]
    values += [f":{name} {_spread(value)}" for name, value in form.args.items()]
    return "\n  ".join([f"({form.tool}", *values]) + ")"


def result_text(status: str, value: Any, message: str) -> str:
    """A receipt as a form, each item of a list on its own line."""
    parts = [f"(receipt :status {print_value(status)}"]
    if status == "ok" and isinstance(value, list) and value:
        parts.append("  :value [" + "\n          ".join(_spread(item) for item in value) + "]")
    elif status == "ok":
        parts.append(f"  :value {_spread(value)}")
    if message:
        parts.append(f"  :message {_spread(message)}")
    return "\n".join(parts) + ")"


def end_text(status: str, text: str) -> str:
    return f"(end :status {print_value(status)}\n  :text {_spread(text)})"


def dialect_text(name: str, in_text: bool = True) -> str:
    return f"(stimulus :dialect {print_value(name)} :in-text {in_text})"
