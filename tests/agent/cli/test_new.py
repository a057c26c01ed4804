"""quoth new: what it begins passes its own check at once, and nothing is overwritten."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from words import quoth

CHECKED = {
    "tool": ("word-count.hy", "word-count.hy: 2 examples of 1 tool: 2 ok.\n"),
    "plan": ("word-count.org", "word-count.org: 3 steps, nothing is wrong.\n"),
    "policy": ("word-count.hy", "word-count.hy: 4 rules, 1 limit; nothing to complain of.\n"),
    "bridge": ("word-count.py", "It works.\n"),
}


@pytest.mark.parametrize("kind", CHECKED)
def test_a_beginning_passes_its_own_check(kind: str, tmp_path: Path) -> None:
    file, proof = CHECKED[kind]
    said = quoth("new", kind, "word-count", cwd=tmp_path)
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(f"Wrote {file}. To check it: ")
    assert "my-name" not in (tmp_path / file).read_text()
    check = shlex.split(said.out.partition("To check it: ")[2].partition(". To use it: ")[0])
    words = check[1:]  # behind quoth, or python
    checked = quoth(*words, cwd=tmp_path, env={"PATH": str(Path(sys.executable).parent)})
    assert (checked.code, checked.err) == (0, "")
    assert checked.out.endswith(proof)


def test_a_plan_that_was_begun_flies(tmp_path: Path) -> None:
    (tmp_path / "replies.txt").write_text("This folder has a plan in it.")
    quoth("new", "plan", "look", cwd=tmp_path)
    flown = quoth("fly", "look.org", "--model", "scripted:replies.txt", cwd=tmp_path)
    assert flown.code == 0
    assert "DONE    say: This folder has a plan in it.\n" in flown.out


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "mine.hy").write_text("mine")
    said = quoth("new", "tool", "mine", cwd=tmp_path)
    assert (said.code, said.err) == (2, "quoth: There is a file mine.hy already.\n")
    assert (tmp_path / "mine.hy").read_text() == "mine"
