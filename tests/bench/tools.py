"""Calls of an agent that has ten to ten thousand tools: CPU milliseconds, each round in a process of its own.
The floor is the agent with ten. Prints an Org table.

python tests/bench/tools.py [--rounds N] [--sizes N N …]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

SIZES = (10, 100, 1_000, 10_000)
CALL = '(make-thing-5 :text "x")'
MISSPELT = '(mak-thing-5 :text "x")'


def measured(size: int) -> dict[str, float]:
    """The CPU milliseconds of each step, in this process."""
    from quoth import AsyncAgent
    from quoth.tools.registry.define import define_tool, registering_in
    from quoth.tools.registry.table import CognitiveTool, ToolTable

    params = {
        "text": {"type": str, "doc": "What to make it of"},
        "limit": {"type": int, "default": 5, "doc": "How many"},
    }
    table, found = ToolTable(), dict[str, float]()

    def define(number: int) -> CognitiveTool:
        with registering_in(table):
            said = f"Make the thing number {number} out of a text."
            return define_tool(f"make-thing-{number}", said, parameters=params, body=lambda text, limit: text)

    @contextlib.contextmanager
    def timed(what: str, times: int = 1) -> Iterator[None]:
        began = time.process_time()
        yield
        found[what] = (time.process_time() - began) * 1000 / times

    async def calls(folder: str) -> None:
        how = {"workspace": folder, "model": "scripted:none.txt", "user": "ann"}
        async with AsyncAgent(tools=[], **how) as agent:  # what is imported at a first call is not meant
            for form in ('(echo :text "x")', '(ech :text "x")'):
                await agent.call(form)
        with timed("to define one", size):
            for number in range(size):
                define(number)
        with timed("an agent"):
            agent = AsyncAgent(tools=list(table), **how)
        async with agent:
            with timed("the first call"):
                assert (await agent.call(CALL)).ok
            with timed("a call", 20):
                for _ in range(20):
                    await agent.call(CALL)
            with timed("the first misspelt"):
                assert "make-thing-5?" in (await agent.call(MISSPELT)).message
            with timed("a misspelt", 5):
                for _ in range(5):
                    await agent.call(MISSPELT)
            agent.table.register(define(size))
            with timed("a call when one is new"):
                await agent.call(CALL)

    with tempfile.TemporaryDirectory() as folder:
        os.environ["QUOTH_STATE"] = os.environ["QUOTH_CONFIG"] = folder
        asyncio.run(calls(folder))
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    options.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        print(json.dumps(measured(given.one)))
        return
    found: dict[int, list[dict[str, float]]] = {size: [] for size in given.sizes}
    for _ in range(given.rounds):  # interleaved, so that a busy moment hits all alike
        for size in given.sizes:
            command = [sys.executable, __file__, "--one", str(size)]
            found[size].append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
    print(f"| CPU ms of | {' | '.join(f'{size:,} tools' for size in found)} | the last over the first |")
    print(f"|---+{'---+' * len(found)}---|")
    for what in next(iter(found.values()))[0]:
        rows = [sorted(one[what] for one in rounds) for rounds in found.values()]
        cells = [f"{statistics.median(row):.2f} ({row[0]:.2f}–{row[-1]:.2f})" for row in rows]
        over = statistics.median(rows[-1]) / statistics.median(rows[0])
        print(f"| {what} | {' | '.join(cells)} | {over:.2f} |")


if __name__ == "__main__":
    main()
