"""The numbers that this room promises. Tests of a limit go by its name, so a slip of one is seen here."""

from __future__ import annotations

from promised import numbers

PROMISED = {
    "files.MAX_BYTES": 1_000_000,
    "origins.SHOWN": 80,
    "origins.TOLD": 3,
    "spending.LONGEST": 3_162_240_000.0,
    "scope.KEPT_WORDS": 2,
    "spending.QUARTER": 900,
    "language.UNITS": {"second": 1, "seconds": 1, "minute": 60, "minutes": 60, "hour": 3_600, "hours": 3_600},
    "urls.HostPattern._field_defaults": {"host": "", "below": False, "network": None, "port": 0},
}


def test_no_number_changes_by_accident() -> None:
    assert numbers("tools.policy", PROMISED) == PROMISED
