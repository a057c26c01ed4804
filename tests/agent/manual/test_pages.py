"""What a page of the manual shows is executed here, and its tables are those that count."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import PAGES, README, SHOP, executed, files_of, page

from quoth.tools.memory.checks import ACCESSES, TABLE


@pytest.mark.parametrize("topic", [path.stem for path in PAGES])
def test_what_a_page_shows_is_what_happens(topic: str, tmp_path: Path) -> None:
    text = page(topic)
    assert executed(text, tmp_path) == text


@pytest.mark.parametrize("path", [README, *PAGES], ids=lambda path: path.stem)
def test_a_file_of_the_shop_is_the_same_on_each_page(path: Path) -> None:
    shown = files_of(path.read_text())
    kept = {name: (SHOP / name).read_text() for name in shown if (SHOP / name).is_file()}
    assert kept == {name: text for name, text in shown.items() if name in kept}
    assert path != README or kept == shown


def test_the_table_of_permissions_is_the_one_that_is_asked() -> None:
    row = re.compile("^" + r"\| (\w+) +" * 5 + r"\|$", re.MULTILINE)
    rows = row.findall(page("memory"))
    assert rows[0] == ("permission", *ACCESSES)
    assert {name: tuple(answers) for name, *answers in rows[1:]} == TABLE


def test_the_check_notices_a_wrong_output(tmp_path: Path) -> None:
    wrong = "#+begin_example\n$ quoth call '(echo :text \"right\")'\nwrong\n#+end_example\n"
    real = executed(wrong, tmp_path)
    assert "right\n" in real
    assert real != wrong
