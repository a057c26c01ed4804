"""The worker: takes delegated calls from the queue, passes each through its own door, and always replies.

A message must be signed with the shared key and bound to a single use; a refused message leaves an audit row.
In one step the worker that owns a call keeps the result, sends it, and deletes the queue entry. A call that
could not be settled stays in the queue."""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from redis.exceptions import RedisError

from quoth.tools.call.call import ToolResult, new_call
from quoth.tools.call.context import STAMPED, ToolContext
from quoth.tools.call.ports import BEGUN_BEFORE
from quoth.tools.catalog.connection import RedisUrl, cancelled, sentence_of, sync_client, told
from quoth.tools.catalog.payload import Key
from quoth.tools.door.door import Door
from quoth.tools.door.execution import brief
from quoth.tools.errors import InvalidCallError, Status
from quoth.tools.lisp.forms import CallForm, from_json
from quoth.tools.policy.limits import changes_nothing
from quoth.tools.remote import wire
from quoth.tools.remote.away import (
    AskTheCaller,
    Away,
    AwayDoor,
    Refused,
    begun_question,
    believed,
    call_of,
    context_of,
    ended_of,
    form_of,
    kept_result,
    tool_of,
)
from quoth.tools.remote.broker import TAKEOVER_SECONDS, CallBroker, Delivery, make_receiver
from quoth.tools.remote.dead import signature
from quoth.tools.remote.shared_receipts import CallRecords, Left, SharedReceipts, Taken
from quoth.tools.remote.wire import Asks, Delegated, Ended, Stale

MOST_DELIVERIES = 3  # maximum number of workers that may end during one call
LOOK_SECONDS = 0.5
ALIVE_SECONDS = 3.0  # between two heartbeats
MOST_GRANTS = 100_000  # maximum number of grants that one worker remembers
MOST_ROWS = 100  # maximum number of audit rows a minute for rejected messages
BEGIN_SECONDS = 2.0  # maximum time that all calls of a worker wait while one of them begins

T = TypeVar("T")


@dataclasses.dataclass
class _AtWork:
    """A call that this worker runs."""

    said: Delegated
    away: Away
    receipts: SharedReceipts
    consent: AskTheCaller
    no_background: bool
    task: asyncio.Task[ToolResult] | None = None
    lost: bool = False
    stopped: bool = False

    def look(self) -> None:
        """Stop the call if another worker has taken it over. Also stop it if its caller no longer waits and
        it has not begun, may not run in the background, or waits for that caller's answer."""
        begun = self.receipts.started and self.consent.waiting is None
        given_up = self.away.cancelled.is_set() and (self.no_background or not begun)
        if (self.lost or given_up) and self.task is not None and not self.stopped:
            self.stopped = True  # cancel only once: it has some seconds to clean up
            self.task.cancel()


