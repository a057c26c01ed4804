"""Limits: what takes a place and what gives it back, whatever the clock, the threads and the processes do."""

from __future__ import annotations

import asyncio
import functools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from words import Gateway, Spy, agent, complaint, files, gateway, script, shipped, story, tool

from quoth.tools.call.call import ALLOW, Verdict, ask, deny, new_call
from quoth.tools.call.ports import Reservation
from quoth.tools.door.door import Door
from quoth.tools.errors import UsageError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.limits import CountedLimits, StoreLimits
from quoth.tools.policy.spending import Cooldown, Quota, Rule
from quoth.tools.shared.limits import RedisLimits
from quoth.tools.shared.server import SharedRedis
from quoth.tools.storage.database import Store


class PausableClock:
    """A clock that stands still until it is set."""

    def __init__(self, text: str = "2026-03-10 12:00", zone: str = "UTC") -> None:
        self.zone = zone
        self.now = 0.0
        self.set(text)

    def set(self, text: str, fold: int = 0) -> None:
        self.now = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(self.zone), fold=fold).timestamp()

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> PausableClock:
    return PausableClock()


class Counter:
    """Where calls are counted: a store, or a Redis."""

    def __init__(self, place: Store | SharedRedis) -> None:
        self.place = place

    def limits(
        self, rules: Iterable[Rule] = (), *, clock: Callable[[], float], zone: str = "UTC"
    ) -> CountedLimits:
        place = self.place
        if isinstance(place, Store):
            return StoreLimits(lambda: place, rules, clock=clock, zone=zone)
        return RedisLimits(place, rules, clock=clock, zone=zone)

    def uses(self) -> int:
        """How many places are taken."""
        if isinstance(self.place, Store):
            return len(uses(self.place))
        pattern = self.place.key("limits", "held", "*").encode()
        return len(list(self.place._opened().scan_iter(pattern)))

    def close(self) -> None:
        self.place.close()


@pytest.fixture(params=["sqlite", "redis"])
def counter(request: pytest.FixtureRequest) -> Counter:
    """Whatever is said of limits holds in a store and in a Redis."""
    return Counter(request.getfixturevalue("store" if request.param == "sqlite" else "shared"))


def limited(
    counter: Counter | Store, clock: Callable[[], float], *rules: Rule, zone: str = "UTC", **options: Any
) -> Gateway:
    """A gateway to the one tool ``probe``, whose calls are counted in ``counter``."""
    parts = {key: options.pop(key) for key in ("policy", "gate", "consent") if key in options}
    there = Counter(counter) if isinstance(counter, Store) else counter
    limits = there.limits(rules, clock=clock, zone=zone)
    return gateway(tool(**options), limits=limits, **parts)


def statuses(here: Gateway, times: int, **marks: Any) -> list[str]:
    return [here.pass_through("(probe)", **marks).status for _ in range(times)]


def uses(store: Store) -> list[bool]:
    """The places taken, and whether the body began."""
    return [begun is not None for (begun,) in store.execute("SELECT begun FROM uses ORDER BY id")]


# What a caller is told


def left_of(door: Door) -> list[tuple[int | None, str]]:
    left = door.limits.left(door.table.get("probe"), new_call(CallForm("probe")))
    return [(quota.count, quota.words) for quota in left]


def test_what_is_left_can_be_looked_at_and_nothing_is_taken(counter: Counter, clock: PausableClock) -> None:
    here = limited(counter, clock, Quota("probe", 2, "hour"), daily_limit=3, cooldown=10)
    for _ in range(2):
        assert left_of(here.door) == [
            (None, "next after a cooldown of 10 s"),
            (3, "of 3 left today"),
            (2, "of 2 left within an hour"),
        ]
    assert here.pass_through("(probe)").ok
    assert left_of(here.door) == [
        (None, "its cooldown is 10 s, next at 12:00:10 UTC, in 10 s"),
        (2, "of 3 left today"),
        (1, "of 2 left within an hour"),
    ]
    assert counter.uses() == 1
    clock.wait(10)
    assert here.pass_through("(probe)").ok
    assert [count for count, _ in left_of(here.door)] == [None, 1, 0]
    assert here.door.limits.left(tool("other"), new_call(CallForm("other"))) == []


