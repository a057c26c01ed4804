"""A file's name in a sentence or a list is one line: a line feed in it begins no line of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from commands import quoth

NAME, SHOWN = "in\nFORGED line.txt", "in\\nFORGED line.txt"
SKILL = "---\nname: {name}\ndescription: A guide.\n---\nRead it."
ALLOWED = "(allow (shell :argv _))"
REPLIES = """(read-file :path "in\\nFORGED line.txt")
---
(edit-file :path "in\\nFORGED line.txt" :old "plum" :new "pear")
---
(write-file :path "new\\nFORGED/.envrc" :content "x")
---
Done."""


@pytest.fixture
def here(tmp_path: Path, state: Path) -> Path:
    """A workspace in which each kind of file has such a name."""
    home = tmp_path / "w"
    home.mkdir()
    (home / NAME).write_text("plum\nmore\n")
    (home / "other\nFORGED").mkdir()
    (home / "other\nFORGED" / "plum.txt").write_text("plum\n")
    (home / "other\nFORGED" / "AGENTS.md").write_text("Notes.\n")
    for number in range(3):
        (home / f"{number}.txt").write_text("fig\n")
    for name in ("good", "bad\nFORGED"):
        folder = home / ".quoth" / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL.format(name="good"))
        (folder / NAME).write_text("x")
    (home / "allowed.hy").write_text(ALLOWED)
    (home / "replies.txt").write_text(REPLIES)
    for words in (["init", "-q"], ["add", NAME]):
        subprocess.run(["git", *words], cwd=home, check=True)
    return home


def lines(here: Path, *words: str, shown: str = SHOWN) -> None:
    """The command shows the name, and no line of what it prints begins inside of it."""
    said = quoth(*words, cwd=here)
    told = f"{said.out}{said.err}"
    assert shown in told
    assert not [line for line in told.splitlines() if line.lstrip().startswith("FORGED")]


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("(list-files)", f'"{SHOWN}"'),
        ('(list-files :path "other\\nFORGED")', "other\\nFORGED/plum.txt"),
        ('(list-files :pattern "forged*.zzz")', SHOWN),
        ('(grep-search :pattern "plum")', SHOWN),
        ('(grep-search :pattern "PLUM")', SHOWN),
        ('(read-file :path "plum.txt")', "other\\nFORGED/plum.txt"),
        ('(read-file :path "in\\nFORGED lime.txt")', SHOWN),
        ('(skill :name "good")', SHOWN),
        ('(skill :name "good" :file "none")', SHOWN),
        ('(sources :operation "read" :name "s")', f"s/{SHOWN}"),
        ('(shell :argv ["sh" "-c" "mkdir \'n\nFORGED\'; echo > \'n\nFORGED/.envrc\'"])', "n\\nFORGED/.envrc"),
        ('(shell :argv ["sh" "-c" "echo > \'.git/a\nFORGED\'"])', ".git/a\\nFORGED"),
    ],
)
def test_a_call_shows_a_name_on_one_line(form: str, shown: str, here: Path) -> None:
    quoth("trust", "--yes", cwd=here)
    lines(here, "call", form, "--policy", "allowed.hy", "--source", "s=.", shown=shown)


def test_a_person_sees_a_name_on_one_line_wherever_it_is_asked_told_and_put_back(here: Path) -> None:
    lines(here, "trust", shown="other\\nFORGED/AGENTS.md")
    lines(here, "trust", "--yes", shown="bad\\nFORGED")
    run = ("run", "Do it.", "--model", "scripted:replies.txt", "--session", "s1")
    lines(here, *run, "--no-input", shown='"in… 18 characters"')
    lines(here, "pending")
    quoth("rm", "s1", "--yes", cwd=here)
    lines(here, *run, "--yes")
    for words in (["undo", "s1", "--dry-run"], ["undo", "s1", "--yes"], ["log", "s1"], ["audit"]):
        lines(here, *words)
