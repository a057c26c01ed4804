"""The stores of memory blocks that every test of this folder runs on."""

from __future__ import annotations

import pytest
from memory import Make, dict_memory, sqlite_memory

from quoth.tools.storage.database import Store


@pytest.fixture(params=["sqlite", "dict"])
def make(request: pytest.FixtureRequest, store: Store) -> Make:
    """Makes the memory of an agent: ``make("a")``, and of a person: ``make("a", person=True)``."""
    return sqlite_memory(store) if request.param == "sqlite" else dict_memory()
