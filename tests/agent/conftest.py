"""What tests of flights share: a plan on its field, and a look at what a flight leaves running."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from field import Field
from words import sandboxes, threads, wait_until


@pytest.fixture
def nothing_is_left_running() -> Iterator[None]:
    """The test leaves as many threads and sandboxes as it found."""
    before = threads(), sandboxes()
    yield
    wait_until(lambda: (threads(), sandboxes()) == before, 10)  # a thread may just be ending


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field(tmp_path)