def test_a_daily_limit_says_what_is_left_and_when_there_is_more(
    counter: Counter, clock: PausableClock
) -> None:
    here = limited(counter, clock, daily_limit=3)
    assert [here.pass_through("(probe)").message for _ in range(4)] == [
        "2 of 3 left today",
        "1 of 3 left today",
        "0 of 3 left today",
        "probe is limited: 3 of 3 used today, next tomorrow at 00:00 UTC, in 12 hours.",
    ]
    assert [row["status"] for row in here.rows] == ["ok", "ok", "ok", "limited"]


def test_a_cooldown_says_when_it_is_over(counter: Counter, clock: PausableClock) -> None:
    here = limited(counter, clock, cooldown=10)
    assert here.pass_through("(probe)").message == "next after a cooldown of 10 s"
    clock.wait(3.5)
    refused = here.pass_through("(probe)")
    assert (refused.status, refused.message) == (
        "limited",
        "probe is limited: its cooldown is 10 s, next at 12:00:10 UTC, in 7 s.",
    )
    clock.wait(6.4)
    assert here.pass_through("(probe)").status == "limited"
    clock.wait(0.1)
    assert here.pass_through("(probe)").ok


def test_what_the_body_says_comes_before_what_is_left(counter: Counter, clock: PausableClock) -> None:
    here = limited(counter, clock, daily_limit=2, body=lambda ctx: ctx.say("Found it."))
    assert here.pass_through("(probe)").message == "Found it.\n1 of 2 left today"


@pytest.mark.parametrize(
    ("rule", "left", "used"),
    [
        (
            Quota("probe", 1),
            "0 of 1 left today",
            "1 of 1 used today, next tomorrow at 00:00 UTC, in 12 hours",
        ),
        (
            Quota("probe", 1, "hour"),
            "0 of 1 left within an hour",
            "1 of 1 used within an hour, next at 13:00 UTC, in 60 minutes",
        ),
        (
            Quota("probe", 1, "minute", "session"),
            "0 of 1 left within a minute in this session",
            "1 of 1 used within a minute in this session, next at 12:01 UTC, in 60 s",
        ),
        (
            Quota("probe", 1, 90, "all"),
            "0 of 1 left within 90 s by all users",
            "1 of 1 used within 90 s by all users, next at 12:01:30 UTC, in 90 s",
        ),
        (
            Quota("probe", 1, "week"),
            "0 of 1 left within a week",
            "1 of 1 used within a week, next on 2026-03-17 at 12:00 UTC, in 168 hours",
        ),
        (
            Quota("probe", 1, 3 * 86400.0),
            "0 of 1 left within 72 hours",
            "1 of 1 used within 72 hours, next on 2026-03-13 at 12:00 UTC, in 72 hours",
        ),
        (
            Cooldown("probe", 7200, "all"),
            "next after a cooldown of 2 hours by all users",
            "its cooldown is 2 hours by all users, next at 14:00 UTC, in 2 hours",
        ),
    ],
)
def test_each_kind_of_rule_has_its_words(
    counter: Counter, clock: PausableClock, rule: Rule, left: str, used: str
) -> None:
    here = limited(counter, clock, rule)
    assert here.pass_through("(probe)").message == left
    assert here.pass_through("(probe)").message == f"probe is limited: {used}."


def test_of_several_limits_the_one_that_lasts_longest_is_told(counter: Counter, clock: PausableClock) -> None:
    here = limited(counter, clock, Quota("probe", 2, "hour"), cooldown=10, daily_limit=2)
    assert here.pass_through("(probe)").message == (
        "next after a cooldown of 10 s; 1 of 2 left today; 1 of 2 left within an hour"
    )
    assert "cooldown" in here.pass_through("(probe)").message
    clock.wait(10)
    assert here.pass_through("(probe)").ok
    assert "used today" in here.pass_through("(probe)").message


