"""Sentences are plain: the product's texts have none of the patterns of tests/vocabulary/plain.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from plain import ALLOWED, MOST_ALLOWED, all_places, places_in


def test_no_sentence_has_a_pattern_that_is_read_twice() -> None:
    """An exception that is no longer needed fails too."""
    found = [*all_places()]
    assert [one for one in found if (one.file, one.words) not in ALLOWED] == []
    assert {(one.file, one.words) for one in found} == set(ALLOWED)
    assert len([one for one in found if (one.file, one.words) in ALLOWED]) <= MOST_ALLOWED


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.py", 'x = "The path is no key."\n', ["is no k"]),
        ("a.py", "# It stands in\n# a file, and goes\n# on.\n", ["stands", "goes on"]),
        ("a.py", 'told = stands(1)\nx = f"{told} it"\n', []),
        ("a.py", '"""There is no longer a way, and no one is =told= so."""\n', []),
        ("a.hy", '; what was approved\n(f "so many turns")\n', ["what was approved", "so many"]),
        ("a.org", "It tells.\n#+begin_src hy\n; told\n#+end_src\nNobody\n", ["tells", "Nobody"]),
        ("a.org", 'The user =nobody= and "nobody" may.\n', []),
    ],
)
def test_patterns_are_found_in_texts(tmp_path: Path, name: str, text: str, words: list[str]) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert [one.words for one in places_in(path, name)] == words


def test_a_place_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text('"""One.\n\nIt goes\non, and stands there.\n"""\n')
    assert [one.line for one in places_in(path, "a.py")] == [3, 4]
