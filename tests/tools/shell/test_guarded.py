"""Which repositories a boundary cannot keep from being written, and what is hidden: each by its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_layouts import repository
from words import files

from quoth.tools.shell import view
from quoth.tools.shell.guarded import shown, unguarded, unread
from quoth.tools.shell.view import Access, around, idle, programs

GIT = {"HEAD": "ref: refs/heads/master", "config": "", "objects/x": "", "refs/heads/x": ""}


def bare(folder: Path) -> Path:
    return files(folder, dict(GIT))


def test_a_workspace_without_repositories_is_guarded(tmp_path: Path) -> None:
    assert unguarded(files(tmp_path, {"a/b.txt": "x"}), copies=False) == ""


def test_a_repository_is_guarded_where_it_can_be_copied(tmp_path: Path) -> None:
    place = repository(tmp_path)
    assert unguarded(place.shop, copies=True) == ""
    assert unguarded(place.shop, copies=False) == "Landlock cannot protect the repository .git"
    assert unguarded(place.shop, copies=False, boundary="Seatbelt").startswith("Seatbelt cannot")


@pytest.mark.parametrize("names", [["one"], ["one", "two"]])
def test_a_link_to_a_repository_is_named(tmp_path: Path, names: list[str]) -> None:
    beside, shop = bare(tmp_path / "beside"), tmp_path / "shop"
    for name in names:
        (shop / name).mkdir(parents=True)
        (shop / name / ".git").symlink_to(beside)
    said = unguarded(shop, copies=True)
    assert said in [f"{name}/.git is a link, which cannot be protected" for name in names]


def test_a_link_in_git_s_folder_counts_where_it_leads_into_the_workspace(tmp_path: Path) -> None:
    place = repository(tmp_path)
    (place.shop / ".git/outside").symlink_to(tmp_path)
    assert unguarded(place.shop, copies=True) == ""
    (place.shop / "notes").write_text("x")
    (place.shop / ".git/inside").symlink_to(place.shop / "notes")
    assert unguarded(place.shop, copies=True) == ".git/inside is a link, which cannot be protected"


def test_what_was_not_looked_at_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = files(tmp_path, {"a": "x", "b": "x", "c": "x"})
    monkeypatch.setattr("quoth.tools.call.canonical.MOST_NAMES", 1)
    assert unguarded(shop, copies=True).startswith(
        "not every repository in this workspace can be protected ("
    )


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("", ""),
        ("a", "a"),
        ("abc", "a, b, c"),
        ("abcd", "a, b, c and 1 more"),
        ("abcde", "a, b, c and 2 more"),
    ],
)
def test_places_are_named_up_to_three(tmp_path: Path, names: str, said: str) -> None:
    assert shown(tmp_path, [tmp_path / name for name in names]) == said


def test_files_are_looked_at_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = files(tmp_path, {"a": "", "in/b": "", ".git/c": ""})
    asked: list[str] = []

    def may_read(path: str) -> bool:
        asked.append(path)
        return True

    monkeypatch.setattr("quoth.tools.shell.guarded.MOST_NAMES", 2)  # in and a; git's own folder is none
    assert unread(shop, may_read) == []
    assert sorted(asked) == ["a", "in/b"]
    asked.clear()
    monkeypatch.setattr("quoth.tools.shell.guarded.MOST_NAMES", 1)
    assert unread(shop, may_read) == []
    assert asked == ["a"]


def test_a_folder_with_something_to_read_deep_in_it_is_no_hidden_place(tmp_path: Path) -> None:
    shop = files(tmp_path, {"in/a": "", "in/deep/b": "", "in/deep/c": "", "out/d": ""})
    hidden = unread(shop, lambda path: path == "in/deep/b")
    assert sorted(place.relative_to(shop).as_posix() for place in hidden) == ["in/a", "in/deep/c", "out"]


# What is seen


def test_secrets_are_places_that_are_there_and_hold_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path, {"key": "x", "full/key": "x"})
    (tmp_path / "empty").mkdir()
    names = [str(tmp_path / name) for name in ("key", "full", "empty", "missing")]
    monkeypatch.setattr(view, "SECRETS", names)
    view.secrets.cache_clear()
    try:
        mine = [place.name for place in view.secrets() if place.is_relative_to(tmp_path)]
    finally:
        view.secrets.cache_clear()
    assert mine == ["key", "full"]


def test_an_idle_place_needs_no_cover(tmp_path: Path) -> None:
    files(tmp_path, {"file": "", "full/file": ""})
    (tmp_path / "empty").mkdir()
    assert [idle(tmp_path / name) for name in ("file", "full", "empty", "missing")] == [
        False,
        False,
        True,
        True,
    ]


def test_the_nearest_known_place_around_one_counts() -> None:
    known = {Path("/a"): Access.WRITE, Path("/a/b"): Access.HIDDEN}
    assert around(Path("/a/b/c/d"), known) == Access.HIDDEN
    assert around(Path("/a/c"), known) == Access.WRITE
    assert around(Path("/a"), known) == Access.READ  # not itself
    assert sorted(Access) == [1, 2, 3, 4, 5]


def test_a_program_of_path_is_seen_with_the_folder_around_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in ("tool/bin", "shimmed/shims", "other/sbin", ".local/bin", ".cargo/bin", ".rustup", "bin"):
        (home / name).mkdir(parents=True)
    python = tmp_path / "python"
    python.mkdir()
    path = f"{home}/tool/bin:{home}/shimmed/shims:{home}/other/sbin:{home}/.local/bin:{home}/.cargo/bin"
    found = programs(f"{path}:{home}/bin:tool:{home}/missing", str(python), str(python), str(home))
    below = {place.relative_to(home).as_posix() for place in found if place.is_relative_to(home)}
    assert below == {
        *("tool", "tool/bin", "shimmed", "shimmed/shims", "other/sbin", ".local/bin", ".cargo/bin", "bin"),
        ".rustup",
    }
    assert python in found
