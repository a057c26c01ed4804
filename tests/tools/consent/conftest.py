"""Where requests are kept: whatever is said of consent holds in a store and in a Redis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from examples import many
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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a table of cases two are tried in a Redis, unless all are wanted (--hypothesis-profile=explore)."""
    if many(1) > 30:
        return
    tried: Counter[str] = Counter()
    kept, left = [], []
    for item in items:
        is_shared = "[redis" in item.nodeid and item.path.parent == Path(__file__).parent
        tried[item.nodeid.partition("[")[0]] += is_shared
        (left if is_shared and tried[item.nodeid.partition("[")[0]] > 2 else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)
