"""Limits counted in Redis for several machines together. Arithmetic and messages are in
tools/policy/limits.py.

One Lua script reserves a slot, by the clock of Redis. Each rule has a sorted set of the uses within its
window; Redis deletes it when the window is over. Processes with the same rule count together. A process that
can write to this Redis can change the counts. If Redis cannot be reached, every limited call is refused."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence

from quoth.tools.call.call import Call, RemainingQuota
from quoth.tools.call.ports import Refusal, Reservation
from quoth.tools.errors import ServerError, StoreError
from quoth.tools.policy.limits import Counted, CountedLimits, Seen, count_of, length_of, whom
from quoth.tools.policy.spending import Cooldown, Rule
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.shared.server import NOW, SharedRedis, digest

HELD_SECONDS = 9 * 86400.0  # a call that waits in its body for an approval must be resumed within this time

# KEYS: the counter of slots, the slot of the call, then the set of each rule. ARGV: the time (empty: the time
# of Redis), '1' to reserve, '1' for a resumed call, how long the slot is kept in ms, then for each rule: the
# allowed number of uses, and the length of its window or the start and end of its day.
_COUNT = f"""{NOW}
if ARGV[3] == '1' and redis.call('EXISTS', KEYS[2]) == 1 then return {{text(now), 'held'}} end
local said, room, windows = {{text(now), ''}}, true, {{}}
for rule = 1, #KEYS - 2 do
  local at = 4 * rule + 1
  local count, length = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local after, before = now - (length or 0), now + (length or 0)
  if not length then
    after, before = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
    if now <= after or now >= before then return {{text(now), 'day'}} end
  end
  windows[rule] = math.ceil(1000 * (before - now))
  local low, high = '(' .. text(after), '(' .. text(before)
  local used = redis.call('ZCOUNT', KEYS[rule + 2], low, high)
  local leaves = ''
  if used >= count then
    room = false
    if count > 0 then
      leaves = redis.call('ZREVRANGEBYSCORE', KEYS[rule + 2], high, low,
                          'WITHSCORES', 'LIMIT', count - 1, 1)[2]
    end
  end
  table.insert(said, used)
  table.insert(said, leaves)
  redis.call('ZREMRANGEBYSCORE', KEYS[rule + 2], '-inf', text(after))
end
if room and ARGV[2] == '1' then
  local place = redis.call('INCR', KEYS[1])
  said[2] = tostring(place)
  for rule, window in ipairs(windows) do
    redis.call('ZADD', KEYS[rule + 2], text(now), place)
    redis.call('PEXPIRE', KEYS[rule + 2], window)
  end
  redis.call('SET', KEYS[2], place, 'PX', ARGV[4])
end
return said
"""

# KEYS: the sets of cooldowns. ARGV: the time, the slot, then the length of each cooldown.
_BEGIN = f"""{NOW}
for rule, key in ipairs(KEYS) do
  redis.call('ZADD', key, text(now), ARGV[2])
  redis.call('PEXPIRE', key, math.ceil(1000 * tonumber(ARGV[rule + 2])))
end
"""

# KEYS: the slot of the call, then the set of each rule. ARGV: the slot's number.
_RELEASE = """
for rule = 2, #KEYS do redis.call('ZREM', KEYS[rule], ARGV[1]) end
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
"""


class RedisLimits(CountedLimits):
    """Limits counted in Redis. ``clock`` replaces the clock of Redis, for tests."""

    def __init__(
        self,
        redis: SharedRedis,
        rules: Iterable[Rule] = (),
        *,
        clock: Callable[[], float] | None = None,
        zone: str = "UTC",
    ) -> None:
        super().__init__(rules, zone=zone)
        self._redis = redis
        self._clock = clock
        self._ahead = 0.0  # clock of Redis minus ours, in seconds; it determines the day

    def reserve(self, tool: CognitiveTool, call: Call) -> Reservation | Refusal:
        try:
            return super().reserve(tool, call)
        except StoreError as error:
            return Refusal(f"its calls cannot be counted. {str(error).rstrip('.')}")

    def left(self, tool: CognitiveTool, call: Call) -> Sequence[RemainingQuota]:
        try:
            return super().left(tool, call)
        except StoreError as error:
            return [RemainingQuota(None, f"its calls cannot be counted. {str(error).rstrip('.')}")]

    def _count(self, tool: str, call: Call, rules: Sequence[Rule], *, take: bool) -> Counted:
        keys = [self._key(rule, tool, call) for rule in rules]
        held = self._redis.key("limits", "held", digest(tool, call.key or call.id))
        kept = HELD_SECONDS + max(length_of(rule) or 86400.0 for rule in rules)
        carried_on = take and call.resumed
        for _ in range(3):
            said = self._redis.run(
                _COUNT,
                [self._redis.key("limits", "slots"), held, *keys],
                [self._now(), int(take), int(carried_on), math.ceil(1000 * kept), *self._windows(rules)],
            )
            now, slot = float(said[0]), said[1].decode()
            self._ahead = now - time.time()
            if slot != "day":
                break
        else:
            raise ServerError(f"The Redis at {self._redis.url.shown} cannot be used", "its clock jumps")
        if slot == "held":
            return Counted(now, held=True)
        found = [
            Seen(int(used), float(leaves) if leaves else None)
            for used, leaves in zip(said[2::2], said[3::2], strict=True)
        ]
        if not slot:
            return Counted(now, found)
        begins = [
            (key, rule.seconds) for key, rule in zip(keys, rules, strict=True) if isinstance(rule, Cooldown)
        ]
        return Counted(now, found, _Slot(self._redis, self._now, slot, [held, *keys], begins))

    def _windows(self, rules: Sequence[Rule]) -> list[str]:
        today = self.day(time.time() + self._ahead)
        words: list[str] = []
        for rule in rules:
            length = length_of(rule)
            words += [str(count_of(rule)), "" if length is None else repr(float(length))]
            # Midnight belongs to the day that it begins.
            words += ["", ""] if length else [repr(math.nextafter(today[0], -math.inf)), repr(today[1])]
        return words

    def _now(self) -> str:
        return "" if self._clock is None else repr(self._clock())

    def _key(self, rule: Rule, tool: str, call: Call) -> str:
        kind = "cooldown" if isinstance(rule, Cooldown) else "quota"
        length = length_of(rule)
        window = f"day {self._zone}" if length is None else repr(float(length))
        return self._redis.key("limits", kind, digest(tool, window, rule.by, whom(rule.by, call)))


class _Slot(Reservation):
    """A reserved slot. It lasts until it is released or its windows are over, even if this process dies."""

    def __init__(
        self,
        redis: SharedRedis,
        now: Callable[[], str],
        slot: str,
        keys: Sequence[str],
        cooldowns: Sequence[tuple[str, float]],
    ) -> None:
        self._redis = redis
        self._now = now
        self._slot = slot
        self._keys = keys
        self._cooldowns = cooldowns
        self._settled = False

    def commit(self) -> None:
        if self._cooldowns:  # they start when the body begins
            lengths = [repr(float(length)) for _, length in self._cooldowns]
            self._redis.run(_BEGIN, [key for key, _ in self._cooldowns], [self._now(), self._slot, *lengths])
        self._settled = True

    def release(self) -> None:
        if not self._settled:
            self._redis.run(_RELEASE, self._keys, [self._slot])
            self._settled = True