def test_a_quota_of_nothing_allows_nothing(counter: Counter, clock: PausableClock) -> None:
    body = Spy()
    here = limited(counter, clock, Quota("probe", 0, "hour"), body=body)
    assert here.pass_through("(probe)").message == "probe is limited: its quota within an hour is 0."
    assert not body.ran


def test_the_model_reads_what_is_left_and_why_it_is_refused(tmp_path: Path) -> None:
    made = tool(daily_limit=1, params={"x": {"type": int}}, body=lambda x: x)
    told = story(tmp_path, "(probe :x 1)", "(probe :x 2)", "Done.", tools=[made])
    assert "(probe :x 1) -> ok:\n1\n(0 of 1 left today)" in told.shown(2)
    assert "(probe :x 2) -> limited: probe is limited: 1 of 1 used today, next tomorrow" in told.shown(3)


def test_a_refused_call_may_be_tried_again_in_the_same_run(tmp_path: Path) -> None:
    made = tool(cooldown=0.2, params={"x": {"type": int}}, body=lambda x: x)
    waits = tool("wait", lambda: time.sleep(0.3))
    told = story(tmp_path, "(probe 1) (probe 2)", "(wait)", "(probe 2)", "Done.", tools=[made, waits])
    assert told.statuses == ["ok", "limited", "ok", "ok"]


# Windows


def test_an_hour_slides(counter: Counter, clock: PausableClock) -> None:
    here = limited(counter, clock, Quota("probe", 2, "hour"))
    for minutes, status in [(0, "ok"), (20, "ok"), (20, "limited"), (20, "ok"), (10, "limited"), (10, "ok")]:
        clock.wait(minutes * 60)
        assert here.pass_through("(probe)").status == status, datetime.fromtimestamp(clock.now, UTC)


@pytest.mark.parametrize(
    ("zone", "last", "first"),
    [
        ("UTC", "2026-03-10 23:59:59.999", "2026-03-11 00:00"),
        ("Europe/Berlin", "2026-03-10 23:59:59", "2026-03-11 00:00"),
        ("Europe/Berlin", "2026-03-29 23:59:59", "2026-03-30 00:00"),  # a day of 23 hours
        ("Europe/Berlin", "2026-10-25 23:59:59", "2026-10-26 00:00"),  # a day of 25 hours
        ("Africa/Cairo", "2026-04-23 23:59:59", "2026-04-24 01:00"),  # a day that begins at one o'clock
        ("Asia/Kathmandu", "2026-03-10 23:59:59", "2026-03-11 00:00"),
    ],
)
def test_a_day_ends_at_midnight_where_it_is_counted(
    counter: Counter, zone: str, last: str, first: str
) -> None:
    clock = PausableClock(f"{last[:10]} 01:30", zone)
    here = limited(counter, clock, daily_limit=1, zone=zone)
    assert statuses(here, 2) == ["ok", "limited"]
    clock.set(last)
    assert statuses(here, 1) == ["limited"]
    clock.set(first)
    assert statuses(here, 2) == ["ok", "limited"]


def test_an_hour_that_comes_twice_is_one_day(counter: Counter) -> None:
    clock = PausableClock("2026-10-25 02:30", "Europe/Berlin")
    here = limited(counter, clock, daily_limit=1, zone="Europe/Berlin")
    assert here.pass_through("(probe)").ok
    clock.set("2026-10-25 02:30", fold=1)
    assert here.pass_through("(probe)").message.endswith("next tomorrow at 00:00 CET, in 22 hours.")


def test_a_day_whose_midnight_comes_twice_begins_at_the_first(counter: Counter) -> None:
    clock = PausableClock("2026-10-31 23:59", "America/Havana")
    here = limited(counter, clock, daily_limit=1, zone="America/Havana")
    assert statuses(here, 2) == ["ok", "limited"]
    clock.set("2026-11-01 00:10")
    assert statuses(here, 2) == ["ok", "limited"]
    clock.set("2026-11-01 00:20", fold=1)
    assert statuses(here, 1) == ["limited"]


