"""What the README shows is executed here; it is short, and what it names is there."""

from __future__ import annotations

from pathlib import Path

from pages import README, executed


def test_what_the_readme_shows_is_what_happens(tmp_path: Path) -> None:
    text = README.read_text()
    assert executed(text, tmp_path) == text
