"""quoth new: what it begins passes its own check at once, and nothing is overwritten."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from pages import SHOP
from sentences import THERE_IS_A_FILE
from words import quoth

CHECKED = {
    "tool": ("word-count.hy", "word-count.hy: 2 examples of 1 tool: 2 ok.\n"),
    "plan": ("word-count.org", "word-count.org: 3 steps, no faults.\n"),
    "policy": ("word-count.hy", "word-count.hy: 4 rules, 1 limit; no findings.\n"),
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
    assert (said.code, said.err) == (2, f"quoth: {THERE_IS_A_FILE} mine.hy already.\n")
    assert (tmp_path / "mine.hy").read_text() == "mine"


def test_the_examples_are_written_as_a_project_of_their_own(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert (
        quoth("new", "example", cwd=tmp_path).out
        == "Wrote shop, with the files that the examples of README name.\n"
    )
    shop = tmp_path / "shop"
    assert contents(shop) == contents(SHOP)
    assert quoth("call", '(read-file :path "monday.txt")', cwd=shop).out == "apples 12\npears 30\n"
    again = quoth("new", "example", cwd=tmp_path)
    assert (again.code, again.err) == (
        2,
        "quoth: shop exists already. Name another: quoth new example NAME\n",
    )
    assert quoth("new", "example", "market", cwd=tmp_path).code == 0
    assert contents(tmp_path / "market") == contents(SHOP)
    assert {one.name for one in tmp_path.iterdir()} == {".git", "shop", "market"}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}
