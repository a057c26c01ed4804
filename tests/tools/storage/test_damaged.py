"""A damaged byte in a text of the store is a sentence, and lists show the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sentences import COULD_NOT_BE_USED
from words import complaint

from quoth.tools.errors import StoreError
from quoth.tools.storage.database import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "s.sqlite")
    opened.execute("CREATE TABLE lines (name TEXT, place INTEGER, text TEXT, raw BLOB) STRICT")
    for place in (3, 1, 2):
        opened.execute("INSERT INTO lines VALUES (?, ?, ?, x'ff')", (f"n{place}", place, f"line {place}"))
    opened.execute("UPDATE lines SET text = CAST(x'61ff62' AS TEXT) WHERE place = 2")
    yield opened
    opened.close()


ALL = "SELECT name, place, text, raw FROM lines WHERE place < ? ORDER BY place LIMIT 10"


def test_a_text_that_is_not_utf_8_is_a_sentence(store: Store) -> None:
    why = "a text in its table lines is not UTF-8, so a byte of the file is damaged"
    said = f"The store {store.path} {COULD_NOT_BE_USED}: {why}."
    assert complaint(StoreError, lambda: store.execute(ALL, (9,))) == said

    def within() -> None:
        with store.transaction() as run:
            run(ALL, (9,))

    assert complaint(StoreError, within) == said
    store.lenient = True  # what is written is never made of what is damaged
    assert complaint(StoreError, within) == said


def test_a_list_shows_the_rest_and_names_the_row(store: Store) -> None:
    store.lenient = True
    rows = store.execute(ALL, (9,))
    assert rows == [
        ("n1", 1, "line 1", b"\xff"), ("n2", 2, "a\ufffdb", b"\xff"), ("n3", 3, "line 3", b"\xff")
    ]  # fmt: skip
    assert list(store.damaged) == ["lines.text of n2.2"]
    assert store.execute("WITH l AS (SELECT text FROM lines) SELECT max(text) FROM l") == [("line 3",)]
    assert store.execute("SELECT text || '!' FROM lines WHERE place = 2") == [("a\ufffdb!",)]


def test_every_error_of_sqlite_is_a_sentence(store: Store) -> None:
    said = complaint(StoreError, lambda: store.execute("SELECT * FROM nowhere"))
    assert said == f"The store {store.path} {COULD_NOT_BE_USED}: SQLite reports: no such table: nowhere."
    said = complaint(StoreError, lambda: store.execute("INSERT INTO lines VALUES ('a', 'b', 'c', 'd')"))
    assert said.startswith(
        f"The store {store.path} {COULD_NOT_BE_USED}: SQLite reports: cannot store TEXT value"
    )
