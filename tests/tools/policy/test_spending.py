"""What users may spend on models in a day: reserved before a request, settled after it."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from sentences import REQUESTS_TO_MODELS_TODAY
from words import PausableClock, complaint

from quoth.tools.errors import UsageError
from quoth.tools.policy.spending import DailyBudget, NoRoomError, Spending
from quoth.tools.storage.database import Store

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp()
HOUR = 3600


def counted(store: Store, *budgets: DailyBudget, clock: Any = lambda: NOON, zone: str = "UTC") -> Spending:
    return Spending(lambda: store, budgets, clock=clock, zone=zone)


def reserve(spending: Spending, user: str = "ann", tokens: int = 100, cost: float = 0.1) -> int:
    return spending.reserve(user, tokens, cost)


def refusal(spending: Spending, user: str = "ann", **wanted: Any) -> str:
    return complaint(NoRoomError, lambda: reserve(spending, user, **wanted))


@pytest.mark.parametrize(
    ("budget", "before", "sentence"),
    [
        (
            DailyBudget(requests=2),
            2,
            f"ann has made 2 of 2 {REQUESTS_TO_MODELS_TODAY}; next tomorrow at 00:00 UTC, in 12 hours.",
        ),
        (
            DailyBudget(tokens=250),
            2,
            "ann has used 200 of 250 tokens today, and the request may take 100;"
            " next tomorrow at 00:00 UTC, in 12 hours.",
        ),
        (
            DailyBudget(cost=0.25),
            2,
            "ann has spent $0.20 of $0.25 on models today, and the request may cost $0.10;"
            " next tomorrow at 00:00 UTC, in 12 hours.",
        ),
        (
            DailyBudget(requests=0),
            0,
            f"ann has made 0 of 0 {REQUESTS_TO_MODELS_TODAY}; next tomorrow at 00:00 UTC, in 12 hours.",
        ),
    ],
)
def test_what_would_pass_a_bound_is_refused(
    store: Store, budget: DailyBudget, before: int, sentence: str
) -> None:
    spending = counted(store, budget)
    for _ in range(before):
        reserve(spending)
    assert refusal(spending) == sentence


def test_a_sum_of_costs_that_is_just_the_bound_is_no_more_than_it(store: Store) -> None:
    spending = counted(store, DailyBudget(cost=0.3))
    for _ in range(3):
        reserve(spending)  # 0.1 + 0.1 + 0.1 is a little more than 0.3
    assert spending.left("ann") == {"cost": 0}


def test_what_was_not_taken_is_there_again(store: Store) -> None:
    spending = counted(store, DailyBudget(requests=2, tokens=200, cost=0.2))
    spending.settle("ann", reserve(spending), -70, -0.07)
    spending.settle("ann", reserve(spending), -100, -0.1, requests=-1)
    assert spending.left("ann") == {"requests": 1, "tokens": 170, "cost": pytest.approx(0.17)}


def test_a_new_day_begins_at_midnight_in_its_zone(store: Store) -> None:
    clock = PausableClock(NOON)
    spending = counted(store, DailyBudget(requests=1), clock=clock, zone="Asia/Tokyo")
    reserve(spending)
    assert refusal(spending).endswith("next tomorrow at 00:00 JST, in 3 hours.")
    clock.wait(3 * HOUR)
    reserve(spending)


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "Asia/Kolkata", "Australia/Eucla", "UTC"])
def test_all_days_begin_with_a_quarter_of_an_hour(store: Store, zone: str) -> None:
    clock = PausableClock(NOON)
    spending = counted(store, DailyBudget(requests=1), clock=clock, zone=zone)
    clock.now = spending.day(NOON)[1] - 1
    reserve(spending)
    refusal(spending)
    clock.wait(1)
    reserve(spending)
    refusal(spending)


def test_each_user_has_their_own_day_and_a_budget_may_be_one_users(store: Store) -> None:
    spending = counted(store, DailyBudget(requests=2), DailyBudget(user="ben", requests=1))
    for user in ("ann", "ann", "ben"):
        reserve(spending, user)
    assert "2 of 2" in refusal(spending, "ann")
    assert "1 of 1" in refusal(spending, "ben")
    assert counted(store, DailyBudget(user="ben", requests=1)).bounds("ann") == {}


def test_without_a_budget_no_store_is_opened() -> None:
    spending = Spending(lambda: pytest.fail("it was opened"))
    assert spending.left("ann") == {}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"requests": -1}, "The requests of a daily budget are a whole number from 0, not -1."),
        ({"tokens": 1.5}, "The tokens of a daily budget are a whole number from 0, not 1.5."),
        ({"tokens": True}, "The tokens of a daily budget are a whole number from 0, not True."),
        ({"cost": "5"}, "The cost of a daily budget is a number of US dollars from 0, not '5'."),
        ({"cost": float("nan")}, "The cost of a daily budget is a number of US dollars from 0, not nan."),
        ({"user": 5}, "The user of a daily budget must be a name, not 5."),
    ],
)
def test_what_is_no_budget_is_a_sentence(wrong: dict[str, Any], sentence: str) -> None:
    assert complaint(UsageError, lambda: DailyBudget(**wrong)) == sentence


# Many at once


def spend(path: Path, tries: int) -> int:
    """Reserve so often, and return how often there was room; the store is a connection of its own."""
    store, made = Store(path), 0
    for _ in range(tries):
        try:
            reserve(counted(store, DailyBudget(requests=50)))
        except NoRoomError:
            continue
        made += 1
    store.close()
    return made


def test_200_requests_at_once_against_50_are_50(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    Store(path).close()
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(lambda _: spend(path, 25), range(8))) == 50


def killed_before_it_settles(path: Path) -> None:
    reserve(counted(Store(path), DailyBudget(cost=1)), cost=0.4)
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_process_had_reserved_stays_spent(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    process = get_context("fork").Process(target=killed_before_it_settles, args=(path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    store = Store(path)
    spending = counted(store, DailyBudget(cost=1))
    assert spending.left("ann") == {"cost": pytest.approx(0.6)}
    assert "has spent $0.40 of $1" in refusal(spending, cost=0.7)
    store.close()


@pytest.mark.parametrize("user", ["Ann", "ann ", " ANN", "a\u200bnn", "\uff41nn"])
def test_other_spellings_of_a_user_share_a_budget(user: str, store: Store) -> None:
    for budget in (DailyBudget(requests=1), DailyBudget(requests=1, user="Ann")):
        spending = counted(store, budget, clock=lambda: NOON)
        place = reserve(spending)
        assert spending.left(user) == {"requests": 0}
        refusal(spending, user)
        spending.settle(user, place, 0, 0, requests=-1)
        assert spending.left("ann") == {"requests": 1}
