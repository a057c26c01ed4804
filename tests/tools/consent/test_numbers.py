"""The numbers that this room promises. Tests of a limit go by its name, so a slip of one is seen here."""

from __future__ import annotations

from promised import numbers

PROMISED = {
    "decisions.ENOUGH": 3,
    "decisions.SCOPE_SECONDS": 28_800.0,
    "decisions.LONGEST_SECONDS": 2_592_000.0,
    "rows.KEPT_SECONDS": 15_552_000.0,
    "rows.PENDING_SECONDS": 604_800.0,
}


def test_no_number_changes_by_accident() -> None:
    assert numbers("tools.consent", PROMISED) == PROMISED
