"""How sure a number of passed runs is: figures against their definitions, and how often a verdict errs."""

from __future__ import annotations

from itertools import combinations, product
from math import comb, sqrt
from statistics import NormalDist

import pytest

from quoth.agent.evaluation.figures import Score, chance, judge, span_text

BASE = Score(10, 10)


@pytest.mark.parametrize(("passed", "runs"), [(3, 5), (0, 4), (7, 7), (50, 100)])
def test_the_interval_ends_where_the_score_would_be_just_surprising(passed: int, runs: int) -> None:
    z = NormalDist().inv_cdf(0.975)
    for rate in Score(passed, runs).interval(0.95):
        if 0 < rate < 1:
            assert abs(passed / runs - rate) == pytest.approx(z * sqrt(rate * (1 - rate) / runs), abs=1e-6)


def test_an_interval_in_words() -> None:
    assert span_text(Score(3, 5), 0.95) == "95 %: 23 to 88 %"


def test_the_chance_is_that_of_a_lady_who_tastes_tea() -> None:
    assert Score(1, 4).chance(Score(3, 4)) == pytest.approx(17 / 70)
    assert Score(0, 4).chance(Score(4, 4)) == pytest.approx(1 / 70)


def test_scores_of_several_cases_are_compared_case_by_case() -> None:
    """Against all ways to deal the runs of each case to both models."""
    pairs = [(Score(1, 3), Score(2, 2)), (Score(0, 2), Score(3, 4))]
    decks = [
        [1] * (now.passed + old.passed) + [0] * (now.turned.passed + old.turned.passed) for now, old in pairs
    ]
    dealt = [
        [sum(hand) for hand in combinations(deck, now.runs)]
        for deck, (now, _) in zip(decks, pairs, strict=True)
    ]
    sums = [sum(hands) for hands in product(*dealt)]
    assert chance(pairs) == pytest.approx(sum(one <= 1 for one in sums) / len(sums))


def alarms(before: float, now: float, runs: int) -> float:
    """The exact probability of the verdict regression at these true rates of passing."""

    def at(rate: float, passed: int) -> float:
        return comb(runs, passed) * rate**passed * (1 - rate) ** (runs - passed)

    scores = product(range(runs + 1), repeat=2)
    return sum(
        at(before, old) * at(now, new)
        for old, new in scores
        if judge(Score(new, runs), Score(old, runs), 0.95).word == "regression"
    )


def test_an_alarm_is_false_less_often_than_is_stated_and_a_real_one_is_found() -> None:
    assert max(alarms(rate / 20, rate / 20, 10) for rate in range(21)) < 0.05
    assert alarms(0.95, 0.3, 10) > 0.85
    assert alarms(0.95, 0.5, 30) > 0.95


@pytest.mark.parametrize(
    ("now", "before", "word", "told"),
    [
        (Score(5, 10), BASE, "regression", "p = 0.016"),
        (Score(0, 30), Score(30, 30), "regression", "p < 0.001"),
        (Score(10, 10), Score(5, 10), "better", "p = 0.016"),
        (Score(5, 5), BASE, "passed", "the baseline is 10 of 10"),
        (Score(3, 5), Score(4, 5), "as before", "no difference"),
        (Score(0, 5), Score(0, 5), "as before", "no difference"),
        (Score(0, 1), BASE, "failed", "--times 2 would show"),
        (Score(9, 10), BASE, "flaky", "record it again"),
        (Score(3, 5), Score(5, 5), "flaky", "record it again"),
        (Score(3, 5), None, "flaky", "--times 38"),
        (Score(0, 3), None, "failed", "0 to 56 %"),
        (Score(1, 1), None, "passed", "21 to 100 %"),
        (Score(0, 0), BASE, "not run", "nothing is known"),
    ],
)
def test_a_verdict(now: Score, before: Score | None, word: str, told: str) -> None:
    said = judge(now, before, 0.95)
    assert (said.word, told in said.sentence) == (word, True), said
    assert said.bad is (word in ("failed", "regression", "not run"))


def test_the_advice_is_the_first_number_that_shows_it() -> None:
    assert judge(Score(1, 2), BASE, 0.95).sentence.endswith("--times 5 would show that it is worse.")
    shown = [n for n in range(3, 12) if judge(Score(1, 2).at(n), BASE, 0.95).word == "regression"]
    assert shown[0] == 5
