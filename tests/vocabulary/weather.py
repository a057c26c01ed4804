"""A storm: agents that make many calls through workers, while workers and Redis are killed, stopped and come
back, and the tools change. What is left of it is counted: results, orders in the book, keys in Redis.

An order is a line that a tool appends to the book; so it is seen how often a call was really made.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from commands import Forked, quoth
from servers import RedisServer
from words import tool

from quoth import AsyncAgent, ToolOptions
from quoth.tools.call.call import ToolResult
from quoth.tools.catalog.connection import redis_url, sync_client
from quoth.tools.catalog.payload import new_key
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.remote import wire

PREFIX = "storm"
WORDS = ("number", "order", "place", "item")  # what the parameter is called, one after the other
SHOP = """
(require quoth [def-cognitive-tool])
(import asyncio os random time)
(import quoth.tools.lisp.forms [CallForm])

(defn enter [order]
  (time.sleep (* {seconds} (random.random)))
  (setv book (os.open "{book}" (| os.O_WRONLY os.O_APPEND os.O_CREAT)))
  (os.write book (.encode f"{{order}}\\n"))
  (os.close book)
  (time.sleep (* {seconds} (random.random)))
  order)

(def-cognitive-tool enter-order
  "Enter an order into the book of the shop."
  :parameters [{word} {{:type int}}]
  :effects [:memory]
  :timeout 60
  :body (enter {word}))

(def-cognitive-tool price-order
  "Say what an order costs."
  :parameters [{word} {{:type int}}]
  :effects [:reads]
  :timeout 60
  :body (do (time.sleep (* {seconds} (random.random))) (* 2 {word})))

(def-cognitive-tool send-order
  "Have the caller enter an order into the book."
  :parameters [{word} {{:type int}}]
  :effects [:memory]
  :timeout 60
  :body (do (await (asyncio.sleep (* {seconds} (random.random))))
            (setv entered (await (ctx.dispatch (CallForm "enter-here" {{"order" {word}}}))))
            (await (asyncio.sleep (* {seconds} (random.random))))
            (if entered.ok entered.value (raise (RuntimeError entered.message)))))
