"""What the file tools say when they find nothing: what is near, and never what the rules hide."""

from __future__ import annotations

from pathlib import Path

import pytest
from sentences import THE_PROGRAM_USES, THERE_IS_NO_FILE, WHICH_IS_NOT_DEFINED
from words import Gateway, files, shipped

from quoth.tools.builtin import nearby
from quoth.tools.consent.requests import SayYes
from quoth.tools.policy.files import load_policy


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return files(
        tmp_path / "home",
        {
            "notes/a.org": "Paint the shed.\nA rake is missing.\n",
            "data/prices.csv": "item,price\nrake,17\nspade,26\n",
            "shop/Report.java": "class Report {}\n",
            "blob.bin": b"\0rake",
        },
    )


@pytest.fixture
def here(home: Path) -> Gateway:
    return shipped(home)


TO_READ = ' To read it: (read-file :path "{}")'
NEAR = [
    (
        '(grep-search :pattern "shed" :glob "*.txt")',
        f"Nothing in files named *.txt; 1 line in notes/a.org.{TO_READ.format('notes/a.org')}",
    ),
    (
        '(grep-search :pattern "rake" :glob "*.md")',
        "Nothing in files named *.md; 1 line in data/prices.csv, 1 line in notes/a.org."
        + TO_READ.format("data/prices.csv"),
    ),
    (
        '(grep-search :pattern "SHED")',
        f"Nothing in exactly this case; in other case 1 line in notes/a.org.{TO_READ.format('notes/a.org')}",
    ),
    (
        '(grep-search :pattern "price list")',
        f"Nothing; but there is data/prices.csv.{TO_READ.format('data/prices.csv')}",
    ),
    (
        '(grep-search :pattern "shed is painted")',
        f"Nothing; but shed in notes/a.org.{TO_READ.format('notes/a.org')}",
    ),
    ('(grep-search :pattern "zebra")', ""),
    (
        '(grep-search :pattern "shed" :path "shop")',
        f"Nothing in shop; 1 line in notes/a.org.{TO_READ.format('notes/a.org')}",
    ),
    (
        '(list-files :pattern "*.txt")',
        "No file matches *.txt; 4 files there: blob.bin, data/prices.csv, notes/a.org and 1 more.",
    ),
    (
        '(list-files :path "shop" :pattern "*report*.py")',
        "No file matches *report*.py; 1 file there: shop/Report.java.",
    ),
]


@pytest.mark.parametrize(("call", "said"), NEAR)
def test_an_empty_search_says_what_is_near(here: Gateway, call: str, said: str) -> None:
    result = here.pass_through(call)
    assert (result.status, result.value, result.message) == ("ok", [], said)


MISSING = [
    ("Report.java", f"{THERE_IS_NO_FILE} Report.java. There is shop/Report.java."),
    ("notes/prices.csv", f"{THERE_IS_NO_FILE} notes/prices.csv. There is data/prices.csv."),
    ("report.txt", f"{THERE_IS_NO_FILE} report.txt. There is shop/Report.java."),
    ("other.txt", f"{THERE_IS_NO_FILE} other.txt."),
    (
        "home/data/prices.csv",
        f"{THERE_IS_NO_FILE} home/data/prices.csv. It is data/prices.csv: home is this folder itself.",
    ),
]


@pytest.mark.parametrize(("path", "said"), MISSING)
def test_a_file_that_is_not_there_may_be_elsewhere(here: Gateway, path: str, said: str) -> None:
    result = here.pass_through(f'(read-file :path "{path}")')
    assert (result.status, result.message.partition(" To read it")[0]) == ("error", said)


def test_what_the_rules_hide_is_not_near(home: Path) -> None:
    rules = files(home.parent, {"r.hy": '(deny (read-file :path (under "notes")))'}) / "r.hy"
    here = shipped(home, policy=load_policy(home, rules))
    found = here.pass_through('(grep-search :pattern "shed" :glob "*.txt")')
    assert (found.value, found.message) == ([], "")
    rules.write_text('(deny (list-files :path (under "notes"))) (deny (read-file :path (under "shop")))')
    here = shipped(home, policy=load_policy(home, rules))
    assert "notes" not in here.pass_through('(list-files :pattern "*.txt")').message
    assert "shop" not in here.pass_through('(read-file :path "Report.java")').message


def test_it_looks_at_a_bounded_number_of_files(here: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearby, "MOST_FILES", 2)
    assert here.pass_through('(grep-search :pattern "shed" :glob "*.txt")').message == ""


def test_a_program_that_names_a_file_is_told_how_to_read_it(here: Gateway) -> None:
    said = here.pass_through('(eval (sum-column "data/prices.csv" "price"))')
    assert said.message == (
        f"{THE_PROGRAM_USES} sum-column, {WHICH_IS_NOT_DEFINED}. "
        'To read a file: (read-file :path "data/prices.csv").'
    )
    near = here.pass_through('(eval (read-fil "data/prices.csv"))')
    assert "Did you mean read-file?" in near.message


def test_what_a_person_allowed_is_the_call_alone(home: Path) -> None:
    """Asked about one folder, they have said nothing of the next."""
    rules = files(home.parent, {"r.hy": "(ask (grep-search))"}) / "r.hy"
    desk = shipped(home, policy=load_policy(home, rules), consent=SayYes())
    found = desk.pass_through('(grep-search :pattern "shed" :path "shop")')
    assert (found.status, found.value, found.message) == ("ok", [], "")
