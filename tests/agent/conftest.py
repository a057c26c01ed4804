"""What tests of flights share: a plan on its field, and a look at what a flight leaves running. And what all
tests of conversations do: each request of theirs is one that every provider takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from field import Field
from histories import refusals
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


@pytest.fixture(autouse=True)
def every_provider_takes_it() -> Iterator[None]:
    """No provider would refuse what a scripted model was sent."""
    with refusals() as found:
        yield
    assert not found, found
