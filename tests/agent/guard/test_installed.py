"""The lines that ``quoth guard install`` prints, run by a real shell: whatever becomes of quoth, they answer;
and the guard that keeps running, with the lines for it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hooks import AGENTS, RUNNER, Answered, read_answer, sent
from words import Running, files, quoth, started, wait_until

from quoth.agent.cli import guard
from quoth.agent.cli.main import main
from quoth.agent.guard.formats import FORMATS
from quoth.agent.guard.install import hook_command

LATE = """
import sys
from quoth.agent.guard import hook
from quoth.agent.guard.formats import FORMATS
hook.{} = {}
sys.exit(hook.run(FORMATS["codex"], {{}}))
"""


@pytest.fixture
def here(tmp_path: Path, state: Path) -> Path:
    files(state / "config", {"policy.hy": '(deny (shell :argv ["rm" ...]) :why "no rm")'})
    return files(tmp_path / "till", {".git/HEAD": ""})


@pytest.fixture
def place() -> Iterator[Path]:
    """A path for a socket, which must be short."""
    with tempfile.TemporaryDirectory(prefix="q") as folder:
        yield Path(folder, "s")


def installed(agent: str, here: Path, *more: str) -> tuple[str, dict[str, Any]]:
    """The command of the hook in the settings that are printed, and the settings around it."""
    said = quoth("guard", "install", agent, *more, cwd=here)
    assert said.code == 0
    assert FORMATS[agent].settings[0] in said.err
    read = tomllib.loads(said.out) if agent == "codex" else json.loads(said.out)
    (group,) = read["hooks"][FORMATS[agent].event]
    (hook,) = group["hooks"]
    assert hook["type"] == "command"
    return hook["command"], group | hook


def run(command: str, agent: str, line: str, here: Path) -> Answered:
    """The answer of a hook's command to a command line of the agent, as a shell runs it."""
    data = sent(agent, RUNNER[agent], {"command": line}, here)
    done = subprocess.run(["sh", "-c", command], input=data, capture_output=True, cwd="/", timeout=120)
    assert done.returncode == 0
    return read_answer(agent, done.stdout.decode())


@pytest.mark.parametrize("agent", AGENTS)
def test_the_printed_line_answers(agent: str, here: Path) -> None:
    command, hook = installed(agent, here)
    assert "no rm" in run(command, agent, "rm x", here).reason
    assert run(command, agent, "ls", here) == Answered("")
    assert hook["timeout"] == (30_000 if agent == "gemini-cli" else 30)
    assert hook.get("onFailure") == ("block" if agent == "claude-code" else None)
    assert hook.get("matcher") == {"claude-code": "*", "gemini-cli": ".*", "codex": None}[agent]


def test_options_are_a_part_of_the_printed_line(here: Path) -> None:
    files(here, {"rules.hy": '(allow (shell :argv ["ls" ...]))'})
    more = ("--strict", "--may-allow", "--policy", "rules.hy", "--user", "ben")
    command, _ = installed("claude-code", here, *more)
    assert run(command, "claude-code", "ls", here).kind == "allow"
    assert run(command, "claude-code", "cat", here).kind == "ask"
    rows = map(json.loads, quoth("audit", "--json", cwd=here).out.splitlines())
    assert {row["user"] for row in rows} == {"ben"}


# Programs in the place of quoth, each a way to fail.
FAILURES = {
    "it is not there": None,
    "it is not executable": "",
    "it ends with 1": "#!/bin/sh\nexit 1\n",
    "it ends with 2": "#!/bin/sh\nexit 2\n",
    "it prints a half": "#!/bin/sh\nprintf '{\"hookSpec'\nexit 1\n",
    "it allows, and fails": '#!/bin/sh\nprintf \'{"decision": "allow"}\'\nexit 3\n',
    "it is killed": "#!/bin/sh\nkill -9 $$\n",
    "it is not a program": "#!/nowhere\n",
}


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("failure", FAILURES)
def test_the_printed_line_denies_if_quoth_fails(failure: str, agent: str, here: Path) -> None:
    text, program = FAILURES[failure], here / "quoth with a blank"
    if text is not None:
        program.write_text(text)
        program.chmod(0o755 if text else 0o644)
    whole = hook_command(FORMATS[agent], [])
    own = shlex.join([str(Path(sys.executable).with_name("quoth")), "guard", agent])
    words = shlex.split(whole)
    assert own in words[2]
    words[2] = words[2].replace(own, shlex.join([str(program), "guard", agent]))
    assert "did not answer" in run(shlex.join(words), agent, "ls", here).reason


