"""A call that a worker in another process makes, beside the same by plain taskiq, Redis alone, and the door in
one process; and what else the way to the workers costs. Prints Org tables.

python tests/bench/remote.py [calls] [workers] [load] [start] [waiting] [--rounds 9] [--calls 200]

All that is compared is measured in turns within one run, on one Redis without a log on disk, with one
connection for each purpose. A call goes the whole way: through the door of an agent, signed, to a `quoth
worker`, through its door, and back; both write their audit trails to disk before they answer. Plain taskiq has
a stream, msgpack, a result that is kept, and an answer by a stream, which a task waits for: no doors, no
signatures, and no audit. CPU is that of all threads, by the clock of each process. The other three parts are
in remote_sizes.py.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import itertools
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "vocabulary"))

TOOLS = """
(require quoth [def-cognitive-tool])
(import asyncio)

(def-cognitive-tool bounce
  "Give a text back."
  :parameters [text {:type str}]
  :effects [:reads]
  :body text)

(def-cognitive-tool keep
  "Give a text back; its call leaves a receipt, as of a tool that changes something."
  :parameters [text {:type str}]
  :effects [:memory]
  :body text)

(def-cognitive-tool rest
  "Give a text back after a while."
  :parameters [text {:type str}  seconds {:type float}]
  :effects [:reads]
  :timeout 600
  :body (do (await (asyncio.sleep seconds)) text))
"""
PLAIN = """
import asyncio, os
from redis.asyncio import Redis
from taskiq import TaskiqMiddleware
from taskiq.serializers import MSGPackSerializer
from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

URL, QUEUE = os.environ["BENCH_URL"], os.environ["BENCH_QUEUE"]

class Answers(TaskiqMiddleware):
    def startup(self):
        self.redis = Redis.from_url(URL, protocol=2)

    async def post_save(self, message, result):
        if "replies" in message.labels:
            said = {"id": message.task_id, "value": MSGPackSerializer().dumpb(result.return_value)}
            await self.redis.xadd(message.labels["replies"], said, maxlen=10000)

options = {"protocol": 2, "xread_block": 1000, "xread_count": 1, "unacknowledged_lock_timeout": 5}
kept = RedisAsyncResultBackend(URL, serializer=MSGPackSerializer(), result_ex_time=60)
broker = RedisStreamBroker(URL, queue_name=QUEUE, consumer_id="0", **options)
broker = broker.with_serializer(MSGPackSerializer()).with_result_backend(kept).with_middlewares(Answers())

@broker.task(task_name="bounce")
def bounce(text: str) -> str:
    return text

@broker.task(task_name="rest")
async def rest(text: str, seconds: float) -> str:
    await asyncio.sleep(seconds)
    return text
"""
ECHO = """
import asyncio, sys
from redis.asyncio import Redis

async def main():
    redis = Redis.from_url(sys.argv[1], protocol=2, socket_timeout=None)
    while True:
        _, said = await redis.blpop("bench:there")
        await redis.rpush("bench:back", said)

asyncio.run(main())
"""
TEXT = "The roof looks south, and its slope is thirty degrees; batteries are in the cellar. "  # and a number
NUMBERS = itertools.count()
Once = Callable[[], Awaitable[Any]]


def some_text() -> str:
    return f"{TEXT}{next(NUMBERS)}"


# Processes


def cpu(pid: int) -> float:
    """The seconds of CPU of a process, of all its threads."""
    return time.clock_gettime(~pid << 3 | 2)


def family(pid: int) -> list[int]:
    """A process and its children."""
    found = [pid]
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            found += family(int(child))
    return found


@contextmanager
def running(*words: str, **more: str) -> Iterator[int]:
    """A process, ended with us; its id. What it says is seen if it is wrong."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, env={**os.environ, **more})
    try:
        yield process.pid
    finally:
        members = family(process.pid)
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            for pid in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


# The two ends


