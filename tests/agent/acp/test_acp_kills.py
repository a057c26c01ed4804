"""``quoth acp`` and its client are killed while a question is open: tests/vocabulary/acp_kills.py in a short
form."""

from __future__ import annotations

from collections import Counter

import acp_kills


async def test_each_effect_happens_once_whenever_client_or_agent_is_killed() -> None:
    moments = Counter[str]()
    assert await acp_kills.story(1, kills=2, moments=moments) == ""
    assert moments.total() == 2