"""
KEPT = (wire.workers(PREFIX), wire.server(PREFIX))  # in Redis, for ever
TOOLS = ("enter-order", "price-order", "send-order")
ENTERING = ("enter-order", "send-order")


@dataclass
class Told:
    """What became of one order: the results of its calls, the last of which counts."""

    tool: str
    results: list[ToolResult] = field(default_factory=list)

    @property
    def end(self) -> str:
        """How it ended, in a word, and in the words of a failure."""
        last = self.results[-1]
        said = re.sub(r"\(request \w+\)", "(request …)", last.message)
        return "ok" if last.ok else f"{last.status}: {said}"


class Storm:
    """``workers`` processes around ``server`` with tools that take ``seconds`` twice, and ``callers`` agents.
    Whoever is to do so much at once may do so within ``async with``."""

    def __init__(
        self,
        place: Path,
        server: RedisServer,
        *,
        workers: int,
        callers: int,
        seconds: float,
        takeover: int,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.server, self.url, self._say = server, redis_url(server.url, typed=False), say
        self._place, self._seconds, self._takeover = place, seconds, takeover
        self._shop, self.book = place / "shop", place / "book"
        self._shop.mkdir()
        self._words = itertools.cycle(WORDS)
        new_key(place / "key")
        self._numbers, self._spared, self._redis = range(workers), {*range(workers)}, asyncio.Lock()
        self._workers: list[Forked] = []
        self._names = [f"caller{number}" for number in range(callers)]
        self.callers: list[AsyncAgent] = []
        self.orders: dict[int, Told] = {}
        self.weather: Counter[str] = Counter()

    # People

    async def __aenter__(self) -> Storm:
        try:
            await self._begin()
        except BaseException:  # no worker outlives a test that could not begin
            await self.__aexit__()
            raise
        return self

    async def _begin(self) -> None:
        self._change_files()
        self._workers = [self._started(number) for number in self._numbers]
        await self._until(lambda: self._count_workers() == len(self._workers), "all workers are there")
        for name in self._names:
            (self._place / name).mkdir()
            here = tool("enter-here", self._enter, params={"order": {"type": int}}, effects=["memory"])
            tools = ToolOptions(ToolTable((here,)), remote=self.url, prefix=PREFIX, key=self._place / "key")
            self.callers.append(AsyncAgent(workspace=self._place / name, tools=tools, user=name))

    async def close_callers(self) -> None:
        for one in self.callers:
            await one.aclose()

    async def __aexit__(self, *_: object) -> None:
        await self.close_callers()
        for worker in self._workers:
            worker.kill()
            worker.wait()

    def _enter(self, order: int) -> int:
        with self.book.open("a") as book:
            book.write(f"{order}\n")
        return order

    async def call(self, order: int) -> Told:
        """Make the call of one order; where its tool is another meanwhile, plan it again."""
        caller = self.callers[order % len(self.callers)]
        told = self.orders[order] = Told(TOOLS[order % len(TOOLS)])
        while True:
            await caller.host.renew()  # as before each turn of a model
            result = await caller.call(CallForm(told.tool, {_word(caller.table.get(told.tool)): order}))
            told.results.append(result)
            if not (result.status == "invalid" or "CATALOG_STALE" in result.message):
                return told

    async def calls(self, count: int, *, at_once: int) -> None:
        """Make so many, so many of them at once."""
        free = asyncio.Semaphore(at_once)

        async def one(order: int) -> None:
            async with free:
                await self.call(order)

        await asyncio.gather(*map(one, range(len(self.orders), len(self.orders) + count)))

    # Weather

    async def worker_is_killed(self, pause: float) -> None:
        await self._replaced("worker killed", signal.SIGKILL, pause)

    async def worker_is_ended(self, pause: float) -> None:
        await self._replaced("worker ended", signal.SIGTERM, pause)

    async def _replaced(self, what: str, how: signal.Signals, pause: float) -> None:
        with self._one_worker() as number:
            self._happens(what)
            worker = self._workers[number]
            worker.send_signal(how)
            await self._until(lambda: worker.poll() is not None, "the worker has ended")
            await asyncio.sleep(pause)
            self._workers[number] = self._started(number)

    async def worker_is_stopped(self, seconds: float) -> None:
        with self._one_worker() as number:
            self._happens("worker stopped")
            self._workers[number].send_signal(signal.SIGSTOP)
            await asyncio.sleep(seconds)
            self._workers[number].send_signal(signal.SIGCONT)

    @contextmanager
    def _one_worker(self) -> Iterator[int]:
        """One to which nothing else happens."""
        number = random.choice(sorted(self._spared))
        self._spared.remove(number)
        try:
            yield number
        finally:
            self._spared.add(number)

    async def redis_is_killed(self, pause: float) -> None:
        async with self._redis:
            self._happens("Redis killed")
            self.server.kill()
            await asyncio.sleep(pause)
            await asyncio.to_thread(self.server.start)

    async def power_is_cut(self, seconds: float) -> None:
        """What Redis was told in the last seconds was not on the disk yet."""
        async with self._redis:
            self._happens("power cut")
            written = self.server.written()
            await asyncio.sleep(seconds)
            self.server.kill()
            self.server.loses_all_but(written)
            await asyncio.to_thread(self.server.start)

    async def redis_is_stopped(self, seconds: float) -> None:
        async with self._redis:
            self._happens("Redis stopped")
            self.server.send_signal(signal.SIGSTOP)
            await asyncio.sleep(seconds)
            self.server.send_signal(signal.SIGCONT)

    async def redis_is_emptied(self) -> None:
        async with self._redis:
            self._happens("Redis emptied")
            with sync_client(self.url) as redis:
                redis.flushall()

    async def tools_change(self) -> None:
        self._happens("tools changed")
        self._change_files()
        for worker in self._workers:
            worker.send_signal(signal.SIGHUP)

    def _happens(self, what: str) -> None:
        self.weather[what] += 1
        self._say(what)

    def _change_files(self) -> None:
        new = self._shop / "new"
        new.write_text(SHOP.format(word=next(self._words), book=self.book, seconds=self._seconds))
        new.rename(self._shop / "shop.hy")

    def _started(self, number: int) -> Forked:
        words = ["worker", "--tools", "shop.hy", "--redis", self.server.url, "--prefix", PREFIX]
        words += ["--key", str(self._place / "key"), "--takeover", str(self._takeover), "--jobs", "4"]
        with open(os.devnull) as typed, (self._place / f"worker{number}").open("a") as said:
            streams = [typed.fileno(), said.fileno(), said.fileno()]
            return Forked(words, self._shop, {**os.environ}, streams)

    # What is left

    def entered(self) -> Counter[int]:
        """How often each order is in the book."""
        return Counter(map(int, self.book.read_text().split()))

    def faults(self) -> Iterator[str]:
        """What must not be."""
        entered = self.entered()
        for order, told in self.orders.items():
            times, end = entered[order], told.end
            if times > 1:
                yield f"{told.tool} {order} was done {times} times: {[one.message for one in told.results]}"
            if end == "ok" and told.tool in ENTERING and not times:
                yield f"{told.tool} {order} is said to be done, and was not"
            if "was not run" in end and times:
                yield f"{told.tool} {order} was done, and is said not to be: {end}"
            if len(told.results) > 1 and any(one.ok for one in told.results[:-1]):
                yield f"{told.tool} {order} has two results"
        for place in (self._shop, *(self._place / name for name in self._names)):
            said = quoth("audit", "verify", cwd=place)
            if said.code:
                yield f"the audit of {place.name} is not whole: {said.out}{said.err}"

    async def all_is_put_away(self) -> None:
        """What killed workers had is taken over and ended, and nothing is left."""
        await self._until(lambda: not [*self.left_in_redis()], "nothing is left in Redis")

    def left_in_redis(self) -> Iterator[str]:
        """What stays there for ever, or longer than it is of use."""
        with sync_client(self.url) as redis:
            for key in sorted(redis.scan_iter("*")):
                name, lasts = key.decode(), redis.ttl(key)
                if ":catalog:" not in name and name not in KEPT and lasts == -1:
                    size = redis.xlen(key) if redis.type(key) == b"stream" else 1
                    if size:
                        yield f"{name} stays, with {size}"
            held = redis.xpending(wire.queue(PREFIX), wire.GROUP)["pending"]
            if held:
                yield f"{held} calls are still held by workers"

    def connections(self) -> int:
        with sync_client(self.url) as redis:
            return len(redis.client_list())

    def _count_workers(self) -> int:
        with sync_client(self.url) as redis:
            return int(redis.zcard(wire.workers(PREFIX)))

    async def _until(self, true: Callable[[], bool], what: str) -> None:
        for _ in range(3000):
            if true():
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"In a minute it did not become so that {what}.")


def _word(tool: CognitiveTool) -> str:
    (word,) = (param.name for param in tool.params)
    return word