def test_a_zone_without_a_name_for_its_time_is_told_by_its_offset(counter: Counter) -> None:
    clock = PausableClock("2026-03-10 12:00", "Asia/Kathmandu")
    here = limited(counter, clock, daily_limit=1, zone="Asia/Kathmandu")
    here.pass_through("(probe)")
    assert "00:00 UTC+0545" in here.pass_through("(probe)").message


@pytest.mark.parametrize("zone", ["Mars/Base", "", "/etc/passwd", "../x", "Europe"])
def test_a_zone_there_is_not_is_told(zone: str) -> None:
    said = complaint(UsageError, lambda: StoreLimits(lambda: Store(":memory:"), zone=zone))
    assert said == f"Unknown time zone {zone!r}; examples are UTC and Europe/Berlin."


def test_a_clock_that_was_wrong_locks_nobody_out_for_ever(counter: Counter, clock: PausableClock) -> None:
    here = limited(counter, clock, Quota("probe", 1, "hour"), cooldown=60, daily_limit=1)
    clock.set("2038-01-19 03:14")
    assert statuses(here, 2) == ["ok", "limited"]
    clock.set("2026-03-10 12:00")
    assert statuses(here, 2) == ["ok", "limited"]


def test_a_clock_set_back_gives_nothing_back(counter: Counter, clock: PausableClock) -> None:
    here = limited(counter, clock, Quota("probe", 1, "hour"), cooldown=600, daily_limit=1)
    assert here.pass_through("(probe)").ok
    clock.wait(-300)
    assert here.pass_through("(probe)").status == "limited"


# Whose calls are counted


def test_every_user_has_a_limit_of_their_own(counter: Counter, clock: PausableClock) -> None:
    here = limited(counter, clock, daily_limit=1, cooldown=5)
    assert statuses(here, 2, user="ann") == ["ok", "limited"]
    assert statuses(here, 2, user="bob", session="s2") == ["ok", "limited"]
    assert statuses(here, 1, user="ann", session="s2") == ["limited"]


@pytest.mark.parametrize("user", ["Ann", "ann ", " ANN", "\uff41nn"])
def test_other_spellings_of_a_name_share_its_limit(user: str, counter: Counter, clock: PausableClock) -> None:
    here = limited(counter, clock, Quota("probe", 1))
    assert statuses(here, 1, user="ann") == ["ok"]
    assert statuses(here, 1, user=user) == ["limited"]


@pytest.mark.parametrize(
    ("by", "other_session", "other_user"),
    [("user", "limited", "ok"), ("session", "ok", "limited"), ("all", "limited", "limited")],
)
@pytest.mark.parametrize("make", [lambda by: Quota("probe", 1, by=by), lambda by: Cooldown("probe", 60, by)])
def test_a_rule_counts_by_user_by_session_or_all_together(
    counter: Counter,
    clock: PausableClock,
    make: Callable[[str], Rule],
    by: str,
    other_session: str,
    other_user: str,
) -> None:
    here = limited(counter, clock, make(by))
    assert statuses(here, 1, user="ann", session="s1") == ["ok"]
    assert statuses(here, 1, user="ann", session="s2") == [other_session]
    assert statuses(here, 1, user="bob", session="s1") == [other_user]


def test_tools_are_counted_one_by_one_however_they_are_spelt(counter: Counter, clock: PausableClock) -> None:
    limits = counter.limits([Quota("Tool_A", 1)], clock=clock)
    here = gateway(tool("tool-a"), tool("tool-b", daily_limit=1), tool("tool-c"), limits=limits)
    spellings = ["(tool-a)", "(TOOL_A)", "(tool-b)", "(tool-b)", "(tool-c)", "(tool-c)"]
    assert [here.pass_through(text).status for text in spellings] == ["ok", "limited"] * 2 + ["ok", "ok"]


