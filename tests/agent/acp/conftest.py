"""What the tests of ``quoth acp`` share: the folder of an editor."""

from __future__ import annotations

from pathlib import Path

import pytest
from acp_client import WRITE
from words import files


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a script of replies, and a file."""
    files(tmp_path, {"a.txt": "one\n", "r.txt": f"{WRITE}\n---\nIt is written.\n---\nAgain.\n"})
    return tmp_path
