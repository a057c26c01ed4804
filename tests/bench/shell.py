"""What a boundary costs: running ``true`` bare, and as the tool shell does inside each kind. Prints an Org
table of milliseconds, by the clock and of processor time; the clock tells the truth on an idle machine only.

python tests/bench/shell.py [--rounds N]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from quoth.tools.shell.boundary import Boundary, Kind, boundary_kind, confined, why_none
from quoth.tools.shell.running import STDOUT, Running

TRUE = "/bin/true"


async def bare() -> None:
    process = await asyncio.create_subprocess_exec(TRUE, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    await process.stdout.read()
    await process.wait()


def inside(kind: Kind, root: Path) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        command = confined([TRUE], Boundary(root, root), kind)
        more = {"pass_fds": command.pass_fds, "stderr": STDOUT, "kept": not command.ends_all}
        program = await Running.start(command.argv, cwd=root, env=command.env, alone=True, **more)
        assert program.process.stdout is not None
        await program.process.stdout.read()
        assert await program.ended() == 0
        await program.put_away()
        command.close()

    return run


def processor() -> float:
    """The seconds of processor time of this process and of those that it has started."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


async def measured(kinds: dict[str, Callable[[], Awaitable[None]]], rounds: int) -> None:
    took: dict[str, list[float]] = {name: [] for name in kinds}
    spent = dict.fromkeys(kinds, 0.0)
    for _ in range(rounds):  # in turns, so that a busy moment hits all of them
        for name, run in kinds.items():
            before, started = processor(), time.perf_counter()
            await run()
            took[name].append((time.perf_counter() - started) * 1000)
            spent[name] += (processor() - before) * 1000
    print("| run of true | least ms | median ms | above bare, median ms | processor ms |")
    print("|-")
    base = statistics.median(took["bare"])
    for name, times in took.items():
        middle = statistics.median(times)
        print(
            f"| {name} | {min(times):.1f} | {middle:.1f} | {middle - base:.1f} | {spent[name] / rounds:.1f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        kinds = {"bare": bare}
        for wish in ("bubblewrap", "landlock"):
            os.environ["QUOTH_BOUNDARY"] = wish
            if kind := boundary_kind():
                kinds[wish] = inside(kind, Path(folder))
            else:
                print(f"# {why_none()}")
        asyncio.run(measured(kinds, rounds))


if __name__ == "__main__":
    main()
