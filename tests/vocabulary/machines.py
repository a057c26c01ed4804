"""A caller and its workers around one Redis, all in this process: words for tests of delegated calls."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from caller import until as until

from quoth.tools.call.call import ToolResult, Verdict, allow, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.call.workspace import Workspace
from quoth.tools.catalog.connection import async_client, cancelled, redis_url
from quoth.tools.catalog.payload import Key
from quoth.tools.door.door import Door
from quoth.tools.lisp.forms import from_model
from quoth.tools.lisp.reader import read_one
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.tool import entry_tool
from quoth.tools.remote import wire
from quoth.tools.remote.line import Patience
from quoth.tools.remote.sender import Sender
from quoth.tools.remote.wire import Ended, SignedMessage, unpack

KEY = Key(b"a key of tests, of 32 bytes here")
HASTE = Patience(look=0.05, nobody=0.2, reach=0.3)
_numbers = itertools.count(1)


class Person:
    """Somebody who is asked, and says yes unless ``answer`` is another."""

    def __init__(self, answer: Verdict | None = None) -> None:
        self.answer = answer or allow()
        self.asked: list[str] = []

    async def request(self, tool: CognitiveTool, call: Any, reason: str) -> Verdict:
        self.asked.append(reason)
        return self.answer

    def begins(self, *_: Any) -> None:
        return

    def permissions(self, *_: Any) -> list[str]:
        return []

    def waits(self, *_: Any) -> None:
        return


class Machines:
    """A caller with the tools of its workers, and the Redis between them, under a prefix of its own."""

    def __init__(self, redis: str) -> None:
        self.url = redis_url(redis)
        self.prefix = f"t{os.getpid()}-{next(_numbers)}"
        self.redis: Any = async_client(self.url)
        self.here, self.there = MemoryAudit(), MemoryAudit()  # the audit of the caller, and of the workers
        self.person = Person()
        self.progress: list[str] = []
        self.sender = self.new_sender()
        self.table = ToolTable()  # of the workers
        self.own = ToolTable()  # of the caller
        self.schema_hash = ""  # that the caller believes in, if it is another than the workers'
        self.patience = 10.0
        self.raised: Exception | None = None  # by the sender, last
        self._ending = contextlib.AsyncExitStack()

    def new_sender(self) -> Sender:
        return Sender(
            self.url,
            KEY,
            self.prefix,
            audit=self.here,
            on_progress=lambda call, text: self.progress.append(text),
            patience=HASTE,
        )

    async def start_worker(self, *tools: CognitiveTool, **parts: Any) -> Any:
        """Start a worker with these tools, beside those that were started."""
        from quoth.tools.remote.worker import Worker

        for one in tools:
            self.table.register(one)
        parts.setdefault("audit", self.there)
        context = ToolContext(Workspace(Path()))
        worker = Worker(Door(self.table, **parts), url=self.url, key=KEY, prefix=self.prefix, context=context)
        running = asyncio.create_task(worker.run(8, asyncio.Event()))

        self._ending.push_async_callback(cancelled, [running])
        while not await self.redis.zcard(wire.workers(self.prefix)):
            await asyncio.sleep(0.005)
        return worker

    async def restart_caller(self) -> None:
        """The caller was killed, and is here again."""
        await self.sender.aclose()
        self.sender = self.new_sender()

    def remote(self, tool: CognitiveTool) -> CognitiveTool:
        """A tool of the workers as the caller has it."""

        async def body(call: Any, ctx: ToolContext) -> Any:
            try:
                return await self.sender(remote, call, ctx, self.schema_hash or self.table.schema_hash)
            except Exception as error:
                self.raised = error
                raise

        remote = entry_tool(tool.entry, body, remote=self.prefix, patience=self.patience)
        return remote

    async def call(self, text: str, **marks: Any) -> ToolResult:
        """Make a call here: it passes the caller's door."""
        table = ToolTable((*map(self.remote, self.table), *self.own))
        door = Door(table, audit=self.here, consent=self.person)  # type: ignore[arg-type]
        call = new_call(from_model(read_one(text)), **{"user": "ann", **marks})
        return await door.dispatch(call, ToolContext(Workspace(Path())))

    async def aclose(self) -> None:
        await self.sender.aclose()
        await self._ending.aclose()
        async for key in self.redis.scan_iter(f"{self.prefix}:*"):
            await self.redis.delete(key)
        await self.redis.aclose()


@contextlib.asynccontextmanager
async def two_machines(redis: str) -> AsyncIterator[Machines]:
    machines = Machines(redis)
    try:
        yield machines
    finally:
        await machines.aclose()


class ByHand:
    """A worker whose every step a test takes."""

    def __init__(self, machines: Machines, *tools: CognitiveTool) -> None:
        self._machines, self._redis, self._last = machines, machines.redis, b"0"
        for one in tools:
            machines.table.register(one)

    async def lives(self) -> None:
        now = (await self._redis.time())[0]
        await self._redis.zadd(wire.workers(self._machines.prefix), {"by-hand": now})

    async def takes(self, *, takes_grant: bool = True) -> Any:
        """The next call."""
        from quoth.tools.remote.wire import Delegated

        prefix = self._machines.prefix
        found = await self._redis.xread({wire.queue(prefix): self._last}, block=3000, count=1)
        self._last, fields = found[0][1][0]
        said = unpack(KEY, fields[wire.FIELD], Delegated)
        assert isinstance(said, Delegated)
        if takes_grant:
            await self._redis.set(wire.grant(prefix, said.grant), self._last)
        return said

    async def done(self) -> None:
        """The entry that was taken last leaves the queue."""
        await self._redis.xdel(wire.queue(self._machines.prefix), self._last)

    async def tells(self, said: Any, *messages: SignedMessage | bytes) -> None:
        """Reply to a call."""
        for one in messages:
            packed = one.pack(KEY) if isinstance(one, SignedMessage) else one
            await self._redis.xadd(said.replies, {wire.FIELD: packed})

    async def hears(self, said: Any, *kinds: type[SignedMessage]) -> Any:
        """The next message from the caller of a call."""
        found = await self._redis.blpop([wire.inbox(self._machines.prefix, said.grant)], timeout=3)
        return unpack(KEY, found[1], *kinds)


def ended(said: Any, value: Any = "done", **fields: Any) -> Ended:
    """The result of a call."""
    about = {"status": "ok", "message": "", "told": [], "side_effects": [], "key": said.key, **fields}
    return Ended(
        said.grant, about["key"], said.digest, about["status"], value, about["message"],
        about["told"], about["side_effects"],
    )  # fmt: skip
