"""The statistics of evaluations: how sure a number of passed runs is, and whether it is worse than before.

The interval is Wilson's. Two numbers of passed runs are compared by Fisher's exact test, one-sided: with both
totals fixed, the probability of a number at least as low by chance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import comb, sqrt
from statistics import NormalDist
from typing import Literal

Word = Literal["passed", "failed", "flaky", "regression", "better", "as before", "not run"]
BAD = ("failed", "regression", "not run")
WITHIN = 0.15  # the precision that the advice on a flaky case aims at, up and down
MOST_RUNS = 1000  # more are not advised
FEW = "The baseline has too few runs for that: record it again with more --times."


@dataclass(frozen=True)
class Score:
    """How many runs of a case passed with a model."""

    passed: int
    runs: int

    def __str__(self) -> str:
        return f"{self.passed} of {self.runs}"

    def interval(self, confidence: float) -> tuple[float, float]:
        """The lowest and highest plausible rate of passing."""
        if not self.runs:
            return 0.0, 1.0
        z, n = NormalDist().inv_cdf((1 + confidence) / 2), self.runs
        rate = self.passed / n
        middle = rate + z * z / (2 * n)
        half = z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
        whole = 1 + z * z / n
        return max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole)

    def chance(self, before: Score) -> float:
        """The probability of passing at most this often if nothing has changed since ``before``."""
        return chance([(self, before)])

    @property
    def turned(self) -> Score:
        """The failed runs in place of the passed ones."""
        return Score(self.runs - self.passed, self.runs)

    def at(self, runs: int) -> Score:
        """The score of more runs at the same rate."""
        return Score(round(self.passed / self.runs * runs), runs)


def chance(pairs: Iterable[tuple[Score, Score]]) -> float:
    """The probability that the first scores together pass at most this often, if each case passes as often
    in both scores of its pair. Only runs of the same case are compared, because cases differ."""
    ways, every, passed = {0: 1}, 1, 0
    for now, before in pairs:
        good, runs = now.passed + before.passed, now.runs + before.runs
        least, most = max(0, now.runs - (runs - good)), min(good, now.runs)
        one = {k: comb(good, k) * comb(runs - good, now.runs - k) for k in range(least, most + 1)}
        both: dict[int, int] = {}
        for (i, left), (k, right) in product(ways.items(), one.items()):
            both[i + k] = both.get(i + k, 0) + left * right
        ways, every, passed = both, every * comb(runs, now.runs), passed + now.passed
    return sum(count for k, count in ways.items() if k <= passed) / every


@dataclass(frozen=True)
class Judgement:
    """The judgement on a score: a word, and a sentence for a person. ``chance`` is that of Fisher's test
    against the baseline; None without one."""

    word: Word
    sentence: str
    chance: float | None = None

    @property
    def bad(self) -> bool:
        return self.word in BAD


def judge(now: Score, before: Score | None, confidence: float) -> Judgement:
    """Judge a score, against the baseline if there is one."""
    if not now.runs:
        return Judgement("not run", "No run has ended, so nothing is known.")
    told = f"{now} passed, {span_text(now, confidence)}"
    if before is None or not before.runs:
        return _alone(now, told, confidence)
    worse, better, wrong = now.chance(before), now.turned.chance(before.turned), risk(confidence)
    told += f"; the baseline is {before}"
    if worse < wrong:
        return Judgement("regression", f"{told}: worse than the baseline, {chance_text(worse)}.", worse)
    if better < wrong:
        return Judgement("better", f"{told}: better than the baseline, {chance_text(better)}.", better)
    if now.passed == now.runs:
        return Judgement("passed", f"{told}.", worse)
    if not before.passed or (now.passed and before.passed < before.runs):
        return Judgement("as before", f"{told}: no difference is shown, {chance_text(worse)}.", worse)
    word: Word = "flaky" if now.passed else "failed"
    runs = _runs_to_show(now, before, wrong)
    hint = f"At this rate --times {runs} would show that it is worse." if runs else FEW
    return Judgement(word, f"{told}: too few runs to call it worse, {chance_text(worse)}. {hint}", worse)


def _alone(now: Score, told: str, confidence: float) -> Judgement:
    if now.passed == now.runs:
        return Judgement("passed", f"{told}.")
    if not now.passed:
        return Judgement("failed", f"{told}.")
    runs = next(runs for runs in range(now.runs, MOST_RUNS) if _half(now.at(runs), confidence) <= WITHIN)
    hint = f" To know its rate to {100 * WITHIN:.0f} points: --times {runs}." if runs > now.runs else ""
    return Judgement("flaky", f"{told}: it passes only sometimes.{hint}")


def _half(score: Score, confidence: float) -> float:
    low, high = score.interval(confidence)
    return (high - low) / 2


def _runs_to_show(now: Score, before: Score, wrong: float) -> int:
    """The smallest number of runs that shows a regression at the rate of ``now``; 0 if none does."""
    numbers = range(now.runs + 1, MOST_RUNS)
    return next((runs for runs in numbers if now.at(runs).chance(before) < wrong), 0)


def risk(confidence: float) -> float:
    """The accepted probability of a wrong alarm."""
    return round(1 - confidence, 6)


def span_text(score: Score, confidence: float) -> str:
    """The interval in plain words: ``95 %: 23 to 88 %``."""
    low, high = score.interval(confidence)
    return f"{100 * confidence:g} %: {100 * low:.0f} to {100 * high:.0f} %"


def chance_text(chance: float) -> str:
    return f"p = {chance:.2g}" if chance >= 0.001 else "p < 0.001"
