"""How often a step waits for the disk, alone and with many sessions in one process and one store. Prints an
Org table.

python tests/bench/commits.py [--sessions 1 10 50] [--steps 20] [--rounds 3]
The model is a script that answers after 2 ms with a call of echo; so what is measured is the loop, the door
and the store. Each row is made in a process of its own. Syncs are all that the process makes of any file, by
SQLite (a file layer counts them) and beside it, with the beginning and the end of each run; they are counted
in a round that is not timed. The floor is one row and one synced commit, by apsw, in the same process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import apsw

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vocabulary"))
HEADS = (
    "sessions",
    "syncs a step",
    "ms CPU a step",
    "ms a step",
    "a synced commit, ms",
    "longest stop of the event loop, ms",
    "first end over last",
)


async def story(root: Path, sessions: int, steps: int) -> dict[str, float]:
    from quoth import AsyncAgent
    from quoth.agent.run.run import RunLimits
    from quoth.neuro.backends.scripted import ScriptedBackend
    from quoth.tools.registry.table import ToolTable

    class Slow(ScriptedBackend):
        async def complete(self, *args: Any, **more: Any) -> Any:
            await asyncio.sleep(0.002)
            return await super().complete(*args, **more)

    async with AsyncAgent(workspace=root, model="scripted:none") as agent:
        table = ToolTable((agent.table.get("echo"),))
        agent.listed()
        held = agent.store

        def agent_of(name: str) -> AsyncAgent:
            said: list[int] = []

            def reply(messages: Any) -> Any:
                said.append(1)
                text = f"This is line {len(said)} of {name}."
                call = {"name": "echo", "arguments": {"text": text}}
                return {"tool_calls": [call]} if len(said) <= steps else "Done."

            limits = RunLimits(steps=steps + 1, calls=steps + 1)
            return AsyncAgent(workspace=root, tools=table, session=name, model=Slow(reply), limits=limits)

        ends: list[float] = []

        async def one(agent: AsyncAgent) -> None:
            async with agent:
                assert (await agent.run("Say every line.")).status == "done"
                ends.append(time.monotonic())

        stops: list[float] = []

        async def watch() -> None:
            while True:
                before = time.monotonic()
                await asyncio.sleep(0.002)
                stops.append(time.monotonic() - before - 0.002)

        await one(agent_of("warm"))
        ends.clear()
        agents = [agent_of(f"s{number}") for number in range(sessions)]
        watching = asyncio.create_task(watch())
        SYNCS[0], cpu, began = 0, time.process_time(), time.monotonic()
        await asyncio.gather(*map(one, agents))
        count = sessions * steps
        found = {
            "syncs": SYNCS[0] / count,
            "cpu": (time.process_time() - cpu) / count * 1e3,
            "wall": (time.monotonic() - began) / count * 1e3,
            "stop": max(stops) * 1e3,
            "fair": (min(ends) - began) / (max(ends) - began),
        }
        watching.cancel()
        held.execute("CREATE TABLE floor (text TEXT)")
        began = time.monotonic()
        for _ in range(200):
            held.execute("INSERT INTO floor VALUES ('a line of a hundred characters or so')")
        return found | {"floor": (time.monotonic() - began) / 200 * 1e3}


SYNCS = [0]


def count_syncs() -> None:
    """Count all syncs of this process from now on."""
    from disks import CountingDisk

    from quoth.tools.storage import log_sync

    class Disk(CountingDisk):
        @property
        def synced(self) -> int:
            return SYNCS[0]

        @synced.setter
        def synced(self, count: int) -> None:
            SYNCS[0] = count

    disk, real = Disk("counting"), log_sync.sync_file

    def sync(file: int) -> None:
        disk.sync(file)
        real(file)

    class Connection(apsw.Connection):
        def __init__(self, path: str, **more: Any) -> None:
            super().__init__(path, vfs=disk.name, **more)

    log_sync.sync_file = sync
    apsw.Connection = Connection  # type: ignore[misc]


def one(sessions: int, steps: int, counting: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DISK")) as folder:
        os.environ["QUOTH_STATE"], os.environ["QUOTH_CONFIG"] = f"{folder}/state", f"{folder}/config"
        Path(folder, "home").mkdir()
        if counting:
            count_syncs()
        return asyncio.run(story(Path(folder, "home"), sessions, steps))


def spread(values: list[float]) -> str:
    """The median, the lowest and the highest."""
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sessions", type=int, nargs="+", default=[1, 10, 50])
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--one", choices=("counted", "timed"), help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        print(json.dumps(one(given.sessions[0], given.steps, given.one == "counted")))
        return
    print(f"| {' | '.join(HEADS)} |\n|{'+'.join('---' for _ in HEADS)}|", flush=True)
    for sessions in given.sessions:
        here = [sys.executable, __file__, "--sessions", str(sessions), "--steps", str(given.steps), "--one"]
        runs = [
            json.loads(subprocess.run([*here, how], stdout=subprocess.PIPE, check=True).stdout)
            for how in ["counted", *["timed"] * given.rounds]
        ]
        timed = [spread([run[name] for run in runs[1:]]) for name in ("cpu", "wall", "floor", "stop", "fair")]
        print(f"| {sessions} | {runs[0]['syncs']:.2f} | {' | '.join(timed)} |", flush=True)


if __name__ == "__main__":
    main()
