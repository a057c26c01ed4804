"""The numbers that this room promises. Tests of a limit go by its name, so a slip of one is seen here."""

from __future__ import annotations

from promised import numbers

from quoth.tools.history.event import USUAL

PROMISED = {
    "checkpoints.FORMAT": 1,
    "event.LONGEST_KEPT": 20_000,
    "event.LIMITS.max_chars": 200_000_000,
    "event.LIMITS.max_forms": 20_000_000,
    "event.LIMITS.max_digits": 20_000,
    "long_results.ID_CHARS": 8,
    "long_results.KEPT_SECONDS": 2_592_000.0,
    "receipts.KEPT_SECONDS": 2_592_000.0,
    "transcript.SECRETS_KEPT": 1_000,
    "transfer.FORMAT": 1,
    "transfer.SHOWN_CHARS": 40,
    "versions.KEPT_BYTES": 200_000_000,
    "receipts._Open.seq": 0,
    "receipts._Open.undone": 0,
}


def test_no_number_changes_by_accident() -> None:
    assert numbers("tools.history", PROMISED) == PROMISED


def test_a_word_that_a_stored_result_lacks_means_the_same_for_ever() -> None:
    assert {name: usual for name, usual in USUAL.items() if usual not in ("", None, [], {})} == {
        "stage": "body",
        "route": "reply",
        "depth": 0,
        "round": 0,
        "place": 0,
    }
