"""taskiq's broker on a Redis stream, adapted to delegated calls.

Differences from taskiq-redis 1.2:
- The group starts at 0: calls sent before the first worker started are kept.
- A worker takes only as many calls as it can run at once.
- Calls of a vanished worker are taken over even if no new calls arrive.
- Running calls are renewed, so that they are never taken over.
- An entry is deleted from the stream in the same step that sends its reply.
- An entry is the packed message alone: its sender cannot set taskiq labels.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from contextvars import ContextVar
from secrets import token_hex
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError
from taskiq.abc.formatter import TaskiqFormatter
from taskiq.acks import AckableMessage
from taskiq.message import BrokerMessage, TaskiqMessage
from taskiq.receiver import Receiver
from taskiq_redis import RedisStreamBroker

from quoth.tools.catalog.connection import READ_SECONDS, RedisUrl, async_options
from quoth.tools.remote import wire
from quoth.tools.remote.wire import MAX_MESSAGE

TAKEOVER_SECONDS = 30.0
BLOCK_SECONDS = 0.5  # how long a stopping worker may still wait for one more entry
GONE_SECONDS = 60.0  # without a heartbeat, until a worker is removed from the list
SIGN_SECONDS = 10.0  # a healthy worker sends a heartbeat within this time
FORGOTTEN_SECONDS = 600.0  # idle time after which a consumer without entries is deleted

OURS = f"""
local function ours(queue, consumer, entry)
  local held = redis.pcall('XPENDING', queue, '{wire.GROUP}', entry, entry, 1)
  return not held.err and #held == 1 and held[1][2] == consumer
end
"""
_RENEW = f"""{OURS}
local lost = {{}}
for i = 2, #ARGV do
  if ours(KEYS[1], ARGV[1], ARGV[i]) then
    redis.call('XCLAIM', KEYS[1], '{wire.GROUP}', ARGV[1], 0, ARGV[i], 'JUSTID')
  else
    lost[#lost + 1] = ARGV[i]
  end
end
return lost
"""
_ALIVE = f"""{wire.CLEARED}
cleared(KEYS[1], 'zset')
local time = redis.call('TIME')
redis.call('ZADD', KEYS[1], time[1] + time[2] / 1000000, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', time[1] - {GONE_SECONDS})
"""
_FORGET = f"""
local group, idle, name = '{wire.GROUP}', tonumber(ARGV[1]), ARGV[2]
for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], group)) do
  if consumer[4] == 0 and (consumer[2] == name or (name == '' and consumer[6] > idle)) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], group, consumer[2])
  end
end
"""


# Claims an entry. An entry longer than any valid message is claimed without its text, to save memory.
_CLAIM = f"""
local group, name, idle, entry, most = '{wire.GROUP}', ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local found = redis.call('XRANGE', KEYS[1], entry, entry)
local claimed = redis.call('XCLAIM', KEYS[1], group, name, idle, entry, 'RETRYCOUNT', ARGV[5], 'JUSTID')
if #claimed == 0 then return false end
if #found == 0 then return {{}} end
local text = ''
for at = 1, #found[1][2], 2 do
  if found[1][2][at] == '{wire.FIELD.decode()}' then text = found[1][2][at + 1] end
