"""grep-search over many small files, beside ripgrep where it is installed. Prints an Org table.

python tests/bench/search.py [--files N] [--rounds N]

Both read the same files, with a .gitignore. The seconds are those of all processors, the best of the rounds:
ripgrep, with its threads, takes less time than that.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from importlib import import_module
from os import times
from pathlib import Path

from quoth import Agent

PATTERNS = ("needle", r"\bneedle\s+in", "(?i)NEEDLE", "needle|haystack", r"[0-9]{5}")
WORDS = ["def", "class", "return", "import", "alpha", "beta", "gamma", "delta", "self", "value", "index"]
IGNORED = ["*.o", "*.pyc", "build/", "dist/", "/docs/_build", "*.egg-info/", "!keep.so", "*.log", "tmp*/"]


def grow(root: Path, many: int) -> None:
    """Folders of a hundred files of twenty lines, of which one in two thousand has a needle."""
    chance = random.Random(1)
    (root / ".gitignore").write_text("\n".join(IGNORED) + "\n")
    for number in range(many):
        folder = root / f"d{number // 1000:03}" / f"e{number // 100 % 10}"
        if number % 100 == 0:
            folder.mkdir(parents=True)
        lines = [" ".join(chance.choices(WORDS, k=8)) for _ in range(20)]
        lines += ["a needle in hay"] if chance.random() < 0.0005 else []
        (folder / f"f{number % 100:02}.py").write_text("\n".join(lines) + "\n")


def spent(work: Callable[[], int], rounds: int) -> tuple[float, int]:
    """The least seconds of processor that ``work`` took, and what it gave."""
    best, found = float("inf"), 0
    for _ in range(rounds):
        begin = sum(times()[:4])
        found = work()
        best = min(best, sum(times()[:4]) - begin)
    return best, found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--files", type=int, default=100_000)
    asked.add_argument("--rounds", type=int, default=3)
    options = asked.parse_args()
    import_module("quoth.tools.builtin.search").SECONDS = 600  # however busy the machine is
    rg = shutil.which("rg")
    with tempfile.TemporaryDirectory() as folder:
        grow(Path(folder), options.files)
        print(f"Seconds of processor to search {options.files:,} files:\n")
        print("| pattern | hits | grep-search | rg |\n|-|-|-|-|")
        with Agent(workspace=folder, model="scripted") as agent:
            for pattern in PATTERNS:

                def ours(pattern: str = pattern) -> int:
                    result = agent.call(f'(grep-search :pattern r"{pattern}" :limit 1000)')
                    return len(result.value) if result.ok else -1

                def theirs(pattern: str = pattern) -> int:
                    command = [str(rg), "--no-config", "-n", pattern, folder]
                    return len(subprocess.run(command, capture_output=True).stdout.splitlines())

                seconds, hits = spent(ours, options.rounds)
                other = f"{spent(theirs, options.rounds)[0]:.2f}" if rg else "-"
                shown, many = pattern.replace("|", "¦"), hits if hits >= 0 else "too long"
                print(f"| {shown} | {many} | {seconds:.2f} | {other} |", flush=True)


if __name__ == "__main__":
    main()