def test_what_is_counted_is_still_counted_after_a_restart(tmp_path: Path, clock: PausableClock) -> None:
    for status in ("ok", "ok", "limited"):
        store = Store(tmp_path / "s.sqlite")
        assert limited(store, clock, daily_limit=2).pass_through("(probe)").status == status
        store.close()


def test_a_store_is_opened_only_for_a_tool_that_is_limited(store: Store) -> None:
    opened: list[Store] = []

    def open_store() -> Store:
        opened.append(store)
        return store

    here = gateway(tool("free"), tool("probe", daily_limit=1), limits=StoreLimits(open_store, []))
    assert here.pass_through("(free)").ok
    assert opened == []
    assert here.pass_through("(probe)").ok
    assert opened


def test_an_agent_keeps_the_quotas_it_is_given(tmp_path: Path) -> None:
    for status in ("ok", "limited"):
        with agent(tmp_path, quotas=[Quota("echo", 1)], zone="Europe/Berlin", user="ann") as it:
            result = it.call('(echo :text "a")')
            assert result.status == status
    assert result.message.split(", in")[0] in (
        "echo is limited: 1 of 1 used today, next tomorrow at 00:00 CET",
        "echo is limited: 1 of 1 used today, next tomorrow at 00:00 CEST",
    )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Quota("x", -1), "The quota of x must be a whole number from 0, not -1."),
        (lambda: Quota("x", True), "The quota of x must be a whole number from 0, not True."),
        (lambda: Quota("x", 1.5), "The quota of x must be a whole number from 0, not 1.5."),  # type: ignore[arg-type]
        (
            lambda: Quota("x", 1, "year"),  # type: ignore[arg-type]
            "The quota of x must be per week, day, hour, minute or a number of seconds, not 'year'.",
        ),
        (
            lambda: Quota("x", 1, 0),
            "The quota of x must be per week, day, hour, minute or a number of seconds, not 0.",
        ),
        (
            lambda: Quota("x", 1, by="me"),  # type: ignore[arg-type]
            "The quota of x must be by user, session or all, not 'me'.",
        ),
        (
            lambda: Cooldown("x", float("nan")),
            "The cooldown of x must be a number of seconds above 0, not nan.",
        ),
        (lambda: Cooldown("x", 0), "The cooldown of x must be a number of seconds above 0, not 0."),
        (
            lambda: Cooldown("x", 1, "me"),  # type: ignore[arg-type]
            "The cooldown of x must be by user, session or all, not 'me'.",
        ),
    ],
)
def test_a_rule_that_cannot_be_kept_is_told(make: Callable[[], Rule], said: str) -> None:
    assert complaint(UsageError, make) == said


# Which stages take a place


