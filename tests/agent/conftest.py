"""What tests of flights share: a plan on its field, and a look at what a flight leaves running."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from field import Field
from words import sandboxes, threads, wait_until


@pytest.fixture
def nothing_is_left_running() -> Iterator[None]:
    """The test leaves no more threads and sandboxes than it found; one of an earlier test may end."""
    running, hosted = threads(), sandboxes()
    yield
    wait_until(lambda: threads() <= running and sandboxes() <= hosted, 10)  # a thread may just be ending


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field(tmp_path)
