"""Some of the moments of tests/vocabulary/worktree_kills.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import worktree_kills


@pytest.mark.parametrize(("number", "when"), [(20, "during"), (72, "during"), (73, "after"), (73, "full")])
def test_a_kill_at_a_moment_leaves_nothing_that_the_next_start_does_not_finish(
    number: int, when: str, tmp_path: Path
) -> None:
    assert worktree_kills.faults(tmp_path, number, when) == []
