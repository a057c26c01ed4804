"""Receipts of delegated calls in Redis: which worker owns a call, whether its body has begun, and how it
ended.

A worker can stop at any moment, and another can take its call over. So each step is a script that first
checks whether this worker still owns the call's queue entry; if it does not, the step does nothing."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from quoth.tools.call.call import Call, ToolResult
from quoth.tools.call.ports import Logged, Receipt, Receipts
from quoth.tools.catalog.connection import RedisUrl, told
from quoth.tools.errors import QuothError, Status, StoreError
from quoth.tools.policy.limits import changes_nothing
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.remote import wire
from quoth.tools.remote.broker import OURS, CallBroker, Delivery
from quoth.tools.remote.wire import Delegated, Ended

if TYPE_CHECKING:
    import redis

KEPT_SECONDS = 86400  # lifetime of the record of a call that does more than read
SHORT_SECONDS = 60  # lifetime after the deadline for any other call, which can be run again
MOST_DEAD = 1_000

# A Redis that is not durable loses its last seconds when it restarts: a call sent before the restart may have
# begun, although the record of that is gone.
_FORGOTTEN = """
local function forgotten(known, entry, now)
  local info = redis.pcall('INFO', 'server')
  local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)')
  if not run then return false end  -- its user may not ask that
  local seen = redis.call('HMGET', known, 'run', 'since')
  if seen[1] ~= run then
    seen[2] = seen[1] and tostring(now) or '0'
    redis.call('HSET', known, 'run', run, 'since', seen[2])
  end
  return tonumber(string.match(entry, '^%d+')) / 1000 < (tonumber(seen[2]) or now)
end
"""

# Keys: queue, grant, call, inbox, server. Arguments: consumer, entry, deadline, takeover in ms, whether Redis
# is durable.
_TAKE = f"""{OURS}{wire.CLEARED}{_FORGOTTEN}
cleared(KEYS[2], 'string')
cleared(KEYS[3], 'hash')
cleared(KEYS[4], 'list')
cleared(KEYS[5], 'hash')
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local clock = string.format('%.6f', now)
if not ours(KEYS[1], ARGV[1], ARGV[2]) then return {{'lost', clock}} end
local left = math.max(1, math.ceil(tonumber(ARGV[3]) - now + {SHORT_SECONDS}))
local used = redis.call('GET', KEYS[2])
if used == '{wire.REVOKED}' then return {{'revoked', clock}} end
if used and used ~= ARGV[2] then return {{'replayed', clock}} end
if not used then redis.call('SET', KEYS[2], ARGV[2], 'EX', left) end
local has = redis.call('HMGET', KEYS[3], 'entry', 'begun', 'ended')
if has[3] then return {{'ended', clock, has[3]}} end
if has[1] and has[1] ~= ARGV[2] then
  local other = redis.call('XPENDING', KEYS[1], '{wire.GROUP}', has[1], has[1], 1)
  if #other == 1 and other[1][3] < tonumber(ARGV[4]) then return {{'busy', clock}} end
  redis.call('XACK', KEYS[1], '{wire.GROUP}', has[1])
  redis.call('XDEL', KEYS[1], has[1])
end
redis.call('HSET', KEYS[3], 'entry', ARGV[2])
if redis.call('TTL', KEYS[3]) < left then redis.call('EXPIRE', KEYS[3], left) end
local inbox = redis.call('LRANGE', KEYS[4], 0, 99)
redis.call('DEL', KEYS[4])
local begun = has[2] or ''
if begun == '' and ARGV[5] == '' and forgotten(KEYS[5], ARGV[2], now) then begun = ARGV[2] end
return {{'ours', clock, begun, unpack(inbox)}}
"""

# Keys: queue, call. Arguments: consumer, entry.
_BEGIN = f"""{OURS}
if not ours(KEYS[1], ARGV[1], ARGV[2]) or redis.call('HGET', KEYS[2], 'entry') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[2], 'begun', ARGV[2])
redis.call('EXPIRE', KEYS[2], {KEPT_SECONDS})
return 1
"""

# Keys: queue, call, replies, dead. Arguments: consumer, entry, the state of the call (Left), the result to
# keep, the reply, the number of tries, the signature of a dead letter.
_SETTLE = f"""{OURS}{wire.CLEARED}
if not ours(KEYS[1], ARGV[1], ARGV[2]) then return 0 end
cleared(KEYS[2], 'hash')
if redis.call('HGET', KEYS[2], 'entry') == ARGV[2] then
  if ARGV[3] == 'ended' then redis.call('HSET', KEYS[2], 'ended', ARGV[4]) end
  redis.call('HDEL', KEYS[2], 'entry')  -- last: deleting the last field deletes the hash and its expiry
  if ARGV[3] ~= 'open' then redis.call('HDEL', KEYS[2], 'begun') end
end
if ARGV[5] ~= '' then
  cleared(KEYS[3], 'stream')
  local function send()
    local most, field = {wire.MOST_REPLIES}, '{wire.FIELD.decode()}'
    return redis.pcall('XADD', KEYS[3], 'MAXLEN', '~', most, '*', field, ARGV[5])
  end
  local sent = send()
  if type(sent) == 'table' and sent.err then  -- a stranger has used up its entry ids
    redis.call('UNLINK', KEYS[3])
    send()
  end
  redis.call('EXPIRE', KEYS[3], {wire.REPLIES_SECONDS})
