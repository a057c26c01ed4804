"""quoth tools test FILE: the examples are made in a copy of the folder, and what is not made is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from words import files, quoth

HEAD = '"Tools."\n(require quoth [def-cognitive-tool])\n'
WRITER = """
(def-cognitive-tool note
  "Write a note."
  :parameters [text {:type str :doc "What"}]
  EFFECTS
  :examples [(note :text "a")]
  :body (do (with [file (open PATH "w")] (.write file text)) "noted"))
"""


def writer(effects: str, path: str = '"out.txt"') -> str:
    return HEAD + WRITER.replace("EFFECTS", effects).replace("PATH", path)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return files(tmp_path / "home", {"stock.txt": "pears 30\n"})


def test_what_an_example_writes_is_in_the_copy(here: Path) -> None:
    (here / "t.hy").write_text(writer(":effects [:writes]"))
    said = quoth("tools", "test", "t.hy", cwd=here)
    assert (said.code, said.err) == (0, "")
    assert said.out == (
        'ok       (note :text "a")\n         noted; it wrote out.txt in the copy\n'
        "t.hy: 1 example of 1 tool: 1 ok.\n"
    )
    assert sorted(file.name for file in here.iterdir()) == ["stock.txt", "t.hy"]


FAILS = [
    (writer(""), "it wrote out.txt, but its :effects do not include :writes"),
    (
        HEAD + '(def-cognitive-tool half "Halve." :parameters [n {:type int :doc "n"}]'
        " :examples [(half :n 0)] :body (/ 1 n))",
        "error: half failed: ZeroDivisionError",
    ),
    (
        HEAD + '(def-cognitive-tool shut "No." :guard False :examples [(shut)] :body 1)',
        "shut was denied",
    ),
]


@pytest.mark.parametrize(("text", "why"), FAILS)
def test_an_example_that_fails_fails_the_command(text: str, why: str, here: Path) -> None:
    (here / "t.hy").write_text(text)
    said = quoth("tools", "test", "t.hy", "--json", cwd=here)
    assert said.code == 1
    (one,) = json.loads(said.out)
    assert (one["word"], one["text"][: len(why)]) == ("failed", why)


def test_what_a_copy_does_not_hold_back_is_made_with_yes_alone(here: Path) -> None:
    (here / "t.hy").write_text(
        '"Tools."\n(require quoth [def-shell-tool])\n'
        '(def-shell-tool today "Say the day." :examples [(today)] :argv ["echo" "Monday"])'
    )
    said = quoth("tools", "test", "t.hy", cwd=here)
    assert said.code == 0
    assert said.out == (
        "not run  (today)\n         its effects :runs reach outside the copy; add --yes to run it\nt.hy: 1 "
        "example of 1 tool: 1 not run.\n"
    )
    said = quoth("tools", "test", "t.hy", "--yes", cwd=here)
    assert said.out.startswith("ok       (today)\n         Monday\n")


def test_no_link_leads_out_of_the_copy(here: Path) -> None:
    for name, target in (
        ("out.txt", here / "stock.txt"),
        ("beyond", here.parent),
        ("near", Path("stock.txt")),
    ):
        (here / name).symlink_to(target)
    (here / "t.hy").write_text(writer(":effects [:writes]"))
    said = quoth("tools", "test", "t.hy", cwd=here)
    assert "noted; it wrote out.txt in the copy" in said.out
    assert (said.code, (here / "stock.txt").read_text()) == (0, "pears 30\n")


def test_a_tool_that_writes_into_the_real_folder_is_told_of(here: Path) -> None:
    (here / "t.hy").write_text(writer(":effects [:writes]", f'"{here}/stock.txt"'))
    said = quoth("tools", "test", "t.hy", cwd=here)
    assert (said.code, said.err) == (
        1,
        "quoth: During the test, files of the workspace itself changed, not of the copy: stock.txt\n",
    )


def test_a_tool_without_examples_and_a_file_without_tools_are_told_of(here: Path) -> None:
    (here / "t.hy").write_text(HEAD + '(def-cognitive-tool one "One." :body 1)')
    said = quoth("tools", "test", "t.hy", cwd=here)
    assert (
        said.err == "quoth: one has no :examples. Add some: models read them, and this command tests them.\n"
    )
    (here / "t.hy").write_text("(setv x 1)")
    said = quoth("tools", "test", "t.hy", cwd=here)
    assert (said.code, said.err) == (2, "quoth: t.hy does not define a tool.\n")
