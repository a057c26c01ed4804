"""``quoth serve`` and its clients are killed while they work: tests/vocabulary/serve_kills.py in a short
form."""

from __future__ import annotations

from collections import Counter

import pytest
import serve_kills


@pytest.mark.parametrize("seed", [0, 1])
async def test_each_effect_happens_once_whenever_server_or_client_is_killed(seed: int) -> None:
    moments = Counter[str]()
    assert await serve_kills.story(seed, kills=2, moments=moments, often=1) == ""
    assert moments.total() - moments["fork"] == 2
