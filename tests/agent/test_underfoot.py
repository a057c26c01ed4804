"""Sessions removed and stores moved under a process at work; the harness is tests/vocabulary/underfoot.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import quoth

HARNESS = Path(__file__).parents[1] / "vocabulary" / "underfoot.py"


def found(*words: str) -> list[str]:
    """What the harness finds, with its last line: how many cases there were, and how many of them wrong."""
    said = quoth(str(HARNESS), *words, cwd=HARNESS.parent, seconds=300)
    assert said.out, said.err
    return said.out.splitlines()


def test_a_session_that_is_removed_under_a_process_at_work_loses_nothing() -> None:
    told = found("--acts", "rm,undo,gc", "--routes", "call,run", "--moments", "1", "--seed", "35")
    assert told == ["12 cases, 0 wrong"]


def test_a_store_that_is_moved_under_a_process_at_work_takes_nothing_without_a_word() -> None:
    told = found("--acts", "moved,folder-removed,replaced", "--routes", "eval,fly", "--moments", "1")
    assert told == ["12 cases, 0 wrong"]


@pytest.mark.parametrize(
    ("broken", "act", "seen"),
    [("lock", "rm", "session s is back in half"), ("file", "unlinked", "effects after it without a word")],
)
def test_the_harness_finds_a_product_that_does_not_look(broken: str, act: str, seen: str) -> None:
    route = "call" if broken == "lock" else "run"
    told = found("--broken", broken, "--acts", act, "--routes", route, "--moments", "5")
    assert any(seen in line for line in told), told
