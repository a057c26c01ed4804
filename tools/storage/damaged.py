"""Reads rows with a text that is not UTF-8 because a byte of the file was damaged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import apsw

_TABLE = re.compile(r"\bFROM\s+(\w+)")
NOT_UTF8 = "a text in its table {} is not UTF-8, so a byte of the file is damaged"


def why_undecodable(sql: str) -> str:
    """Why a statement failed that read such a text."""
    return NOT_UTF8.format(_table_in(sql))


def readable_rows(
    db: apsw.Connection, sql: str, values: Sequence[Any]
) -> tuple[list[tuple[Any, ...]], list[str]]:
    """The rows of a SELECT, with U+FFFD instead of each bad byte; and for each damaged text its table, its
    column, and the first value of its row."""
    cursor = db.execute(sql, values)
    names = [f"{one[3] or _table_in(sql)}.{one[4] or one[0]}" for one in cursor.description_full]
    cursor.close()
    columns = [f"c{place}" for place in range(len(names))]
    texts = ", ".join(
        f"typeof({one}) = 'text', iif(typeof({one}) = 'text', CAST({one} AS BLOB), {one})" for one in columns
    )
    wrapped = f"WITH t({', '.join(columns)}) AS ({sql}) SELECT {texts} FROM t"  # noqa: S608
    rows: list[tuple[Any, ...]] = []
    damaged: list[str] = []
    for found in db.execute(wrapped, values):
        row: list[Any] = []
        for name, is_text, value in zip(names, found[::2], found[1::2], strict=True):
            if is_text:
                text = value.decode("utf-8", "replace")
                if text.encode() != value:
                    damaged.append(f"{name} of {_name_of(row) or text}")
                value = text
            row.append(value)
        rows.append(tuple(row))
    return rows, damaged


def _name_of(row: Sequence[Any]) -> str:
    """A name for a row: its first value, followed by its number if it has one, as events do."""
    return ".".join(str(one) for one in row[: 1 + (len(row) > 1 and isinstance(row[1], int))])


def _table_in(sql: str) -> str:
    found = _TABLE.search(sql)
    return found[1] if found else "?"
