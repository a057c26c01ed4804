"""The stores of memory blocks that every test of this folder runs on."""

from __future__ import annotations

import pytest
from memory import Make, dict_memory, postgres_memory, sqlite_memory


@pytest.fixture(params=["sqlite", "postgres", "dict"])
def make(request: pytest.FixtureRequest) -> Make:
    """Makes the memory of an agent: ``make("a")``, and of a person: ``make("a", person=True)``."""
    if request.param == "postgres":
        return postgres_memory(request.getfixturevalue("memory_url"))
    return sqlite_memory(request.getfixturevalue("store")) if request.param == "sqlite" else dict_memory()
