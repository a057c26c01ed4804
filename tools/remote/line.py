"""The connection of one event loop to the workers: sends packed calls, reads replies, and watches the waiting
calls. It does not use tools, doors or contexts."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from hashlib import sha1
from typing import Any, Literal

from quoth.tools.call.redaction import SENT
from quoth.tools.catalog.connection import READ_SECONDS, RedisUrl, async_client, cancelled, sentence_of
from quoth.tools.catalog.payload import Key
from quoth.tools.errors import ToolError
from quoth.tools.remote import wire
from quoth.tools.remote.wire import FROM_WORKER, Asks, Nested, SignedMessage, WireError, unpack

BLOCK = 2.0  # seconds that one command waits for replies
BATCH = 100  # maximum number of commands in one pipeline
TRIM = 100  # number of replies read before they are deleted
LAST_SECONDS = 600  # how long an answer to a worker is kept
CLOCK_SECONDS = 1.0  # clock drift after which the time of Redis is read again
AWAY_SECONDS = 5.0  # how long workers need to find Redis again

_SEND = sha1(wire.SEND.encode(), usedforsecurity=False).hexdigest()

# The state of a call: the entry that used its grant, whether that entry is still in the stream, the number of
# live workers, and the time.
LOOK = """
local used = redis.call('GET', KEYS[1])
local entry = ARGV[1]
if used and used ~= ARGV[2] then entry = used end
local there = redis.call('XRANGE', KEYS[2], entry, entry)
local now = redis.call('TIME')
return {used or '', #there, redis.call('ZCOUNT', KEYS[3], now[1] - ARGV[3], '+inf'), now}
"""

# Takes a grant back, so that no worker begins the call. A worker that has begun it may be asked to stop.
TAKE_BACK = """
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2]) then
  if ARGV[3] ~= '' then redis.call('XDEL', KEYS[2], ARGV[3]) end
  return 0
end
if ARGV[4] ~= '' then
  redis.call('RPUSH', KEYS[3], ARGV[4])
  redis.call('EXPIRE', KEYS[3], ARGV[2])
