"""The numbers that this room promises. Tests of a limit go by its name, so a slip of one is seen here."""

from __future__ import annotations

from promised import numbers

PROMISED = {
    "arguments.LOOKED_UP": 100,
    "arguments.NAMED": 3,
    "arguments.VALUE_CHARS": 60,
    "arguments.WORDS_CHARS": 120,
    "index.MAX_TEXT": 8_000_000,
    "index.MAX_FIELDS": 100_000,
    "index.MAX_BARRED": 100_000,
    "index.LONGEST_FIELD": 120,
    "index._JOINED": 8,
    "index._PIECE": 3,
    "index._SEARCHED": 1_000_000_000,
    "spelling._PLAIN_DIGITS": 40,
    "words.MAX_CHARS": 1_000_000,
    "words._GROUPS": 40,
    "words._NEAR": 2_000,
    "words._SEARCHED": 5_000,
    "words._TRIED": 200,
}


def test_no_number_changes_by_accident() -> None:
    assert numbers("tools.origin", PROMISED) == PROMISED
