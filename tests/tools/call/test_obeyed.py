"""Files that other programs obey: by the structure of their paths, and by a walk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sentences import CANNOT_BE_READ, HAS_MORE_THAN
from words import files

from quoth.tools.call import canonical
from quoth.tools.call.canonical import look, news, obeyed_parts, repository_made

OBEYED = (
    *(".envrc", ".vscode/tasks.json", ".github/workflows/x.yml", "sub/.idea/x", ".git", "a/.hidden/b/c"),
    *("mise.toml", "mise.local.toml", "MISE.toml", "shop.code-workspace", "sub/x.Code-Workspace", "..x"),
    *(".gitignore/x", ".prettierrc/x", ".gitignored", ".pre-commit-config.yaml", ".npmrc", ".prettierrc.js"),
)
ORDINARY = (
    *("a.py", "src/a.py", "a.b/c.d", ".gitignore", "sub/.gitattributes", ".editorconfig", ".dockerignore"),
    *("mise.toml/x", "miseXtoml", "code-workspace", "x.code-workspace/y", ".prettierrc", "mise.md"),
)


@pytest.mark.parametrize("path", OBEYED)
def test_a_part_with_a_dot_is_obeyed(path: str) -> None:
    assert obeyed_parts(path.split("/"))


@pytest.mark.parametrize("path", ORDINARY)
def test_what_is_data_is_not(path: str) -> None:
    assert not obeyed_parts(path.split("/"))


@pytest.mark.parametrize(
    "last", ["docs/HEAD", "docs/objects/x", "docs/refs/x", "docs/refs/heads/x", "docs/head"]
)
def test_the_last_part_of_a_repository_makes_it(tmp_path: Path, last: str) -> None:
    parts = ("docs/HEAD", "docs/objects/x", "docs/refs/y")
    others = [path for path in parts if path.split("/")[1].lower() != last.split("/")[1].lower()]
    for number, path in enumerate(others):
        assert not repository_made(tmp_path, path.split("/")), number
        files(tmp_path, {path: ""})
    assert repository_made(tmp_path, last.split("/")) == "docs"
    files(tmp_path, {last.replace("head", "HEAD"): ""})
    assert repository_made(tmp_path, ["docs", "config"]) == "docs"
    assert not repository_made(tmp_path, ["doc", "config"])
    assert repository_made(tmp_path / "docs", ["config"]) == "."


@pytest.mark.parametrize(("there", "last"), [("HEAD", "commondir"), ("commondir", "HEAD")])
def test_a_repository_may_have_its_data_in_another_folder(tmp_path: Path, there: str, last: str) -> None:
    files(tmp_path, {f"docs/{there}": ""})
    before = look(tmp_path)
    assert not before.repositories
    assert repository_made(tmp_path, ["docs", last]) == "docs"
    files(tmp_path, {f"docs/{last}": ""})
    assert news(before, look(tmp_path)) == "docs (a git repository)"


def test_the_walk_finds_repositories_and_what_is_new(tmp_path: Path) -> None:
    files(tmp_path, {
        "vendor/lib/.git/config": "", "lib/.git": "gitdir: ../x", "bare/HEAD": "", "bare/objects/x": "",
        "bare/refs/x": "", "a/.vscode/tasks.json": "", "a/b.py": "", ".pytest_cache/v": "", ".venv/x/y": "",
    })  # fmt: skip
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/.git").symlink_to("../bare")
    (tmp_path / "loop").symlink_to(".")
    before = look(tmp_path)
    assert sorted(map(before.shown, before.repositories)) == [
        "bare",
        "lib/.git",
        "linked/.git",
        "vendor/lib/.git",
    ]
    assert list(map(before.shown, before.links)) == ["linked/.git"]
    assert news(before, look(tmp_path)) == ""
    files(tmp_path, {
        "a/.vscode/tasks.json": "{}", "mise.toml": "", "a/b.py": "x", ".pytest_cache/v": "x",
        ".venv/x/y": "x", ".venv/x/z": "", "new/HEAD": "", "new/objects/x": "", "new/refs/x": "",
        "n\n/.git/config": "",
        ".gitignore": "x",
    })  # fmt: skip
    (tmp_path / "linked/.git").unlink()
    (tmp_path / "linked/.git").symlink_to("../a")
    assert news(before, look(tmp_path)) == (
        "n\\n/.git (a git repository), new (a git repository), .venv/, a/.vscode/tasks.json, linked/.git"
        " and 1 more"
    )


def test_a_folder_that_is_moved_brings_its_files(tmp_path: Path) -> None:
    files(tmp_path, {"a/b/.vscode/tasks.json": "", "a/b/c": ""})
    before = look(tmp_path)
    (tmp_path / "a").rename(tmp_path / "d")
    assert news(before, look(tmp_path)) == "d/b/.vscode/tasks.json"


def test_what_is_not_looked_at_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path, {f"{number}/x": "" for number in range(10)})
    monkeypatch.setattr(canonical, "MOST_NAMES", 12)
    assert look(tmp_path).missed == f"the workspace {HAS_MORE_THAN} 12 names"
    monkeypatch.undo()
    assert look(tmp_path).missed == ""
    files(tmp_path, {f"{number}/.git": "" for number in range(10)})
    monkeypatch.setattr(canonical, "MOST_REPOSITORIES", 9)
    assert look(tmp_path).missed == f"the workspace {HAS_MORE_THAN} 9 repositories"
    monkeypatch.setattr(canonical, "MOST_REPOSITORIES", 10)
    assert look(tmp_path).missed == ""
    monkeypatch.setattr(canonical, "MOST_NAMES", 30)  # ten folders, each with two files
    assert look(tmp_path).missed == ""
    monkeypatch.setattr(canonical, "MOST_NAMES", 29)
    assert look(tmp_path).missed == f"the workspace {HAS_MORE_THAN} 29 names"
    if os.getuid():
        (tmp_path / "1").chmod(0)
        monkeypatch.undo()
        assert look(tmp_path).missed == f"1 {CANNOT_BE_READ}"
        (tmp_path / "1").chmod(0o700)
