"""Both ends of the calls that remote.py measures: those of plain taskiq, of Redis alone, and ours. It says
nothing of times.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

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
ALONE = """
import asyncio, sys
sys.path.append(sys.argv[4])
from pathlib import Path
from remote_ends import bounce_table
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.catalog.connection import redis_url
from quoth.tools.catalog.payload import read_key
from quoth.tools.door.door import Door
from quoth.tools.remote.worker import Worker

url, key, prefix = redis_url(sys.argv[1], typed=False), read_key(Path(sys.argv[2])), sys.argv[3]
worker = Worker(Door(bounce_table()), url=url, key=key, prefix=prefix, context=ToolContext(Workspace(".")))
asyncio.run(worker.run(1, asyncio.Event()))
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
        from quoth.tools.catalog.payload import new_key

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
        from quoth.tools.remote import wire

        home = self.folder / f"worker{next(self._numbers)}"
        home.mkdir()
        words = [*command(), "worker", "--tools", str(self.folder / "bench.hy"), "--redis", self.server.url]
        words += ["--prefix", prefix, "--key", str(self.folder / "key"), "--jobs", str(jobs)]
        async with connected(self.url) as redis:
            before = await redis.zcard(wire.workers(prefix))
            with running(*words, "--workspace", str(home), QUOTH_STATE=str(state)) as pid:
                async with asyncio.timeout(60):
                    while await redis.zcard(wire.workers(prefix)) == before:
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
        self._redis = Redis.from_url(self._module.URL, protocol=2, socket_timeout=None)
        self._reader = asyncio.create_task(self._read())
        assert await asyncio.wait_for(self.call("bounce"), 30) is not None

    async def end(self) -> None:
        while not self._reader.done():  # redis-py loses a cancellation that comes while it connects
            self._reader.cancel()
            await asyncio.wait({self._reader}, timeout=0.1)
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


def bounce_table() -> Any:
    from quoth.tools.registry.define import define_tool, registering_in
    from quoth.tools.registry.table import ToolTable

    table = ToolTable()
    with registering_in(table):
        text = {"text": {"type": str}}
        define_tool("bounce", "Give it back.", parameters=text, body=lambda text: text, effects=["reads"])
    return table


def bare_door(table: Any) -> Once:
    """A door by itself, which writes nothing."""
    from quoth.tools.call.call import new_call
    from quoth.tools.call.context import ToolContext
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.door.door import Door
    from quoth.tools.lisp.forms import CallForm

    door, context = Door(table), ToolContext(Workspace("."))

    async def once() -> None:
        text = some_text()
        result = await door.dispatch(new_call(CallForm("bounce", {"text": text})), context)
        assert result.value == text, result.message

    return once


@asynccontextmanager
async def sent_from_a_bare_door(place: Place, prefix: str) -> AsyncIterator[Once]:
    """A door that writes nothing, whose tool is a worker's."""
    from quoth.tools.registry.table import ToolTable
    from quoth.tools.registry.tool import entry_tool
    from quoth.tools.remote.sender import Sender

    there, sender = bounce_table(), Sender(place.url, place.key, prefix)

    async def body(call: Any, ctx: Any) -> Any:
        return await sender(tool, call, ctx, there.schema_hash)

    tool = entry_tool(there.get("bounce").entry, body, patience=40)
    try:
        yield bare_door(ToolTable((tool,)))
    finally:
        await sender.aclose()


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


@asynccontextmanager
async def client_of(place: Place) -> AsyncIterator[Any]:
    from quoth.tools.catalog.connection import async_client

    client = async_client(place.url)
    try:
        yield client
    finally:
        await client.aclose()
