"""``quoth knowledge``: a person looks at what was filed, and has it forgotten."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from sentences import NOTHING_IS_CHANGED_IN_THIS, SAY_SO_WITH_YES
from shelf import BEN, Shelf
from words import Said, quoth


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    shelf = Shelf(tmp_path)
    shelf.claim("Panels fade.")
    shelf.claim("Panels fade.", BEN)
    shelf.learning("The sun\u202e is warm.", BEN)
    shelf.write("knowledge/mine.org", "* Tides\nslow\n* Wind\n* wind\n")
    return shelf


def knowledge(shelf: Shelf, *words: str) -> Said:
    return quoth("knowledge", *words, cwd=shelf.root)


def test_it_lists_what_was_filed(shelf: Shelf) -> None:
    assert re.sub(" {2,}", "  ", knowledge(shelf, "list").out) == (
        "panels-fade-b2366582  claim  2026-11-23 09:00 UTC  ann and 1 more  Panels fade.\n"
        "the-sun-is-warm-e8e2936e  learning  2026-11-24 09:00 UTC  ben  The sun\\u202e is warm.\n"
        "Tides  note  Tides\nWind  note  Wind\nwind  note  wind\n"
    )
    listed = json.loads(knowledge(shelf, "list", "--kind", "claim", "--json").out)
    assert [(one["name"], one["path"], one["line"]) for one in listed] == [
        ("panels-fade-b2366582", "knowledge/claims.org", 3)
    ]
    assert [one["user"] for one in listed[0]["origins"]] == ["ann", "ben"]


def test_it_shows_an_entry(shelf: Shelf) -> None:
    for name in ("panels-fade-b2366582", "panels fade.", "knowledge/claims.org:3"):
        said = knowledge(shelf, "show", name)
        assert said.out == "Panels fade.\n"
    assert said.err == (
        "quoth: panels-fade-b2366582: claim, knowledge/claims.org:3\n"
        "quoth: user ann, at 2026-11-23T09:00:00+00:00, chat 7, session s1, call c1\n"
        "quoth: user ben, at 2026-11-24T09:00:00+00:00, chat 8, session s2, call c2\n"
    )
    assert json.loads(knowledge(shelf, "show", "Tides", "--json").out)["text"] == "slow"


def test_it_forgets_and_keeps_the_rest(shelf: Shelf) -> None:
    asked = knowledge(shelf, "forget", "Tides")
    assert (asked.code, asked.err) == (2, f"quoth: Forget Tides? {SAY_SO_WITH_YES}.\n")
    said = knowledge(shelf, "forget", "Tides", "panels-fade-b2366582", "--yes")
    assert (said.code, said.out) == (
        0,
        "Removed Tides from knowledge/mine.org.\nRemoved panels-fade-b2366582 from knowledge/claims.org.\n",
    )
    assert said.err == "quoth: Earlier conversations and backups of the files may still contain it.\n"
    assert shelf.read("knowledge/mine.org") == "* Wind\n* wind\n"
    assert shelf.read("knowledge/claims.org") == "#+TITLE: Claims\n\n"


MISTAKES = [
    (["show", "Tidse"], "Unknown entry Tidse. Did you mean Tides?"),
    (["show", "xyz"], "Unknown entry xyz. To list them: quoth knowledge list"),
    (["forget", "Tides", "xyz", "--yes"], "Unknown entry xyz. To list them: quoth knowledge list"),
    (
        ["show", "WIND"],
        "2 entries have the title WIND. Give the place of one: knowledge/mine.org:3, knowledge/mine.org:4",
    ),
    (
        ["list", "--kind", "clam"],
        "Unknown kind clam; use source, claim, learning or note.",
    ),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES)
def test_a_mistake_is_one_sentence(shelf: Shelf, words: list[str], said: str) -> None:
    told = knowledge(shelf, *words)
    assert (told.code, told.out, told.err) == (2, "", f"quoth: {said}\n")
    assert "Tides" in shelf.read("knowledge/mine.org")


def test_where_nothing_was_filed(tmp_path: Path) -> None:
    said = quoth("knowledge", "list", cwd=tmp_path)
    assert (said.code, said.out, said.err) == (0, "", "quoth: There are no entries yet.\n")
    assert quoth("knowledge", "show", "x", cwd=tmp_path).err == (
        "quoth: Unknown entry x. There are no entries yet.\n"
    )
    assert not [*tmp_path.iterdir()]


def test_a_file_that_cannot_be_read_is_told_beside_the_rest(shelf: Shelf) -> None:
    shelf.write("knowledge/bad.org", "* a\n#+begin_src\n")
    said = knowledge(shelf, "list")
    assert (said.code, said.out.count("\n")) == (1, 5)
    assert said.err == (
        f"quoth: knowledge/bad.org:2: #+begin_src has no #+end_src below it. {NOTHING_IS_CHANGED_IN_THIS}.\n"
    )
