"""The numbers that this room promises. Tests of a limit go by its name, so a slip of one is seen here."""

from __future__ import annotations

from promised import numbers

PROMISED = {
    "compiler.MAX_WORK": 30_000,
    "compiler.PROGRAM_LIMITS.max_chars": 100_000,
    "compiler.PROGRAM_LIMITS.max_depth": 60,
    "compiler.PROGRAM_LIMITS.max_forms": 10_000,
    "compiler.PROGRAM_LIMITS.max_digits": 1_000,
    "hint.MAX_LESSON": 200,
    "hint.MAX_FIXED": 110,
    "hint.MAX_PYTHON": 2_000,
    "hint.LIMITS.max_depth": 60,
    "hint.LIMITS.max_forms": 1_000,
    "idioms.MAX_STEPS": 60,
}


def test_no_number_changes_by_accident() -> None:
    assert numbers("tools.program", PROMISED) == PROMISED