class Judge:
    """A policy, gate or consent with one answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def judge(self, *_: Any) -> Verdict:
        return ALLOW if self.answer is None else self.answer

    async def check(self, *_: Any) -> Verdict:
        return self.answer

    async def request(self, *_: Any) -> Verdict | None:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


ENDINGS: list[tuple[str, dict[str, Any], str, list[bool]]] = [
    ("ok", {}, "ok", [True]),
    ("the body fails", {"body": Spy(OSError())}, "error", [True]),
    (
        "the body times out",
        {"body": functools.partial(asyncio.sleep, 5), "timeout": 0.05},
        "timeout",
        [True],
    ),
    ("the value is no data", {"body": Spy(object())}, "error", [True]),
    ("the arguments are wrong", {"params": {"x": {}}}, "invalid", []),
    ("the policy denies", {"policy": Judge(deny("no"))}, "denied", []),
    ("the policy fails", {"policy": Judge("no verdict")}, "denied", []),
    ("the guard denies", {"guard": Spy(False)}, "denied", []),
    ("the guard fails", {"guard": Spy(OSError())}, "denied", []),
    ("the gate denies", {"gate": Judge(deny("no"))}, "denied", []),
    ("a person says no", {"guard": Spy(ask("?")), "consent": Judge(deny("no"))}, "denied", []),
    ("nobody is there", {"guard": Spy(ask("?")), "consent": Judge(None)}, "pending", []),
    ("consent fails", {"guard": Spy(ask("?")), "consent": Judge(OSError())}, "denied", []),
    ("a person says yes", {"guard": Spy(ask("?")), "consent": Judge(ALLOW)}, "ok", [True]),
]


@pytest.mark.parametrize(
    ("options", "status", "left"), [case[1:] for case in ENDINGS], ids=[case[0] for case in ENDINGS]
)
def test_a_call_counts_from_the_beginning_of_its_body_and_not_before(
    counter: Counter, clock: PausableClock, options: dict[str, Any], status: str, left: list[bool]
) -> None:
    gate = options.get("gate")
    limits = counter.limits(clock=clock)
    parts = {key: value for key, value in options.items() if key in ("policy", "gate", "consent")}
    rest = {key: value for key, value in options.items() if key not in parts}
    here = gateway(tool(daily_limit=1, gate=gate is not None, **rest), limits=limits, **parts)
    assert here.pass_through("(probe)").status == status
    assert counter.uses() == len(left)
    assert here.pass_through("(probe)").status == ("limited" if left else status)


def test_a_refused_call_takes_no_place(counter: Counter, clock: PausableClock) -> None:
    here = limited(counter, clock, Quota("probe", 1, "hour"))
    assert statuses(here, 3) == ["ok", "limited", "limited"]
    clock.wait(3600)
    assert here.pass_through("(probe)").ok


async def test_while_a_person_is_asked_the_place_is_taken(counter: Counter, clock: PausableClock) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    class Person:
        async def request(self, *_: Any) -> Verdict:
            asked.set()
            await answer.wait()
            return deny("no")

    here = limited(counter, clock, daily_limit=1, guard=Spy(ask("?")), consent=Person())
    first = asyncio.create_task(here.enter("(probe)"))
    await asked.wait()
    assert (await here.enter("(probe)")).status == "limited"
    answer.set()
    assert (await first).status == "denied"
    assert (await here.enter("(probe)")).status == "denied"


@pytest.mark.parametrize("where", ["consent", "body"])
async def test_a_cancelled_call_counts_when_its_body_had_begun(
    counter: Counter, clock: PausableClock, where: str
) -> None:
    there = asyncio.Event()

    async def wait(*_: Any) -> Any:
        there.set()
        await asyncio.sleep(60)

    class Person:
        request = staticmethod(wait)

    async def body() -> None:
        await wait()

    asks = {"guard": Spy(ask("?")), "consent": Person()} if where == "consent" else {}
    here = limited(counter, clock, daily_limit=1, body=body, **asks)
    call = asyncio.create_task(here.enter("(probe)"))
    await there.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert counter.uses() == (1 if where == "body" else 0)


def test_a_cooldown_runs_from_the_beginning_of_the_body(counter: Counter, clock: PausableClock) -> None:
    class Slow:
        async def request(self, *_: Any) -> Verdict:
            clock.wait(300)
            return ALLOW

    here = limited(counter, clock, cooldown=60, guard=Spy(ask("?")), consent=Slow())
    assert here.pass_through("(probe)").ok
    clock.wait(59)
    assert here.pass_through("(probe)").status == "limited"
    clock.wait(1)
    assert here.pass_through("(probe)").ok


def test_a_nested_call_is_counted_for_its_user(counter: Counter, clock: PausableClock) -> None:
    body = Spy("done")
    limits = counter.limits(clock=clock)
    here = shipped(".", tool(body=body, daily_limit=2), limits=limits)
    result = here.pass_through("(eval (do (probe) (probe) (probe)))", user="ann")
    assert (result.status, body.calls) == ("limited", 2)
    assert here.pass_through("(probe)", user="ann").status == "limited"
    assert here.pass_through("(probe)", user="bob").ok


# What cannot be counted is not run


class Broken(Reservation):
    def commit(self) -> None:
        raise OSError("disk full")


class Keeps:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def reserve(self, *_: Any) -> Any:
        return self.answer


@pytest.mark.parametrize("answer", [None, True, "2 of 3 used"])
def test_limits_that_answer_neither_yes_nor_no_refuse(answer: Any) -> None:
    body = Spy()
    result = gateway(tool(body=body), limits=Keeps(answer)).pass_through("(probe)")
    assert (result.status, result.message) == (
        "limited",
        f"probe is limited: its calls could not be counted (TypeError: {answer!r} is not a Reservation).",
    )
    assert not body.ran


def test_a_call_that_cannot_be_committed_is_not_run() -> None:
    body = Spy()
    here = gateway(tool(body=body), limits=Keeps(Broken()))
    result = here.pass_through("(probe)")
    assert (result.status, result.message) == (
        "limited",
        "probe is limited: its calls could not be counted (OSError: disk full).",
    )
    assert not body.ran
    assert [row["stage"] for row in here.rows] == ["body"]


def test_a_store_that_is_closed_refuses(store: Store, clock: PausableClock) -> None:
    here = limited(store, clock, daily_limit=1)
    store.close()
    assert here.pass_through("(probe)").message.startswith(
        "probe is limited: its calls could not be counted (ConnectionClosedError"
    )


def test_a_place_that_cannot_be_given_back_stays_taken(tmp_path: Path, clock: PausableClock) -> None:
    store = Store(tmp_path / "s.sqlite")

    class Closes:
        async def request(self, *_: Any) -> Verdict:
            store.close()
            return deny("no")

    here = limited(store, clock, daily_limit=1, guard=Spy(ask("?")), consent=Closes())
    assert here.pass_through("(probe)").status == "denied"
    again = Store(tmp_path / "s.sqlite")
    assert limited(again, clock, daily_limit=1).pass_through("(probe)").status == "limited"
    again.close()


def test_a_place_is_settled_once(counter: Counter, clock: PausableClock) -> None:
    limits = counter.limits(clock=clock)
    counted = made(limits)
    counted.commit()
    counted.release()
    assert counter.uses() == 1
    given_back = made(limits)
    given_back.release()
    kept = made(limits)
    given_back.release()
    assert counter.uses() == 2
    kept.release()
    assert counter.uses() == 1


def made(limits: CountedLimits) -> Reservation:
    reserved = limits.reserve(tool(daily_limit=9), new_call(CallForm("probe")))
    assert isinstance(reserved, Reservation)
    return reserved


# Many at once


async def test_of_200_calls_at_once_three_run(counter: Counter) -> None:
    ran: list[int] = []

    async def body() -> None:
        ran.append(1)
        await asyncio.sleep(0.01)

    here = limited(counter, PausableClock(), daily_limit=3, body=body)
    results = await asyncio.gather(*(here.enter("(probe)", user="ann") for _ in range(200)))
    assert (len(ran), sorted({result.status for result in results})) == (3, ["limited", "ok"])
    assert [result.status for result in results].count("ok") == 3


def test_of_calls_in_many_threads_three_run(tmp_path: Path) -> None:
    stores = [Store(tmp_path / "s.sqlite") for _ in range(2)]
    body = Spy()
    statuses: list[str] = []

    def work(store: Store) -> None:
        here = limited(store, PausableClock(), daily_limit=3, body=body)
        statuses.append(here.pass_through("(probe)").status)

    threads = [threading.Thread(target=work, args=(stores[n % 2],)) for n in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (body.calls, statuses.count("ok"), statuses.count("limited")) == (3, 3, 37)
    for store in stores:
        store.close()


PROCESS = """
import asyncio, sys
from pathlib import Path
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.call.context import ToolContext
from quoth.tools.registry.define import define_tool, registering_in
from quoth.tools.door.door import Door; from quoth.tools.call.call import new_call
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.limits import StoreLimits
from quoth.tools.storage.database import Store
from quoth.tools.registry.table import ToolTable
from quoth.tools.call.workspace import Workspace

