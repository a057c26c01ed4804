"""What a flight stands at: what is flown again when something before it was, how it is told, its cost."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from field import Field, block, statuses, step

from quoth.agent.plan.model import TODO_WORDS, Plan
from quoth.tools.history.transcript import Transcript
from quoth.tools.org.document import Org, load

pytestmark = pytest.mark.usefixtures("nothing_is_left_running")


def writes(text: str) -> str:
    return block(f'(write-file :path "out.txt" :content "{text}")')


IS_GOOD = '(= (read-file :path "out.txt") "good")'
TESTERS = {
    "an expectation": step("Tester", expect=IS_GOOD),
    "forms that read": step("Tester", block(f'(when (not {IS_GOOD}) (raise (ValueError "not good")))')),
}


# What was proven is proven again


@pytest.mark.parametrize("tester", TESTERS)
def test_a_build_that_has_another_name_and_does_something_else_is_tested_again(
    field: Field, tester: str
) -> None:
    field.plan(step("Build", writes("good")), TESTERS[tester])
    first = field.fly(consent="yes")
    assert first.ok
    field.edit("DONE Build", "PLAN Build: other")
    field.edit(':content "good"', ':content "bad"')
    second = field.fly(consent="yes")
    assert second.session == first.session
    assert statuses(second) == {"build-other": "done", "tester": "failed"}
    assert field.words == {"Build: other": "DONE", "Tester": "FAILED"}


@pytest.mark.parametrize("tester", TESTERS)
def test_a_test_that_was_flown_alone_is_asked_again_after_what_it_tests(field: Field, tester: str) -> None:
    (field.folder / "out.txt").write_text("good")
    field.plan(step("Build", writes("bad")), TESTERS[tester])
    assert field.fly(consent="yes", wanted={"only": "tester"}).ok
    assert field.words == {"Build": "PLAN", "Tester": "DONE"}
    assert statuses(field.fly(consent="yes")) == {"build": "done", "tester": "failed"}
    assert field.words == {"Build": "DONE", "Tester": "FAILED"}


@pytest.mark.parametrize("tester", TESTERS)
def test_a_step_that_is_put_in_is_tested_too(field: Field, tester: str) -> None:
    field.plan(step("Build", writes("good")), TESTERS[tester])
    assert field.fly(consent="yes").ok
    field.edit("* DONE Tester", step("b", writes("bad")) + "\n* DONE Tester")
    assert statuses(field.fly(consent="yes")) == {"build": "done", "b": "done", "tester": "failed"}
    assert field.words["Tester"] == "FAILED"


@pytest.mark.parametrize("tester", TESTERS)
def test_what_is_flown_alone_is_tested_again_when_the_rest_is_flown(field: Field, tester: str) -> None:
    field.plan(step("Build", block("(put 1)")), step("b", block("(put 2)")), TESTERS[tester])
    (field.folder / "out.txt").write_text("good")
    first = field.fly(consent="yes")
    assert field.fly(consent="yes", wanted={"only": "build"}).ok
    assert field.words == {"Build": "DONE", "b": "PLAN", "Tester": "PLAN"}  # nobody knows by now
    (field.folder / "out.txt").write_text("bad")
    second = field.fly(consent="yes")
    assert (second.session, second.status) == (first.session, "failed")
    assert field.puts == [1, 2, 1, 2]


def test_a_step_that_is_moved_before_another_is_proven_by_it(field: Field) -> None:
    field.plan(step("Tester", expect="(= 1 1)"), step("Build", block("(put 1)")), step("c", block("(shaky)")))
    field.fails = 1
    assert not field.fly(consent="yes").ok
    tester, build, rest = re.split(r"(?=^\* )", field.text, flags=re.MULTILINE)[1:]
    field.path.write_text(build + tester + rest)
    report = field.fly(consent="yes")
    assert report.ok
    assert {one.id: one.attempts for one in report.steps} == {"tester": 2, "build": 1, "c": 2}


@pytest.mark.parametrize("wanted", [{"only": "b"}, {"start": "b"}])
def test_what_a_person_has_flown_ahead_is_flown_again_after_what_it_comes_after(
    field: Field, wanted: dict[str, str]
) -> None:
    field.plan(step("a", block("(put 1)")), step("b", block("(put 2)")))
    assert field.fly(consent="yes", wanted=wanted).ok
    assert field.fly(consent="yes").ok
    assert field.puts == [2, 1, 2]


# Groups


def test_a_group_that_failed_stays_so_when_what_is_after_it_is_flown_and_is_gone_on_with(
    field: Field,
) -> None:
    field.plan(
        step("G", expect='(= (read-file :path "ok") "1")'),
        step("a", block("(put 1)"), head="**"),
        step("c", block("(put 3)")),
    )
    ok = field.folder / "ok"
    ok.write_text("0")
    first = field.fly(consent="yes")
    assert (first.status, field.words) == ("failed", {"G": "FAILED", "a": "DONE", "c": "PLAN"})
    assert field.fly(consent="yes", wanted={"start": "c"}).ok
    assert field.words == {"G": "FAILED", "a": "DONE", "c": "DONE"}
    third = field.fly(consent="yes")  # the group is not better, and c has come after it
    assert (third.session, third.status) == (first.session, "failed")
    assert field.words == {"G": "FAILED", "a": "DONE", "c": "PLAN"}
    ok.write_text("1")
    fourth = field.fly(consent="yes")
    assert (fourth.session, fourth.status) == (first.session, "done")
    assert field.words == {"G": "DONE", "a": "DONE", "c": "DONE"}
    assert field.puts == [1, 3, 3]


def test_a_group_in_a_group_that_is_asked_again_has_the_outer_one_asked_again(field: Field) -> None:
    field.plan(
        step("G", expect="(look)"),
        step("H", expect="(look)", head="**"),
        step("a", block("(put 1)"), head="***"),
        step("b", block("(put 2)"), head="**"),
    )
    assert field.fly(consent="yes").ok
    assert field.fly(consent="yes", wanted={"only": "H"}).ok
    report = field.fly(consent="yes")
    assert report.ok
    assert {one.id: one.attempts for one in report.steps} == {"g": 2, "h": 2, "a": 2, "b": 2}


# Each attempt has its line


def log_of(field: Field, title: str) -> list[str]:
    """The lines of a step's log, the oldest first, as they are but for digests and sessions."""
    entry = next(one for one in load(field.path.read_bytes(), TODO_WORDS).entries if one.title == title)
    rows = field.text.split("\n")[entry.row : entry.stop]
    told = [re.sub(r"digest \w+, session s\w+", "of s", row) for row in rows if row.startswith("- ")]
    return [re.sub(r"\[\d{4}-[^]]*\]", "[now]", row) for row in told][::-1]


