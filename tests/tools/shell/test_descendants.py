"""Law: quoth takes no decision from a program that a tool started, whatever that does to its environment."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from commands import command, started, wait_until
from sentences import A_PROGRAM_THAT_A_TOOL
from words import files, quoth

WRITE = '(write-file :path "a.txt" :content "x")'
NO = f"{A_PROGRAM_THAT_A_TOOL}."
TOOLS = """
(require quoth [def-shell-tool])
(def-shell-tool sneak "Run a script."
  :parameters [script {:type str}]
  :argv ["sh" "-c" script])
"""
QUOTH = shlex.join(command())
STATE = 'QUOTH_STATE="$QUOTH_STATE" QUOTH_CONFIG="$QUOTH_CONFIG" HOME="$HOME" PATH="$PATH"'
WAIT = "while [ ! -e ended ]; do sleep 0.05; done; cat said >&2; exit $(cat ended)"
WAYS = {
    "without the mark": "env -u QUOTH_INSIDE {} ",
    "with an empty mark": "QUOTH_INSIDE= {}",
    "with an empty environment": f"env -i {STATE} {{}}",
    "in a session of its own": "env -u QUOTH_INSIDE setsid -w {}",
    "by a parent that has ended": f"unset QUOTH_INSIDE; (({{}} 2>said; echo $? >ended) &); {WAIT}",
    "in another session, by a parent that has ended": (
        f"unset QUOTH_INSIDE; ((setsid -w {{}} 2>said; echo $? >ended) &); {WAIT}"
    ),
}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return files(tmp_path / "home", {"t.hy": TOOLS, ".quoth/policy.hy": "(deny (echo))"})


def waiting(here: Path) -> str:
    """A call that nobody has allowed; the id of its request."""
    quoth("call", WRITE, cwd=here)
    (request,) = json.loads(quoth("pending", "--json", cwd=here).out)
    return str(request["id"])


def sneaks(here: Path, script: str) -> str:
    """What a script says on stderr that a tool runs, and that fails."""
    said = quoth("call", f"(sneak :script {json.dumps(script)})", "--tools", "t.hy", "--yes", cwd=here)
    assert (said.code, said.out) == (1, "")
    return said.err.rstrip("\n")


@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_a_tool_started_cannot_decide(here: Path, way: str) -> None:
    request = waiting(here)
    assert sneaks(here, WAYS[way].format(f"{QUOTH} approve {request}")).endswith(NO)
    assert [one["id"] for one in json.loads(quoth("pending", "--json", cwd=here).out)] == [request]
    assert not (here / "a.txt").exists()


@pytest.mark.parametrize("words", ["trust", f"call {shlex.quote(WRITE)} --yes", "gc --yes", "undo --yes"])
def test_it_cannot_do_what_is_for_a_person(here: Path, words: str) -> None:
    assert "A program that a tool runs cannot " in sneaks(here, f"env -u QUOTH_INSIDE {QUOTH} {words}")
    assert not (here / "a.txt").exists()


def test_a_person_decides_while_a_program_runs(here: Path, state: Path) -> None:
    request = waiting(here)
    script = "touch begun; while [ ! -e over ]; do sleep 0.05; done"
    call = f"(sneak :script {json.dumps(script)})"
    with started("call", call, "--tools", "t.hy", "--yes", cwd=here) as running:
        wait_until((here / "begun").exists)
        assert quoth("approve", request, cwd=here).code == 0
        (here / "over").touch()
        assert running.ended().code == 0


def test_it_may_decide_once_that_has_ended_and_no_lock_is_left(here: Path, state: Path) -> None:
    from quoth.tools.shell.running import is_started_by_program

    before = {*(state / "locks").glob("*")}
    assert quoth("call", '(sneak :script "true")', "--tools", "t.hy", "--yes", cwd=here).code == 0
    after = {path.name for path in {*(state / "locks").glob("*")} - before}
    assert quoth("call", '(sneak :script "true")', "--tools", "t.hy", "--yes", cwd=here).code == 0
    assert {path.name for path in {*(state / "locks").glob("*")} - before} == after
    assert not is_started_by_program()