class Worker:
    """Runs the calls sent under ``prefix``.

    ``door`` has the tools, and everything that judges and records calls except consent and receipts, which
    are the worker's own. Another door may be assigned at any time; later calls use it. ``context`` has the
    workspace. While ``paused``, no calls are taken. ``trouble`` says why Redis cannot be used now, or is
    empty; ``tell`` is called with a sentence when that changes. ``running`` is the number of running
    calls."""

    def __init__(
        self,
        door: Door,
        *,
        url: RedisUrl,
        key: Key,
        prefix: str,
        context: ToolContext,
        takeover: float = TAKEOVER_SECONDS,
        tell: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self.door = door
        self.name = f"worker-{secrets.token_hex(4)}"
        self.running = 0
        self.trouble = ""
        self._url, self._key, self._prefix = url, key, prefix
        self._context, self._tell = context, tell
        self._broker = CallBroker(url, prefix, self.name, takeover)
        self._broker.on_state = self._state
        self._waiting = sync_client(url, BEGIN_SECONDS)
        self._records = CallRecords(self._broker, self._waiting, url, prefix)
        self._held: set[str] = set()  # queue entries that this worker owns
        self._at_work: dict[str, _AtWork] = {}
        self._used: OrderedDict[str, tuple[str, float]] = OrderedDict()  # by grant: entry, expiry time
        self._unbelieved: deque[float] = deque()  # times of rejected messages

    @property
    def paused(self) -> bool:
        return self._broker.paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        self._broker.paused = paused

    async def others(self) -> bool:
        """Whether another worker takes calls while this one is paused. Raises StoreError."""
        with told(self._url):
            return await self._broker.takers() > 0

    async def run(self, jobs: int, stop: asyncio.Event) -> None:
        """Run calls, at most ``jobs`` at once, until ``stop`` is set and the running calls have ended. Waits
        for a Redis that cannot be reached. Raises StoreError if Redis refuses the worker."""
        receiver = make_receiver(self._broker, self.handle, jobs)
        helpers = [asyncio.create_task(self._tend()), asyncio.create_task(self._stop(stop))]
        try:
            await receiver.listen(asyncio.Event())
        finally:
            await cancelled(helpers)
            await self._broker.shutdown()
            self._waiting.close()

    async def _stop(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._broker.stopping = True
        with suppress(RedisError, OSError):
            await self._broker.say_alive()

    def _state(self, error: Exception | None) -> None:
        trouble = sentence_of(error, self._url) if error is not None else ""
        if trouble != self.trouble:
            self.trouble = trouble
            self._tell(trouble or f"The Redis at {self._url.shown} answers again.")

    async def _tend(self) -> None:
        """Send heartbeats, renew this worker's calls, and read the messages of their callers."""
        hold, alive = self._broker.takeover / 3, self._broker.say_alive
        seconds = min(LOOK_SECONDS, hold / 2)
        every = {self._keep_hold: hold, alive: ALIVE_SECONDS, self._read_inboxes: 0.0}
        due = dict.fromkeys(every, 0.0)
        while True:
            for duty in every:  # a duty that fails is due again and does not stop the others
                try:
                    if time.monotonic() >= due[duty]:
                        await duty()
                        due[duty] = time.monotonic() + every[duty] - seconds / 2
                except (RedisError, OSError) as error:
                    self._state(error)
            for at_work in [*self._at_work.values()]:
                at_work.look()
            await asyncio.sleep(seconds)

    async def _keep_hold(self) -> None:
        for entry in await self._broker.renew(self._held):
            if at_work := self._at_work.get(entry):
                at_work.lost = True

    async def _read_inboxes(self) -> None:
        at_work = list(self._at_work.values())
        if not at_work:
            return
        async with self._broker.redis.pipeline(transaction=False) as pipe:
            for one in at_work:
                pipe.lpop(wire.inbox(self._prefix, one.said.grant), 100)
            found = await pipe.execute(raise_on_error=False)
        for one, messages in zip(at_work, found, strict=True):
            if isinstance(messages, Exception):  # a stranger has stored another type there
                await self._broker.redis.unlink(wire.inbox(self._prefix, one.said.grant))
                messages = [b""]
            self._receive(one.said, one.away, messages or ())

    def _receive(self, said: Delegated, away: Away, messages: Any) -> None:
        for packed in messages:
            if why := away.receive(packed):
                self._refuse(said, "denied", f"A message to a running call was rejected. {why}")

    # One call

    async def handle(self, delivery: Delivery) -> None:
        """Run one call and settle it. A call that cannot be settled now stays in the queue."""
        self.running += 1
        self._held.add(delivery.entry)
        try:
            await self._handle(delivery)
        except (RedisError, OSError) as error:
            self._state(error)
        except Exception as error:  # a defect of quoth must not end the worker
            self._tell(f"A call was left in the queue: {brief(error)}.")
        finally:
            self._held.discard(delivery.entry)
            self.running -= 1

    async def _settled(self, delivery: Delivery, said: Delegated | None, *left: Left, **more: Any) -> None:
        await self._patiently(lambda: self._records.settle(delivery, said, *left, **more))

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer of Redis, retried until Redis can be reached. Raises the error of Redis if the worker is
        stopping and ``takeover`` seconds have passed."""
        since = time.monotonic()
        while True:
            try:
                return await ask()
            except (RedisError, OSError) as error:
                self._state(error)
                if self._broker.stopping and time.monotonic() - since > self._broker.takeover:
                    raise
            await asyncio.sleep(LOOK_SECONDS)

    async def _handle(self, delivery: Delivery) -> None:
        door, said = self.door, None
        try:
            said = believed(self._key, self._prefix, delivery.data)
            taken = await self._take(delivery, said)
            if taken is not None:
                await self._make(door, delivery, said, taken)
        except Refused as refused:
            self._refuse(said, refused.status, refused.message)
            reply = b""
            if said is not None and not refused.silent:
                reply = ended_of(self._key, said, refused.status, refused.message)
            await self._settled(delivery, said, reply=reply)

    async def _take(self, delivery: Delivery, said: Delegated) -> Taken | None:
        """Claim the call. None if nothing more is to be done. Raises Refused."""
        while True:
            taken = await self._patiently(lambda: self._records.take(delivery, said))
            if taken.how == "replayed" or self._used_here(delivery, said, taken.now):
                # Its caller gets no reply: the call that used the grant may still run, and will reply.
                raise Refused("denied", "A call was refused. Its grant was used before.", silent=True)
            if taken.how == "revoked":
                await self._settled(delivery, said)
            if taken.how in ("lost", "revoked"):
                return None
            if taken.how == "ended" and taken.now <= said.deadline:
                return taken
            if taken.now > said.expires:
                why = "was not run: no worker was free in time"
                if taken.begun:
                    why = f"was not run again: {BEGUN_BEFORE}; there is no time left to ask"
                raise Refused("timeout", f"{tool_of(said)} {why}.")
            if taken.how == "ours":
                return taken
            await asyncio.sleep(LOOK_SECONDS)  # another worker runs the same call

    def _used_here(self, delivery: Delivery, said: Delegated, now: float) -> bool:
        """Whether this worker has seen the grant in another entry. A process that can write to Redis could
        delete the record of its use there."""
        used = self._used
        while used and (next(iter(used.values()))[1] < now or len(used) > MOST_GRANTS):
            used.popitem(last=False)
        return used.setdefault(said.grant, (delivery.entry, said.expires))[0] != delivery.entry

    async def _make(self, door: Door, delivery: Delivery, said: Delegated, taken: Taken) -> None:
        """Pass a call through the door and settle it. Raises Refused."""
        form = form_of(said)
        ended = kept_result(self._key, said, taken.ended)
        if said.schema_hash != door.table.schema_hash:
            await self._stale(door, delivery, said, taken, ended)
            return
        if ended is None and delivery.count > MOST_DELIVERIES:
            message = f"{form.tool} ended {MOST_DELIVERIES} workers and is not tried again."
            self._refuse(said, "error", message)
            reply = ended_of(self._key, said, "error", message)
            dead = signature(self._key, delivery.data, delivery.entry, delivery.tries)
            await self._settled(delivery, said, "ended", ended=reply, reply=reply, dead=dead)
            return
        away = Away(self._broker.redis, self._key, self._prefix, said, self._broker.lent)
        self._receive(said, away, taken.inbox)
        known = door.table.find(form.tool)
        begun = taken.begun
        if ended is None and known is not None and not changes_nothing(known):
            first = await away.begins(delivery.by)
            if first is None and not away.cancelled.is_set():
                why = "its caller did not confirm that it may begin, and it may have been run before."
                raise Refused("denied", f"{form.tool} was not run: {why}", silent=True)
            begun = begun or ("" if first else delivery.entry)
        if away.cancelled.is_set() and ended is None:
            raise Refused("cancelled", f"{form.tool} was not run: its caller no longer waits for it.")
        receipts = SharedReceipts(self._records, delivery, begun, ended)
        consent = AskTheCaller(said.approved, begun, away)
        at_work = _AtWork(said, away, receipts, consent, known is not None and known.no_background)
        own = AwayDoor.of(door, away, consent, receipts)
        self._at_work[delivery.entry] = at_work
        try:
            call, context = call_of(said, form), context_of(said, self._context)
            at_work.task = asyncio.create_task(own.dispatch(call, context))
            result = await _result_of(at_work.task)
            if at_work.lost:
                return
            if result is not None and result.audit.get("written") is False:
                self._tell(f"{form.tool} was aborted: {result.message}")
                return  # as if this worker had been killed: the next worker to take the call asks
            if not receipts.unreached:
                await self._settle(delivery, at_work, consent, result, ended)
                return
        finally:
            self._at_work.pop(delivery.entry, None)
        # Redis was unreachable when the body was to begin, so it has not begun: run the call when Redis is
        # back.
        taken_again = await self._take(delivery, said)
        if taken_again is not None:
            await self._make(door, delivery, said, dataclasses.replace(taken_again, begun=taken.begun))

    async def _stale(
        self, door: Door, delivery: Delivery, said: Delegated, taken: Taken, ended: Ended | None
    ) -> None:
        """Reply to a call whose caller knows other tools. Only a call that never began is reported as not
        run: its caller will then call the tool again, with other parameters and another key."""
        question = begun_question(BEGUN_BEFORE, taken.begun)
        reads = tool_of(said) in door.table and changes_nothing(door.table.get(tool_of(said)))
        left: Left = "open"
        if ended is not None:
            left, reply = "ended", dataclasses.replace(ended, grant=said.grant).pack(self._key)
        elif taken.begun and not reads and question not in said.approved:
            self._refuse(said, "pending", f"{BEGUN_BEFORE}, and the tools have changed since.")
            reply = Asks(said.grant, question, BEGUN_BEFORE).pack(self._key)
        else:
            message = "CATALOG_STALE: the caller's list of tools is out of date"
            self._refuse(said, "error", f"{message}; it must read the catalog again.")
            reply = Stale(said.grant, door.table.schema_hash).pack(self._key)
        await self._settled(delivery, said, left, ended=taken.ended, reply=reply)

    async def _settle(
        self,
        delivery: Delivery,
        at_work: _AtWork,
        consent: AskTheCaller,
        result: ToolResult | None,
        ended: Ended | None,
    ) -> None:
        """Keep the outcome of the call and send it."""
        said, receipts = at_work.said, at_work.receipts
        left: Left
        if result is None:
            waiting = consent.waiting  # a body that asked before it did anything may begin again
            left = "anew" if waiting is not None and waiting.may_begin_again else "open"
            reply = ended_of(self._key, said, "cancelled", f"{tool_of(said)} was cancelled.")
        elif result.status == "pending" and consent.asked is not None:
            question, reason = consent.asked
            left = "open"  # it was asked before the body began
            reply = Asks(said.grant, question, reason).pack(self._key)
        elif ended is not None and result.audit.get("stage") == "receipt":
            left, reply = "ended", dataclasses.replace(ended, grant=said.grant).pack(self._key)
        else:
            left = "open" if not receipts.started else "anew" if result.status == "pending" else "ended"
            reply = ended_of(
                self._key,
                said,
                result.status,
                result.message if result.status != "ok" else "",
                result.value,
                list(at_work.away.said),
                list(result.side_effects),
                {name: value for name, value in result.audit.items() if name not in STAMPED},
            )
        await self._settled(delivery, said, left, ended=reply if left == "ended" else b"", reply=reply)

    def _refuse(self, said: Delegated | None, status: Status, message: str) -> None:
        """Write an audit row for a call refused before the door. For messages that are not authentic, at most
        MOST_ROWS rows a minute are written."""
        if said is None:
            now = time.monotonic()
            while self._unbelieved and self._unbelieved[0] < now - 60:
                self._unbelieved.popleft()
            if len(self._unbelieved) >= MOST_ROWS:
                return
            self._unbelieved.append(now)
        form = CallForm("")
        if said is not None:
            with suppress(InvalidCallError):
                form = from_json(said.form)
            if said.schema_hash != self.door.table.schema_hash:  # unknown which arguments are secret
                form = CallForm(form.tool)
        call = call_of(said, form) if said is not None else new_call(form, route="remote")
        self.door.refuse(call, self._context, status, message)


async def _result_of(task: asyncio.Task[ToolResult]) -> ToolResult | None:
    """The door's result of a call; None if the call was cancelled, but not this worker."""
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise
    return None if task.cancelled() else task.result()
