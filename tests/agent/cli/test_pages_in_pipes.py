"""What models and files said, in a pipe: a page never steers the terminal behind it; a value is data."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from words import Terminal, files, quoth

HOSTILE = "a\x1b[2Jb\x1b]52;c;aGk=\x07c\u202ed\x9b2Je\u2066f"
LISP = HOSTILE.encode("unicode_escape").decode()
PLAN = f"""* PLAN Say it
  #+begin_src hy
  (echo :text "{LISP}")
  #+end_src
"""


def steering(text: str) -> set[str]:
    return {char for char in text if unicodedata.category(char) in ("Cc", "Cf")} - {"\n", "\t"}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    files(tmp_path, {"h.txt": HOSTILE, "r.txt": f'(read-file "h.txt")\n---\n{HOSTILE}', "p.org": PLAN})
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [
        ["log", "s"],
        ["log", "s", "--full"],
        ["log", "s", "--org"],
        ["log", "s", "--hy"],
        ["log", "s", "--json"],
        ["log", "s.1"],
        ["sessions"],
        ["sessions", "--json"],
        ["stats"],
        ["fly", "p.org"],
    ],
    ids=" ".join,
)
def test_a_page_in_a_pipe_has_nothing_that_steers_a_terminal(here: Path, page: list[str]) -> None:
    ran = quoth("run", HOSTILE.replace("\x07", ""), "--model", "scripted:r.txt", "--session", "s", cwd=here)
    assert (ran.code, steering(ran.err)) == (0, set())
    said = quoth(*page, cwd=here)
    assert (said.code, said.out != "") == (0, True)
    assert not steering(said.out + said.err)


@pytest.mark.parametrize(
    "words", [["call", '(read-file "h.txt")'], ["eval", f'"{LISP}"']], ids=lambda words: words[0]
)
def test_a_value_is_data_in_a_pipe_and_marked_on_a_terminal(here: Path, words: list[str]) -> None:
    assert HOSTILE in quoth(*words, cwd=here).out
    with Terminal(*words, cwd=here, env={"TERM": "dumb"}) as terminal:
        assert terminal.ended() == 0
        assert not steering(terminal.raw.decode()) - {"\r"}


def test_a_reply_is_data_in_a_pipe_and_json_keeps_each_character(here: Path) -> None:
    run = ["run", "Go.", "--model", "scripted:r.txt"]
    assert quoth(*run, cwd=here).out == f"{HOSTILE}\n"
    said = quoth(*run, "--json", cwd=here).out
    assert json.loads(said)["reply"] == HOSTILE
    assert not steering(said)


def test_what_a_tool_says_of_itself_steers_no_terminal(here: Path) -> None:
    tool = f'(def-cognitive-tool far "{LISP}" :parameters [a {{:type str :doc "{LISP}"}}] :body a)'
    files(here, {"t.hy": f"(require quoth [def-cognitive-tool])\n{tool}"})
    said = quoth("--tools", "t.hy", cwd=here, stdin="(describe far)\n(source far)\n,tools far\n")
    assert (said.out.count("(far :a str)"), steering(said.out)) == (2, set())


def test_blanks_of_any_script_are_no_control_characters(tmp_path: Path) -> None:
    text = "日本\u3000語 10\u00a0€ 3\u202f000"
    files(tmp_path, {"r.txt": text})
    run = ["run", text, "--model", "scripted:r.txt", "--session", "s"]
    with Terminal(*run, cwd=tmp_path, env={"TERM": "dumb"}) as terminal:
        assert terminal.ended() == 0
        assert text in terminal.raw.decode()
    assert quoth("log", "s", cwd=tmp_path).out.count(text) == 2
