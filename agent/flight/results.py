"""Reads the results of a step's blocks and attempts from the transcript.

Knows sessions and plans; it runs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quoth.agent.plan.model import Form, Part
from quoth.agent.session.past import Past
from quoth.agent.terminal.forms import shortened, show_value
from quoth.tools.history.event import Event

FILE_CHARS = 20_000  # of a result that is written into the file


def _key(step: Part, form: Form) -> str:
    """Return the key of a block within its attempt."""
    return str(step.running.index(form))


@dataclass(frozen=True)
class StepAttempt:
    """An attempt at a step, as recorded: the name of its run, and its past events."""

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
    """Return the value of a block, or without one of the step: the value of its last block, else the model's
    answer, else True. Declared secrets are redacted."""
    if block is not None or step.running:
        return made.value(_key(step, block or step.running[-1]))
    return made.said if step.objective else True


def results_of(step: Part, made: StepAttempt) -> dict[int | None, str | None]:
    """Return, as text, the result of each block by its index and under None the model's answer. A missing
    result is None, so that the file loses an older one."""
    shown: dict[int | None, str | None] = {}
    for form in step.running:
        if not form.silent:
            key = _key(step, form)
            well = made.receipt(key) is not None
            shown[form.block] = shortened(show_value(made.value(key)), FILE_CHARS) if well else None
    return shown | ({None: made.said} if step.objective else {})
