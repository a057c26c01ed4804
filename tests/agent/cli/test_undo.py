"""``quoth undo`` and ``quoth diff``, as typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sentences import IS_BEING_DRIVEN_BY_ANOTHER, LEAVE_OUT, SAY_SO_WITH_YES, THERE_IS_NO_SESSION
from words import Terminal, files, quoth

from quoth.agent.session.session import alone
from quoth.tools.storage.paths import store_path

REPLIES = """(read-file :path "a.txt")
---
(edit-file :path "a.txt" :old "two" :new "TWO")
---
(write-file :path "new/b.txt" :content "hello")
---
Done."""
FORWARD = """replaces 1 of 2 lines of a.txt with 1
│ @@ line 1 @@
│   one
│ - two
│ + TWO
new file new/b.txt, 1 line
│ + hello
│ \\ no line end at the end of the file
"""
BACK = """removes new/b.txt, 1 line
│ - hello
│ \\ no line end at the end of the file
replaces 1 of 2 lines of a.txt with 1
│ @@ line 1 @@
│   one
│ - TWO
│ + two
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    files(tmp_path, {"a.txt": "one\ntwo\n", "r.txt": REPLIES})
    run = quoth("run", "Go.", "--model", "scripted:r.txt", "--session", "s1", "--yes", cwd=tmp_path)
    assert run.code == 0, run.err
    return tmp_path


def test_a_session_is_shown_and_put_back_and_written_again(here: Path) -> None:
    assert quoth("diff", "s1", cwd=here).out == FORWARD
    tried = quoth("undo", "s1", "--dry-run", cwd=here)
    assert (tried.code, tried.out) == (0, BACK)
    asked = quoth("undo", "s1", cwd=here)
    assert (asked.code, asked.err) == (2, f"quoth: Put back 2 files of session s1? {SAY_SO_WITH_YES}.\n")
    assert (here / "a.txt").read_text() == "one\nTWO\n"

    done = quoth("undo", "s1", "--yes", cwd=here)
    assert (done.code, done.out) == (0, BACK)
    assert done.err == "quoth: Put back 2 files. To redo: quoth undo s1 --redo\n"
    assert ((here / "a.txt").read_text(), (here / "new").exists()) == ("one\ntwo\n", False)
    assert quoth("diff", "s1", cwd=here).err == "quoth: Session s1 did not change any file.\n"
    again = quoth("undo", "s1", "--redo", "--yes", "--json", cwd=here)
    told = json.loads(again.out)
    assert (told["act"], told["redo"], told["left"]) == ("r1", True, [])
    assert {one["path"] for one in told["files"]} == {"a.txt", "new/b.txt"}

    (here / "a.txt").write_text("one\nTWO\nmine\n")
    some = quoth("undo", "s1", "--yes", cwd=here)
    assert some.code == 1
    assert "left unchanged: a.txt; it was changed since by another program\n" in some.out
    assert (
        "  putting it back would change:\n│ @@ line 1 @@\n│   one\n│ - TWO\n│ - mine\n│ + two\n" in some.out
    )
    (found, *_) = json.loads(quoth("diff", "s1", "--json", cwd=here).out)
    assert (found["path"], found["note"]) == ("a.txt", "another program has changed it since, too")
    assert "Undid changes (u2): new/b.txt" in quoth("log", "s1", cwd=here).out
    audit = quoth("audit", "--session", "s1", "--json", cwd=here).out
    assert "Redid changes (r1): " in audit


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_person_is_asked_at_a_terminal(here: Path, answer: str) -> None:
    with Terminal("undo", "s1", cwd=here) as person:
        person.see("Put back 2 files of session s1? [y/N]")
        person.enter(answer)
        assert person.ended() == (0 if answer == "y" else 1)
    assert (here / "new").exists() == (answer == "n")


def test_mistakes_are_one_sentence_each(here: Path) -> None:
    quoth("call", '(echo :text "hi")', "--session", "s2", cwd=here)
    for words, said in {
        "undo s2": "Session s2 has written no file.",
        "undo s3": f"{THERE_IS_NO_SESSION} s3 in this workspace. The latest are s1, s2.",
        "undo s1 --to 99": "There is no event s1.99; session s1 has 19 events.",
        "undo s1 --to x": "--to takes the number of an event in quoth log s1, not x.",
        "undo s1 --to 18": "Session s1 has written no file since s1.18.",
        "undo s1 --redo": "Session s1 has no undo to redo.",
        "undo s1 --redo --to 3": f"--redo reverses the whole last undo; {LEAVE_OUT}to.",
        "diff s3": f"{THERE_IS_NO_SESSION} s3 in this workspace. The latest are s1, s2.",
    }.items():
        told = quoth(*words.split(), cwd=here)
        assert (words, told.code, told.out, told.err) == (words, 2, "", f"quoth: {said}\n")
    with alone(store_path(here), "s1"):
        told = quoth("undo", "s1", "--yes", cwd=here)
        assert told.err == f"quoth: Session s1 {IS_BEING_DRIVEN_BY_ANOTHER}.\n"
    told = quoth("undo", "s1", "--yes", cwd=here, env={"QUOTH_INSIDE": "1"})
    assert told.err == "quoth: A program that a tool runs cannot undo anything.\n"
    assert (here / "a.txt").read_text() == "one\nTWO\n"
