"""What the README shows is executed here; it is short, and what it names is there."""

from __future__ import annotations

from pathlib import Path

from pages import README, executed, page

from quoth.agent.terminal.output import FIRST_TASK


def test_what_the_readme_shows_is_what_happens(tmp_path: Path) -> None:
    text = README.read_text()
    assert executed(text, tmp_path) == text


def test_the_task_in_words_is_the_one_that_was_tried_on_the_embedded_model() -> None:
    assert f'quoth run "{FIRST_TASK}"' in README.read_text()
    assert f'quoth run "{FIRST_TASK}"' in page("start")
