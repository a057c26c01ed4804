"""What is read as a time, what is no time, and what the clocks do in between."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from words import complaint

from quoth.tools.errors import ToolError
from quoth.tools.memory.due_times import (
    exact_text,
    in_words,
    instant_of,
    local_zone,
    read_stamp,
    read_when,
    stamp,
    zone_name,
)

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 11, 22, 11, 0, 30, tzinfo=UTC)  # 12:00 in Berlin
FORM = "2030-12-01 09:00, 2030-12-01T09:00+01:00, in 2 hours or tomorrow 9:00"


def read(text: str, now: datetime = NOON) -> str:
    return exact_text(read_when(":at", text, now, BERLIN)[0])


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("2026-12-01 09:00", "2026-12-01T09:00:00+01:00"),
        ("2026-12-01T9:00", "2026-12-01T09:00:00+01:00"),
        (" 2026-12-01  at  9:00:30 ", "2026-12-01T09:00:30+01:00"),
        ("2026-12-01T09:00Z", "2026-12-01T10:00:00+01:00"),
        ("2026-12-01T09:00+05:30", "2026-12-01T04:30:00+01:00"),
        ("2026-12-01 09:00 -0800", "2026-12-01T18:00:00+01:00"),
        ("2026-12-01", "2026-12-01"),
        ("today", "2026-11-22"),
        ("Today 12:01", "2026-11-22T12:01:00+01:00"),
        ("tomorrow at 9:00", "2026-11-23T09:00:00+01:00"),
        ("in 2 hours", "2026-11-22T14:00:30+01:00"),
        ("in 1 min", "2026-11-22T12:01:30+01:00"),
        ("in 90 minutes", "2026-11-22T13:30:30+01:00"),
        ("in 1 week", "2026-11-29T12:00:30+01:00"),
        ("<2026-12-01 Tue 09:00>", "2026-12-01T09:00:00+01:00"),
        ("[2026-12-01 Di 9:00]", "2026-12-01T09:00:00+01:00"),
        ("<2026-12-01 Tue>", "2026-12-01"),
        ("2028-02-29 09:00", "2028-02-29T09:00:00+01:00"),
    ],
)
def test_a_time_is_read(text: str, when: str) -> None:
    assert read(text) == when


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "<2030-12-01 Sun 09:00",
        "<2030-12-01 Sun 09:00-10:00>",
        "2026-13-30",
        "2026-12-01 25:00",
        "2026-12-01 09",
        "9:00",
        "12/01/2026 09:00",
        "in 2 moons",
        "in -2 hours",
        "tomorrow 9:60",
        "monday 9:00",
        "2026-12-01 09:00 CET",
        "in 99999 weeks extra",
        "x" * 9000,
        "2026-12-01T09:00+99:00",
        "0000-01-01",
        "٢٠٢٦-12-01",
        "tomorrow\n9:00",
        "\ud800",
    ],
)
def test_what_is_no_time_names_the_form(text: str) -> None:
    said = complaint(ToolError, lambda: read(text))
    assert said.startswith(f":at must be a time such as {FORM}, not '")
    assert len(said) < 200


@pytest.mark.parametrize(
    "text", ["2026-11-22 12:00", "2020-01-01", "today 9:00", "yesterday", "2026-11-22T10:59:59Z"]
)
def test_what_is_past_says_what_time_it_is(text: str) -> None:
    assert complaint(ToolError, lambda: read(text)) == (
        f":at {text!r} is past: it is 2026-11-22 12:00 Europe/Berlin now. Give a later time, such as {FORM}."
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2027-02-30", ":at is not a valid date: there is no 30 February 2027."),
        ("2026-02-29 09:00", ":at is not a valid date: there is no 29 February 2026."),
        ("<2027-04-31 Sat>", ":at is not a valid date: there is no 31 April 2027."),
        (
            "<2026-12-01 Tue 09:00 +1w -2d>",
            ":at '<2026-12-01 Tue 09:00 +1w -2d>' has +1w -2d, but only a single time can be set here. "
            "Give 2026-12-01 09:00, and add the rest in Emacs.",
        ),
    ],
)
def test_what_the_calendar_or_a_reminder_does_not_have(text: str, said: str) -> None:
    assert complaint(ToolError, lambda: read(text)) == said


def test_this_very_second_is_not_past() -> None:
    assert read("in 0 minutes") == "2026-11-22T12:00:30+01:00"


# When the clocks change: in Berlin on 2027-03-28 at 2:00 to 3:00, and on 2027-10-31 at 3:00 to 2:00


@pytest.mark.parametrize(
    ("text", "when", "remark"),
    [
        (
            "2027-03-28 02:30",
            "2027-03-28T03:30:00+02:00",
            "02:30 does not exist on that day, because the clocks change; 03:30 is used.",
        ),
        (
            "2027-10-31 02:30",
            "2027-10-31T02:30:00+02:00",
            "02:30 occurs twice on that day; the first is used, at 02:30+0200.",
        ),
        ("2027-10-31 02:30+01:00", "2027-10-31T02:30:00+01:00", ""),
        ("2027-03-28 03:00", "2027-03-28T03:00:00+02:00", ""),
        ("2027-10-31 03:00", "2027-10-31T03:00:00+01:00", ""),
    ],
)
def test_a_clock_that_is_changed_is_told(text: str, when: str, remark: str) -> None:
    found, said = read_when(":at", text, NOON, BERLIN)
    assert (exact_text(found), said) == (when, remark)


def test_hours_pass_by_themselves_and_days_by_the_calendar() -> None:
    eve = datetime(2027, 3, 27, 11, 0, tzinfo=UTC)  # 12:00; a day later it is summer
    assert read("in 24 hours", eve) == "2027-03-28T13:00:00+02:00"
    assert read("in 1 day", eve) == "2027-03-28T12:00:00+02:00"


# Org


@pytest.mark.parametrize(
    ("text", "exact", "when"),
    [
        ("<2026-12-01 Tue 09:00>", "", "2026-12-01T09:00:00+01:00"),
        ("<2026-12-01 Tue 09:00>", "2026-12-01T09:00:30+05:30", "2026-12-01T09:00:30+05:30"),
        ("<2026-12-01 Tue 09:15>", "2026-12-01T09:00:00+05:30", "2026-12-01T09:15:00+01:00"),
        ("<2026-12-01 Tue 09:00>", "nonsense", "2026-12-01T09:00:00+01:00"),
        ("<2026-12-01 Tue 09:00>", "2026-12-01T09:00:00", "2026-12-01T09:00:00+01:00"),
        ("<2027-10-31 Sun 02:30>", "2027-10-31T02:30:00+01:00", "2027-10-31T02:30:00+01:00"),
        ("<2026-12-01 Di 9:00-10:30>", "", "2026-12-01T09:00:00+01:00"),
        ("<2026-12-01>", "", "2026-12-01"),
        ("<2026-12-01 Tue -2d> and more", "", "2026-12-01"),
        ("<2026-12-01 Tue 09:00 ++1w -1d>", "", "2026-12-01T09:00:00+01:00"),
    ],
)
def test_a_stamp_says_its_time_and_who_moves_it_in_emacs_wins(text: str, exact: str, when: str) -> None:
    found = read_stamp(text, exact, BERLIN)
    assert found
    assert exact_text(found[0]) == when
    assert found[1] is ("+" in text)


@pytest.mark.parametrize(
    "text", ["", "[2026-12-01 Tue]", "<2026-13-01>", "<2026-12-01 Tue 25:00>", "<tomorrow>", "2026-12-01"]
)
def test_what_is_no_stamp(text: str) -> None:
    assert read_stamp(text, "", BERLIN) is None


def test_a_day_begins_at_its_midnight_wherever_that_is() -> None:
    assert exact_text(instant_of(date(2026, 12, 1), BERLIN)) == "2026-12-01T00:00:00+01:00"
    cairo = ZoneInfo("Africa/Cairo")  # where a day may begin at 01:00
    assert exact_text(instant_of(date(2026, 4, 24), cairo)) == "2026-04-24T01:00:00+03:00"


def test_times_for_people() -> None:
    noon = datetime(2026, 12, 1, 12, 0, tzinfo=BERLIN)
    assert [in_words(when, noon, BERLIN) for when in (noon, date(2026, 12, 2), date(2026, 11, 30))] == [
        "today 12:00",
        "tomorrow",
        "yesterday",
    ]
    assert in_words(datetime(2026, 12, 9, 23, 30, tzinfo=UTC), noon, BERLIN) == "2026-12-10 Thu 00:30"
    assert (stamp(noon), stamp(noon, "[]"), stamp(noon.date())) == (
        "<2026-12-01 Tue 12:00>",
        "[2026-12-01 Tue 12:00]",
        "<2026-12-01 Tue>",
    )


@pytest.mark.parametrize(
    ("named", "zone"), [("Asia/Kolkata", "Asia/Kolkata"), (":UTC", "UTC"), ("<+03>-3", ""), ("CET-1CEST", "")]
)
def test_the_zone_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch, named: str, zone: str) -> None:
    monkeypatch.setenv("TZ", named)
    assert zone_name(local_zone()) == zone


def test_a_zone_of_the_process_that_is_none_is_not_taken_for_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Nowhere/X")
    assert complaint(ToolError, local_zone) == (
        "Unknown time zone 'Nowhere/X' in the environment variable TZ. Write a zone as UTC or Europe/Berlin."
    )
