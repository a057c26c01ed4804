"""The numbers that this room promises. Tests of a limit go by its name, so a slip of one is seen here."""

from __future__ import annotations

from promised import numbers

PROMISED = {
    "after.MOST_FILES": 20,
    "after.MOST_BYTES": 5_000_000,
    "after.MOST_LINES": 40,
    "after.LINE": 300,
    "asking.MAX_PERMISSIONS": 20,
    "asking.MAX_QUESTIONS": 20,
    "changes.MAX_FILES": 100,
    "state.MAX_DEPTH": 10,
    "execution.KEPT": 16,
    "user_gates.LONGEST": 1_000,
    "user_gates.MOST_OUTPUT": 100_000,
    "user_gates.ALLOW": 0,
    "user_gates.DENY": 2,
    "state.CallState.effects_of_calls": 0,
}


def test_no_number_changes_by_accident() -> None:
    assert numbers("tools.door", PROMISED) == PROMISED
