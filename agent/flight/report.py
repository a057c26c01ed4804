"""The reports of a flight and of its steps, and the request that names the steps to fly.

Data only; it flies nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Literal

from quoth.agent.terminal.forms import shortened
from quoth.neuro.backends.base import Usage

FlightStatus = Literal["done", "failed", "pending", "interrupted"]
TEXT_CHARS = 300  # of what came of a step are shown

WORDS = {
    "": "PLAN",
    "begun": "RUNNING",
    "waits": "RUNNING",
    "interrupted": "RUNNING",
    "done": "DONE",
    "failed": "FAILED",
    "denied": "DENIED",
    "skipped": "SKIPPED",
}


@dataclass(frozen=True)
class StepReport:
    """The outcome of a step. ``status`` is empty if the step was not reached; ``text`` is the result, or the
    reason why there is none."""

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
        return "WAITING" if self.status == "waits" else WORDS[self.status]

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
    """How a flight ended or paused. ``notes`` are further sentences for the user."""

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
        words = dict.fromkeys([*WORDS.values(), "WAITING"])
        counts = {word: sum(step.word == word for step in self.steps) for word in words}
        said = ", ".join(f"{n} {word.lower()}" for word, n in counts.items() if n)
        return f"{self.plan}: {self.status}: {said}; session {self.session}, {self.seconds:.1f} s."

    def page(self, spoken: Collection[str] = ()) -> str:
        """Return a line for each step with the beginning of its text, and one about them all. The text of
        steps with the titles ``spoken`` was shown before."""
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
    """Which steps of a plan to fly, by id or title: from ``start`` on, ``only`` a step or group, ``until``
    the end of a phase or part. ``parallel`` runs independent steps at once; ``again`` begins a new flight."""

    start: str = ""
    only: str = ""
    until: str = ""
    parallel: bool = False
    again: bool = False
