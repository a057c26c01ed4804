"""Derives the current status of each step of a flight, so that steps with stale results are flown again.

A recorded status is current while the step is unchanged and no step that it depends on was flown after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from quoth.agent.flight.plan_file import FlightLog, StepStatus
from quoth.agent.plan.model import ANSWER, Form, Part, Plan
from quoth.agent.session.past import Past
from quoth.agent.terminal.forms import shortened, show_value
from quoth.tools.history.event import Event

# Reads the results of a step's blocks and attempts from the transcript.


FILE_CHARS = 20_000  # maximum characters of a result in the file


def _key(step: Part, form: Form) -> str:
    """Return the key of a block within its attempt."""
    return str(step.running.index(form))


@dataclass(frozen=True)
class StepAttempt:
    """A recorded attempt at a step: the name of its run, and its past events."""

    run: str
    past: Past

    @property
    def said(self) -> str | None:
        """The model's answer, if its run is done."""
        end = self.past.end
        return str(end.said["text"]) if end is not None and end.status == "done" else None

    def receipt(self, name: str) -> Event | None:
        """Return the receipt of one of its programs, if the program succeeded."""
        call = self.past.calls.get(f"{self.run}/{name}")
        receipt = call.receipt if call is not None else None
        return receipt if receipt is not None and receipt.status == "ok" else None

    def value(self, name: str) -> Any:
        found = self.receipt(name)
        return None if found is None else found.said.get("value")


def result_of(step: Part, made: StepAttempt, block: Form | None = None) -> Any:
    """Return the value of a block. Without a block, return that of the step: the value of its last block, or
    the model's answer, or True. Declared secrets are redacted."""
    if block is not None or step.running:
        return made.value(_key(step, block or step.running[-1]))
    return made.said if step.objective else True


def results_of(step: Part, made: StepAttempt) -> dict[int | None, str | None]:
    """Return, as text, the result of each block by its index, and the model's answer under None. A missing
    result is None, so that an older one is removed from the file."""
    shown: dict[int | None, str | None] = {}
    for form in step.running:
        if not form.silent:
            key = _key(step, form)
            well = made.receipt(key) is not None
            place = None if form.block == ANSWER else form.block
            shown[place] = shortened(show_value(made.value(key)), FILE_CHARS) if well else None
    return shown | ({None: made.said} if step.objective else {})


