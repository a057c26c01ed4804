"""The audit trail: one row for every call that came to the door, whatever became of it.

Knows nothing of models or loops. A row holds the digest of the form, never its arguments, so no secret is in
it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tools.store import Store

COLUMNS = (
    "id",
    "ts",
    "session",
    "user",
    "route",
    "parent",
    "depth",
    "round",
    "place",
    "tool",
    "digest",
    "status",
    "stage",
    "duration_ms",
    "side_effects",
)


class Audit(Protocol):
    """Takes one row a call. What ``write`` returns from is on disk."""

    def write(self, row: Mapping[str, Any]) -> None: ...

    def rows(self) -> list[dict[str, Any]]: ...


class MemoryAudit:
    """Rows in a list, for private tables and tests."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []

    def write(self, row: Mapping[str, Any]) -> None:
        self._rows.append(dict(row))

    def rows(self) -> list[dict[str, Any]]:
        return list(self._rows)


class StoreAudit:
    """Rows in the store. ``store`` is opened at the first row, so that a command that calls nothing opens
    none."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    def write(self, row: Mapping[str, Any]) -> None:
        values = [row[column] for column in COLUMNS[:-1]] + [json.dumps(list(row["side_effects"]))]
        marks = ", ".join("?" * len(COLUMNS))
        self._store().execute(f"INSERT INTO audit ({', '.join(COLUMNS)}) VALUES ({marks})", values)  # noqa: S608

    def rows(self) -> list[dict[str, Any]]:
        found = self._store().execute(f"SELECT {', '.join(COLUMNS)} FROM audit ORDER BY seq")  # noqa: S608
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in found]
        for row in rows:
            row["side_effects"] = json.loads(row["side_effects"])
        return rows