def guard_below(shell: int) -> int:
    """The process of quoth that a shell has started, directly or through another; 0 until it is there."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
    parents = {pid: parent for pid, parent, *_ in rows}

    def is_below(pid: str) -> bool:
        return pid in parents and (parents[pid] == str(shell) or is_below(parents[pid]))

    for pid, _, *words in rows:  # numbers of processes begin again: a child may be listed before its parent
        if words and " guard codex" in words[0] and not words[0].startswith("sh ") and is_below(pid):
            return int(pid)
    return 0


def test_the_printed_line_denies_if_the_process_is_killed(here: Path) -> None:
    command, _ = installed("codex", here)
    with subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        wait_until(lambda: guard_below(shell.pid))
        os.kill(guard_below(shell.pid), signal.SIGKILL)
        out, _ = shell.communicate(timeout=60)
    assert shell.returncode == 0
    assert read_answer("codex", out.decode()).kind == "deny"


def test_a_call_that_is_not_judged_in_time_is_denied(here: Path) -> None:
    """Its input never ends."""
    script = [sys.executable, "-c", LATE.format("OWN_SECONDS", 0.1)]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as late:
        code = late.wait(60)
        out = late.stdout.read() if late.stdout else b""
    assert code == 0
    assert "was not judged" in read_answer("codex", out.decode()).reason


def test_a_process_that_hangs_is_killed_by_the_kernel(here: Path) -> None:
    script = [sys.executable, "-c", LATE.format("KILL_SECONDS", 1)]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as late:
        assert late.wait(60) == -signal.SIGALRM
        assert late.stdout is not None
        assert late.stdout.read() == b""


# A guard that keeps running


@contextmanager
def serving(place: Path, here: Path, *more: str) -> Iterator[Running]:
    with started("guard", "--socket", str(place), *more, cwd=here) as running:
        running.says("Answering at")
        yield running


def asked(place: Path, data: bytes) -> bytes:
    """The answer of a running guard to these bytes."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(str(place))
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        pieces = []
        while piece := client.recv(65536):
            pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_running_guard_answers_the_printed_line(agent: str, here: Path, place: Path) -> None:
    command, _ = installed(agent, here, "--socket", str(place))
    assert "did not answer" in run(command, agent, "ls", here).reason  # nobody serves yet
    with serving(place, here) as running:
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        assert "no rm" in run(command, agent, "rm x", here).reason
        assert run(command, agent, "ls", here) == Answered("")
        files(Path(os.environ["QUOTH_CONFIG"]), {"policy.hy": '(deny (shell :argv ["ls" ...]))'})
        assert run(command, agent, "ls", here).kind == "deny"  # the rules of now
        running.interrupt()
        assert running.ended().code == 0
    assert not place.exists()
    assert "did not answer" in run(command, agent, "ls", here).reason


def test_a_killed_guard_denies_and_another_takes_its_place(here: Path, place: Path) -> None:
    command, _ = installed("codex", here, "--socket", str(place))
    with serving(place, here) as running:
        running.process.kill()
        running.process.wait()
    assert "did not answer" in run(command, "codex", "ls", here).reason
    with serving(place, here):
        assert run(command, "codex", "ls", here) == Answered("")


def test_a_running_guard_answers_many_at_once_and_no_nonsense(here: Path, place: Path) -> None:
    with serving(place, here):
        good = b"codex\n" + sent("codex", "Bash", {"command": "rm x"}, here)
        bad = [b"", b"codex", b"nobody\n{}", b"\xff" * 200, b"codex\n" + b"\xff" * 10]
        with ThreadPoolExecutor(8) as at_once:
            said = list(at_once.map(lambda data: asked(place, data), [good, *bad] * 8))
    for number in range(8):
        one, *rest = said[number * 6 : number * 6 + 6]
        assert one.startswith(b"answer\n")
        assert "no rm" in read_answer("codex", one.partition(b"\n")[2].decode()).reason
        assert [each.startswith(b"answer\n") for each in rest] == [False, True, False, False, True]
        denied = [read_answer("codex", each.partition(b"\n")[2].decode()) for each in (rest[1], rest[4])]
        assert [each.kind for each in denied] == ["deny", "deny"]


def test_a_client_that_says_nothing_holds_up_no_other(here: Path, place: Path) -> None:
    with serving(place, here), socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(place))
        assert asked(place, b"codex\n" + sent("codex", "Bash", {"command": "ls"}, here)) == b"answer\n\n"


def test_a_path_that_is_taken_is_refused(here: Path, place: Path) -> None:
    place.write_text("mine")
    assert "is not a socket" in quoth("guard", "--socket", str(place), cwd=here).err
    assert place.read_text() == "mine"
    place.unlink()
    with serving(place, here):
        said = quoth("guard", "--socket", str(place), cwd=here)
        assert (said.code, "Another guard answers" in said.err) == (2, True)
        assert asked(place, b"codex\n{}").startswith(b"answer\n")
    long = place.parent / ("a" * 200)
    assert "cannot be created" in quoth("guard", "--socket", str(long), cwd=here).err


# The command line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Name one agent"),
        (("install",), "Name one agent"),
        (("claude",), "Did you mean claude-code?"),
        (("install", "gemini"), "Did you mean gemini-cli?"),
        (("codex", "--strickt"), "--strict"),
        (("codex", "--workspace", "."), "leave out --workspace"),
        (("codex", "--socket", "x"), "serves every agent"),
        (("install", "codex", "--socket", "x", "--strict"), "quoth guard --socket"),
        (("install", "codex", "--policy", "gone.hy"), "gone.hy"),
    ],
)
def test_a_mistake_is_a_sentence(words: tuple[str, ...], said: str, here: Path) -> None:
    done = quoth("guard", *words, cwd=here, stdin="{}")
    assert done.code == 2
    assert done.out == ""
    assert said in done.err


def test_install_says_that_the_parser_is_missing(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(here)
    main(["guard", "install", "codex"])
    assert "quoth[guard]" not in capsys.readouterr().err
    monkeypatch.setattr(guard, "find_spec", lambda name: None)
    main(["guard", "install", "codex"])
    assert "pip install 'quoth[guard]'" in capsys.readouterr().err


def test_install_says_that_the_projects_rules_are_not_trusted(here: Path) -> None:
    files(here, {".quoth/policy.hy": '(deny (shell :argv ["make" ...]))'})
    assert "is not trusted" in quoth("guard", "install", "codex", cwd=here).err
    data = json.loads(quoth("guard", "install", "codex", "--json", cwd=here).out)
    assert "guard codex" in data["command"]
    assert data["files"] == list(FORMATS["codex"].settings)