def test_attempts_of_one_minute_have_a_line_each(field: Field) -> None:
    field.plan(step("a", block("(shaky)")), step("b", block("1")))
    field.fails = 3
    for _ in range(4):
        field.fly()
    assert [re.sub(r": .*", "", line) for line in log_of(field, "a")] == [
        "- FAILED [now] of s",
        "- FAILED [now] of s, try 2",
        "- FAILED [now] of s, try 3",
        "- DONE [now] of s, try 4",
    ]
    assert log_of(field, "b") == ["- DONE [now] of s"]


def test_flights_of_one_session_have_their_own_lines(field: Field) -> None:
    field.plan(step("a", block("1")))
    for _ in range(3):
        assert field.fly(session="mine", wanted={"again": True}).ok
    assert [re.sub(r".*session ", "", line) for line in log_of(field, "a")] == [
        "mine",
        "mine, flight 2",
        "mine, flight 3",
    ]


def test_what_waits_twice_in_one_attempt_has_two_lines(field: Field) -> None:
    field.plan(step("a", block("(put 1)", "(put 2)")))
    for _ in range(3):
        field.fly()
        if field.puts != [1, 2]:
            field.decide()
    field.fly()
    assert [line.split()[1] for line in log_of(field, "a")][:3] == ["waits", "waits", "DONE"]


def test_another_time_zone_adds_no_line(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    field.plan(step("a", block("1")), step("b", block("(shaky)")))
    field.fails = 2
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        field.fly()
    monkeypatch.undo()
    time.tzset()
    assert [len(log_of(field, name)) for name in "ab"] == [1, 3]


def test_what_a_person_wrote_or_took_out_of_the_log_is_as_it_was_but_for_attempts(field: Field) -> None:
    field.plan(step("a", block("1")), step("b", block("(shaky)")))
    field.fails = 1
    field.fly()
    field.edit("- DONE", "- Looked at it.\n- DONE")
    field.fly()
    assert [line[:14] for line in log_of(field, "a")] == ["- DONE [now] o", "- Looked at it"]


# What it costs


def test_the_work_of_a_flight_grows_with_its_steps(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digests that are made, walks to what is earlier, headlines and events that are read: at twice as many
    steps there is twice as much of each."""
    counts: dict[str, int] = {}

    def counted(where: type, name: str) -> None:
        real = getattr(where, name)

        def count(*args: Any, **named: Any) -> Any:
            counts[name] = counts.get(name, 0) + 1
            return real(*args, **named)

        monkeypatch.setattr(where, name, count)

    counted(Plan, "_find_digest")
    counted(Plan, "_find_earlier")
    counted(Org, "_entry")
    counted(Transcript, "events")
    made = []
    for number in (10, 20):
        counts.clear()
        field.plan(*(step(f"s{place}", block(f"{place}")) for place in range(number)))
        assert field.fly().ok
        made.append(dict(counts))
    for name, few in made[0].items():
        assert made[1][name] <= 2.2 * few, (name, made)
    assert made[1]["_find_digest"] <= 2 * 20
