"""What many agents in one process cost, and whether they hold each other up. Prints an Org table.

python tests/bench/agents.py [--agents 1 50 500] [--turns 3] [--freeze] [--without-gc]

Each agent makes one run of so many requests, all but the last with a call, all records on disk, at a server
of its own process that thinks for 50 ms (backends.py). All begin at once, after one that is not counted. Lag
is how much later than asked a timer of the event loop rang; fair is the first end divided by the last one.
Where the processor is busy, those who take turns end one after the other in the last turn: fair is then about
1 - 1/TURNS. With --freeze Python does not look for garbage in what the first agent has loaded (gc.freeze), as
a host may do;
with --without-gc it does not look at all, which tells what of the lag that is.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from backends import TASK, TURNS, resident, server, table

EVERY = 0.005  # seconds between two looks at the loop


async def watch(lags: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(EVERY)
        lags.append(time.perf_counter() - began - EVERY)


async def measured(base: str, count: int, turns: int, collect: str) -> list[str]:
    from quoth import ModelOptions
    from quoth.agent.client import AsyncAgent

    lags, ends = [0.0], list[float]()
    with tempfile.TemporaryDirectory() as folder:

        def made() -> Any:
            model = ModelOptions(
                "openai:m", base_url=f"{base}/talk/{turns}/v1", dialect="native", api_key="sk-none"
            )
            return AsyncAgent(workspace=folder, model=model, session=None)

        async def run(agent: Any) -> None:
            assert (await agent.run(TASK)).text == "Done."
            ends.append(time.perf_counter() - began)

        began = time.perf_counter()
        async with made() as agent:
            await run(agent)
        gc.collect()
        if collect == "freeze":
            gc.freeze()
        elif collect == "never":
            gc.disable()
        before, agents = resident(), [made() for _ in range(count)]
        watching = asyncio.create_task(watch(lags))
        await asyncio.sleep(10 * EVERY)
        lags[:], ends[:] = [0.0], []
        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*map(run, agents))
        cpu = (time.process_time() - cpu) / count / turns
        watching.cancel()
        size = (resident() - before) / count
        for agent in agents:
            await agent.aclose()
    lags.sort()
    return [
        str(count),
        f"{cpu * 1000:.1f}",
        f"{count * turns / max(ends):.0f}",
        f"{min(ends) / max(ends):.2f}",
        f"{lags[-1] * 1000:.0f}",
        f"{lags[int(len(lags) * 0.99)] * 1000:.0f}",
        f"{size:.0f}",
    ]


def main() -> None:
    if sys.argv[1:2] == ["one"]:
        print("\t".join(asyncio.run(measured(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]))))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 50, 500])
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--freeze", dest="collect", action="store_const", const="freeze", default="")
    parser.add_argument("--without-gc", dest="collect", action="store_const", const="never")
    given = parser.parse_args()
    rows = []
    with server() as base, tempfile.TemporaryDirectory() as state:
        for count in given.agents:
            words = [sys.executable, __file__, "one", base, str(count), str(given.turns), given.collect]
            env = {**os.environ, "QUOTH_STATE": state}
            done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, env=env)
            rows.append(done.stdout.strip().split("\t"))
    head = ["agents", "ms of CPU a step", "steps a second", "fair (aim 0.9)", "most lag, ms (aim 50)"]
    table([*head, "99 % of it", "KB each (aim 300)"], rows)


if __name__ == "__main__":
    main()
