"""Where requests are kept: whatever is said of consent holds in a store and in a Redis."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from words import SharedStore

from quoth.tools.storage.database import Store


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An open store of the test's own; its requests are in it, or in a Redis."""
    path = tmp_path / "s.sqlite"
    is_shared = request.param == "redis"
    opened = SharedStore(path, request.getfixturevalue("shared")) if is_shared else Store(path)
    yield opened
    opened.close()
