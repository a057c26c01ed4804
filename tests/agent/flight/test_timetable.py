"""Plans on a clock: each time is flown once, whoever watches, whatever the clock does, however they end."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from words import files, lines

from quoth.agent.flight.timetable import Timetable, schedule_of
from quoth.tools.errors import BusyError, UsageError
from quoth.tools.history.transcript import Transcript
from quoth.tools.memory.due_times import zone_named
from quoth.tools.org.planning import read_stamp
from quoth.tools.storage.database import Store
from quoth.tools.storage.file_lock import hold

ZONE = "Europe/Berlin"


def plan(times: str, word: str = "PLAN") -> str:
    return lines(
        "#+TODO: PLAN APPROVED RUNNING WAITING | DONE FAILED DENIED SKIPPED",
        f"#+PROPERTY: ZONE {ZONE}",
        f"* {word} Build: a digest",
        times,
        "** PLAN say",
        "#+begin_src hy",
        "(+ 1 2)",
        "#+end_src",
    )


class Killed(BaseException):
    """The watcher is killed here."""


class Skies:
    """A plan, a clock, and flights that end as they are told. ``flown`` are the sessions that were begun."""

    def __init__(self, folder: Path, times: str, word: str = "PLAN") -> None:
        files(folder, {"plan.org": plan(times, word)})
        self.path = folder / "plan.org"
        self.store = Store(folder / "store.sqlite")
        self.at = datetime(2026, 3, 1, 12, tzinfo=UTC)
        self.ends: Callable[[], str] = lambda: "done"
        self.flown: list[str] = []
        self.said: list[str] = []
        self.asking: set[str] = set()
        self.table = self.watcher()

    def watcher(self, kind: type[Timetable] = Timetable) -> Timetable:
        return kind(self.store, self.fly, self.said.append, lambda: self.at, lambda one: one in self.asking)

    def fly(self, path: Path, session: str) -> None:
        """Fly as the engine does: a new flight begins once in its session, a paused one continues."""
        status = self.ends()
        if status == "busy":
            raise BusyError("It is flown now.")
        log = Transcript(lambda: self.store)
        begun = [event.status for event in log.events(session, kind="flight")]
        assert not {"done", "failed"} & set(begun), "it is over"
        if not begun:
            self.flown.append(session)
            log.add(session, "flight", {"plan": str(path)}, key="f1")
        if status == "killed":
            raise Killed
        log.add(session, "flight", {"status": status}, key="f1", status=status)
        if status == "pending":
            self.asking.add(session)

    def when(self, text: str) -> datetime | None:
        """Set the clock, and look."""
        self.at = datetime.fromisoformat(text).replace(tzinfo=zone_named(ZONE)).astimezone(UTC)
        return self.table.turn(self.path)

    @property
    def text(self) -> str:
        return self.path.read_text()

    @property
    def stamp(self) -> str:
        found = schedule_of(self.path, self.path.read_bytes())
        return "" if found is None else found.at.text

    def states(self) -> dict[str, str]:
        return dict(self.store.execute("SELECT at, state FROM occurrences ORDER BY at"))  # type: ignore[arg-type]


@pytest.fixture
def skies(tmp_path: Path) -> Iterator[Callable[..., Skies]]:
    made: list[Skies] = []

    def new(times: str, word: str = "PLAN") -> Skies:
        made.append(Skies(tmp_path, times, word))
        return made[-1]

    yield new
    for one in made:
        one.store.close()


def test_a_plan_is_flown_once_when_its_time_has_come(skies: Any) -> None:
    sky = skies("SCHEDULED: <2026-03-02 Mon 09:00>")
    assert sky.when("2026-03-02 08:59") == datetime(2026, 3, 2, 8, tzinfo=UTC)
    assert not sky.flown
    before = sky.text
    for time in ("2026-03-02 09:00", "2026-03-02 09:01", "2027-01-01 00:00"):
        assert sky.when(time) is None
    assert len(sky.flown) == 1
    assert [line for line in sky.text.splitlines() if line not in before.splitlines()] == [
        ":LOGBOOK:",
        f"- Flown for <2026-03-02 Mon 09:00>: done; session {sky.flown[0]}",
        ":END:",
    ]


def test_what_repeats_is_moved_and_its_headline_is_open_again(skies: Any) -> None:
    sky = skies("DEADLINE: <2026-03-02 Mon>", "DONE")
    assert sky.when("2026-03-02 00:00") is None  # done, and it does not repeat
    sky = skies("DEADLINE: <2026-03-02 Mon ++1w>", "DONE")
    assert sky.when("2026-03-02 00:00") == datetime(2026, 3, 8, 23, tzinfo=UTC)
    assert "* PLAN Build" in sky.text
    assert sky.stamp == "<2026-03-09 Mon ++1w>"


def test_one_that_was_missed_is_flown_once_or_as_often_as_its_repeater_says(skies: Any) -> None:
    sky = skies("SCHEDULED: <2026-03-02 Mon 09:00 ++1d>")
    sky.when("2026-03-09 10:00")
    assert (len(sky.flown), sky.stamp) == (1, "<2026-03-10 Tue 09:00 ++1d>")
    sky = skies("SCHEDULED: <2026-04-02 Thu 09:00 +1d>")
    sky.when("2026-04-04 10:00")
    assert (len(sky.flown), sky.stamp) == (3, "<2026-04-05 Sun 09:00 +1d>")


def test_one_whose_deadline_is_past_is_told_and_not_flown(skies: Any) -> None:
    sky = skies("SCHEDULED: <2026-03-02 Mon 09:00 +1d> DEADLINE: <2026-03-02 Mon 10:00 +1d>")
    sky.when("2026-03-03 09:30")
    assert sky.states() == {"2026-03-02 09:00": "missed", "2026-03-03 09:00": "done"}
    assert "SCHEDULED: <2026-03-04 Wed 09:00 +1d> DEADLINE: <2026-03-04 Wed 10:00 +1d>" in sky.text
    assert "Not flown for <2026-03-02 Mon 09:00 +1d>: missed" in sky.text
    assert [one.split(": ", 1)[1] for one in sky.said] == [
        "<2026-03-02 Mon 09:00 +1d> was missed: its deadline <2026-03-02 Mon 10:00 +1d> is past."
    ]


def test_times_at_the_end_of_the_calendar_are_times(skies: Any) -> None:
    sky = skies("SCHEDULED: <2026-03-02 Mon 09:00> DEADLINE: <9999-12-31 Fri>")
    sky.when("2026-03-02 09:00")
    assert len(sky.flown) == 1
    sky = skies("SCHEDULED: <0001-01-01 Mon>")  # in UTC it would be in the year before
    sky.when("2026-03-02 09:00")
    assert len(sky.flown) == 1


def test_one_that_waits_blocks_the_next_and_goes_on_when_it_is_decided(skies: Any) -> None:
    sky = skies("SCHEDULED: <2026-03-02 Mon 09:00 +1d>")
    sky.ends = lambda: "pending"
    sky.when("2026-03-02 09:00")
    sky.ends = lambda: "done"
    for time in ("2026-03-02 10:00", "2026-03-03 08:00", "2026-03-03 09:00", "2026-03-03 10:00"):
        sky.when(time)
    assert len(sky.flown) == 1
    assert sky.states() == {"2026-03-02 09:00": "waits", "2026-03-03 09:00": "blocked"}
    assert len(sky.said) == 1
    assert "is not flown, because the flight of 2026-03-02 09:00 is not over" in sky.said[0]
    sky.asking.clear()
    sky.when("2026-03-03 11:00")
    assert sky.stamp == "<2026-03-04 Wed 09:00 +1d>"
    assert sky.states() == {"2026-03-02 09:00": "done", "2026-03-03 09:00": "blocked"}
    sky.when("2026-03-04 09:00")
    assert len(set(sky.flown)) == 2  # another session, so that no yes is carried over


def test_a_clock_that_goes_back_flies_nothing_again(skies: Any) -> None:
    sky = skies("SCHEDULED: <2026-03-02 Mon 09:00 +1d>")
    sky.when("2026-03-02 09:00")
    sky.path.write_text(plan("SCHEDULED: <2026-03-02 Mon 09:00 +1d>"))  # and the file is restored
    sky.when("2026-03-01 09:00")
    sky.when("2026-03-02 09:00")
    assert (len(sky.flown), sky.stamp) == (1, "<2026-03-03 Tue 09:00 +1d>")


def test_a_time_changed_meanwhile_stays_as_it_was_changed(skies: Any) -> None:
    sky = skies("SCHEDULED: <2026-03-02 Mon 09:00 +1d>")

    def ends() -> str:
        sky.path.write_text(plan("SCHEDULED: <2026-05-01 Fri 07:00 +1w>"))
        return "done"

    sky.ends = ends
    assert sky.when("2026-03-02 09:00") == datetime(2026, 5, 1, 5, tzinfo=UTC)
    assert sky.stamp == "<2026-05-01 Fri 07:00 +1w>"


def test_a_plan_that_another_process_flies_is_tried_later(skies: Any) -> None:
    sky = skies("SCHEDULED: <2026-03-02 Mon 09:00>")
    sky.ends = lambda: "busy"
    sky.when("2026-03-02 09:00")
    assert sky.states() == {}
    sky.ends = lambda: "done"
    with hold(f"occurrences of {sky.path}"):  # two watchers
        assert sky.when("2026-03-02 09:00") == sky.at + timedelta(seconds=2)
    assert not sky.flown
    sky.when("2026-03-02 09:02")
    assert len(sky.flown) == 1


def test_a_file_that_cannot_be_written_is_told_and_flown_once(skies: Any, monkeypatch: Any) -> None:
    sky = skies("SCHEDULED: <2026-03-02 Mon 09:00 +1d>")

    def full(*_: object, **__: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("quoth.agent.flight.timetable.replace_file", full)
    sky.when("2026-03-02 09:00")
    sky.when("2026-03-02 09:30")
    assert len(sky.flown) == 1
    assert "No space left on device" in sky.said[0]
    monkeypatch.undo()
    sky.when("2026-03-02 10:00")
    assert (len(sky.flown), sky.stamp) == (1, "<2026-03-03 Tue 09:00 +1d>")


@pytest.mark.parametrize("times", ["SCHEDULED: <tomorrow>", "SCHEDULED: <2026-03-02 Mon +1h>"])
def test_a_time_that_cannot_be_read_is_told_with_its_line(skies: Any, times: str) -> None:
    sky = skies(times)
    with pytest.raises(UsageError, match=r"plan\.org:4: "):
        sky.when("2026-03-02 09:00")


def test_only_the_first_time_of_a_plan_counts(tmp_path: Path) -> None:
    text = plan("SCHEDULED: <2026-03-02 Mon>") + "* COMMENT x\nSCHEDULED: <2026-01-01 Thu>\n"
    text += "* PLAN other\nDEADLINE: <2026-01-01 Thu>\n"
    found = schedule_of(tmp_path / "plan.org", text.encode())
    assert found is not None
    assert (found.line, found.others) == (4, (len(text.splitlines()),))
    assert schedule_of(tmp_path / "plan.org", plan("Some prose.").encode()) is None


# Two years, with clocks that change, two watchers, kills


class Mortal(Timetable):
    """A watcher that may be killed before and after each of its writes."""

    chance = random.Random(0)
    odds = 0.0

    def _risk(self) -> None:
        if self.chance.random() < self.odds:
            raise Killed

    def _add(self, *words: Any) -> None:
        self._risk()
        super()._add(*words)
        self._risk()

    def _set(self, *words: Any) -> None:
        self._risk()
        super()._set(*words)
        self._risk()

    def _move(self, *words: Any) -> bool:
        self._risk()
        found = super()._move(*words)
        self._risk()
        return found


@settings(max_examples=2)
@given(
    some.integers(0, 2**32),
    some.sampled_from(["+1d", "+3d", "++1d", "+1w", "++1m", "+1m", ".+2d", "+5h", "+1y"]),
    some.sampled_from(
        ["2025-03-28 Fri 02:30", "2025-03-30 Sun 02:30", "2025-10-26 Sun 02:30", "2025-01-31 Fri"]
    ),
    some.sampled_from([0.0, 0.1]),
)
def test_in_two_years_each_time_is_flown_once(
    tmp_path_factory: pytest.TempPathFactory, seed: int, repeater: str, first: str, odds: float
) -> None:
    chance = random.Random(seed)
    sky = Skies(tmp_path_factory.mktemp("sky"), f"SCHEDULED: <{first} {repeater}>")
    Mortal.chance, Mortal.odds = chance, odds
    how = ["done"] * 8 + ["failed", "pending"] + (["killed"] if odds else [])
    sky.ends = lambda: chance.choice(how)
    watchers = [sky.watcher(Mortal), sky.watcher(Mortal)]
    sky.at = datetime(2025, 3, 28, tzinfo=UTC)
    end = datetime(2027, 4, 1, tzinfo=UTC)
    stride = timedelta(hours=7) if repeater == "+5h" else timedelta(days=1, hours=5)
    limit = datetime(2025, 6, 1, tzinfo=UTC) if repeater == "+5h" else end
    while sky.at < limit:
        sky.at += stride * chance.random() * 2
        if chance.random() < 0.02:
            sky.at -= timedelta(hours=3)  # somebody sets the clock
        sky.asking = {one for one in sky.asking if chance.random() < 0.5}
        number = chance.randrange(2)
        try:
            watchers[number].turn(sky.path)
        except Killed:
            watchers[number] = sky.watcher(Mortal)
    Mortal.odds = 0.0
    sky.ends, sky.at = lambda: "done", limit + timedelta(days=40)
    for _ in range(6):
        sky.asking.clear()
        sky.at += timedelta(minutes=1)
        watchers[0].turn(sky.path)
    assert max(Counter(sky.flown).values()) == 1
    states = sky.states()
    assert not {"begun", "waits"} & set(states.values())
    assert sorted(sky.flown) == sorted(
        session
        for (session,) in sky.store.execute(
            "SELECT session FROM occurrences WHERE state IN ('done', 'failed')"
        )
    )
    if repeater.startswith("+") and not repeater.startswith("++"):
        expected, zone = [], zone_named(ZONE)
        assert zone is not None
        one = read_stamp("SCHEDULED", f"<{first} {repeater}>")
        while one.instant(zone) <= sky.at:
            expected.append(one.key)
            one = one.following(zone) or one
        assert list(states) == sorted(expected)
    sky.store.close()
