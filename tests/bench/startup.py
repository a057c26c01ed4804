"""Warm start of commands in a terminal, and of REPLs until their prompt stands, side by side with importing
pydantic. Prints an Org table.

python tests/bench/startup.py [--rounds N] [--peers FOLDER]     # FOLDER holds llm, ipython and hy
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import select
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

PYTHON = sys.executable
QUOTH = str(Path(PYTHON).with_name("quoth"))
FIRST_RUN = """
import tempfile
from quoth import Agent, ScriptedBackend
with tempfile.TemporaryDirectory() as folder:
    model = ScriptedBackend(['(echo :text "x")', "Done."])
    with Agent(workspace=folder, model=model) as agent:
        assert agent.run("Echo.").status == "done"
"""
COMMANDS = {
    "python -c pass": [PYTHON, "-c", "pass"],
    "python -c 'import pydantic'": [PYTHON, "-c", "import pydantic"],
    "python -c 'import hy'": [PYTHON, "-c", "import hy"],
    "quoth --help": [QUOTH, "--help"],
    "quoth tools": [QUOTH, "tools"],
    "quoth call '(echo :text \"x\")'": [QUOTH, "call", '(echo :text "x")'],
    "an agent in Python, to the end of its first run": [PYTHON, "-c", FIRST_RUN],
}

PROMPTS = {"quoth, the REPL": ([QUOTH, "--model", "scripted:none.txt"], b"quoth>")}


def peers(folder: Path) -> None:
    """Add the commands and REPLs of others."""
    COMMANDS["llm --help"] = [str(folder / "llm"), "--help"]
    PROMPTS["hy, the REPL"] = ([str(folder / "hy")], b"=> ")
    PROMPTS["ipython"] = ([str(folder / "ipython"), "--no-banner"], b"In [")


def until_prompt(command: list[str], prompt: bytes) -> float:
    """Wall milliseconds until the prompt stands on a terminal of its own."""
    started = time.perf_counter()
    child, terminal = pty.fork()
    if not child:
        os.execv(command[0], command)
    seen = b""
    while prompt not in re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", seen):
        if not select.select([terminal], [], [], 60)[0]:
            raise TimeoutError(f"{command[0]} shows no prompt: {seen[-300:]!r}")
        seen += os.read(terminal, 65536)
    took = (time.perf_counter() - started) * 1000
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(terminal)
    return took


def once(command: list[str], terminal: int) -> float:
    """Wall milliseconds of one run that writes to a terminal."""
    started = time.perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, check=True)
    return (time.perf_counter() - started) * 1000


def drain(master: int) -> None:
    try:
        while os.read(master, 65536):
            pass
    except OSError:
        return


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--peers", type=Path)
    given = options.parse_args()
    rounds = given.rounds
    if given.peers:
        peers(given.peers)
    master, terminal = pty.openpty()
    threading.Thread(target=drain, args=(master,), daemon=True).start()
    times: dict[str, list[float]] = {name: [] for name in (*COMMANDS, *PROMPTS)}
    for command in COMMANDS.values():
        once(command, terminal)  # warm: bytecode and page cache
    for waited in PROMPTS.values():
        until_prompt(*waited)
    for _ in range(rounds):  # interleaved, so that a busy moment hits all alike
        for name, command in COMMANDS.items():
            times[name].append(once(command, terminal))
        for name, waited in PROMPTS.items():
            times[name].append(until_prompt(*waited))
    floor = statistics.median(times["python -c 'import pydantic'"])
    print("| command | median ms | lowest | highest | ratio to importing pydantic |\n|---+---+---+---+---|")
    for name, found in times.items():
        middle = statistics.median(found)
        print(f"| ={name}= | {middle:.0f} | {min(found):.0f} | {max(found):.0f} | {middle / floor:.2f} |")


if __name__ == "__main__":
    main()