end
return 1
"""

# News of a call: a message from a worker, or: Redis has ``lost`` the request; a worker settled it but its
# reply is ``unheard``; no worker is alive (``nobody``); the deadline has passed (``late``); the line was
# ``closed``.
News = SignedMessage | Literal["lost", "unheard", "nobody", "late", "closed"]


@dataclass(frozen=True)
class Patience:
    """Waiting times, in seconds."""

    look: float = 2.0  # between two checks of a call's state
    nobody: float = 4.0  # for a worker to appear, when none is alive
    alive: float = 10.0  # since its last heartbeat, until a worker counts as gone
    reach: float = 15.0  # for Redis, while a call is sent
    linger: float = 30.0  # for replies after the last call


@dataclass(eq=False)
class SentCall:
    """A call that was sent. ``news`` is the queue of its News; ``late()`` is true after its deadline."""

    late: Callable[[], bool]
    lasts: int  # seconds after which no worker can begin it
    grants: list[str] = field(default_factory=list)  # grants it was sent with; the last one is valid
    cancel: Callable[[], bytes] = bytes  # makes the message for a worker when the call is given up
    entry: bytes = b""  # its entry in the queue
    missing: int = 0  # number of consecutive checks that did not find the entry
    lonely: float = 0.0  # seconds for which no worker has been alive
    news: asyncio.Queue[News] = field(default_factory=asyncio.Queue)


class BrokerLine:
    """The connections and tasks of one event loop. ``refused`` is called with the reason why a reply was
    rejected."""

    def __init__(
        self,
        url: RedisUrl,
        key: Key,
        prefix: str,
        caller: str,
        patience: Patience,
        refused: Callable[[str], None],
    ) -> None:
        self._url, self._key, self._prefix, self._patience = url, key, prefix, patience
        self._refused = refused
        self.replies = wire.replies(prefix, caller)
        self.loop = asyncio.get_running_loop()
        self.trouble = ""  # why Redis cannot be reached now: a sentence, or empty
        self._offset: float | None = None  # clock of Redis minus our clock, in seconds
        self._ran = 0.0  # our clock minus the monotonic clock, when the offset was measured
        self._waiting: dict[str, SentCall] = {}
        self._used = 0.0  # time of last use
        self._last = b"0"  # id of the last reply read
        self._read = 0  # number of replies read since the last deletion
        self._client: Any = async_client(url)
        self._reading: Any = async_client(url, BLOCK + READ_SECONDS)
        self._outgoing: list[tuple[tuple[Any, ...], asyncio.Future[Any]]] = []
        self._flushing = False
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[Any]] = set()
        self._closed = False

    # Sending

    async def now(self) -> float:
        """The time by the clock of Redis, in seconds since 1970. Redis is asked again if our clock was set or
        this machine slept."""
        if self._offset is None or abs(time.time() - time.monotonic() - self._ran) > CLOCK_SECONDS:
            self._set_clock(await self._surely("TIME"))
        return time.time() + (self._offset or 0.0)

    async def send(self, waiting: SentCall, grant: str, packed: bytes, cancel: Callable[[], bytes]) -> None:
        """Send a call, for the first time or again. A reply to an earlier grant is accepted too. Raises
        ToolError if Redis cannot be reached or refuses the call."""
        waiting.grants.append(grant)
        waiting.cancel, waiting.entry, waiting.missing = cancel, b"", 0
        self._waiting[grant] = waiting
        self._used = time.monotonic()
        self._start("read", self._read_replies)
        self._start("watch", self._watch)
        # If the connection is lost, the same grant is sent again: it can be used only once.
        rest = (1, wire.queue(self._prefix), wire.MOST_WAITING, wire.FIELD, packed)
        entry = await self._surely("EVALSHA", _SEND, *rest)
        if entry is None:
            raise ToolError(wire.FULL)
        waiting.entry = entry

    async def tell(self, grant: str, packed: bytes) -> None:
        """Send a message to the worker that runs the call of this grant. Raises ToolError."""
        inbox = wire.inbox(self._prefix, grant)
        await asyncio.gather(
            self._surely("RPUSH", inbox, packed), self._surely("EXPIRE", inbox, LAST_SECONDS)
        )

    async def take_back(self, waiting: SentCall, *, stop: bool = True) -> bool:
        """Prevent workers from beginning a call. Returns whether a worker has already begun it; with
        ``stop``, that worker is asked to stop. Raises ToolError."""
        prefix, grant = self._prefix, waiting.grants[-1]
        keys = (wire.grant(prefix, grant), wire.queue(prefix), wire.inbox(prefix, grant))
        rest = (wire.REVOKED, waiting.lasts, waiting.entry, waiting.cancel() if stop else b"")
        taken = await self._surely("EVAL", TAKE_BACK, len(keys), *keys, *rest)
        return bool(taken)

    def forget(self, waiting: SentCall, *, given_up: bool) -> None:
        """Stop waiting for the call. If it is ``given_up``, take it back or ask its worker to stop, in the
        background."""
        for grant in waiting.grants:
            self._waiting.pop(grant, None)
        if given_up and waiting.grants and not self.loop.is_closed():
            task = self.loop.create_task(self._give_up(waiting), context=contextvars.Context())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _give_up(self, waiting: SentCall) -> None:
        with contextlib.suppress(ToolError):
            await self.take_back(waiting)

    async def aclose(self) -> None:
        """End the waiting calls, all tasks and connections. Workers are notified if that takes at most a
        second."""
        for one in [*self._waiting.values()]:
            one.news.put_nowait("closed")
        await asyncio.sleep(0)
        if self._used and not self.trouble:
            gone = self._command("DEL", self.replies)
            gone.add_done_callback(_forget)
            await asyncio.wait({*self._ending, gone}, timeout=1.0)
        self._closed = True
        await cancelled([*self._tasks.values(), *self._ending])
        for client in (self._client, self._reading):
            with contextlib.suppress(Exception):
                await client.aclose()

    async def _surely(self, *command: Any) -> Any:
        """The answer of Redis; retries while Redis is unreachable for a moment."""
        from redis.exceptions import NoScriptError, RedisError

        until = time.monotonic() + self._patience.reach
        while True:
            try:
                return await self._command(*command)
            except NoScriptError:
                command = ("EVAL", wire.SEND, *command[2:])
                continue
            except (RedisError, OSError) as error:
                said = sentence_of(error, self._url)
                if not _may_pass(error) or time.monotonic() >= until:
                    raise ToolError(said) from None
                self.trouble = said
            await asyncio.sleep(min(0.25, self._patience.reach))

    def _command(self, *command: Any) -> asyncio.Future[Any]:
        """The answer to a command. Commands of the same moment are sent in one pipeline."""
        future = self.loop.create_future()
        self._outgoing.append((command, future))
        if not self._flushing:
            self._flushing = True
            self.loop.create_task(self._flush(), context=contextvars.Context())
        return future

    async def _flush(self) -> None:
        try:
            while self._outgoing:
                batch, self._outgoing = self._outgoing[:BATCH], self._outgoing[BATCH:]
                answers: list[Any]
                try:
                    if len(batch) == 1:
                        answers = [await self._client.execute_command(*batch[0][0])]
                    else:
                        together = self._client.pipeline(transaction=False)
                        for command, _ in batch:
                            together.execute_command(*command)
                        answers = await together.execute(raise_on_error=False)
                    self.trouble = ""
                except asyncio.CancelledError:
                    self._outgoing = batch + self._outgoing
                    raise
                except Exception as error:
                    answers = [error] * len(batch)
                for (_, future), answer in zip(batch, answers, strict=True):
                    if future.done():
                        continue
                    if isinstance(answer, Exception):
                        future.set_exception(answer)
                    else:
                        future.set_result(answer)
        finally:
            self._flushing = False
            for _, future in self._outgoing:
                future.cancel()

    # Reading

    async def _read_replies(self) -> None:
        """Read replies while calls wait for them, including replies from before Redis was unreachable."""
        while not self._closed and (self._waiting or time.monotonic() - self._used < self._patience.linger):
            try:
                found = await self._reading.execute_command(
                    "XREAD", "COUNT", BATCH, "BLOCK", int(BLOCK * 1000), "STREAMS", self.replies, self._last
                )
            except Exception as error:
                self.trouble = sentence_of(error, self._url)
                await asyncio.sleep(min(0.25, self._patience.reach))
                continue
            for _, entries in found or ():
                for id, fields in entries:
                    self._last = id
                    self._read += 1
                    if self._take((fields or {}).get(wire.FIELD, b"")):
                        self._command("XDEL", self.replies, id).add_done_callback(_forget)
            if self._read >= TRIM:
                self._read = 0
                self._command("XTRIM", self.replies, "MINID", self._last).add_done_callback(_forget)

    def _take(self, packed: bytes) -> bool:
        """Give a reply to the call that waits for it. A second reply, or one to a call that was given up, is
        dropped. True if the reply must be deleted at once: its sender checks whether this caller still
        reads."""
        try:
            message = unpack(self._key, packed, *FROM_WORKER)
        except WireError as error:
            self._refused(str(error))
            return False
        waiting = self._waiting.get(message.grant)
        if waiting is None:
            return False
        message = replace(message, **SENT.data(vars(message)))
        waiting.news.put_nowait(message)
        return isinstance(message, Nested) or (isinstance(message, Asks) and message.number != 0)

    # Watching

    async def _watch(self) -> None:
        """Watch the waiting calls: their deadlines and their state in Redis."""
        while self._waiting and not self._closed:
            await asyncio.sleep(self._patience.look)
            calls = list({id(one): one for one in self._waiting.values()}.values())
            for one in calls:
                if one.late():
                    one.news.put_nowait("late")
            sent = [one for one in calls if one.entry]
            looks = [self._look(one) for one in (sent[:1] if self.trouble else sent)]
            if looks:
                await asyncio.wait(looks, timeout=max(1.0, self._patience.look))
            for one, look in zip(sent, looks, strict=False):
                if not look.done() or look.exception() is not None:  # Redis is away, and may come back
                    for other in calls:
                        other.lonely = -AWAY_SECONDS
                    break
                used, there, alive, now = look.result()
                self._set_clock(now)
                if news := self._judge(one, used, there, alive):
                    one.news.put_nowait(news)

    def _look(self, one: SentCall) -> asyncio.Future[Any]:
        prefix, grant = self._prefix, one.grants[-1]
        keys = (wire.grant(prefix, grant), wire.queue(prefix), wire.workers(prefix))
        look = self._command("EVAL", LOOK, len(keys), *keys, one.entry, wire.REVOKED, self._patience.alive)
        look.add_done_callback(_forget)
        return look

    def _judge(self, one: SentCall, used: bytes, there: int, alive: int) -> News | None:
        """The News that one check gives. Two checks must agree that the request is gone, because a reply may
        still be on its way."""
        one.missing = 0 if there else one.missing + 1
        if one.missing == 2:
            return "unheard" if used else "lost"
        one.lonely = 0.0 if used or alive else one.lonely + self._patience.look
        return "nobody" if one.lonely >= self._patience.nobody else None

    def _set_clock(self, told: Any) -> None:
        seconds, micros = told
        ours = time.time()
        self._offset, self._ran = int(seconds) + int(micros) / 1e6 - ours, ours - time.monotonic()

    def _start(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task, unless it runs already. It runs outside the context of any call."""
        task = self._tasks.get(name)
        if task is None or task.done():
            self._tasks[name] = self.loop.create_task(work(), context=contextvars.Context())


def _may_pass(error: BaseException) -> bool:
    """Whether an error of Redis may be temporary."""
    from redis.exceptions import AuthenticationError, AuthorizationError, ConnectionError, TimeoutError

    lost = isinstance(error, (ConnectionError, TimeoutError, OSError))
    return lost and not isinstance(error, (AuthenticationError, AuthorizationError))


def _forget(future: asyncio.Future[Any]) -> None:
    """Ignore the answer, and its error."""
    if not future.cancelled():
        future.exception()
