"""The picture of a request in README and the manual shows the page as it is now."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import BROWSER
from pages import README, page
from pictures import png, size_of, small, text_in
from view_picture import HEIGHT, PICTURE, WIDTH, taken

from quoth.agent.manual.shown import shown


@pytest.mark.skipif(not BROWSER, reason="needs a Chromium")
def test_the_picture_says_what_the_page_says(tmp_path: Path) -> None:
    """To take it again: PYTHONPATH=tests/vocabulary python tests/vocabulary/view_picture.py"""
    picture, text = taken(tmp_path)
    assert size_of(picture) == (WIDTH, HEIGHT)
    assert "+ pears 2.80" in text
    assert text_in(PICTURE.read_bytes()) == text


def test_the_picture_is_small_and_stands_where_people_look() -> None:
    kept = PICTURE.read_bytes()
    assert size_of(kept) == (WIDTH, HEIGHT)
    assert len(kept) < 60_000
    assert "\n[[file:agent/manual/view.png]]\n" in README.read_text()
    assert "\n[[file:view.png]]\n" in page("view")
    assert ".png" not in shown(page("view"), 100, colour=False)  # a terminal shows none


def test_a_picture_made_small_keeps_its_size_and_its_text() -> None:
    made = small(png(3, 2), "What waits: ü")
    assert (size_of(made), text_in(made)) == ((3, 2), "What waits: ü")