end
if ARGV[6] ~= '' then
  local entry = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])
  cleared(KEYS[4], 'stream')
  redis.pcall('XADD', KEYS[4], 'MAXLEN', '~', {MOST_DEAD}, '*', 'm', entry[1][2][2], 'entry', ARGV[2],
    'tries', ARGV[6], 'signature', ARGV[7])
end
redis.call('XACK', KEYS[1], '{wire.GROUP}', ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
return 1
"""

# The state that a worker leaves a call in: ``ended``, with its result kept; ``anew``, its body has stopped
# and will begin again from the start; ``open``, the record is unchanged.
Left = Literal["ended", "anew", "open"]


class LostError(QuothError):
    """Another worker has taken over the call."""

    def __init__(self) -> None:
        super().__init__("Another worker has taken over this call.")


@dataclass(frozen=True)
class Taken:
    """The state of a call when a worker takes it. ``how`` is ``ours``; ``ended``, with the packed result;
    ``busy``, another worker runs it; ``replayed`` or ``revoked``, its grant cannot be used; ``lost``, another
    worker has taken it over. ``now`` is the time of Redis in seconds since 1970. ``begun`` is the entry whose
    body has begun, or may have begun, and left no result."""

    how: str
    now: float
    ended: bytes = b""
    begun: str = ""
    inbox: tuple[bytes, ...] = ()


class CallRecords:
    """The scripts of one worker."""

    def __init__(self, broker: CallBroker, waiting: redis.Redis, url: RedisUrl, prefix: str) -> None:
        self._url = url
        self._queue, self._consumer, self._prefix = broker.queue_name, broker.consumer_name, prefix
        self._idle = int(broker.takeover * 1000)
        self._broker = broker
        self._take = broker.redis.register_script(_TAKE)
        self._settle = broker.redis.register_script(_SETTLE)
        self._begin: Any = waiting.register_script(_BEGIN)

    async def take(self, delivery: Delivery, said: Delegated) -> Taken:
        """Use the grant and claim the call."""
        prefix = self._prefix
        how, now, *rest = await self._take(
            keys=[
                self._queue,
                wire.grant(prefix, said.grant),
                wire.call(prefix, said.key, said.user),
                wire.inbox(prefix, said.grant),
                wire.server(prefix),
            ],
            args=[
                self._consumer,
                delivery.entry,
                said.deadline,
                self._idle,
                "1" if self._broker.durable else "",
            ],
        )
        found = Taken(how.decode(), float(now))
        if found.how == "ended":
            return dataclasses.replace(found, ended=rest[0])
        if found.how == "ours":
            return dataclasses.replace(found, begun=rest[0].decode(), inbox=tuple(rest[1:]))
        return found

    def begin(self, delivery: Delivery, call: Call) -> None:
        """Record that the body begins. Raises LostError, or QuothError if Redis cannot be reached."""
        keys = [self._queue, wire.call(self._prefix, call.key, call.user)]
        try:
            with told(self._url):
                begun = self._begin(keys=keys, args=[self._consumer, delivery.entry])
        except StoreError as error:
            raise QuothError(f"{call.tool} was not run: {error}") from None
        if not begun:
            raise LostError

    async def settle(
        self,
        delivery: Delivery,
        said: Delegated | None,
        left: Left = "open",
        *,
        ended: bytes = b"",
        reply: bytes = b"",
        dead: bytes = b"",
    ) -> bool:
        """Keep the result, send the reply and delete the queue entry, in one step. False if another worker
        has taken over the call. ``dead`` is the signature of a call that becomes a dead letter."""
        key, user, replies = (said.key, said.user, said.replies) if said is not None else ("", "", "")
        done = await self._settle(
            keys=[
                self._queue,
                wire.call(self._prefix, key, user),
                replies,
                wire.dead(self._prefix),
            ],
            args=[
                self._consumer,
                delivery.entry,
                left,
                ended,
                reply,
                delivery.tries if dead else "",
                dead,
            ],
        )
        return bool(done)


class SharedReceipts(Receipts):
    """The receipts of one delegated call, for the worker's door: the state found when the worker took the
    call. The worker itself keeps the result when it sends the reply."""

    def __init__(self, records: CallRecords, delivery: Delivery, begun: str, ended: Ended | None) -> None:
        self._records = records
        self._delivery = delivery
        self._begun = begun
        self._ended = ended
        self.started = False  # whether the body was started here
        self.unreached = False  # whether Redis was unreachable when the body was to begin

    def find(self, tool: CognitiveTool, call: Call) -> Receipt | None:
        ended = self._ended
        if ended is None:
            return None
        status: Status = ended.status  # type: ignore[assignment]  # checked when it was read
        return Receipt(call.id, status, ended.value, ended.message)

    def begins(self, tool: CognitiveTool, call: Call, *, logged: bool = False) -> None:
        if not changes_nothing(tool):
            try:
                self._records.begin(self._delivery, call)
            except QuothError as error:
                self.unreached = not isinstance(error, LostError)
                raise
        self.started = True

    def begun(self, tool: CognitiveTool, call: Call) -> bool:
        return bool(self._begun) and not changes_nothing(tool)

    def keep(
        self,
        tool: CognitiveTool,
        call: Call,
        result: ToolResult,
        *,
        decided: bool,
        asked: bool = False,
        again: bool = False,
        logged: Logged | None = None,
    ) -> None:
        """Does nothing: the worker keeps the result after the audit row is written."""
