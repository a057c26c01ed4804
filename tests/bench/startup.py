"""Warm start of ``quoth tools`` in a terminal, side by side with importing pydantic. Prints an Org table.

python tests/bench/startup.py [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import pty
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

PYTHON = sys.executable
QUOTH = str(Path(PYTHON).with_name("quoth"))
COMMANDS = {
    "python -c pass": [PYTHON, "-c", "pass"],
    "python -c 'import pydantic'": [PYTHON, "-c", "import pydantic"],
    "python -c 'import hy'": [PYTHON, "-c", "import hy"],
    "quoth tools": [QUOTH, "tools"],
    "quoth call '(echo :text \"x\")'": [QUOTH, "call", '(echo :text "x")'],
}


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
    rounds = options.parse_args().rounds
    master, terminal = pty.openpty()
    threading.Thread(target=drain, args=(master,), daemon=True).start()
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for command in COMMANDS.values():
        once(command, terminal)  # warm: bytecode and page cache
    for _ in range(rounds):  # interleaved, so that a busy moment hits all alike
        for name, command in COMMANDS.items():
            times[name].append(once(command, terminal))
    floor = statistics.median(times["python -c 'import pydantic'"])
    print("| command | median ms | lowest | highest | ratio to importing pydantic |\n|---+---+---+---+---|")
    for name, found in times.items():
        middle = statistics.median(found)
        print(f"| ={name}= | {middle:.0f} | {min(found):.0f} | {max(found):.0f} | {middle / floor:.2f} |")


if __name__ == "__main__":
    main()