folder = Path(sys.argv[1])
store = Store(folder / "s.sqlite")


async def body():
    with (folder / "ran").open("a") as out:
        out.write("ran\\n")
    await asyncio.sleep(0.01)


async def main(calls):
    with registering_in(ToolTable()) as table:
        define_tool("probe", "A probe.", parameters={}, body=body, daily_limit=3)
    door = Door(table, limits=StoreLimits(lambda: store, clock=lambda: 1e9), audit=MemoryAudit())
    context = ToolContext(Workspace(folder))
    some = [door.dispatch(new_call(CallForm("probe")), context) for _ in range(calls)]
    print(*(result.status for result in await asyncio.gather(*some)))


print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main(int(sys.argv[2])))
"""


def test_of_200_calls_in_two_processes_three_run(tmp_path: Path) -> None:
    files(tmp_path, {"process.py": PROCESS})
    words = [sys.executable, str(tmp_path / "process.py"), str(tmp_path), "100"]
    both = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for process in both:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    said = " ".join(process.communicate(timeout=120)[0] for process in both).split()
    assert [process.returncode for process in both] == [0, 0]
    assert (said.count("ok"), said.count("limited")) == (3, 197)
    assert (tmp_path / "ran").read_text() == "ran\n" * 3


# A process that dies on the way

DIES = """
import asyncio, os, signal, sys
from pathlib import Path
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.call.call import ALLOW, ask; from quoth.tools.call.context import ToolContext
from quoth.tools.registry.define import define_tool, registering_in
from quoth.tools.door.door import Door; from quoth.tools.call.call import new_call
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.limits import StoreLimits
from quoth.tools.storage.database import Store
from quoth.tools.registry.table import ToolTable
from quoth.tools.call.workspace import Workspace

