"""What it costs to run a body that blocks beside the event loop. Prints an Org table.

python tests/bench/bodies.py [--rounds 9] [--calls 300]

The floor is asyncio's own pool of threads, a bare thread for each function stands beside it; a body has its
deadline, its context and its stop besides. All in turns within one run; CPU of the process, in microseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any


def work() -> int:
    return 1


async def pooled() -> None:
    await asyncio.get_running_loop().run_in_executor(None, work)


async def in_a_thread_of_its_own() -> None:
    loop, done = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
    threading.Thread(target=lambda: loop.call_soon_threadsafe(done.set_result, work()), daemon=True).start()
    await done


def a_body() -> Callable[[], Awaitable[Any]]:
    from quoth.tools.call.context import ToolContext
    from quoth.tools.door.execution import run_function

    context = ToolContext(Path.cwd(), "s", "ann")
    return lambda: run_function(work, {}, context, 30)


async def measured(rounds: int, calls: int) -> dict[str, list[float]]:
    ways = {"asyncio's pool": pooled, "a thread each": in_a_thread_of_its_own, "a body": a_body()}
    found: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            began = time.process_time()
            for _ in range(calls):
                await way()
            if turn:  # the first makes everything warm
                found[name].append((time.process_time() - began) / calls * 1e6)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=300)
    given = parser.parse_args(sys.argv[1:])
    found = asyncio.run(measured(given.rounds, given.calls))
    floor = next(iter(found.values()))
    print("| a function that blocks | CPU, us | least | most | to asyncio's pool |\n|---+---+---+---+---|")
    for name, took in found.items():
        ratio = statistics.median(one / least for one, least in zip(took, floor, strict=True))
        print(f"| {name} | {statistics.median(took):.0f} | {min(took):.0f} | {max(took):.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
