"""Searching a folder of files by words: what is found, in which order, and what is never looked at."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sentences import THE_QUERY_CONTAINS_NO_WORD
from words import complaint, files

from quoth import Agent, HostServices
from quoth.tools.call.service_types import WebHit
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.knowledge import web_search
from quoth.tools.knowledge.base import FileKnowledge
from quoth.tools.knowledge.web_search import open_web_search

SOLAR = "#+title: Solar cells\nThe cells are of silicon.\n\nDamp air harms solar cells.\nNothing here.\n"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Notes in a workspace, with a secret beside them."""
    files(
        tmp_path,
        {
            "work/notes/solar.org": SOLAR,
            "work/notes/deep/wind.md": "# Wind\n\nThe wind and the sun, and solar power.\n",
            "work/notes/plain.txt": "The plain.\n",
            "work/notes/picture.png": b"\x89PNG\0 solar",
            "work/notes/latin.txt": "für solar".encode("latin-1"),
            "work/notes/.git/config": "solar",
            "work/notes/.env": "solar key",
            "secret.txt": "solar secret",
        },
    )
    folder = tmp_path / "work/notes"
    (folder / "out.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "away").symlink_to(tmp_path)
    return folder


def found(notes: Path, query: str, limit: int = 10) -> list[WebHit]:
    return list(asyncio.run(open_web_search("notes", root=notes.parent).find(query, limit)))


def addresses(notes: Path, query: str, limit: int = 10) -> list[str]:
    return [hit.address for hit in found(notes, query, limit)]


def test_a_file_is_found_with_its_title_and_best_lines(notes: Path) -> None:
    assert found(notes, "solar CELLS")[0] == WebHit(
        "Solar cells", "notes/solar.org", "The cells are of silicon. … Damp air harms solar cells."
    )


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("silicon", ["notes/solar.org"]),
        ("the wind", ["notes/deep/wind.md", "notes/solar.org", "notes/plain.txt"]),  # the rarer word first
        ("solar", ["notes/solar.org", "notes/latin.txt", "notes/deep/wind.md"]),
        ("plain", ["notes/plain.txt"]),
        ("für", []),  # that file is no UTF-8
        ("zebra", []),
    ],
)
def test_the_best_match_stands_first(notes: Path, query: str, wanted: list[str]) -> None:
    got = addresses(notes, query)
    assert (got[:1], sorted(got)) == (wanted[:1], sorted(wanted))


def test_it_gives_no_more_than_was_asked_for(notes: Path) -> None:
    assert addresses(notes, "solar", 1) == ["notes/solar.org"]


def test_a_file_without_a_title_is_called_by_its_name(notes: Path) -> None:
    assert [hit.title for hit in found(notes, "plain wind")] == ["Wind", "plain.txt"]


def test_a_folder_outside_of_the_workspace_has_absolute_addresses(notes: Path, tmp_path: Path) -> None:
    away = open_web_search(str(notes), root=tmp_path / "other")
    (hit,) = asyncio.run(away.find("silicon"))
    assert (away.name, hit.address) == (str(notes), f"{notes}/solar.org")


def test_the_rules_of_the_workspace_are_kept(notes: Path) -> None:
    work = files(notes.parent, {"rules.hy": '(deny (read-file :path (matches "solar")))'})
    search = open_web_search("notes", root=work)
    services = HostServices(knowledge_base=FileKnowledge(Workspace(work)), web_search=search)
    with Agent(workspace=work, policy=work / "rules.hy", services=services, consent="yes") as agent:
        hits = agent.call('(research "solar")').value
    assert [hit["address"] for hit in hits] == ["notes/latin.txt", "notes/deep/wind.md"]


def test_what_belongs_to_quoth_itself_is_not_read(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTH_STATE", str(notes / "deep"))
    assert addresses(notes, "wind") == []


def test_words_of_a_stranger_are_cleaned(notes: Path) -> None:
    files(notes, {"bad.org": "#+title: A\x1b[2J\u202e title\nzebra " + "x" * 500})
    (hit,) = found(notes, "zebra")
    assert (hit.title, len(hit.text)) == ("A[2J title", 163)


def test_a_file_whose_name_is_no_line_is_left_out(notes: Path) -> None:
    files(notes, {"a\n[approved].txt": "zebra", "b.txt": "zebra"})
    assert addresses(notes, "zebra") == ["notes/b.txt"]


@pytest.mark.parametrize("bound", ["MAX_FILES", "SECONDS"])
def test_too_large_a_folder_is_told(notes: Path, bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_search, bound, 0)
    said = complaint(ToolError, lambda: found(notes, "solar"))
    assert said == "The folder notes is too large to search. Give a smaller one."


@pytest.mark.parametrize("where", ["gone", "work/notes/solar.org", "http:/a.example", "a\0b"])
def test_what_is_no_folder_is_told(notes: Path, tmp_path: Path, where: str) -> None:
    said = complaint(UsageError, lambda: open_web_search(where, root=tmp_path))
    assert said == f"--search is not a folder: {where}. The address of a server must begin with http://."


def test_a_mistyped_address_is_not_told_with_its_password(tmp_path: Path) -> None:
    said = complaint(UsageError, lambda: open_web_search("http:/ann:key@a.example", root=tmp_path))
    assert said == "--search is not a folder. The address of a server must begin with http://."


def test_a_query_without_a_word(notes: Path) -> None:
    said = complaint(ToolError, lambda: found(notes, "?!"))
    assert said == f"{THE_QUERY_CONTAINS_NO_WORD}."