class Place:
    """A Redis, a key and a file of tools, and who works there. ``fast`` is a folder in memory."""

    def __init__(self, folder: Path, fast: Path, server: Any) -> None:
        from quoth.tools.catalog.connection import redis_url
        from quoth.tools.catalog.signing import new_key

        self.folder, self.fast, self.server = folder, fast, server
        self.url = redis_url(server.url, typed=False)
        self.key = new_key(folder / "key")
        self.redis_pid = int(Path(server.path).with_name("pid").read_text())
        (folder / "bench.hy").write_text(TOOLS)
        (folder / "plain.py").write_text(PLAIN)
        self._numbers = itertools.count()

    @asynccontextmanager
    async def worker(self, prefix: str, jobs: int, state: Path) -> AsyncIterator[int]:
        """A quoth worker whose store is in ``state``; its process."""
        from commands import command
        from quoth.tools.catalog.connection import connected
        from quoth.tools.remote import names

        home = self.folder / f"worker{next(self._numbers)}"
        home.mkdir()
        words = [*command(), "worker", "--tools", str(self.folder / "bench.hy"), "--redis", self.server.url]
        words += ["--prefix", prefix, "--key", str(self.folder / "key"), "--jobs", str(jobs)]
        async with connected(self.url) as redis:
            before = await redis.zcard(names.workers(prefix))
            with running(*words, "--workspace", str(home), QUOTH_STATE=str(state)) as pid:
                while await redis.zcard(names.workers(prefix)) == before:
                    await asyncio.sleep(0.02)
                yield pid

    @asynccontextmanager
    async def agent(self, prefix: str, state: Path) -> AsyncIterator[Any]:
        """An agent whose tools are those of the workers, or in the file where there is no ``prefix``."""
        from quoth import AsyncAgent, ToolOptions

        home = self.folder / f"agent{next(self._numbers)}"
        home.mkdir()
        tools = ToolOptions(remote=self.url, prefix=prefix, key=self.folder / "key") if prefix else None
        before = os.environ["QUOTH_STATE"]
        os.environ["QUOTH_STATE"] = str(state)
        try:
            async with AsyncAgent(
                workspace=home, tools=tools or ToolOptions([str(self.folder / "bench.hy")])
            ) as agent:
                await called(agent, "bounce")()  # its store is open
                os.environ["QUOTH_STATE"] = before
                yield agent
        finally:
            os.environ["QUOTH_STATE"] = before

    @contextmanager
    def taskiq_worker(self, queue: str, jobs: int) -> Iterator[int]:
        words = [sys.executable, "-m", "taskiq", "worker", "plain:broker", "--app-dir", str(self.folder)]
        words += ["--workers", "1", "--max-async-tasks", str(jobs), "--log-level", "ERROR"]
        with running(*words, BENCH_URL=self.server.url, BENCH_QUEUE=queue) as pid:
            yield pid

    @asynccontextmanager
    async def taskiq(self, queue: str) -> AsyncIterator[Taskiq]:
        os.environ |= {"BENCH_URL": self.server.url, "BENCH_QUEUE": queue}
        spec = importlib.util.spec_from_file_location(f"plain_{queue}", self.folder / "plain.py")
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        caller = Taskiq(module)
        await caller.begin()
        try:
            yield caller
        finally:
            await caller.end()


