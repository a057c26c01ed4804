"""quoth and its server are killed with a question open: tests/vocabulary/mcp_kills.py in a short form."""

from __future__ import annotations

import mcp_kills
import pytest


@pytest.mark.parametrize("seed", [1])
def test_each_effect_happens_once_whenever_one_of_them_is_killed(seed: int) -> None:
    wrong, kills = mcp_kills.story(seed, most=2)
    assert (wrong, kills > 0) == ("", True)
