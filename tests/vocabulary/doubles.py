"""The harness of second times: a delegated call whose Redis, which keeps nothing, is killed at one step, and
which is then resumed, undecided and decided. Its effect is counted in a file.

    python tests/vocabulary/doubles.py --all           each step of each route, and print a table
    python tests/vocabulary/doubles.py --seed 7 --few 3    a few steps of each route, chosen by the seed

The steps are the commands of the caller's line and the scripts of the worker, found by hooks here. A person
who decides is asked for each request by its id; nobody else says yes.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).parent)]

from machines import Machines  # noqa: E402
from servers import RedisServer, own_redis  # noqa: E402
from words import tool  # noqa: E402

from quoth.agent.client import AsyncAgent  # noqa: E402
from quoth.neuro.backends.select import ScriptedBackend  # noqa: E402
from quoth.tools.call.ports import asks_fact  # noqa: E402
from quoth.tools.consent.requests import Decision  # noqa: E402
from quoth.tools.remote import broker, line, shared_receipts, worker  # noqa: E402

ROUTES = ("call", "program", "run", "flight")
PLAN = "#+TITLE: P\n* PLAN Count\n#+begin_src hy\n(count-up)\n#+end_src\n"
LIVES = 8


class Doubled(AssertionError):
    """An effect without a decision, or a message that is not true."""


@contextmanager
def killing(server: RedisServer, at: int) -> Iterator[list[str]]:
    """Kill the server at a step, before what it does, and start it again; the steps that there were."""
    steps: list[str] = []

    def hooked(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(self: Any, *args: Any, **more: Any) -> Any:
            if name != "_command" or args[0] != "TIME":
                steps.append(name)
                if len(steps) == at:
                    server.kill()
                    server.start()
            return real(self, *args, **more)

        return step

    with mock.patch.multiple(line.BrokerLine, _command=hooked("_command", line.BrokerLine._command)):
        records = shared_receipts.CallRecords
        hooks = {name: hooked(name, getattr(records, name)) for name in ("begin", "settle")}
        with mock.patch.multiple(records, **hooks):
            yield steps


async def lives(folder: Path, route: str, at: int) -> tuple[int, list[str], str]:
    """Make the call with a kill at that step, and resume it to its end: effects, steps and last status."""
    ran = folder / "ran"
    ran.touch()

    async def count_up() -> str:
        with ran.open("a") as out:
            out.write("x")
        await asyncio.sleep(0.15)  # long enough that its caller looks
        return "done"

    def times() -> int:
        return len(ran.read_text())

    with own_redis() as server:
        machines = Machines(server.url)
        machines.patience = 2.0
        try:
            await machines.start_worker(tool("count-up", count_up, effects=["memory"], timeout=2.0))
            with killing(server, at) as steps:
                status, said = await live(folder, machines, route)
            allowed = 1
            for life in range(LIVES):
                if times() > allowed or ("was not run" in said and times()):
                    raise Doubled(f"{route}, step {at}, life {life}: {times()} effects, {said}")
                if status != "pending":
                    break
                if life % 2:  # each is first resumed without a decision
                    allowed += await decide(folder, machines)
                await machines.restart_caller()
                status, said = await live(folder, machines, route, resumes=True)
            else:
                raise Doubled(f"{route}, step {at}: it does not end: {said}")
        finally:
            await machines.aclose()
        return times(), steps, status


def opened(folder: Path, machines: Machines) -> AsyncAgent:
    far = [machines.remote(one) for one in machines.table]
    model = ScriptedBackend(["(count-up)", "Done."])
    return AsyncAgent(workspace=folder / "w", session="s", user="ann", tools=far, model=model)


async def live(folder: Path, machines: Machines, route: str, resumes: bool = False) -> tuple[str, str]:
    (folder / "w").mkdir(exist_ok=True)
    plan = folder / "w" / "p.org"
    if not plan.exists():
        plan.write_text(PLAN)
    async with opened(folder, machines) as agent:
        if route == "flight":
            report = await agent.fly(plan)
            said = f"{report} {plan.read_text()}"
            return ("pending" if agent.broker.requests() else "ended"), said
        if resumes:
            results = await agent.resume()
            last: Any = results[-1] if results else None
        elif route == "run":
            last = await agent.run("Count.")
        elif route == "program":
            last = await agent.eval("(count-up)")
        else:
            last = await agent.call("(count-up)")
        return (last.status, getattr(last, "message", "") or getattr(last, "text", "")) if last else ("", "")


async def decide(folder: Path, machines: Machines) -> int:
    """Say yes to what waits; how many times it may be run because of that."""
    again = 0
    async with opened(folder, machines) as agent:
        for request in agent.broker.requests():
            again += asks_fact(request.reason)
            agent.broker.decide(request.id, Decision(by="ann"))
    return again


def seen(route: str, at: int) -> tuple[int, list[str], str]:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["QUOTH_STATE"] = f"{folder}/state"
        for name, seconds in ((broker, "BLOCK_SECONDS"), (worker, "LOOK_SECONDS")):
            setattr(name, seconds, 0.03)
        return asyncio.run(lives(Path(folder), route, at))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--few", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.disable()  # workers that lose their Redis log it
    doubled = 0
    for route in ROUTES:
        _, steps, _ = seen(route, 0)
        places = [*range(1, len(steps) + 1)]
        if not options.all:
            places = sorted(random.Random(options.seed).sample(places, min(options.few, len(places))))
        ends: Counter[str] = Counter()
        for at in places:
            try:
                count, _, status = seen(route, at)
                ends[f"{status}, {count} effects"] += 1
            except Doubled as error:
                doubled += 1
                print("DOUBLED", error)
        print(f"{route}: {len(places)} kills; {dict(ends)}", flush=True)
    print(f"doubled: {doubled}")
    return 1 if doubled else 0


if __name__ == "__main__":
    sys.exit(main())
