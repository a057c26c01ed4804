"""Ctrl-C at any moment: what waits is kept, what was begun is ended, and nobody sees a traceback."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sentences import IT_WRITES_FILES
from words import CTRL_C, CTRL_D, Terminal, command, files, started, wait_until

from quoth.agent.cli.main import main
from quoth.tools.builtin.process import run_argv
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace

QUESTION = "Allow it? y, n (default), s, e, ? for help"
WRITE = '(write-file :path "a" :content "b")'
MANY = '(pmap (fn [x] (write-file :path (str x) :content "b")) (range 12))'
NESTED = f"(eval {json.dumps(WRITE)})"
REPLY = f'(eval :form (do {WRITE} (echo :text (read-file :path "a"))))\n---\nAll done.\n'
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
        terminal.see(f"write-file waits for a person's approval: {IT_WRITES_FILES} (request ")
        assert terminal.ended() == 130
    assert terminal.shown.count("asked because") == 1, "one Ctrl-C is enough for all that would be asked"
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
            terminal.see(f"write-file waits for a person's approval: {IT_WRITES_FILES} (request ")
        terminal.prompted()
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    assert len(waiting(capsys)) == 2


# Before the command has begun

STARTS = {"the script": command(), "the module": [sys.executable, "-m", "quoth"]}


@pytest.mark.parametrize("milliseconds", [0, 10, 30, 60, 100, 150, 200, 300])
@pytest.mark.parametrize(
    "words", [["tools"], ["eval", "(+ 1 2)", "--json"], ["eval", "-"]], ids=["tools", "eval", "stdin"]
)
def test_an_interrupt_while_it_starts_ends_it_with_a_word(
    milliseconds: int, words: list[str], tmp_path: Path
) -> None:
    start = STARTS["the script" if milliseconds % 20 else "the module"]
    told = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}  # so that it says when our own file is there
    with subprocess.Popen(
        [*start, *words],
        cwd=tmp_path,
        env=told,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        assert any(line.endswith(" quoth.agent.entry\n") for line in process.stderr), (
            "Python itself has started"
        )
        time.sleep(milliseconds / 1000)
        process.send_signal(signal.SIGINT)
        assert process.stdout
        err, out = process.stderr.read(), process.stdout.read()  # what waits for its input gets none
    said = [line for line in err.splitlines() if not line.startswith("import time:")]
    if "-" in words:
        assert (process.returncode, said) == (130, ["quoth: Interrupted."])
    assert (process.returncode, said) in [(130, ["quoth: Interrupted."]), (0, [])]
    if "--json" in words and out:
        json.loads(out)


def test_an_interrupt_that_is_to_be_ignored_stays_so(tmp_path: Path) -> None:
    """As a shell starts what it is to run behind the scenes."""
    done = subprocess.run(
        [
            "sh",
            "-c",
            'trap "" INT; "$@" & sleep 0.1; kill -INT $! 2>/dev/null; wait $!',
            "sh",
            *command(),
            "tools",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "read-file" in done.stdout


# What programs leave behind

DAEMON = """import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.execve("/bin/sh", ["sh", "-c", "echo $$ >> left; exec sleep 100 >/dev/null 2>&1"], {})"""
LEAVES = {
    "in the same group": "sleep 100 >/dev/null 2>&1 & echo $! >> left",
    "in a session of its own": "setsid sh -c 'echo $$ >> left; exec sleep 100' >/dev/null 2>&1 &",
    "with the output still open": "setsid sh -c 'echo $$ >> left; exec sleep 100' &",
    "deaf": "setsid sh -c 'trap \"\" TERM HUP INT; echo $$ >> left; sleep 100; sleep 100' >/dev/null 2>&1 &",
    "a daemon without its environment": 'python3 -c "$DAEMON"',
    "one below another": 'setsid sh -c \'setsid sh -c "echo \\$\\$ >> left; exec sleep 100" & '
    "echo $$ >> left; exec sleep 100' >/dev/null 2>&1 &",
}
COUNT = {"one below another": 2}
ENDS = {"it ends": "", "it goes on": "\nsleep 100"}


def left(folder: Path) -> list[int]:
    path = folder / "left"
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def script(leaves: str, then: str, count: int = 1) -> list[str]:
    wait = f'\nwhile [ "$(cat left 2>/dev/null | wc -l)" -lt {count} ]; do sleep 0.01; done'
    return ["sh", "-c", leaves + wait + then]


@pytest.mark.parametrize("then", ENDS)
@pytest.mark.parametrize("leaves", LEAVES)
async def test_all_that_a_program_has_started_ends_with_its_call(
    leaves: str, then: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAEMON", DAEMON)
    context, count = ToolContext(Workspace(tmp_path)), COUNT.get(leaves, 1)
    other = tmp_path / "other"
    other.mkdir()
    stays = asyncio.create_task(
        run_argv(script(LEAVES["in a session of its own"], "\nsleep 100"), cwd="other", ctx=context)
    )
    ours = subprocess.Popen(["sleep", "100"], start_new_session=True)
    ends = asyncio.create_task(run_argv(script(LEAVES[leaves], ENDS[then], count), ctx=context))
    try:
        async with asyncio.timeout(30):
            while len(left(tmp_path)) < count or not left(other):
                await asyncio.sleep(0.01)
        if then == "it goes on" or "open" in leaves:
            ends.cancel()
        await asyncio.wait({ends})
        assert [gone(pid) for pid in left(tmp_path)] == [True] * count
        assert ours.poll() is None, "what is not below it is left alone"
        assert not gone(left(other)[0]), "and so is what another call has started"
    finally:
        ours.kill()
        ours.wait()
        stays.cancel()
        await asyncio.wait({stays})
    assert gone(left(other)[0])


def test_what_was_started_ends_even_when_we_are_killed(tmp_path: Path) -> None:
    argv = " ".join(map(json.dumps, script(LEAVES["in a session of its own"], "\nsleep 100")))
    files(
        tmp_path,
        {
            "tools.hy": f'(require quoth [def-shell-tool]) (def-shell-tool go "Go." :argv [{argv}])',
            "policy.hy": "(allow (go))",
        },
    )
    with started("call", "(go)", "--tools", "tools.hy", "--policy", "policy.hy", cwd=tmp_path) as running:
        wait_until(lambda: left(tmp_path))
        running.process.kill()
    wait_until(lambda: gone(left(tmp_path)[0]), 10)
