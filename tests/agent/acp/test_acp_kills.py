"""``quoth acp`` is killed again and again: tests/vocabulary/acp_kills.py in a short form."""

from __future__ import annotations

import acp_kills
import pytest


@pytest.mark.parametrize("seed", [1])
async def test_each_effect_happens_once_whenever_it_is_killed(seed: int) -> None:
    assert await acp_kills.story(seed) == ""