end
return {{#text > most and '' or text}}
"""
_BACK = f"""{OURS}
if not ours(KEYS[1], ARGV[1], ARGV[2]) then return end
local found = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])
if #found == 1 then redis.call('XADD', KEYS[1], '*', unpack(found[1][2])) end
redis.call('XACK', KEYS[1], '{wire.GROUP}', ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
"""


class Delivery(AckableMessage):
    """An entry of the queue delivered to this worker. ``count`` is the number of its deliveries to any
    worker."""

    entry: str
    count: int
    by: str  # unique for each delivery

    @property
    def tries(self) -> str:
        """The number of earlier deliveries, as text."""
        return str(self.count - 1)


async def _with_its_reply() -> None:
    """Does nothing: taskiq acknowledges every entry, but here the script that sends the reply does."""


class _Bare(TaskiqFormatter):
    """An entry is the packed message alone, without taskiq's own fields."""

    def dumps(self, message: TaskiqMessage) -> BrokerMessage:
        (packed,) = message.args
        return BrokerMessage(task_id=message.task_id, task_name=message.task_name, message=packed, labels={})

    def loads(self, message: bytes) -> TaskiqMessage:
        return TaskiqMessage.model_construct(
            task_id="", task_name=wire.TASK, labels={}, labels_types=None, args=[message], kwargs={}
        )


class CallBroker(RedisStreamBroker):
    """The queue of the calls under ``prefix``, for the worker ``consumer``. Callers send without taskiq
    (line.py). ``takeover`` is in seconds. ``on_state`` is called with an error of Redis while this broker
    listens, and with None when Redis works again."""

    def __init__(self, url: RedisUrl, prefix: str, consumer: str, takeover: float) -> None:
        super().__init__(
            url.full,
            queue_name=wire.queue(prefix),
            consumer_group_name=wire.GROUP,
            consumer_name=consumer,
            **async_options(url, READ_SECONDS + BLOCK_SECONDS),
        )
        self.formatter = _Bare()
        self._workers = wire.workers(prefix)
        self.takeover = takeover
        self.stopping = False
        self.lent: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
        self.paused = False  # if true, it takes no new calls and keeps its own
        self.on_state: Callable[[Exception | None], None] = lambda error: None
        self.redis: Redis = Redis(connection_pool=self.connection_pool)
        self._renew = self.redis.register_script(_RENEW)
        self._alive = self.redis.register_script(_ALIVE)
        self._forget = self.redis.register_script(_FORGET)
        self._claim = self.redis.register_script(_CLAIM)
        self._back = self.redis.register_script(_BACK)
        self._declared = self.durable = False
        self._look_at = 0.0  # when to look next for calls of vanished workers

    async def startup(self) -> None:
        """Does nothing: Redis may be unreachable, and ``listen`` waits for it."""

    async def shutdown(self) -> None:
        with suppress(RedisError, OSError):
            await self.redis.zrem(self._workers, self.consumer_name)
            await self._forget(keys=[self.queue_name], args=[0, self.consumer_name])
        await super().shutdown()

    async def renew(self, entries: Iterable[str]) -> list[str]:
        """Renew the ``entries`` that run here. Returns the entries that another worker has taken over."""
        asked = list(entries)
        lost = await self._renew(keys=[self.queue_name], args=[self.consumer_name, *asked]) if asked else []
        return [entry.decode() for entry in lost]

    async def say_alive(self) -> None:
        """Send a heartbeat; if this worker is paused or stopping, leave the list of workers instead."""
        if self.paused or self.stopping:
            await self.redis.zrem(self._workers, self.consumer_name)
        else:
            await self._alive(keys=[self._workers], args=[self.consumer_name])

    async def takers(self) -> int:
        """The number of workers that take calls now."""
        seconds, _ = await self.redis.time()
        return int(await self.redis.zcount(self._workers, seconds - SIGN_SECONDS, "+inf"))

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        """Yield the entries for this worker, each on demand, until ``stopping``."""
        pause = 0.1
        while not self.stopping:
            if self.paused:
                await asyncio.sleep(0.1)
                continue
            try:
                found = await self._next_unless_paused()
            except MemoryError:  # a huge entry; it will be claimed without its text
                self._look_at = time.monotonic() + self.takeover
                continue
            except (RedisError, OSError) as error:
                self._declared = False  # Redis may have lost its data
                self.on_state(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, 2.0)
                continue
            pause = 0.1
            self.on_state(None)
            if found is not None:
                yield found

    async def _next_unless_paused(self) -> Delivery | None:
        """The next entry. If the broker was paused meanwhile, the entry goes back to the queue."""
        found = await self._next()
        if found is None or not self.paused:
            return found
        await self._back(keys=[self.queue_name], args=[self.consumer_name, found.entry])
        return None

    async def _next(self) -> Delivery | None:
        if not self._declared:
            await self._declare_consumer_group()
            self._declared = True
        if time.monotonic() >= self._look_at:
            if (left := await self._left_by_others()) is not None:
                return left
            self._look_at = time.monotonic() + self.takeover / 3
        fetched: Any = await self.redis.xreadgroup(
            wire.GROUP,
            self.consumer_name,
            {self.queue_name: ">"},
            count=1,
            block=int(min(BLOCK_SECONDS, self.takeover / 3) * 1000),
        )
        for _, entries in fetched or ():
            for entry, said in entries:
                return _delivery(entry, said, 1)
        return None

    async def _declare_consumer_group(self) -> None:
        try:
            await self.redis.xgroup_create(self.queue_name, wire.GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
        await self._forget(keys=[self.queue_name], args=[int(FORGOTTEN_SECONDS * 1000), ""])
        self.durable = await self._keeps_all()

    async def _keeps_all(self) -> bool:
        """Whether Redis writes each change to disk before it answers."""
        try:
            told: dict[Any, Any] = await self.redis.config_get("append*")
        except ResponseError:  # an ACL may forbid CONFIG GET
            return False
        return (told.get("appendonly"), told.get("appendfsync")) == ("yes", "always")

    async def _left_by_others(self) -> Delivery | None:
        """Claim an entry that its worker has not renewed for ``takeover`` seconds."""
        idle = int(self.takeover * 1000)
        while found := await self.redis.xpending_range(
            self.queue_name, wire.GROUP, min="-", max="+", count=1, idle=idle
        ):
            left: Any = found[0]
            entry, count = left["message_id"], left["times_delivered"]
            args = [self.consumer_name, idle, entry, MAX_MESSAGE + 1024, count + 1]
            claimed: Any = await self._claim(keys=[self.queue_name], args=args)
            if claimed is None:
                continue  # another was faster
            if claimed:
                return _delivery(entry, {wire.FIELD: claimed[0]}, count + 1)
            await self.redis.xack(self.queue_name, wire.GROUP, entry)  # its call was removed
        return None


def _delivery(entry: bytes, said: Any, count: int) -> Delivery:
    told: dict[str, Any] = {"entry": entry.decode(), "count": count, "by": token_hex(8)}
    return Delivery.model_construct(data=said.get(wire.FIELD, b""), ack=_with_its_reply, **told)


_DELIVERED: ContextVar[Delivery] = ContextVar("delivered")


class _Receiver(Receiver):
    """taskiq's receiver; its task also knows its entry, and may let another call run in its place."""

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """Let another call run while this one waits. The wait may be for a call of its own body, and that
        call may come to this worker, too."""
        assert self.sem is not None
        self.sem.release()
        self.sem_prefetch.release()
        try:
            yield
        finally:
            run, fetch = (asyncio.create_task(one.acquire()) for one in (self.sem, self.sem_prefetch))
            for task in (run, fetch):  # take both places back, even if this call is cancelled now
                self._returning.add(task)
                task.add_done_callback(self._returning.discard)
            await asyncio.shield(run)  # not for fetch: the task that waits for the next call has that place

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._returning: set[asyncio.Task[Any]] = set()

    async def callback(self, message: bytes | AckableMessage, raise_err: bool = False) -> None:
        assert isinstance(message, Delivery)
        _DELIVERED.set(message)
        await super().callback(message, raise_err)


def make_receiver(broker: CallBroker, handle: Callable[[Delivery], Awaitable[None]], jobs: int) -> Receiver:
    """A receiver that passes the entries of the queue to ``handle``, at most ``jobs`` at once. Its ``listen``
    ends when the broker is ``stopping`` and the running calls have ended."""

    async def call(packed: bytes) -> None:
        await handle(_DELIVERED.get())

    broker.register_task(call, task_name=wire.TASK)
    receiver = _Receiver(broker, validate_params=False, max_async_tasks=jobs)
    broker.lent = receiver.lent
    return receiver
