"""What a hook of another agent costs: ``quoth guard`` as a new process and by the socket of one that runs,
beside importing pydantic. CPU time of each process and its children, in pairs, so that a busy machine hits
all alike.

python tests/bench/guard.py [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from quoth.agent.guard.formats import FORMATS
from quoth.agent.guard.install import hook_command

PYTHON = sys.executable
QUOTH = str(Path(PYTHON).with_name("quoth"))
BASE = "python -c 'import pydantic'"
RULES = """
(deny (shell :argv ["rm" ...]))
(deny (any-tool :path ".env"))
(allow (shell :argv ["git" "status" ...]))
(ask (claude-code--edit :file-path (matches "^test_")))
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=20)
    rounds = options.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="q") as folder:
        here = Path(folder)
        (here / "config").mkdir()
        (here / "config" / "policy.hy").write_text(RULES)
        (here / "till" / ".git").mkdir(parents=True)
        os.environ |= {"QUOTH_CONFIG": str(here / "config"), "QUOTH_STATE": str(here / "state")}
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        place = str(here / "socket")
        with subprocess.Popen([QUOTH, "guard", "--socket", place], stderr=subprocess.PIPE) as server:
            assert server.stderr is not None
            assert b"Answering" in server.stderr.readline()
            report(here, place, rounds, lambda: cpu_of(server.pid))
            server.terminate()


def report(here: Path, place: str, rounds: int, served: Callable[[], float]) -> None:
    edit = {"file_path": f"{here}/till/a.py", "old_string": "a", "new_string": "b"}
    inputs = {
        "Edit": call(here, "Edit", edit),
        "Bash": call(here, "Bash", {"command": "ls -l | head && git status"}),
    }
    agent = FORMATS["claude-code"]
    commands: dict[str, tuple[list[str], bytes]] = {
        BASE: ([PYTHON, "-c", "import pydantic"], b""),
        "quoth guard, a call of Edit": ([QUOTH, "guard", agent.name], inputs["Edit"]),
        "quoth guard, a call of Bash": ([QUOTH, "guard", agent.name], inputs["Bash"]),
        "the installed line, Bash": (["sh", "-c", hook_command(agent, [])], inputs["Bash"]),
        "the installed line with a socket, Bash": (
            ["sh", "-c", hook_command(agent, [], place)],
            inputs["Bash"],
        ),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for one in commands.values():
        once(*one, served)  # warm: bytecode, the page cache and the store
    for _ in range(rounds):
        for name, one in commands.items():
            times[name].append(once(*one, served))
    print("| command | CPU ms, median | ratio to importing pydantic | lowest | highest | wall ms, median |")
    print("|---+---+---+---+---+---|")
    for name, found in times.items():
        ratios = sorted(mine / base for (mine, _), (base, _) in zip(found, times[BASE], strict=True))
        cpu, wall = (statistics.median(one[at] for one in found) * 1000 for at in (0, 1))
        shown = f"{statistics.median(ratios):.2f} | {ratios[1]:.2f} | {ratios[-2]:.2f}"
        print(f"| ={name}= | {cpu:.0f} | {shown} | {wall:.0f} |")


def call(here: Path, tool: str, args: dict[str, str]) -> bytes:
    said = {"session_id": "s", "cwd": f"{here}/till", "hook_event_name": "PreToolUse"}
    return json.dumps(said | {"tool_name": tool, "tool_input": args}).encode()


def once(command: list[str], data: bytes, served: Callable[[], float]) -> tuple[float, float]:
    """CPU seconds of one run, with those of the running guard, and wall seconds."""
    before, there, started = resource.getrusage(resource.RUSAGE_CHILDREN), served(), time.perf_counter()
    done = subprocess.run(command, input=data, capture_output=True, check=True)
    wall = time.perf_counter() - started
    assert done.stdout == b"", done.stdout  # no rule names these calls
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return own + served() - there, wall


def cpu_of(pid: int) -> float:
    """The CPU seconds of a running process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
