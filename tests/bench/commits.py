"""How often a step waits for the disk, alone and with many sessions in one process and one store, and what
several processes do in one store. Prints Org tables.

python tests/bench/commits.py [--sessions 1 10 50] [--steps 20] [--rounds 3]
python tests/bench/commits.py --processes 1 2 --sessions 25 --steps 100
The model is a script that answers after 2 ms with a call of echo; so what is measured is the loop, the door
and the store. Each row is made in a process of its own. Syncs are all that the process makes of any file, by
SQLite (a file layer counts them) and beside it, with the beginning and the end of each run; they are counted
in a round that is not timed. The floor is one row and one synced commit, by apsw, in the same process.
Processes begin at the same time; they share a store, and then each has its own.
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
from collections.abc import Callable, Sequence
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


async def story(root: Path, sessions: int, steps: int, begin: Callable[[], object]) -> dict[str, float]:
    from quoth import AsyncAgent
    from quoth.agent.run.limits import RunLimits
    from quoth.neuro.backends.select import ScriptedBackend
    from quoth.tools.registry.table import ToolTable

    class Slow(ScriptedBackend):
        async def complete(self, *args: Any, **more: Any) -> Any:
            await asyncio.sleep(0.002)
            return await super().complete(*args, **more)

    async with AsyncAgent(workspace=root, model="scripted:none") as agent:
        table = ToolTable((agent.table.get("echo"),))
        agent.host.listed()
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

        await one(agent_of(f"warm-{os.getpid()}"))
        ends.clear()
        agents = [agent_of(f"s{number}-{os.getpid()}") for number in range(sessions)]
        begin()
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
        held.execute("CREATE TABLE IF NOT EXISTS floor (text TEXT)")
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


def one(folder: Path, sessions: int, steps: int, how: str) -> dict[str, float]:
    os.environ["QUOTH_STATE"], os.environ["QUOTH_CONFIG"] = f"{folder}/state", f"{folder}/config"
    (folder / "home").mkdir(exist_ok=True)
    if how == "counted":
        count_syncs()

    def begin() -> None:
        if how == "beside":
            print("ready", flush=True)
            sys.stdin.readline()

    return asyncio.run(story(folder / "home", sessions, steps, begin))


def together(processes: int, stores: int, here: list[str]) -> tuple[float, float]:
    """Steps a second of processes that share so many stores, and ms of CPU a step."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DISK")) as folder:
        children = []
        for number in range(processes):
            own = Path(folder, str(number % stores))
            own.mkdir(exist_ok=True)
            words = [*here, "--folder", str(own), "--one", "beside"]
            children.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("\n")
            child.stdin.flush()
        found = [json.loads(child.communicate()[0]) for child in children]
    return sum(1e3 / one["wall"] for one in found), statistics.mean(one["cpu"] for one in found)


def show_together(given: argparse.Namespace) -> None:
    print("| processes | stores | sessions each | steps a second together | ms CPU a step |")
    print("|---+---+---+---+---|")
    for processes in given.processes:
        for stores in sorted({1, processes}):
            here = [
                sys.executable,
                __file__,
                "--sessions",
                str(given.sessions[0]),
                "--steps",
                str(given.steps),
            ]
            found = [together(processes, stores, here) for _ in range(given.rounds)]
            rates, used = zip(*found, strict=True)
            rate = f"{statistics.median(rates):.0f} ({min(rates):.0f}–{max(rates):.0f})"
            print(f"| {processes} | {stores} | {given.sessions[0]} | {rate} | {spread(used)} |", flush=True)


def spread(values: Sequence[float]) -> str:
    """The median, the lowest and the highest."""
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sessions", type=int, nargs="+", default=[1, 10, 50])
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--processes", type=int, nargs="+", help="how many at once, in one store or more")
    options.add_argument("--one", choices=("counted", "timed", "beside"), help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        print(json.dumps(one(given.folder, given.sessions[0], given.steps, given.one)))
        return
    if given.processes:
        show_together(given)
        return
    print(f"| {' | '.join(HEADS)} |\n|{'+'.join('---' for _ in HEADS)}|", flush=True)
    for sessions in given.sessions:
        here = [sys.executable, __file__, "--sessions", str(sessions), "--steps", str(given.steps), "--one"]
        runs = []
        for how in ["counted", *["timed"] * given.rounds]:
            with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DISK")) as folder:
                words = [*here, how, "--folder", folder]
                done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
            runs.append(json.loads(done.stdout))
        timed = [spread([run[name] for run in runs[1:]]) for name in ("cpu", "wall", "floor", "stop", "fair")]
        print(f"| {sessions} | {runs[0]['syncs']:.2f} | {' | '.join(timed)} |", flush=True)


if __name__ == "__main__":
    main()
