"""The numbers that this room promises. Tests of a limit go by its name, so a slip of one is seen here."""

from __future__ import annotations

from promised import numbers

PROMISED = {
    "sources.MAX_BYTES": 5_000_000,
    "sources.MAX_FILES": 2_000,
}


def test_no_number_changes_by_accident() -> None:
    assert numbers("tools.knowledge", PROMISED) == PROMISED