folder, point = Path(sys.argv[1]), sys.argv[2]
store = Store(folder / "s.sqlite")


def reached(label):
    if label == point:
        os.kill(os.getpid(), signal.SIGKILL)


class Limits(StoreLimits):
    def reserve(self, tool, call):
        reached("before reserve")
        place = super().reserve(tool, call)
        reached("after reserve")
        commit = place.commit

        def committing():
            reached("before commit")
            commit()
            reached("after commit")

        place.commit = committing
        return place


class Policy:
    def judge(self, *_):
        reached("policy")
        return ALLOW


class Consent:
    async def request(self, *_):
        reached("consent")
        return ALLOW


def guard():
    reached("guard")
    return ask("?")


def body():
    (folder / "ran").touch()
    reached("body")


with registering_in(ToolTable()) as table:
    define_tool("probe", "A probe.", parameters={}, body=body, guard=guard, daily_limit=2)
limits = Limits(lambda: store, clock=lambda: 1e9)
door = Door(table, policy=Policy(), limits=limits, consent=Consent(), audit=MemoryAudit())
asyncio.run(door.dispatch(new_call(CallForm("probe")), ToolContext(Workspace(folder))))
raise SystemExit("it was not killed")
"""


@pytest.mark.parametrize(
    ("point", "counted", "begun"),
    [
        ("before reserve", 0, []),
        ("after reserve", 1, [False]),
        ("policy", 1, [False]),
        ("guard", 1, [False]),
        ("consent", 1, [False]),
        ("before commit", 1, [False]),
        ("after commit", 1, [True]),
        ("body", 1, [True]),
    ],
)
def test_a_process_killed_with_a_place_has_used_it(
    tmp_path: Path, point: str, counted: int, begun: list[bool]
) -> None:
    assert script(DIES, tmp_path, point, cwd=tmp_path).code == -9
    assert (tmp_path / "ran").exists() is (point == "body")
    store = Store(tmp_path / "s.sqlite")
    assert uses(store) == begun
    here = limited(store, lambda: 1e9, daily_limit=2)
    assert statuses(here, 3) == ["ok"] * (2 - counted) + ["limited"] * (1 + counted)
    tomorrow = limited(store, lambda: 1e9 + 86400, daily_limit=2)
    assert statuses(tomorrow, 3) == ["ok", "ok", "limited"]
    store.close()
