"""The stores of memory blocks that every test of this folder runs on."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from memory import Make, Place, dict_memory, postgres_memory, sqlite_memory
from servers import PostgresServer
from words import wait_until

from quoth.tools.storage.database import Store


@pytest.fixture(params=["sqlite", "postgres", "dict"])
def make(request: pytest.FixtureRequest) -> Make:
    """Makes the memory of an agent: ``make("a")``, and of a person: ``make("a", person=True)``."""
    if request.param == "postgres":
        return postgres_memory(request.getfixturevalue("memory_url"))
    return sqlite_memory(request.getfixturevalue("store")) if request.param == "sqlite" else dict_memory()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A store of memory for several processes."""
    if request.param == "sqlite":
        return Place(lambda: sqlite_memory(Store(tmp_path / "s.sqlite")))
    url: str = request.getfixturevalue("memory_url")
    server: PostgresServer = request.getfixturevalue("postgres")
    busy = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state != 'idle'"
    own = " AND pid != pg_backend_pid()"
    name = urlsplit(url).path[1:]
    return Place(
        lambda: postgres_memory(url),
        lambda: wait_until(lambda: not server.ask(busy + own, name)),
    )
