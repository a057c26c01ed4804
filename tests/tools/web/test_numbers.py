"""The numbers that this room promises. Tests of a limit go by its name, so a slip of one is seen here."""

from __future__ import annotations

from promised import numbers

PROMISED = {
    "fetch.MAX_REDIRECTS": 5,
    "page.MAX_TITLE": 200,
    "page.MAX_TEXT": 5_000_000,
    "page.MAX_BASE": 200,
    "request.MAX_BYTES": 5_000_000,
    "request.MAX_ADDRESSES": 4,
    "request.REDIRECTS": (301, 302, 303, 307, 308),
}


def test_no_number_changes_by_accident() -> None:
    assert numbers("tools.web", PROMISED) == PROMISED
