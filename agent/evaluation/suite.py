"""Runs cases several times with several models, within a budget, and counts the passed runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from quoth.agent.evaluation.attempt import UNKNOWN, CaseRun, Original, attempt
from quoth.agent.evaluation.case import Case, Mode, baseline_key
from quoth.agent.evaluation.figures import Judgement, Score, chance, chance_text, judge, risk, span_text
from quoth.agent.run.host import SessionHost
from quoth.neuro.backends.base import Usage

HEAD = ("case", "model", "mode", "passed", "likely", "tokens", "cost", "seconds", "verdict")


@dataclass
class CaseRow:
    """The runs of one case with one model."""

    case: Case
    model: str
    mode: Mode
    attempts: list[CaseRun] = field(default_factory=list)

    @property
    def score(self) -> Score:
        """How many runs passed, of those in which the model answered."""
        ended = [one.ended for one in self.attempts if one.ended not in UNKNOWN]
        return Score(ended.count("passed"), len(ended))

    def judged(self, confidence: float) -> Judgement:
        return judge(self.score, self.case.baselines.get(self.key), confidence)

    @property
    def key(self) -> str:
        return baseline_key(self.model, self.mode)

    def cells(self, confidence: float) -> list[str]:
        """The row of the table; tokens, cost and seconds are those of an average run."""
        count = max(1, len(self.attempts))
        usage = sum((one.usage for one in self.attempts), Usage())
        costs = [one.cost for one in self.attempts]
        cost = sum(one for one in costs if one is not None)
        return [
            self.case.name,
            self.model,
            self.mode,
            str(self.score),
            span_text(self.score, confidence),
            f"{usage.tokens // count:,}",
            "?" if None in costs else f"${cost / count:.4f}",
            f"{sum(one.seconds for one in self.attempts) / count:.1f}",
            self.judged(confidence).word,
        ]

    def sentences(self, confidence: float) -> Iterator[str]:
        """What a person has to know besides the table."""
        said = self.judged(confidence)
        if said.word != "passed":
            yield f"{self.case.name}, {self.model}: {said.sentence}"
        reasons: dict[str, list[str]] = {}
        for place, one in enumerate(self.attempts, 1):
            if one.why:
                reasons.setdefault(f"{one.ended}: {one.why}", []).append(str(place))
        for why, places in reasons.items():
            yield f"  run {', '.join(places)} {why}"
        missed = dict.fromkeys(form for one in self.attempts for form in one.unrecorded)
        if missed:
            yield f"  not recorded: {', '.join(missed)}"

    def to_json(self, confidence: float) -> dict[str, Any]:
        said, (low, high) = self.judged(confidence), self.score.interval(confidence)
        return {
            "case": self.case.name,
            "model": self.model,
            "mode": self.mode,
            **vars(self.score),
            "low": round(low, 4),
            "high": round(high, 4),
            "verdict": said.word,
            "p": said.chance,
            "message": said.sentence,
            "attempts": [one.to_json() for one in self.attempts],
        }


@dataclass
class Suite:
    """The runs of cases. ``make`` opens an agent with a model in a folder; ``cost`` (US dollars) bounds
    all runs together; ``tell`` is called with each row after each of its runs."""

    make: Callable[[str, Path], SessionHost]
    times: int = 1
    cost: float | None = None
    tell: Callable[[CaseRow], None] = lambda row: None
    rows: list[CaseRow] = field(default_factory=list)
    stopped: str = ""  # why runs are missing
    interrupted: bool = False

    async def run(
        self, cases: Iterable[tuple[Case, Mode]], models: Sequence[str], original: Original
    ) -> None:
        """Run all cases. Cancelling keeps the runs so far."""
        self.rows = [CaseRow(case, model, mode) for case, mode in cases for model in models]
        try:
            for row in (row for row in self.rows for _ in range(self.times)):
                bounds, make = self._left(), partial(self.make, row.model)
                over = any(left <= 0 for left in bounds.values())
                if not over:
                    row.attempts.append(await attempt(row.case, row.mode, original, make, bounds))
                    self.tell(row)
                if over or row.attempts[-1].ended == "budget":
                    self.stopped = "The budget is used up; some runs are missing."
                    return
        except asyncio.CancelledError:
            self.stopped, self.interrupted = "Interrupted; some runs are missing.", True

    def _left(self) -> dict[str, float]:
        """The bounds of the next run."""
        spent = sum(one.cost or 0.0 for row in self.rows for one in row.attempts)
        return {} if self.cost is None else {"cost": self.cost - spent}

    def comparisons(self, confidence: float) -> Iterator[str]:
        """Each further model against the first, over the cases that both have run."""
        first, *others = dict.fromkeys(row.model for row in self.rows)
        for place, model in enumerate(others, 1):
            rows = zip(self.rows[place :: len(others) + 1], self.rows[:: len(others) + 1], strict=True)
            pairs = [(row.score, base.score) for row, base in rows if row.score.runs and base.score.runs]
            if not pairs:
                continue
            score, base = (
                Score(sum(one.passed for one in side), sum(one.runs for one in side))
                for side in zip(*pairs, strict=True)
            )
            worse, better = chance(pairs), chance((one.turned, other.turned) for one, other in pairs)
            word, least = ("worse", worse) if worse <= better else ("better", better)
            shown = (
                f"{word} than {first}" if least < risk(confidence) else f"no difference to {first} is shown"
            )
            yield f"{model}: {score} passed; {first}: {base}: {shown}, {chance_text(least)}."
