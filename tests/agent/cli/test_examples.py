"""The help of each command ends with two examples that can be typed as they are."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
from pathlib import Path

import plain
import pytest
from sentences import SAY_SO_WITH_YES
from words import Said, files, quoth

from quoth.agent.cli.examples import EXAMPLES
from quoth.agent.cli.help import each
from quoth.agent.cli.main import parser
from quoth.agent.cli.options import parsed
from quoth.agent.settings import GROUPS


def words_of(line: str) -> list[str]:
    """The words for quoth in a line: what a pipe, a file or eval "$(…)" has is the shell's."""
    line = line.removeprefix('eval "$(').removesuffix(')"')
    return shlex.split(line.partition(" < ")[0].partition(" > ")[0])[1:]


def test_each_command_has_two_examples_that_are_lines_of_it() -> None:
    whole = parser()
    assert set(EXAMPLES) == {one.prog.removeprefix("quoth").strip() for one in each(whole)}
    for words, lines in EXAMPLES.items():
        assert len(set(lines)) == 2
        for said in map(words_of, lines):
            assert said[: len(words.split())] == words.split()
            parsed(whole, said)


def test_the_help_of_a_command_ends_with_its_examples(tmp_path: Path) -> None:
    said = quoth("memory", "list", "--help", cwd=tmp_path)
    assert said.out.endswith("\nexamples:\n  quoth memory list\n  quoth memory list --kind core --json\n")


def test_help_fits_80_columns_and_begins_with_the_own_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    headings = {"arguments", "options", *GROUPS.values(), "examples"}
    for one in each(parser()):
        lines = one.format_help().splitlines()
        assert [line for line in lines if len(line) > 80] == []
        shown = [line[:-1] for line in lines if line.endswith(":") and line[:-1] in headings]
        order = ["arguments", "options", *dict.fromkeys(GROUPS.values()), "examples"]
        if one.prog != "quoth":
            assert shown == [heading for heading in order if heading in shown]
            assert "options" in shown


def test_each_option_says_what_it_does_in_plain_words() -> None:
    """A text of at least two words, with a default in parentheses or none, and without worn patterns."""
    texts = {
        (one.prog, action.dest): action.help
        for one in each(parser())
        for action in one._actions
        if action.help and action.help != argparse.SUPPRESS
    }
    assert len(texts) > 300
    short = [place for place, text in texts.items() if len(text.split()) < 2]
    assert short == []
    assert [place for place, text in texts.items() if plain._FOUND.search(text)] == []
    assert [place for place, text in texts.items() if text.endswith(".") or "(default " in text] == []


# Examples that need another machine, a provider, an editor or a person who ends them.
ELSEWHERE = re.compile(
    r"^quoth (catalog|worktrees|worker|acp|serve|view|chat$|trust ~|models --check|models login)|ollama"
    r"|--gateway|--watch|memory edit person$|doctor --check"
    r"|mcp (trust|diff|login|call|serve|proxy|remove|list time)"
)
REPLY = (
    "".join(f'(write-file :path "{name}.txt" :content "x")\n---\n' for name in "abcdef") + "Done.\n---\n" * 9
)
PLAN = '* PLAN build\n#+begin_src hy\n(write-file :path "n.txt" :content "3")\n#+end_src\n'
FILES = {
    "notes.txt": "a b\n",
    "a.txt": "a\n",
    "task.txt": "Count.",
    "reply.txt": '(echo :text "a")',
    "r.txt": REPLY,
    "new.txt": '(write-file :path "src.txt" :content "x")\n---\nDone.',
    "rules.hy": "(allow (read-file))",
    "inbox.txt": "",
    "AGENTS.md": "Be brief.\n",
    "plan.org": PLAN,
    "knowledge/trains.org": "#+TITLE: Trains\n* trains\n* buses\n",
}
BEFORE = [
    'quoth run "Write." --session s5d6e7f8 --model scripted:new.txt',
    'quoth run "Write." --yes --session s1a2b3c4 --model scripted:r.txt',
    *(f"quoth memory edit {name} --new --text x" for name in ("person", "project", "notes")),
]
FIRST = {  # what an example needs beside that
    "quoth import session.hy": ["quoth export s1a2b3c4 session.hy", "quoth rm s1a2b3c4 --yes"],
    "quoth import session.hy --as copy": ["quoth export s1a2b3c4 session.hy"],
    "quoth replay session.hy --live-tools": ["quoth export s1a2b3c4 session.hy"],
    "quoth memory import memory.org": [
        "quoth memory export memory.org",
        "quoth memory forget person project notes --yes",
    ],
    "quoth memory import memory.org --replace": ["quoth memory export memory.org"],
    "quoth memory edit project --new": ["quoth memory forget project --yes"],
    "quoth policy revoke hm4kq": ["quoth approve hm4kq --scope --yes"],
    "quoth answer": ['quoth call \'(ask-person :question "Which port?" :choices ["1" "8080"])\''],
    "word-count.hy": ["quoth new tool word-count"],
    "plan.org --step": ["quoth fly plan.org"],
    "quoth test run": ["quoth test add s1a2b3c4 --expect 1 --name answer"],
}


def test_the_examples_run(tmp_path: Path) -> None:
    """Each in a workspace that has the files, sessions and requests it names; its tools may still fail."""
    place, state, kept = tmp_path / "shop", tmp_path / "state", tmp_path / "kept"
    files(place, FILES)
    env = {"QUOTH_STATE": str(state), "QUOTH_MODEL": "scripted:r.txt", "LOGNAME": "ann"}

    def run(line: str) -> Said:
        return quoth(*words_of(line), cwd=place, env=env, stdin='(echo :text "a")')

    def request(tool: str) -> str:
        return next(one["id"] for one in json.loads(run("quoth pending --json").out) if one["tool"] == tool)

    for line in BEFORE:
        assert (said := run(line)).code == (3 if "s5d6e7f8" in line else 0), said
    for one in (place, state):
        shutil.copytree(one, kept / one.name)
    wrong = {}
    for line in (line for lines in EXAMPLES.values() for line in lines if not ELSEWHERE.search(line)):
        for one in (place, state):
            shutil.rmtree(one)
            shutil.copytree(kept / one.name, one)
        asked = request("write-file")
        for first in FIRST.get(max((part for part in FIRST if part in line), key=len, default=""), ()):
            if first != line:
                assert run(first.replace("hm4kq", asked)).code in (0, 3), first
        asked = request("ask-person") if "quoth answer" in line else asked
        said = run(line.replace("hm4kq", asked))
        is_asked = SAY_SO_WITH_YES in said.err
        if (said.code == 2 and not is_asked) or "Traceback" in said.err:
            wrong[line] = said.err or said.out
    assert not wrong, "\n".join(f"{line}: {err}" for line, err in wrong.items())
