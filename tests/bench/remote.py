"""A call that a worker in another process makes, beside the same by plain taskiq, Redis alone, and the door
in one process; and what else the way to the workers costs. Prints Org tables.

python tests/bench/remote.py [calls] [workers] [load] [start] [waiting] [--rounds 9] [--calls 200]

All that is compared is measured in turns within one run, on one Redis without a log on disk. A call goes the
whole way: through the door of an agent, signed, to a `quoth worker`, through its door, and back; both write
their audit trails to disk before they answer. Plain taskiq has a stream, msgpack, a result that is kept, and
an answer by a stream: no doors, no signatures, and no audit. CPU is that of all threads, by the clock of each
process.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "vocabulary"))

import remote_sizes
from remote_ends import (
    ALONE,
    ECHO,
    Once,
    Place,
    bare_door,
    bounce_table,
    called,
    client_of,
    commits,
    cpu,
    family,
    running,
    sent_from_a_bare_door,
    some_text,
)
from remote_sizes import told
from servers import own_redis


@dataclass
class Way:
    """One way to have a text given back, the process at its other end, and what was found."""

    name: str
    once: Once
    pids: Sequence[int] = ()
    share: float = 1.0  # of the calls of a round
    took: list[list[float]] = field(default_factory=list)
    cpus: list[tuple[float, float, float]] = field(default_factory=list)

    async def round(self, calls: int, redis: int, at_once: int = 1) -> float:
        """Make so many calls; how many there were in a second."""
        calls = max(int(calls * self.share), at_once)
        found: list[float] = []

        async def one_after_the_other(count: int) -> None:
            for _ in range(count):
                began = time.perf_counter()
                await self.once()
                found.append(time.perf_counter() - began)

        def clocks() -> tuple[float, float, float]:
            return time.process_time(), sum(map(cpu, self.pids)), cpu(redis)

        before, began = clocks(), time.perf_counter()
        await asyncio.gather(*(one_after_the_other(calls // at_once) for _ in range(at_once)))
        seconds = time.perf_counter() - began
        caller, worker, server = (
            (now - then) / len(found) for then, now in zip(before, clocks(), strict=True)
        )
        self.took.append(found)
        self.cpus.append((caller, worker, server))
        return len(found) / seconds

    def medians(self) -> list[float]:
        return [statistics.median(one) for one in self.took]


def p99(way: Way) -> float:
    """Of all calls of all rounds."""
    found = sorted(itertools.chain(*way.took))
    return found[int(len(found) * 0.99)]


def ratios(way: Way, other: Way) -> list[float]:
    """Round by round, so that a busy moment hits both alike."""
    return [mine / theirs for mine, theirs in zip(way.medians(), other.medians(), strict=True)]


async def calls(place: Place, rounds: int, count: int) -> None:
    """One call after the other, each way in turns."""
    state, fast = place.folder / "state", place.fast / "state"
    async with contextlib.AsyncExitStack() as stack:
        enter, open = stack.enter_async_context, stack.enter_context
        raw = open(running(sys.executable, "-c", ECHO, place.server.url))
        theirs = open(place.taskiq_worker("plain", 1))
        ours = await enter(place.worker("disk", 1, state))
        in_memory = await enter(place.worker("memory", 1, fast))
        words = (ALONE, place.server.url, str(place.folder / "key"), "alone", str(Path(__file__).parent))
        alone = open(running(sys.executable, "-c", *words))
        sent = await enter(sent_from_a_bare_door(place, "alone"))
        redis = await enter(client_of(place))
        taskiq = await enter(place.taskiq("plain"))
        remote, remote_fast = (
            await enter(place.agent("disk", state)),
            await enter(place.agent("memory", fast)),
        )
        here, here_fast = await enter(place.agent("", state)), await enter(place.agent("", fast))

        async def there_and_back() -> None:
            text = some_text()
            await redis.rpush("bench:there", text)
            assert (await redis.blpop("bench:back"))[1].decode() == text

        plain = Way("plain taskiq, answered by a stream", lambda: taskiq.call("bounce"), family(theirs))
        ways = [
            Way("Redis there and back", there_and_back, [raw]),
            plain,
            Way("plain taskiq, its result polled", taskiq.polled, family(theirs), 0.02),
            Way("the way alone: bare doors, no records", sent, [alone]),
            Way("delegated, a tool that reads", called(remote, "bounce"), [ours]),
            Way("delegated, a tool with receipts", called(remote, "keep"), [ours]),
            Way("reads, delegated, records in memory", called(remote_fast, "bounce"), [in_memory]),
            Way("receipts, delegated, records in memory", called(remote_fast, "keep"), [in_memory]),
            Way("here, a tool that reads", called(here, "bounce")),
            Way("here, a tool with receipts", called(here, "keep")),
            Way("reads, here, records in memory", called(here_fast, "bounce")),
            Way("receipts, here, records in memory", called(here_fast, "keep")),
            Way("here, the bare door", bare_door(bounce_table())),
            Way("one synced commit", commits(place.folder)),
        ]
        for way in ways:
            await way.round(max(count // 4, 10), place.redis_pid)
            way.took.clear()
            way.cpus.clear()
        for _ in range(rounds):
            for way in ways:
                await way.round(count, place.redis_pid)
    print(
        f"{rounds} rounds of {count} calls, one after the other. The floor: plain taskiq and two doors here."
    )
    print("| what | p50, ms | p99, ms | CPU: caller, ms | worker | Redis | to plain taskiq | to the floor |")
    print("|" + "---+" * 7 + "---|")
    of = {way.name: way for way in ways}
    for way in ways:
        cpus = [statistics.median(one) * 1e3 for one in zip(*way.cpus, strict=True)]
        ends = " | ".join(f"{one:.2f}" for one in cpus)
        floor = ""
        if way.name.startswith("delegated"):
            door = of[way.name.replace("delegated", "here")]
            least = [a + 2 * b for a, b in zip(plain.medians(), door.medians(), strict=True)]
            floor = told([a / b for a, b in zip(way.medians(), least, strict=True)], 1)
        to_plain = told(ratios(way, plain), 1)
        print(
            f"| {way.name} | {told(way.medians())} | {p99(way) * 1e3:.2f} | {ends} | {to_plain} | {floor} |"
        )


async def workers(place: Place, rounds: int, count: int, at_once: int = 50) -> None:
    """Calls a second with some workers of ten jobs each."""
    state, fast = place.folder / "state", place.fast / "state"
    numbers = (1, 2, 4)
    rates: dict[tuple[str, int], list[float]] = {}
    ways: dict[tuple[str, int], Way] = {}
    async with contextlib.AsyncExitStack() as stack:
        for number in numbers:
            theirs = [stack.enter_context(place.taskiq_worker(f"plain{number}", 10)) for _ in range(number)]
            taskiq = await stack.enter_async_context(place.taskiq(f"plain{number}"))
            pids = [pid for one in theirs for pid in family(one)]
            ours = [
                await stack.enter_async_context(place.worker(f"ours{number}", 10, state))
                for _ in range(number)
            ]
            agent = await stack.enter_async_context(place.agent(f"ours{number}", state))
            quick = [
                await stack.enter_async_context(place.worker(f"quick{number}", 10, fast))
                for _ in range(number)
            ]
            quick_agent = await stack.enter_async_context(place.agent(f"quick{number}", fast))
            for kind, once, at in (
                ("plain taskiq", lambda taskiq=taskiq: taskiq.call("bounce"), pids),
                ("delegated", called(agent, "bounce"), ours),
                ("delegated, records in memory", called(quick_agent, "bounce"), quick),
                ("plain taskiq, 50 ms of waiting", lambda taskiq=taskiq: taskiq.call("rest", 0.05), pids),
                ("delegated, 50 ms of waiting", called(agent, "rest", seconds=0.05), ours),
            ):
                ways[kind, number] = Way(kind, once, at)
        for round in range(rounds + 1):
            for known, way in ways.items():
                rate = await way.round(count, place.redis_pid, at_once)
                if round:
                    rates.setdefault(known, []).append(rate)
    print(f"{at_once} callers at once in one process; {rounds} rounds of {count} calls; ten jobs a worker.")
    heads = " | ".join(f"{number} worker{'s' * (number > 1)}" for number in numbers)
    print(f"| calls a second | {heads} | CPU: caller, ms | workers | Redis |\n|" + "---+" * 6 + "---|")
    for kind in dict.fromkeys(kind for kind, _ in ways):
        row = " | ".join(told(rates[kind, number], 1, 0) for number in numbers)
        cpus = [statistics.median(one) * 1e3 for one in zip(*ways[kind, 1].cpus, strict=True)]
        print(f"| {kind} | {row} | {' | '.join(f'{one:.2f}' for one in cpus)} |")


async def main(given: argparse.Namespace, folder: Path, fast: Path) -> None:
    parts: dict[str, Callable[[Place], Awaitable[None]]] = {
        "calls": lambda place: calls(place, given.rounds, given.calls),
        "workers": lambda place: workers(place, max(given.rounds // 2, 2), given.calls * 2),
        "load": lambda place: remote_sizes.load(place, given.rounds),
        "start": lambda place: remote_sizes.start(place, given.rounds),
        "waiting": remote_sizes.waiting,
    }
    for part in given.parts or parts:
        print(flush=True)
        with own_redis() as server, tempfile.TemporaryDirectory(dir=folder) as own:
            await parts[part](Place(Path(own), Path(tempfile.mkdtemp(dir=fast)), server))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("parts", nargs="*", choices=["calls", "workers", "load", "start", "waiting", []])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=200)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="quoth-remote-") as folder,
        tempfile.TemporaryDirectory(prefix="quoth-remote-", dir=memory) as fast,
    ):
        os.environ |= {"QUOTH_STATE": f"{folder}/state", "QUOTH_CONFIG": f"{folder}/config"}
        os.environ["QUOTH_EMBEDDER"] = "none"
        asyncio.run(main(parser.parse_args(), Path(folder), Path(fast)))
