"""A caller of workers, bare: it signs, sends and reads, and checks nothing of what it sends."""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from words import form

from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.call.workspace import Workspace
from quoth.tools.catalog.connection import RedisUrl, redis_url
from quoth.tools.catalog.payload import Key
from quoth.tools.door.door import Door
from quoth.tools.lisp.forms import to_json
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.remote import wire
from quoth.tools.remote.broker import TAKEOVER_SECONDS, CallBroker
from quoth.tools.remote.wire import FROM_WORKER, Begin, Begins, Delegated, SignedMessage, unpack
from quoth.tools.remote.worker import Worker

KEY = Key(b"k" * 32)
TAKEOVER = 0.4


@dataclass
class Caller:
    """Ann's agent, on another machine than the worker."""

    url: RedisUrl
    table: ToolTable
    prefix: str = field(default_factory=lambda: f"t{secrets.token_hex(4)}")
    last: bytes = b"0"
    broker: CallBroker = field(init=False)

    def __post_init__(self) -> None:
        self.broker = CallBroker(self.url, self.prefix, "caller", TAKEOVER_SECONDS)

    @property
    def redis(self) -> Any:
        return self.broker.redis

    @property
    def replies(self) -> str:
        return wire.replies(self.prefix, "me")

    def call(self, text: str, **changes: Any) -> Delegated:
        """A call as it would be sent, but for the changes."""
        wanted = form(text)
        call = Delegated(
            grant=secrets.token_hex(16),
            prefix=self.prefix,
            schema_hash=self.table.schema_hash,
            form=to_json(wanted),
            digest=wanted.digest,
            id=secrets.token_hex(5),
            key=secrets.token_hex(5),
            user="ann",
            session="s1",
            depth=0,
            parent="",
            message="Count them.",
            chat="",
            confidence=None,
            resumed=False,
            approved=[],
            deadline=time.time() + 30,
            expires=time.time() + 30,
            replies=self.replies,
        )
        return dataclasses.replace(call, **changes)

    async def send(self, call: Delegated | bytes, key: Key = KEY) -> str:
        """The number of its entry."""
        packed = call if isinstance(call, bytes) else call.pack(key)
        entry: bytes = await self.redis.xadd(wire.queue(self.prefix), {wire.FIELD: packed})
        return entry.decode()

    async def tell(self, message: SignedMessage, key: Key = KEY) -> None:
        await self.redis.rpush(wire.inbox(self.prefix, message.grant), message.pack(key))

    async def reply(self) -> Any:
        """The next reply. Whoever asks whether it may begin is told so."""
        found = await self.redis.xread({self.replies: self.last}, count=1, block=10_000)
        assert found, "nobody replied"
        ((_, ((self.last, said),)),) = found
        said = unpack(KEY, said[wire.FIELD], *FROM_WORKER)
        if isinstance(said, Begins):
            await self.tell(Begin(said.grant, said.by, True))
            return await self.reply()
        return said

    async def ask(self, call: Delegated | str) -> Any:
        """Send a call, and its first reply."""
        await self.send(self.call(call) if isinstance(call, str) else call)
        return await self.reply()

    async def unanswered(self) -> int:
        return int(await self.redis.xlen(self.broker.queue_name))

    async def settled(self) -> None:
        """When nothing is left in the queue."""
        await until_async(self.unanswered)


async def until_async(left: Callable[[], Any]) -> None:
    for _ in range(1000):
        if not await left():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it lasts for ever")


async def until(done: Callable[[], Any]) -> None:
    for _ in range(1000):
        if done():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it lasts for ever")


@asynccontextmanager
async def calling(redis: str, *tools: CognitiveTool) -> AsyncIterator[Caller]:
    caller = Caller(redis_url(redis, typed=False), ToolTable(tools))
    try:
        yield caller
    finally:
        await caller.broker.shutdown()


@asynccontextmanager
async def at_work(
    caller: Caller, folder: Path | str = ".", jobs: int = 2, **parts: Any
) -> AsyncIterator[Worker]:
    """A worker with the same tools, which ends what it does and then stops."""
    options = {name: parts.pop(name) for name in ("takeover", "tell") if name in parts}
    door = Door(caller.table, **{"audit": MemoryAudit(), **parts})
    context = ToolContext(Workspace(folder))
    worker = Worker(
        door,
        url=caller.url,
        key=KEY,
        prefix=caller.prefix,
        context=context,
        **{"takeover": TAKEOVER, **options},
    )
    stop = asyncio.Event()
    running = asyncio.create_task(worker.run(jobs, stop))
    try:
        yield worker
    finally:
        stop.set()
        await running
