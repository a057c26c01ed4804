"""The numbers that this room promises. Tests of a limit go by its name, so a slip of one is seen here."""

from __future__ import annotations

from promised import numbers

PROMISED = {
    "stored.SHOWN": 200,
    "stored.BEFORE": 20,
    "checks.MAX_LIMIT": 10_000_000,
    "checks.MAX_LABEL": 100,
    "checks.LISTED": 20,
    "checks.COMPARED": 1_000,
    "checks.LIMITS": {"core": 5_000, "working": 20_000, "archival": 100_000},
    "org_tasks.TITLE_CHARS": 300,
    "org_tasks.LISTED": 20,
    "passages.LONGEST": 1_000,
    "passages.AROUND": 2,
    "postgres_server.OLDEST": 130_000,
    "postgres_server.CONNECT_SECONDS": 5,
    "postgres_server.STATEMENT_SECONDS": 10,
    "postgres_server.ATTEMPTS": 6,
    "postgres_server.MIGRATING": 487_301_543_016,
    "search.MOST_CHARS": 10_000,
    "search.MOST_WORDS": 32,
    "search.LONGEST_WORD": 100,
    "search.POOL": 100,
    "transfer.MOST": 1_000_000_000,
}


def test_no_number_changes_by_accident() -> None:
    assert numbers("tools.memory", PROMISED) == PROMISED
