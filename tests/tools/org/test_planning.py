"""Planning lines: what their stamps say, and that a repeater moves them as Org does."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from emacs import emacs
from hypothesis import given
from hypothesis import strategies as some

from quoth.tools.org.planning import PlanningError, Stamp, moved_line, read_planning, read_stamp

BERLIN = ZoneInfo("Europe/Berlin")


def stamp(text: str) -> Stamp:
    return read_stamp("SCHEDULED", text)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def moved(text: str, now: str = "2026-03-01T12:00+00:00") -> str:
    found = stamp(text).next(at(now), UTC)
    assert found is not None
    return found.text


def test_a_line_has_the_stamps_of_its_words_and_keeps_the_rest() -> None:
    line = "  CLOSED: [2026-01-01 Thu] DEADLINE: <2026-03-05 Thu>  SCHEDULED: <2026-03-01 Sun 09:00 +1d>"
    found = read_planning(line)
    assert {word: one.key for word, one in found.items()} == {
        "DEADLINE": "2026-03-05",
        "SCHEDULED": "2026-03-01 09:00",
    }
    later = found["SCHEDULED"].next(at("2026-03-01T09:01+00:00"), UTC)
    assert later is not None
    assert moved_line(line, {"SCHEDULED": later}) == line.replace("03-01 Sun", "03-02 Mon")
    assert moved_line(line, {}) == line


@pytest.mark.parametrize(
    "text",
    [
        "<2026-02-30 Mon>",
        "<2026-01-01 Thu 25:00>",
        "<tomorrow>",
        "[2026-01-01 Thu]",
        "<%%(diary-float t 4 2)>",
        "<2026-01-01 Thu +0d>",
        "<2026-01-01 Thu +1h>",
        "2026-01-01",
        pytest.param(f"<2026-01-01 Thu +{'9' * 5000}d>", id="more digits than int() reads"),
    ],
)
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(PlanningError) as refused:
        read_planning(f"SCHEDULED: {text}")
    assert "<2030-12-01 Sun 09:00 +1w>" in str(refused.value)


def test_without_a_repeater_nothing_follows() -> None:
    assert stamp("<2026-01-01 Thu>").next(at("2026-02-01T00:00+00:00"), UTC) is None
    with pytest.raises(PlanningError, match="9999"):
        moved("<9999-12-31 Fri +1d>")


def test_hours_since_long_ago_are_passed_over_in_whole_steps() -> None:
    assert moved("<0001-01-02 Tue 01:30 ++7h>") == "<2026-03-01 Sun 14:30 ++7h>"


def test_what_follows_one_that_waits() -> None:
    followed = stamp("<2026-01-01 Thu ++1w>").following(UTC)
    assert followed is not None
    assert followed.key == "2026-01-08"
    assert stamp("<2026-01-01 Thu .+1w>").following(UTC) is None


def test_times_that_the_clocks_skip_or_repeat_are_one_each() -> None:
    one: Stamp | None = stamp("<2026-03-28 Sat 22:30 +1h>")
    times = []
    for _ in range(6):
        assert one is not None
        times.append(one.instant(BERLIN))
        one = one.next(times[-1], BERLIN)
    assert times == sorted(set(times))
    two: Stamp | None = stamp("<2026-10-25 Sun 01:30 +1h>")
    assert two is not None
    two = two.next(two.instant(BERLIN), BERLIN)
    assert two is not None
    assert two.instant(BERLIN) == at("2026-10-25T00:30+00:00")  # the first of the two


def _written(day: date, minute: int, how: str, number: int, unit: str) -> str:
    clock = f" {minute // 60:02}:{minute % 60:02}" if minute or unit == "h" else ""
    return f"<{day:%Y-%m-%d %a}{clock} {how}{number}{unit}>"


STAMPS = some.builds(
    _written,
    some.dates(date(2020, 1, 1), date(2030, 1, 1)),
    some.integers(0, 1439),
    some.sampled_from(["+", "++", ".+"]),
    some.integers(1, 40),
    some.sampled_from("hdwmy"),
)


@given(STAMPS, some.datetimes(at("2020-01-01"), at("2031-01-01")))
def test_a_moved_stamp_is_later_and_reads_as_itself(text: str, now: datetime) -> None:
    first, now = stamp(text), now.replace(tzinfo=BERLIN)
    then = first.next(max(now, first.instant(BERLIN)), BERLIN)
    assert then is not None
    assert then.instant(BERLIN) > first.instant(BERLIN)
    assert stamp(then.text) == then
    if first.repeater == "++":
        assert then.instant(BERLIN) > now.astimezone(UTC)


CASES = [
    ("<2026-01-31 Sat +1m>", "2026-02-10 10:00"),
    ("<2026-01-31 Sat ++1m>", "2026-05-10 10:00"),
    ("<2024-02-29 Thu +1y>", "2024-03-01 10:00"),
    ("<2024-02-29 Thu ++1y>", "2027-03-01 10:00"),
    ("<2026-01-31 Sat 09:30 .+1w>", "2026-05-10 10:00"),
    ("<2026-01-31 Sat 09:30-10:15 ++5h -2d>", "2026-02-01 10:07"),
    ("<2026-01-31 Sat ++1d>", "2026-02-05 10:00"),
    ("<2026-02-05 Thu ++1d>", "2026-02-05 10:00"),
    ("<2026-01-31 +1d/3d>", "2026-02-05 10:00"),
    ("<2026-01-31 Sat ++2w>", "2026-01-10 10:00"),
    ("<2026-01-31 Sat 23:30-23:50 +2h>", "2026-01-10 10:00"),
    ("<2026-01-31 Sat .+1m>", "2026-01-31 10:00"),
]
IN_ORG = """;; -*- lexical-binding: t -*-
(require 'org)
(require 'cl-lib)
(setq org-log-repeat nil org-log-done nil)
(defun quoth-moved (text at)
  (with-temp-buffer
    (org-mode)
    (insert "* TODO it\\nSCHEDULED: " text "\\n")
    (goto-char (point-min))
    (let ((now (encode-time (parse-time-string (concat at ":00")))) (less (symbol-function 'time-less-p)))
      (cl-letf (((symbol-function 'current-time) (lambda () now))
                ((symbol-function 'org-today) (lambda () (time-to-days now)))
                ((symbol-function 'y-or-n-p) (lambda (&rest _) t))
                ((symbol-function 'time-less-p) (lambda (a b) (funcall less (or a now) (or b now)))))
        (org-todo "DONE")))
    (goto-char (point-min))
    (search-forward "SCHEDULED: ")
    (princ (concat (buffer-substring (point) (line-end-position)) "\\n"))))
"""


def test_org_moves_them_to_the_same_times(tmp_path: Path) -> None:
    calls = "\n".join(f'(quoth-moved "{text}" "{now}")' for text, now in CASES)
    (tmp_path / "moved.el").write_text(IN_ORG + calls)
    said = emacs(tmp_path, script=f'(set-time-zone-rule "UTC0") (load-file "{tmp_path}/moved.el")')
    found = [line for line in said.splitlines() if line.startswith("<")]
    assert found == [moved(text, f"{now}+00:00") for text, now in CASES]
    assert moved("<2026-01-31 Sat 09:30 .+3h>", "2026-05-10 10:07+00:00") == "<2026-05-10 Sun 13:07 .+3h>"