class Taskiq:
    """Who calls tasks of plain taskiq, and hears of their ends by a stream, read by one task for all."""

    def __init__(self, module: Any) -> None:
        from taskiq.serializers import MSGPackSerializer

        self._module, self._broker, self._serializer = module, module.broker, MSGPackSerializer()
        self._stream = f"bench:replies:{module.QUEUE}"
        self._waiting: dict[str, asyncio.Future[Any]] = {}

    async def begin(self) -> None:
        from redis.asyncio import Redis

        await self._broker.startup()
        self._redis = Redis.from_url(self._module.URL, protocol=2)
        self._reader = asyncio.create_task(self._read())
        assert await asyncio.wait_for(self.call("bounce"), 30) is not None

    async def end(self) -> None:
        self._reader.cancel()
        await self._redis.aclose()
        await self._broker.shutdown()

    async def _read(self) -> None:
        last = "0"
        while True:
            for _, entries in await self._redis.xread({self._stream: last}, count=100, block=1000) or ():
                for last, said in entries:  # noqa: B007  the next read begins there
                    waits = self._waiting.pop(said[b"id"].decode(), None)
                    if waits is not None:
                        waits.set_result(self._serializer.loadb(said[b"value"]))

    async def call(self, task: str, *more: Any) -> Any:
        text = some_text()
        number = f"{next(NUMBERS)}"
        waits = self._waiting[number] = asyncio.get_running_loop().create_future()
        kicker = getattr(self._module, task).kicker().with_task_id(number).with_labels(replies=self._stream)
        await kicker.kiq(text, *more)
        assert await waits == text
        return text

    async def polled(self) -> None:
        text = some_text()
        task = await self._module.bounce.kiq(text)
        assert (await task.wait_result()).return_value == text


def called(agent: Any, tool: str, **more: Any) -> Once:
    from quoth.tools.lisp.forms import CallForm

    async def once() -> None:
        text = some_text()
        result = await agent.call(CallForm(tool, {"text": text, **more}))
        assert result.value == text, result.message

    return once


def bare_door() -> Once:
    """The door of a table alone, which writes nothing."""
    from quoth.tools.call.call import new_call
    from quoth.tools.call.context import ToolContext
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.door.door import Door
    from quoth.tools.lisp.forms import CallForm
    from quoth.tools.registry.define import define_tool, registering_in
    from quoth.tools.registry.table import ToolTable

    table = ToolTable()
    with registering_in(table):
        text = {"text": {"type": str}}
        define_tool("bounce", "Give it back.", parameters=text, body=lambda text: text, effects=["reads"])
    door, context = Door(table), ToolContext(Workspace("."))

    async def once() -> None:
        said = some_text()
        assert (await door.dispatch(new_call(CallForm("bounce", {"text": said})), context)).value == said

    return once


def commits(place: Path) -> Once:
    """One synced commit of SQLite, as a store makes it."""
    import apsw

    db = apsw.Connection(str(place / "floor.sqlite"))
    settings = ("journal_mode = WAL", "synchronous = FULL")
    for line in (*(f"PRAGMA {one}" for one in settings), "CREATE TABLE said (text)"):
        db.execute(line).fetchall()

    async def once() -> None:
        db.execute("INSERT INTO said VALUES (?)", (some_text(),))

    return once


# What is measured


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


def told(values: Sequence[float], unit: float = 1e3, digits: int = 2) -> str:
    """The median of the rounds, with the middle half of them."""
    low, middle, high = statistics.quantiles([one * unit for one in values], n=4)
    return f"{middle:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


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
            Way("delegated, a tool that reads", called(remote, "bounce"), [ours]),
            Way("delegated, a tool with receipts", called(remote, "keep"), [ours]),
            Way("the same, stores in memory", called(remote_fast, "keep"), [in_memory]),
            Way("reads, stores in memory", called(remote_fast, "bounce"), [in_memory]),
            Way("here, a tool that reads", called(here, "bounce")),
            Way("here, a tool with receipts", called(here, "keep")),
            Way("reads, here, store in memory", called(here_fast, "bounce")),
            Way("here, the bare door", bare_door()),
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
        f"{rounds} rounds of {count} calls, one after the other. The floor is plain taskiq and two doors here."
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


@asynccontextmanager
async def client_of(place: Place) -> AsyncIterator[Any]:
    from quoth.tools.catalog.connection import async_client

    client = async_client(place.url)
    try:
        yield client
    finally:
        await client.aclose()


async def workers(place: Place, rounds: int, count: int, at_once: int = 50) -> None:
    """Calls a second with some workers of ten jobs each."""
    state = place.folder / "state"
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
            for kind, once, at in (
                ("plain taskiq", lambda taskiq=taskiq: taskiq.call("bounce"), pids),
                ("delegated", called(agent, "bounce"), ours),
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
    from servers import own_redis

    import remote_sizes

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
