"""Ctrl-C at any moment: what waits is kept and goes on, what was begun is ended, and nobody sees a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from words import CTRL_C, CTRL_D, Terminal, files

from agent.cli import main

QUESTION = "Allow it? [y/N/s/e/? for help, or why not] "
WRITE = '(write-file :path "a" :content "b")'
MANY = '(pmap (fn [x] (write-file :path (str x) :content "b")) (range 12))'
NESTED = f"(eval {json.dumps(WRITE)})"
REPLY = f"(eval :form (do {WRITE} (echo :text (read-file :path \"a\"))))\n---\nAll done.\n"
PLAN = f"* PLAN write\n#+begin_src hy\n{WRITE}\n#+end_src\n"
# What is begun, how often it would ask, how it goes on, and the files that are there then.
PROGRAMS = {
    "a program": (["eval", WRITE], 1, ["resume", "s"], {"a"}),
    "a program in a program": (["eval", NESTED], 1, ["resume", "s"], {"a"}),
    "its branches": (["eval", MANY], 12, ["resume", "s"], set(map(str, range(12)))),
    "a program of a model": (["run", "Go.", "--model", "scripted:reply.txt"], 1, ["resume", "s"], {"a"}),
    "a step of a plan": (["fly", "plan.org"], 1, ["fly", "plan.org"], {"a"}),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return files(tmp_path, {"reply.txt": REPLY, "plan.org": PLAN})


def waiting(capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert main(["pending", "--json"]) == 0
    return [request["id"] for request in json.loads(capsys.readouterr().out)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_ctrl_c_at_a_question_inside_a_program_leaves_the_call_waiting(
    program: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, asks, go_on, written = PROGRAMS[program]
    before = set(here.iterdir())
    with Terminal(*words, "--session", "s", cwd=here) as terminal:
        terminal.see(QUESTION)
        terminal.type(CTRL_C)
        terminal.see("write-file waits for a person's approval: it writes files (request ")
        assert terminal.ended() == 130
    assert terminal.shown.count(QUESTION) == 1, "one Ctrl-C is enough for all that would be asked"
    assert "sandbox" not in terminal.shown
    requests = waiting(capsys)
    assert (len(requests), set(here.iterdir())) == (asks, before)
    for request in requests:
        assert main(["approve", request]) == 0
    assert main(go_on) == 0
    assert (waiting(capsys), set(here.iterdir()) - before) == ([], {here / name for name in written})


def test_ctrl_c_at_a_question_of_the_repl_is_for_one_line(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Terminal("--session", "s", cwd=here) as terminal:
        for path in "ab":
            terminal.prompted()
            terminal.enter(f'(write-file :path "{path}" :content "b")')
            terminal.see(QUESTION)
            terminal.type(CTRL_C)
            terminal.see("write-file waits for a person's approval: it writes files (request ")
        terminal.prompted()
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    assert len(waiting(capsys)) == 2
