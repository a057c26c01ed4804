"""quoth and its server are killed with a question open: tests/vocabulary/mcp_kills.py in a short form."""

from __future__ import annotations

import mcp_kills


def test_each_effect_happens_once_whenever_one_of_them_is_killed() -> None:
    killed = 0
    for seed in range(1, 9):  # on a fast machine each process of a story may end before its kill
        wrong, kills = mcp_kills.story(seed, most=2)
        assert wrong == ""
        killed += kills
        if killed:
            break
    assert killed > 0
