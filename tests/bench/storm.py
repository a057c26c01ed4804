"""Delegated calls in a storm: workers killed, ended and stopped, Redis killed and stopped, tools that change.
Prints what happened, how the calls ended, and every fault; ends with 1 if there is one.

python tests/bench/storm.py [--calls 500] [--callers 4] [--workers 4] [--fsync everysec] [--flush] [--cuts]

What the calls do, and what is looked for afterwards, is in tests/vocabulary/weather.py. Others take over
after three seconds.
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
    """One worker is stopped for a minute, and while there are calls one thing after the other happens, the
    next often before the last is over."""
    happening = {asyncio.create_task(storm.worker_is_stopped(60))}
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
        if given.cuts:
            kinds.append(storm.power_is_cut(random.random()))
        random.shuffle(kinds)
        for kind in kinds:
            await asyncio.wait({calls}, timeout=4 * random.random())
            while len(happening) > 2 and not calls.done():  # one worker is spared
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
    entered = storm.entered()
    ends: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for number, told in storm.orders.items():
        ends[told.tool, told.end].append(entered[number])
    print("| tool | calls that ended so | calls | in the book once | more often |\n|---+---+---+---+---|")
    for (tool, end), times in sorted(ends.items()):
        print(f"| {tool} | {end} | {len(times)} | {times.count(1)} | {sum(one > 1 for one in times)} |")
    print(
        "| appendfsync | seconds | what happened | ok | a person asked | other ends"
        " | planned again | made twice | faults |\n|---+---+---+---+---+---+---+---+---|"
    )
    results = Counter(told.results[-1].status for told in storm.orders.values())
    others = results.total() - results["ok"] - results["pending"]
    again = sum(len(told.results) > 1 for told in storm.orders.values())
    twice = sum(times > 1 for times in entered.values())
    happened = ", ".join(f"{times} x {what}" for what, times in sorted(storm.weather.items()))
    cells = (given.fsync, f"{took:.0f}", happened, results["ok"], results["pending"], others, again, twice)
    print("| " + " | ".join(map(str, (*cells, len(faults)))) + " |")
    print("\n".join(faults) or "No fault.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    for name, default in (("calls", 500), ("callers", 4), ("workers", 4), ("at-once", 24), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--fsync", choices=("always", "everysec"), default="always")
    parser.add_argument("--flush", action="store_true", help="FLUSHALL, too")
    parser.add_argument("--cuts", action="store_true", help="power cuts, too: the last second is lost")
    given = parser.parse_args()
    random.seed(given.seed or None)
    with tempfile.TemporaryDirectory(prefix="quoth-storm-") as folder:
        os.environ |= {"QUOTH_STATE": f"{folder}/state", "QUOTH_CONFIG": f"{folder}/config"}
        os.environ["QUOTH_EMBEDDER"] = "none"
        from servers import own_redis
        from weather import Storm

        sys.exit(0 if asyncio.run(main(given, Path(folder))) else 1)
