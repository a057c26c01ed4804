"""What many agents in one process cost, and whether they hold each other up. Prints an Org table.

python tests/bench/agents.py [--agents 1 50 500] [--turns 3] [--rounds 3]
    [--host raw plain frozen seldom without]

Each agent makes one run of so many requests, all but the last with a call, all records on disk, at a server
of its own process that thinks for 50 ms (backends.py). All begin at once, after some that are not counted;
few agents are measured several times over, one such time after the other. Lag is how much later than asked a
timer of the event loop rang, and what CPU the loop's thread took meanwhile, which a loaded machine does not
change much; fair is the first end divided by the last one. Where the processor is busy, those who take turns
end one after the other in the last turn: fair is then about 1 - 1/TURNS.

What the host does about Python's search for garbage: ``plain`` nothing, ``frozen`` gc.freeze() once its first
agents have run, ``seldom`` that and a full search ten times as seldom, ``without`` none at all, which
tells what of the lag it is. ``raw`` is the floor: as many tasks that post the same requests with one httpx
client. Rounds are interleaved; medians, and in brackets the least and the most.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
from backends import TASK, TURNS, resident, server, table

EVERY = 0.005  # seconds between two looks at the loop
SHAPES = ("{:.1f}", "{:.0f}", "{:.2f}", *["{:.0f}"] * 4)
HOSTS = ("raw", "plain", "frozen", "seldom", "without")


async def watch(lags: list[float], cpus: list[float]) -> None:
    while True:
        began, used = time.perf_counter(), time.thread_time()
        await asyncio.sleep(EVERY)
        lags.append(time.perf_counter() - began - EVERY)
        cpus.append(time.thread_time() - used)


Work = Callable[[], Awaitable[None]]  # one run
TIMES = 50  # runs that are measured at least


@asynccontextmanager
async def agents(base: str, turns: int) -> AsyncIterator[Callable[[int], list[Work]]]:
    """Makes agents, as many as are asked for, each with one run."""
    from quoth import ModelOptions
    from quoth.agent.client import AsyncAgent

    made = []
    with tempfile.TemporaryDirectory() as folder:

        def run() -> Work:
            model = ModelOptions(
                "openai:m", base_url=f"{base}/talk/{turns}/v1", dialect="native", api_key="sk-none"
            )
            agent: Any = AsyncAgent(workspace=folder, model=model, session=None)
            made.append(agent)

            async def work() -> None:
                assert (await agent.run(TASK)).text == "Done."

            return work

        yield lambda count: [run() for _ in range(count)]
        for agent in made:
            await agent.aclose()


@asynccontextmanager
async def raw(base: str, turns: int) -> AsyncIterator[Callable[[int], list[Work]]]:
    """Makes tasks that post what a run posts."""
    limits = httpx.Limits(max_connections=100, max_keepalive_connections=100)
    async with httpx.AsyncClient(limits=limits, timeout=600) as client:

        async def work() -> None:
            said: list[dict[str, Any]] = [{"role": "user", "content": TASK}]
            for _ in range(turns):
                asked = {"model": "m", "messages": said}
                reply = (await client.post(f"{base}/talk/{turns}/v1/chat/completions", json=asked)).json()
                said += [reply["choices"][0]["message"], {"role": "tool", "content": "line"}]

        yield lambda count: [work] * count


async def measured(base: str, count: int, turns: int, host: str) -> list[float]:
    lags, cpus, ends, fair = list[float](), list[float](), list[float](), list[float]()
    async with (raw if host == "raw" else agents)(base, turns) as made:

        async def run(work: Work) -> None:
            await work()
            ends.append(time.perf_counter() - began)

        began = time.perf_counter()
        for work in made(10):
            await run(work)
        gc.collect()
        if host in ("frozen", "seldom"):
            gc.freeze()
        if host == "seldom":
            gc.set_threshold(*gc.get_threshold()[:2], 10 * gc.get_threshold()[2])
        if host == "without":
            gc.disable()
        before, times, cpu, seconds = resident(), max(1, TIMES // count), 0.0, 0.0
        for _ in range(times):
            works = made(count)
            watching = asyncio.create_task(watch(lags, cpus))
            await asyncio.sleep(EVERY)
            ends.clear()
            began, used = time.perf_counter(), time.process_time()
            await asyncio.gather(*map(run, works))
            cpu += time.process_time() - used
            seconds += max(ends)
            fair.append(min(ends) / max(ends))
            watching.cancel()
        size = (resident() - before) / count / times
    steps = count * turns * times
    return [
        cpu / steps * 1000,
        steps / seconds,
        statistics.median(fair),
        max(lags) * 1000,
        sorted(lags)[int(len(lags) * 0.99)] * 1000,
        max(cpus) * 1000,
        max(0.0, size),
    ]


def main() -> None:
    if sys.argv[1:2] == ["one"]:
        found = asyncio.run(measured(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]))
        print(json.dumps(found))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 50, 500])
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--host", nargs="+", choices=HOSTS, default=["raw", "plain", "seldom"])
    given = parser.parse_args()
    found: dict[tuple[int, str], list[list[float]]] = {}
    with server() as base, tempfile.TemporaryDirectory() as state:
        for _ in range(given.rounds):
            for count, host in itertools.product(given.agents, given.host):
                words = [sys.executable, __file__, "one", base, str(count), str(given.turns), host]
                env = {**os.environ, "QUOTH_STATE": state}
                done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, env=env)
                found.setdefault((count, host), []).append(json.loads(done.stdout))
    rows = [
        [
            f"{count}, {host}",
            *map(told, zip(*those, strict=True), SHAPES),
        ]
        for (count, host), those in found.items()
    ]
    head = ["agents, host", "ms of CPU a step", "steps a second", "fair (aim 0.9)", "most lag, ms (aim 50)"]
    table([*head, "99 % of it", "its CPU, ms", "KB each (aim 300)"], rows)


def told(values: Sequence[float], shape: str) -> str:
    middle, least, most = (shape.format(one) for one in (statistics.median(values), min(values), max(values)))
    return middle if least == most else f"{middle} ({least}–{most})"


if __name__ == "__main__":
    main()
