"""What is found: by anybody, by hand or by tool; the best first; and only what has changed is read again."""

from __future__ import annotations

import pytest
from shelf import ANN, BEN, Shelf

from quoth.tools.call.services import Services
from quoth.tools.knowledge import base as index_module


def test_the_best_is_first_and_a_title_counts_more(shelf: Shelf) -> None:
    shelf.note("Cats", "They sleep on panels.")
    shelf.note("Solar panels", "They fade.")
    shelf.note("Dogs", "They bark.")
    assert [one.title for one in shelf.found("What fades: a solar panel?")] == ["Solar panels"]
    assert [one.title for one in shelf.found("panels")] == ["Solar panels", "Cats"]
    assert [one.title for one in shelf.found("panels", 1)] == ["Solar panels"]


@pytest.mark.parametrize(
    "query", ["", "...", "what is it about?", "\0", "quantum", '" OR 1=1 --', "x" * 100_000]
)
def test_what_matches_nothing_finds_nothing(shelf: Shelf, query: str) -> None:
    shelf.claim("Solar panels fade.")
    assert shelf.found(query) == []


def test_one_word_of_a_long_message_is_no_match_but_in_a_title(shelf: Shelf) -> None:
    shelf.note("Otters", "They swim in the river.")
    assert shelf.found("who cycles along the river lane after work today") == []
    assert len(shelf.found("who cycles along with otters after work today")) == 1
    assert len(shelf.found("the river lane")) == 1


def test_a_hit_says_who_said_it_when_and_where(shelf: Shelf) -> None:
    shelf.learning("It was so.")
    shelf.learning("Tides are slow.", BEN)
    (hit,) = shelf.found("tide")
    assert (hit.kind, hit.title, hit.text) == ("learning", "Tides are slow.", "Tides are slow.")
    assert (hit.path, hit.line, hit.user, hit.at) == ("knowledge/learnings.org", 19, "ben", BEN.at)


def test_of_a_long_text_the_part_that_matches_is_given(shelf: Shelf) -> None:
    shelf.source("Long", "word " * 2000 + "the needle is here " + "more " * 2000)
    (hit,) = shelf.found("needles")
    assert "the needle is here" in hit.text
    assert (len(hit.text) <= 500, hit.text[0], hit.text[-1]) == (True, "…", "…")


def test_only_what_has_changed_is_read_again(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    for nth in range(3):
        shelf.source(f"Sun {nth}", f"light {nth}")
    assert len(shelf.found("light")) == 3
    read = []
    real = index_module.read_whole
    monkeypatch.setattr(
        index_module, "read_whole", lambda space, path: [read.append(path), real(space, path)][1]
    )
    shelf.found("light")
    assert read == []
    path = shelf.files()[0]
    shelf.write(path, shelf.read(path) + "* Moon\nmy own light\n")
    (shelf.root / shelf.files()[1]).unlink()
    assert sorted(one.title for one in shelf.found("light")) == ["Moon", "Sun 0", "Sun 2"]
    assert read == [path]


def test_words_that_become_those_of_tasks_are_read_anew(shelf: Shelf) -> None:
    shelf.write("knowledge/a.org", "* NEXT light\n")
    assert [one.title for one in shelf.found("light")] == ["NEXT light"]
    shelf.write("knowledge/a.org", "#+TODO: NEXT | GONE\n* NEXT light\n")
    assert [one.title for one in shelf.found("light")] == ["light"]


def test_what_is_no_file_of_ours_is_left_out(shelf: Shelf) -> None:
    shelf.claim("light")
    for path in (".hidden.org", ".git/x.org", "x.txt", "#x.org#", "x.org~"):
        shelf.write(f"knowledge/{path}", "* light\n")
    assert [one.path for one in shelf.found("light")] == ["knowledge/claims.org"]


def test_it_is_the_knowledge_base_that_tools_are_given(shelf: Shelf) -> None:
    assert Services(knowledge_base=shelf.base).knowledge_base is shelf.base
    assert shelf.found("anything") == []
    assert shelf.claim("It is so.", ANN).created
