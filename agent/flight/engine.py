"""Flies a plan: chooses the next step, and records each result in the transcript and the plan's file.

flight/step.py runs a single step. The state of a flight is derived only from the transcript of its session;
the file shows the state but is never read for it. A flight that was killed or interrupted, that failed or
waited for a decision, continues where it stopped. After a complete flight, the next call begins a new one.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from quoth.agent.events import AgentEvent, EventKind
from quoth.agent.flight.approval import approves
from quoth.agent.flight.plan_file import (
    FileEdit,
    FlightLog,
    PlanFile,
    StepStatus,
    begin_flight,
    flights,
    read_flight,
)
from quoth.agent.flight.report import WORDS, FlightReport, FlightStatus, StepReport, Wanted, chosen_steps
from quoth.agent.flight.status import FlightState, StepAttempt, result_of, results_of
from quoth.agent.flight.step import FlightContext, attempt
from quoth.agent.plan.check import check
from quoth.agent.plan.model import Part, Plan
from quoth.agent.run.parts import BEFORE_ASKING
from quoth.agent.session.session import Session
from quoth.agent.terminal.forms import show_value
from quoth.neuro.backends.base import Usage
from quoth.tools.call.workspace import flight_lock
from quoth.tools.errors import UsageError
from quoth.tools.storage.file_lock import hold
from quoth.tools.storage.paths import store_path
from quoth.tools.text import short

if TYPE_CHECKING:
    from quoth.agent.run.host import SessionHost

TOGETHER = 8  # maximum number of steps run at the same time
EVERY = 0.5  # minimum seconds between two writes of the file, unless a write is urgent
REASON_CHARS = 400  # maximum characters of the reason in a line of the log


# The status of a group without an end of its own, by its TODO word.
_STATUS = {"RUNNING": "begun", "WAITING": "waits", "FAILED": "failed", "DONE": "done"}


async def fly(agent: SessionHost, file: PlanFile, wanted: Wanted, session: str = "") -> FlightReport:
    """Fly a plan; see AsyncAgent.fly. ``session`` is the session to use; if empty, continue the last flight,
    or begin one in an unused session."""
    with hold(flight_lock(file.path), f"Another process is flying {file.shown}."):
        plan = file.reload()  # a tool or an editor may have changed it before the lock
        if faults := check(plan, agent.table, agent.config.providers):
            raise UsageError("\n".join(str(fault) for fault in faults))
        return await _Flight(agent, file, wanted, session).fly()


class _Flight:
    def __init__(self, agent: SessionHost, file: PlanFile, wanted: Wanted, session: str) -> None:
        self.agent = agent
        self.file = file
        self.plan: Plan = file.plan  # at the start of the flight; the file may change later
        self.wanted = wanted
        self.chosen = chosen_steps(self.plan, wanted)
        self.named = session
        self.notes: dict[str, None] = {}
        self.unwritten: list[str] = []  # reasons for the failure of the last write of the file
        self.fresh: set[str] = set()  # ended parts to fly again
        self.usage: dict[str, Usage] = {}
        self.stopped = ""
        self._first = 0  # index in the plan's order; all earlier parts have ended
        self._has_lost = True  # a part that others wait for may be lost
        self._groups: dict[str, Part] = {}  # groups whose words must be written
        self._read: tuple[int, StepAttempt] | None = None  # the last ended attempt that was read
        self._shown: dict[str, tuple[int, FileEdit]] = {}  # the file's contents for each ended part
        self._values: dict[int, str] = {}  # results of steps, by the event that says that the step is done
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0.0  # the earliest time of the next write of the file
        self.log = self._log()
        since = max([self.log.begun, *(one.seq for past in self.log.history.values() for one in past)])
        self.state = FlightState(self.plan, self.log, self.fresh, since)
        self.context = FlightContext(agent, agent.store, self.plan, str(file.path), self.log, self.made)

    # Choosing the flight

    def _log(self) -> FlightLog:
        """Return the log of the flight to continue, or begin a new flight."""
        agent, path, anew = self.agent, str(self.file.path), self.wanted.again
        named = bool(self.wanted.only or self.wanted.start)
        for event in flights(agent.store, agent.transcript, path, agent.user, self.named):
            log = read_flight(self._session(event.session), event)
            if not anew and (named or not self._finished(log)):
                self._begin_again(log)
                return log
            break
        session = self._session(self.named or self._free())
        with session.used("flight"):
            session.open(agent.given)
            return begin_flight(session, path, self.plan.title, self.plan.whole_digest)

    def _session(self, name: str) -> Session:
        agent = self.agent
        store = store_path(agent.workspace.home)
        return Session(agent.transcript, name, agent.user, store, agent.parts.origins)

    def _free(self) -> str:
        """Return the id of the agent's session if it is unused, else a new id."""
        agent = self.agent
        used = agent.transcript.count(agent.session, "session") + agent.transcript.count(
            agent.session, "flight"
        )
        return agent.session if not used else f"s{secrets.token_hex(4)}"

    def _finished(self, log: FlightLog) -> bool:
        """Whether a flight has completed the present plan."""
        found = FlightState(self.plan, log)
        return log.status == "done" and all(map(found.settled, (*self.plan.steps, *found.groups)))

    def _begin_again(self, log: FlightLog) -> None:
        """Mark ended parts as ``fresh``, to fly them again: failed parts of an ended flight, changed parts,
        and parts that the user named."""
        found = FlightState(self.plan, log)
        for part in (*self.plan.steps, *found.groups):
            one = log.latest(part.id)
            if one is None or not one.over:
                continue
            flown = self._ends(part, found) if part.inside else part.id in self.chosen
            ended = log.status in ("failed", "done") and one.seq < log.ended
            failed = flown and ended and not found.settled(part)
            named = (self.wanted.only or self.wanted.start) and part.id in self.chosen
            if failed or named or one.digest != self.plan.digest(part):
                self.fresh.add(part.id)

    def _flown(self) -> list[Part]:
        """Return the chosen steps, and the groups with an expectation that these complete."""
        steps = [step for step in self.plan.steps if step.id in self.chosen]
        return steps + [group for group in self.state.groups if self._ends(group)]

    def _ends(self, group: Part, found: FlightState | None = None) -> bool:
        """Whether the chosen steps complete a group."""
        found = found or self.state
        leaves = found.leaves(group)
        left = any(leaf.id not in self.chosen and not found.passed(leaf) for leaf in leaves)
        return not left and any(leaf.id in self.chosen for leaf in leaves)

    def made(self, step: Part) -> StepAttempt | None:
        """The attempt with a step's result: in this flight, or in an earlier flight of the same step."""
        digest = self.plan.digest(step)
        one = self.state.current(step)
        if one is not None and one.status == "done":
            return self._attempt(one)
        if step.id in self.chosen:
            return None
        for event in flights(self.agent.store, self.agent.transcript, str(self.file.path), self.agent.user):
            log = read_flight(self._session(event.session), event)
            for one in reversed(log.history.get(step.id, [])):
                if (one.status, one.digest) == ("done", digest):
                    return StepAttempt(log.run_of(step.id, one.attempt), log.past(step.id, one.attempt))
        return None

    def _attempt(self, one: StepStatus) -> StepAttempt:
        if self._read is not None and self._read[0] == one.seq and one.over:
            return self._read[1]
        found = StepAttempt(self.log.run_of(one.id, one.attempt), self.log.past(one.id, one.attempt))
        self._read = one.seq, found
        return found

    # Flying

    async def fly(self) -> FlightReport:
        began = time.monotonic()
        with self.log.session.driven("flight"):
            if not self.log.is_there():
                raise UsageError(
                    f"Session {self.log.session.id} of this flight was removed. Fly the plan again."
                )
            self.log.session.open(self.agent.given)
            self._show(reset=not self.log.history)
            for part in self._flown():  # parts interrupted after a failure
                self._after(part)
            self._tell("flight", lambda: self.file.plan)  # with the words that are now in the file
            asking = BEFORE_ASKING.set(self._save)
            try:
                with self.agent.stoppable(self.context), self._traced():
                    await self._steps()
            finally:
                BEFORE_ASKING.reset(asking)
                self._save()
            status = self._ended()
            self._show()
            if self._save() and status == "done":
                status = "failed"  # the next flight runs no step again, but writes the file
            self.log.end(status)
        report = self.report(status, time.monotonic() - began)
        self._tell("landed", lambda: report)
        return report

    def _traced(self) -> AbstractContextManager[None]:
        tracer = self.agent.parts.tracer
        return nullcontext() if tracer is None else tracer.flight(self.log.session.id)

    async def _steps(self) -> None:
        """Run the parts that are ready or become ready, until none is left."""
        most = TOGETHER if self.wanted.parallel or any(part.apart for part in self.plan.parts) else 1
        running: dict[asyncio.Task[None], Part] = {}
        tried: set[str] = set()  # parts that wait or were interrupted in this flight are not begun twice
        try:
            while True:
                self._skip()
                ready = (part for part in self._ready() if part.id not in tried)
                joining = (part for part in ready if self._may_join(part, running.values()))
                for part in islice(joining, most - len(running)):
                    tried.add(part.id)
                    running[asyncio.ensure_future(self._part(part))] = part
                if not running:
                    return
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    part = running.pop(task)
                    task.result()
                    if self.state.status(part) == "begun":
                        tried.discard(part.id)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _may_join(self, part: Part, running: Iterable[Part]) -> bool:
        """Whether a part may run beside the running ones."""
        return self.wanted.parallel or all(one.apart and part.apart for one in running)

    def _ready(self) -> Iterator[Part]:
        """Yield the groups with an expectation that can begin, then the steps that can begin."""
        if self.stopped or self.context.interrupted:
            return
        groups = self.state.groups
        for group in groups:
            if not self.state.is_over(group):
                inner = (part for part in groups if group in part.around)
                parts = (*reversed(self.state.leaves(group)), *inner)
                if all(map(self.state.may_end, parts)) and self._ends(group):
                    yield group
        for place in range(self._first, len(self.plan.order)):
            step = self.plan.order[place]
            if step.id in self.chosen and not self.state.is_over(step):
                if self._may_begin(step):
                    yield step
            elif place == self._first:
                self._first += 1

    def _may_begin(self, step: Part) -> bool:
        return all(map(self.state.passed, self._before(step)))

    def _before(self, step: Part) -> Iterator[Part]:
        """Yield the chosen steps that a step waits for, and the groups they complete, in reverse order,
        because a caller can stop at the first one that has not passed."""
        groups = dict.fromkeys(self.state.expected_before(step))
        for name in reversed(self.plan.waits[step.id]):
            if name in self.chosen:
                earlier = self.plan.by_id[name]
                for group in [one for one in groups if one in earlier.around]:
                    del groups[group]
                    if self._ends(group):
                        yield group
                yield earlier

    def _skip(self) -> None:
        """Skip the steps that wait for a failed or skipped part."""
        if not self._has_lost:
            return
        again = self._has_lost = any(map(self._is_lost, (*self.plan.steps, *self.state.groups)))
        while again and not self.stopped:
            again = False
            for step in self.plan.order:
                if step.id not in self.chosen or self.state.is_over(step):
                    continue
                if lost := [part for part in self._before(step) if self._is_lost(part)]:
                    again = True
                    digest, number = self.plan.digest(step), self._number(step)
                    fate = self._fate(lost[-1])
                    self._write(step, StepStatus(step.id, "skipped", digest, number, 1, fate))

    def _is_lost(self, part: Part) -> bool:
        """Whether the end of a part prevents the parts that wait for it."""
        return self.state.is_over(part) and not self.state.passed(part)

    async def _part(self, part: Part) -> None:
        """Begin or continue a part, and record the end of the attempt."""
        one = self.state.current(part)
        goes_on = one is not None and not one.over
        if one is None or one.over:
            tries = one.tries + 1 if one is not None else 1
            one = StepStatus(part.id, "begun", self.plan.digest(part), self._number(part), tries)
            if part.id in self.fresh:
                self.fresh.discard(part.id)
                self.state.changed(part)
        one, began = replace(one, text="", seconds=0.0), time.monotonic()
        approval = self.context.approval(part) if part.is_step else None
        if approval is not None and approval.decision == "deny":
            why = f"the person said: {approval.why}" if approval.why else "the person said no"
            same = "" if approval.step == part.id else f"it does the same as {approval.step}, and "
            self._write(part, replace(one, status="denied", text=f"{part.id} was denied: {same}{why}."))
            self._after(part)
            return
        running = FileEdit(part.id, "RUNNING" if part.is_step else "", one.digest)
        if (faults := self.file.edit([running])) or (faults := self._save_soon()):
            self.notes |= dict.fromkeys(faults)
            self.stopped = f"{part.id} was not started."
            return
        if not goes_on:
            self._note(part, one)
        self._show([part])
        self._save_soon(at_once=bool(part.objective))
        self._tell("step", lambda: replace(self.report_of(part), status="begun", text=""))
        try:
            came = await attempt(self.context, part, one.attempt)
        except asyncio.CancelledError:
            took = time.monotonic() - began
            self._write(part, replace(one, status="interrupted", text="It was interrupted.", seconds=took))
            raise
        self.usage[part.id] = self.usage.get(part.id, Usage()) + came.usage
        took = time.monotonic() - began
        self._write(part, replace(one, status=came.status, text=came.text, seconds=took))
        self._after(part)

    def _after(self, part: Part) -> None:
        if self._is_lost(part) and part.on_fail == "stop":
            self.stopped = self._fate(part)

    def _fate(self, part: Part) -> str:
        status = self.state.status(part)
        return f"{part.id} {'failed' if status == 'failed' else f'was {status}'}."

    def _number(self, part: Part) -> int:
        return 1 + max((one.attempt for one in self.log.history.get(part.id, ())), default=0)

    def _note(self, part: Part, one: StepStatus) -> None:
        """Write the status of a part into the transcript. A "begun" or "done" is not synced at once: its
        calls are on disk before any reader gets their results, and from them the step would get the same
        result again."""
        self.fresh.discard(part.id)
        self.log.add(one, synced=one.status not in ("begun", "done", "skipped"))
        self._first = min(self._first, self.state.changed(part))
        self._has_lost = self._has_lost or (one.over and one.status != "done")

    def _write(self, part: Part, one: StepStatus) -> None:
        """Write the status of a part into the transcript, and then into the file."""
        last = self.log.latest(part.id)
        if last is None or (last.status, last.attempt, last.text) != ("waits", one.attempt, one.text):
            self._note(part, one)
        self._show([part])
        if one.status == "done":  # keep it for the report
            self._value_of(part, self.log.history[part.id][-1])
        self._save_soon(at_once=bool(part.objective) or one.status not in ("done", "skipped"))
        self._tell("step", lambda: self.report_of(part))

    def _ended(self) -> FlightStatus:
        parts = self._flown()
        if all(map(self.state.settled, parts)):
            return "done"
        if self.context.interrupted:
            return "interrupted"
        lost = any(map(self._is_lost, parts))
        waits = any(self.state.status(part) == "waits" for part in parts)
        return "pending" if waits and not lost and not self.stopped else "failed"

    # Writing the file

    def _show(self, parts: Iterable[Part] | None = None, *, reset: bool = False) -> None:
        """Write the state of the flight into the file, for all parts or for these and the groups that contain
        them. Adds failures to the notes."""
        shown = self.plan.parts if parts is None else parts
        edits = [edit for part in shown if (edit := self._edit(part, reset)) is not None]
        self.notes |= dict.fromkeys([*self.file.edit(edits), *self.file.lost()])
        if parts is not None:
            self._groups |= {group.id: group for part in parts for group in part.around}

    def _save(self) -> list[str]:
        """Write the pending state into the file; return the failures, and add them to the notes."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._show(self._groups.values())
        self._groups = {}
        faults = self.file.save()
        self.unwritten = faults
        self.notes |= dict.fromkeys(self.file.lost())
        self._next = 0.0 if faults else asyncio.get_running_loop().time() + EVERY
        return faults

    def _save_soon(self, *, at_once: bool = False) -> list[str]:
        """Write the file now; unless ``at_once``, wait if the last write was less than EVERY seconds ago."""
        loop = asyncio.get_running_loop()
        if at_once or loop.time() >= self._next:
            return self._save()
        self._timer = self._timer or loop.call_at(self._next, self._save)
        return []

    def _edit(self, part: Part, reset: bool) -> FileEdit | None:
        history = self.log.history.get(part.id, ())
        seq, edit = self._shown.get(part.id, (0, None))
        if history and seq == history[-1].seq and self.state.current(part) is history[-1]:
            return edit
        log = [self._line(one) for one in history if one.status != "begun"]
        if part.inside:
            word = self._word_of(part) or ("PLAN" if reset else "")
            return FileEdit(part.id, word if part.todo else "", log=log)
        if not part.is_step:
            return None
        one = self.state.current(part)
        if one is None:
            return FileEdit(part.id, self._first_word(part)) if reset or history else None
        made = self._attempt(one)
        edit = FileEdit(part.id, WORDS[self.state.status(part)], one.digest, log, results_of(part, made))
        if one.over:
            self._shown[part.id] = one.seq, edit
        return edit

    def _first_word(self, step: Part) -> str:
        return "APPROVED" if approves(self.context.approval(step)) else "PLAN"

    def _word_of(self, group: Part) -> str:
        """Return the TODO word of a group: DONE only if all its steps are done, or its own expectation is
        true."""
        own = self.state.status(group) if group.expect else ""
        if own in ("done", "failed", "denied"):
            return WORDS[own]
        found = [self.state.status(leaf) for leaf in self.state.leaves(group)]
        if all(status == "done" for status in found):
            return "RUNNING" if group.expect else "DONE"
        if not any(found):
            return ""
        over = all(self.state.is_over(leaf) for leaf in self.state.leaves(group))
        stopped = self.stopped and any(status in ("failed", "denied") for status in found)
        if (over and not group.expect) or stopped:
            return "FAILED"
        return "WAITING" if "waits" in found and "begun" not in found else "RUNNING"

    def _line(self, one: StepStatus) -> str:
        """Return a line for the log, made only from the event, so that it is always the same."""
        at = datetime.fromisoformat(one.at).astimezone().strftime("%Y-%m-%d %a %H:%M")
        word = WORDS[one.status] if one.status not in ("waits", "interrupted") else one.status
        line = f"{word} [{at}] digest {one.digest[:12]}, session {self.log.session.id}"
        line += f", flight {self.log.number}" if self.log.number > 1 else ""
        line += f", try {one.attempt}" if one.attempt > 1 else ""
        text = short(" ".join(one.text.split()), REASON_CHARS)
        return f"{line}: {text}" if text else line

    def report_of(self, part: Part) -> StepReport:
        one = self.state.current(part)
        if one is None:
            status = _STATUS.get(self._word_of(part), "") if part.inside else ""
            return StepReport(part.id, part.title, self.file.place(part), status)
        text = one.text
        if one.status == "done":
            text = self._value_of(part, one)
        usage = self.usage.get(part.id, Usage())
        return StepReport(
            part.id, part.title, self.file.place(part), one.status, text, one.seconds, one.attempt, usage
        )

    def _value_of(self, part: Part, one: StepStatus) -> str:
        """The result of a done step."""
        if one.seq not in self._values:
            self._values[one.seq] = show_value(result_of(part, self._attempt(one)))
        return self._values[one.seq]

    def report(self, status: FlightStatus, seconds: float) -> FlightReport:
        steps = tuple(self.report_of(part) for part in self.plan.parts if part.is_step or part.expect)
        notes = list(dict.fromkeys([*self.notes, *self.unwritten, *self.file.notes]))
        if self.stopped and not any(step.status in ("failed", "denied") for step in steps):
            notes.append(self.stopped)
        return FlightReport(self.file.shown, self.log.session.id, status, steps, seconds, tuple(notes))

    def _tell(self, kind: EventKind, data: Callable[[], Any]) -> None:
        if self.agent.events.listener is not None:
            self.agent.events.tell(AgentEvent(kind, data()))
