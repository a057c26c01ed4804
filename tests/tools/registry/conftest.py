"""What the tests of the registry share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quoth import registering_in
from quoth.tools.registry.table import ToolTable


@pytest.fixture
def table() -> Iterator[ToolTable]:
    """A table of the test's own, in which definitions register."""
    with registering_in(ToolTable()) as table:
        yield table
