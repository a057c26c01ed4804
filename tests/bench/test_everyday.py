"""The fresh and the later everyday tasks stay as they were written, before anything was tuned."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

FROZEN = {
    "everyday_fresh.py": "899e1248aca14069a90999de8cbea36f362d15917d0d8b52d6776fccc7ae54a6",
    "everyday_later.py": "c7fb2e884713aa0d73e4be13b2ac07953ad1788439cdf8eb26eb288386dfa7b6",
}


@pytest.mark.parametrize("name", FROZEN)
def test_the_tasks_are_frozen(name: str) -> None:
    text = Path(__file__).with_name(name).read_bytes()
    assert hashlib.sha256(text).hexdigest() == FROZEN[name]
