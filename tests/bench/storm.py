"""Delegated calls in a storm: workers killed, ended and stopped, Redis killed and stopped, tools that change.
Prints what happened, how the calls ended, and every fault; ends with 1 if there is one.

python tests/bench/storm.py [--calls 500] [--callers 4] [--workers 3] [--fsync always|everysec] [--seed N]

What the calls do, and what is looked for afterwards, is in tests/vocabulary/weather.py. A stopped worker goes
on after more than the takeover.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "vocabulary"))

TAKEOVER = 3  # seconds
LONGEST = 900.0  # that all of it may take


async def bad_weather(storm: Storm, calls: asyncio.Task[None], given: argparse.Namespace) -> None:
    """One thing after the other while there are calls, the next often before the last is over."""
    happening: set[asyncio.Task[None]] = set()
    while not calls.done():
        kinds = [
            storm.worker_is_killed(2 * random.random()),
            storm.worker_is_killed(0),
            storm.worker_is_stopped(3 * TAKEOVER * random.random()),
            storm.worker_is_ended(random.random()),
            storm.redis_is_killed(3 * random.random()),
            storm.redis_is_stopped(3 * random.random()),
            storm.tools_change(),
        ]
        if given.flush:
            kinds.append(storm.redis_is_emptied())
        random.shuffle(kinds)
        for kind in kinds:
            await asyncio.wait({calls}, timeout=4 * random.random())
            while len(happening) > 1 and not calls.done():  # one worker is spared
                _, happening = await asyncio.wait(happening, return_when=asyncio.FIRST_COMPLETED)
            if calls.done():
                kind.close()
            else:
                happening.add(asyncio.create_task(kind))
    await asyncio.gather(*happening)


async def main(given: argparse.Namespace, place: Path) -> bool:
    since = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - since:6.1f} s  {text}", file=sys.stderr)

    with own_redis("--appendonly", "yes", "--appendfsync", given.fsync) as server:
        async with Storm(
            place,
            server,
            workers=given.workers,
            callers=given.callers,
            seconds=given.seconds,
            takeover=TAKEOVER,
            say=say,
        ) as storm:
            before = len(asyncio.all_tasks())
            calls = asyncio.create_task(storm.calls(given.calls, at_once=given.at_once))
            async with asyncio.timeout(LONGEST):
                await asyncio.gather(calls, bad_weather(storm, calls, given))
            took = time.monotonic() - since
            await storm.all_is_put_away()
            faults = [*storm.faults()]
            await storm.close_callers()
            if (tasks := len(asyncio.all_tasks()) - before) > 0:
                faults.append(f"{tasks} tasks of callers go on")
        if (connections := storm.connections()) > 1:
            faults.append(f"{connections - 1} connections stay")
    show(given, storm, took, faults)
    return not faults


def show(given: argparse.Namespace, storm: Storm, took: float, faults: list[str]) -> None:
    tries = Counter(len(told.results) for told in storm.orders.values())
    entered = storm.entered()
    print(f"{len(storm.orders)} calls of {given.callers} callers to {given.workers} workers in {took:.0f} s,")
    print(
        f"Redis with appendfsync {given.fsync}. " + ", ".join(f"{n} x {w}" for w, n in storm.weather.items())
    )
    print(f"Planned again with a new parameter: {sum(n for tried, n in tries.items() if tried > 1)}")
    print("| tool | end | calls | done once | done more often |\n|---+---+---+---+---|")
    ends: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for number, told in storm.orders.items():
        ends[told.tool, told.end].append(entered[number])
    for (tool, end), times in sorted(ends.items()):
        more = sum(one > 1 for one in times)
        print(f"| {tool} | {end} | {len(times)} | {times.count(1)} | {more} |")
    print("\n".join(faults) or "No fault.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    for name, default in (("calls", 500), ("callers", 4), ("workers", 3), ("at-once", 24), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--fsync", choices=("always", "everysec"), default="always")
    parser.add_argument("--flush", action="store_true", help="FLUSHALL, too")
    given = parser.parse_args()
    random.seed(given.seed or None)
    with tempfile.TemporaryDirectory(prefix="quoth-storm-") as folder:
        os.environ |= {"QUOTH_STATE": f"{folder}/state", "QUOTH_CONFIG": f"{folder}/config"}
        os.environ["QUOTH_EMBEDDER"] = "none"
        from servers import own_redis
        from weather import Storm

        sys.exit(0 if asyncio.run(main(given, Path(folder))) else 1)
