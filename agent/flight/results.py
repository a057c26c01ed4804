"""What the blocks and attempts of a step came to, found again in the transcript.

Knows sessions and plans; it runs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quoth.agent.plan.model import Form, Part
from quoth.agent.session.past import Past
from quoth.agent.terminal.text import shortened, show_value
from quoth.tools.history.event import Event

FILE_CHARS = 20_000  # of a result that is written into the file


def _key(step: Part, form: Form) -> str:
    """What the run of a block is called in its attempt."""
    return str(step.running.index(form))


@dataclass(frozen=True)
class StepAttempt:
    """An attempt that was made: its run, and what happened in it."""

    run: str
    past: Past

    @property
    def said(self) -> str | None:
        """What the model said, if its run is done."""
        end = self.past.end
        return str(end.said["text"]) if end is not None and end.status == "done" else None

    def receipt(self, name: str) -> Event | None:
        """That of one of its programs, if that ended well."""
        call = self.past.calls.get(f"{self.run}/{name}")
        receipt = call.receipt if call is not None else None
        return receipt if receipt is not None and receipt.status == "ok" else None

    def value(self, name: str) -> Any:
        found = self.receipt(name)
        return None if found is None else found.said.get("value")


def result_of(step: Part, made: StepAttempt, block: Form | None = None) -> Any:
    """The value of a block, or of the step: that of its last block, else what the model said, else that its
    expectation is true. Declared secrets are not in it."""
    if block is not None or step.running:
        return made.value(_key(step, block or step.running[-1]))
    return made.said if step.objective else True


def results_of(step: Part, made: StepAttempt) -> dict[int | None, str | None]:
    """What an attempt has to show, done or not: the result of each block and, under None, what the model
    said. What it has not made is None, and is not to be shown as if it had."""
    shown: dict[int | None, str | None] = {}
    for form in step.running:
        if not form.silent:
            key = _key(step, form)
            well = made.receipt(key) is not None
            shown[form.block] = shortened(show_value(made.value(key)), FILE_CHARS) if well else None
    return shown | ({None: made.said} if step.objective else {})
