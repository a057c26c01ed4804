"""What a boundary costs: starting ``true`` bare, and inside each kind. Prints an Org table of milliseconds,
by the clock and of processor time; the clock tells the truth on an idle machine only.

python tests/bench/shell.py [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from quoth.tools.shell.boundary import Boundary, Kind, boundary_kind, confined, why_none

TRUE = "/bin/true"


def bare() -> float:
    """The start and the end of a program, in milliseconds."""
    started = time.perf_counter()
    subprocess.run([TRUE], check=True)
    return (time.perf_counter() - started) * 1000


def processor() -> float:
    """The seconds of processor time of this process and of those that it has started."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def inside(kind: Kind, root: Path) -> Callable[[], float]:
    def run() -> float:
        started = time.perf_counter()
        command = confined([TRUE], Boundary(root, root), kind)
        subprocess.run(command.argv, env=command.env, pass_fds=command.pass_fds, check=True)
        command.close()
        return (time.perf_counter() - started) * 1000

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        kinds: dict[str, Callable[[], float]] = {"bare": bare}
        for wish in ("bubblewrap", "landlock"):
            os.environ["QUOTH_BOUNDARY"] = wish
            kind = boundary_kind()
            if kind:
                kinds[wish] = inside(kind, Path(folder))
            else:
                print(f"# {why_none()}")
        took: dict[str, list[float]] = {name: [] for name in kinds}
        spent = dict.fromkeys(kinds, 0.0)
        for _ in range(rounds):  # in turns, so that a busy moment hits all of them
            for name, run in kinds.items():
                before = processor()
                took[name].append(run())
                spent[name] += processor() - before
    print("| start of true | least ms | median ms | above bare, median ms | processor ms |")
    print("|-")
    base = statistics.median(took["bare"])
    for name, times in took.items():
        middle, used = statistics.median(times), spent[name] / rounds * 1000
        print(f"| {name} | {min(times):.1f} | {middle:.1f} | {middle - base:.1f} | {used:.1f} |")


if __name__ == "__main__":
    main()
