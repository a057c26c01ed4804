"""The numbers that this room promises. Tests of a limit go by its name, so a slip of one is seen here."""

from __future__ import annotations

from promised import numbers

PROMISED = {
    "forms.MAX_ERRORS": 10,
    "forms.MAX_CALLS": 200,
    "forms.MAX_FORMS": 20_000,
    "forms.MAX_EFFORT": 2_000_000,
    "forms.CALL_LIMITS.max_chars": 6_000_000,
    "forms.CALL_LIMITS.max_depth": 100,
    "forms.CALL_LIMITS.max_forms": 100_000,
    "json_calls.MOST_ENCODED": 3,
    "literals.MAX_DEPTH": 100,
    "literals.MAX_VALUES": 100_000,
    "literals.MAX_DIGITS": 1_000,
    "prose._NEAR": 400,
    "repair.MAX_PIECES": 200_000,
    "reply.MAX_REPLY": 8_000_000,
    "reply.MAX_TRIES": 8,
    "scanner.CONTEXT": 400,
    "tag_lines.MAX_PASSED": 100,
    "tag_lines.SHOWN": 300,
    "json_calls.SHOWN": 80,
    "json_calls.MOST": 1_000_000_000_000_000_000,
    "json_calls.EXACT": 9_007_199_254_740_992,
}


def test_no_number_changes_by_accident() -> None:
    assert numbers("neuro.reading", PROMISED) == PROMISED
