"""The reports of a flight and of its steps, and the user's choice of steps to fly, as data."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Literal

from quoth.agent.plan.model import PHASES, Part, Plan
from quoth.agent.terminal.forms import shortened
from quoth.neuro.backends.base import Usage
from quoth.tools.errors import UsageError, did_you_mean

FlightStatus = Literal["done", "failed", "pending", "interrupted"]
TEXT_CHARS = 300  # characters shown of a step's result

WORDS = {
    "": "PLAN",
    "begun": "RUNNING",
    "waits": "WAITING",
    "interrupted": "RUNNING",
    "done": "DONE",
    "failed": "FAILED",
    "denied": "DENIED",
    "skipped": "SKIPPED",
}


@dataclass(frozen=True)
class StepReport:
    """The outcome of a step. ``status`` is empty if the step was not reached; ``text`` is the result, or the
    reason for a missing result."""

    id: str
    title: str
    place: str
    status: str = ""
    text: str = ""
    seconds: float = 0.0
    attempts: int = 0
    usage: Usage = field(default_factory=Usage)

    @property
    def word(self) -> str:
        return WORDS[self.status]

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "place": self.place,
            "status": self.word.lower() if self.status != "waits" else "waits",
            "text": self.text,
            "seconds": round(self.seconds, 3),
            "attempts": self.attempts,
            "tokens": self.usage.input_tokens + self.usage.output_tokens,
        }


@dataclass(frozen=True)
class FlightReport:
    """The end or pause of a flight. ``notes`` are further sentences for the user."""

    plan: str
    session: str
    status: FlightStatus
    steps: tuple[StepReport, ...]
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status == "done"

    def __str__(self) -> str:
        """Return one line with the number of steps by TODO word."""
        counts = {word: sum(step.word == word for step in self.steps) for word in WORDS.values()}
        said = ", ".join(f"{n} {word.lower()}" for word, n in counts.items() if n)
        return f"{self.plan}: {self.status}: {said}; session {self.session}, {self.seconds:.1f} s."

    def page(self, spoken: Collection[str] = ()) -> str:
        """Return a line for each step with the beginning of its text, and a line about the flight. The texts
        of steps with titles in ``spoken`` were shown before."""
        lines = []
        for step in self.steps:
            heard = step.status == "done" and (step.title or step.id) in spoken
            text = "" if heard else shortened(step.text, TEXT_CHARS).replace("\n", "\n    ")
            lines.append(f"{step.word:<8}{step.id}{': ' if text else ''}{text}")
        return "\n".join([*lines, str(self)])

    def to_json(self) -> dict[str, Any]:
        return {
            "plan": self.plan,
            "session": self.session,
            "status": self.status,
            "steps": [step.to_json() for step in self.steps],
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Wanted:
    """The chosen steps of a plan, by id or title: from ``start`` on, ``only`` a step or group, ``until`` the
    end of a phase or part. ``parallel`` runs independent steps at the same time; ``again`` begins a new
    flight."""

    start: str = ""
    only: str = ""
    until: str = ""
    parallel: bool = False
    again: bool = False


# Finds the chosen steps of a plan, regardless of earlier flights.


def chosen_steps(plan: Plan, wanted: Wanted) -> frozenset[str]:
    """Return the ids of the steps to fly. Raises UsageError for an unknown name."""
    if wanted.only and (wanted.start or wanted.until):
        raise UsageError("--only selects one step or group; leave out --from and --until.")
    if wanted.only:
        return frozenset(step.id for step in plan.leaves(plan.find(wanted.only)))
    order = [step.id for step in plan.order]
    if wanted.until:
        ends = [step.id for part in _phase(plan, wanted.until) for step in plan.leaves(part)]
        needed = set(ends).union(*(plan.earlier(plan.by_id[name]) for name in ends))
        order = [name for name in order if name in needed]
    if wanted.start:
        first = [step.id for step in plan.leaves(plan.find(wanted.start))]
        places = [place for place, name in enumerate(order) if name in first]
        if not places:
            raise UsageError(f"{wanted.start} comes after {wanted.until}.")
        order = order[places[0] :]
    return frozenset(order)


def _phase(plan: Plan, name: str) -> list[Part]:
    """The parts of a phase, or the part with that id or title."""
    word = name.strip().capitalize()
    if word in PHASES:
        if found := [part for part in plan.parts if part.phase == word and part.is_step]:
            return found
        raise UsageError(f"{plan.source.name} has no step in the phase {word}.")
    known = {part.id for part in plan.parts}
    if name in known:
        return [plan.by_id[name]]
    hint = did_you_mean(name, [*PHASES, *known]) or f" The phases are {', '.join(PHASES)}."
    raise UsageError(f"There is no phase {name}.{hint}")