class FlightState:
    """The current status of all parts of one flight, cached. ``fresh`` are the ids of ended parts to fly
    again. Call ``changed`` after a change of ``fresh`` or of the log. A result recorded after the event
    ``since`` stays current if only a step before it will be flown again."""

    def __init__(
        self,
        plan: Plan,
        log: FlightLog,
        fresh: Set[str] = frozenset(),
        since: int | None = None,
    ) -> None:
        self.plan = plan
        self.log = log
        self.fresh = fresh
        self.since = since
        self._before: list[tuple[int, bool]] = []  # by index in the plan's order, for the computed steps
        self._steps: dict[str, StepStatus | None] = {}
        self._statuses: dict[str, str] = {}
        self._leaves: dict[str, tuple[Part, ...]] = {}

    def current(self, part: Part) -> StepStatus | None:
        """Return the current status event of a part; None if it is stale or there is none."""
        if not part.inside:
            self._sweep(self._places.get(part.id, -1))
            return self._steps.get(part.id)
        one = self._own(part)
        if one is not None and one.over:  # a group's expectation was about its steps at that time
            for inner in self._inside(part):
                other = self.current(inner)
                if other is None or other.seq > one.seq:
                    return None
        return one

    def status(self, part: Part) -> str:
        """Return the current status as a word, "" for none; a failed part with retries left is "begun"."""
        if part.id not in self._statuses:
            one = self.current(part)
            again = one is not None and one.status == "failed" and one.tries <= part.retry
            self._statuses[part.id] = "" if one is None else "begun" if again else one.status
        return self._statuses[part.id]

    def is_over(self, part: Part) -> bool:
        return self.status(part) in ("done", "failed", "denied", "skipped")

    def passed(self, part: Part) -> bool:
        """Whether parts that wait for this one may begin."""
        status = self.status(part)
        return status == "done" or (status in ("failed", "denied") and part.on_fail == "continue")

    def settled(self, part: Part) -> bool:
        """Whether a part lets its flight end as done: it is done, or it was allowed to fail, or it was
        skipped only because of such parts."""
        status = self.status(part)
        if status == "skipped":
            return all(map(self.settled, self._lost_before(part)))
        return status == "done" or (part.may_fail and status in ("failed", "denied"))

    def may_end(self, part: Part) -> bool:
        """Whether the expectation of a group that contains this part can be checked."""
        return self.passed(part) or self.settled(part)

    def _lost_before(self, step: Part) -> Iterator[Part]:
        """Yield the ended parts that a step waits for and that prevent it from beginning."""
        steps = (self.plan.by_id[name] for name in self.plan.waits[step.id])
        for part in (*steps, *self.expected_before(step)):
            if self.is_over(part) and not self.passed(part):
                yield part

    def changed(self, part: Part) -> int:
        """Drop the cached statuses of this part and of all later parts. Return its index, or for a group that
        of its first step."""
        places = (self._places.get(leaf.id, 0) for leaf in self.leaves(part))
        place = min(places, default=0)
        for step in self.plan.order[place : len(self._before)]:
            self._statuses.pop(step.id, None)
        for group in self.groups:
            self._statuses.pop(group.id, None)
        del self._before[place:]
        return place

    @cached_property
    def groups(self) -> tuple[Part, ...]:
        """The groups that have an expectation."""
        return tuple(part for part in self.plan.parts if part.inside and part.expect)

    def expected_before(self, step: Part) -> tuple[Part, ...]:
        """Return the groups whose expectations must be met before a step begins."""
        return self._ending[step.id]

    def leaves(self, group: Part) -> tuple[Part, ...]:
        if group.id not in self._leaves:
            self._leaves[group.id] = tuple(self.plan.leaves(group))
        return self._leaves[group.id]

    # Computing

    @cached_property
    def _places(self) -> dict[str, int]:
        return {step.id: place for place, step in enumerate(self.plan.order)}

    @cached_property
    def _ending(self) -> dict[str, tuple[Part, ...]]:
        around = {step.id: [one for one in step.around if one.expect] for step in self.plan.steps}
        found: dict[str, tuple[Part, ...]] = {}
        for step in self.plan.steps:
            ended = (one for name in self.plan.waits[step.id] for one in around[name])
            found[step.id] = tuple(dict.fromkeys(one for one in ended if one not in around[step.id]))
        return found

    @cached_property
    def _needed(self) -> dict[str, tuple[str, ...]]:
        """The steps that each step waits for directly, without steps that these wait for."""
        bits = {step.id: 1 << place for place, step in enumerate(self.plan.order)}
        earlier: dict[str, int] = {}
        found: dict[str, tuple[str, ...]] = {}
        for step in self.plan.order:
            names, known = self.plan.waits[step.id], 0
            for name in names:
                known |= earlier[name]
            found[step.id] = tuple(name for name in names if not known & bits[name])
            for name in names:
                known |= bits[name]
            earlier[step.id] = known
        return found

    def _inside(self, group: Part) -> list[Part]:
        return [*self.leaves(group), *(one for one in self.groups if group in one.around)]

    def _own(self, part: Part) -> StepStatus | None:
        """Return the latest status of a part, unless the part is fresh or has changed since."""
        one = self.log.latest(part.id)
        stands = one is not None and part.id not in self.fresh and one.digest == self.plan.digest(part)
        return one if stands else None

    def _sweep(self, last_place: int) -> None:
        """Fill the cache up to the step at this index. For each step it has the number of the last event of
        the parts that the step depends on, and whether any of them will be flown again."""
        for place in range(len(self._before), last_place + 1):
            step, last, anew = self.plan.order[place], 0, False
            needed = [self._places[name] for name in self._needed[step.id]]
            for past_last, past_anew in map(self._before.__getitem__, needed):
                last, anew = max(last, past_last), anew or past_anew
            for part in (*map(self.plan.order.__getitem__, needed), *self._ending[step.id]):
                if (one := self.log.latest(part.id)) is not None:
                    last, anew = max(last, one.seq), anew or self._own(part) is None
            self._before.append((last, anew))
            one = self._own(step)
            stale = one is not None and one.over and self._is_stale(step, one, last, anew)
            self._steps[step.id] = None if stale else one

    def _is_stale(self, step: Part, one: StepStatus, last: int, anew: bool) -> bool:
        """Whether a part that this step depends on was flown after it or will be flown again, so that the
        result is stale."""
        if anew and (self.since is None or one.seq <= self.since):
            return True  # except a step flown alone, which uses the present results
        if one.status == "skipped":  # the part that caused the skip may be unchanged
            lost = (self.log.latest(part.id) for part in self._lost_before(step))
            return not any(found is not None and found.seq < one.seq for found in lost)
        return last > one.seq
