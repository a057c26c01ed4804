"""The fresh everyday tasks stay as they were written, before anything was tuned."""

from __future__ import annotations

import hashlib
from pathlib import Path

FROZEN = "899e1248aca14069a90999de8cbea36f362d15917d0d8b52d6776fccc7ae54a6"


def test_the_fresh_tasks_are_frozen() -> None:
    text = Path(__file__).with_name("everyday_fresh.py").read_bytes()
    assert hashlib.sha256(text).hexdigest() == FROZEN
