"""The broker's requests in Redis, for several machines: asked on one, decided on another.

The local counterpart is StoreRequests (tools/consent/rows.py). Each row is signed with the key that the
machines share: a process that can write to this Redis but does not have the key cannot make or alter an
approval.

One Lua script writes the rows of one user in one session, unless another process has written them since they
were read; then everything is done again. Each write gives a row its next turn number, which is signed, too. A
machine remembers the turns of the decided rows it has seen. If a row is put back to an earlier state, by a
person or by a Redis that has lost a second, the machine rejects it: a used approval stays used. All times are
by the clock of Redis."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from quoth.tools.catalog.payload import Key
from quoth.tools.consent.rows import KEPT_SECONDS, UNBELIEVED, RequestRow, Rows, T
from quoth.tools.errors import ServerError, UsageError
from quoth.tools.shared.server import NOW, SharedRedis, digest
from quoth.tools.storage.database import Store

KIND = "request"
SIGNATURE = 32  # bytes, before the row itself
GRACE_SECONDS = 86400.0  # how long an expired request is kept, to report that it expired
MOST_OF_SESSION = 1_000  # maximum number of rows of one user in one session; older ones are deleted
MOST = 10_000  # maximum number of rows listed
SAME = 10  # maximum number of equal approvals counted
ATTEMPTS = 100

# KEYS: a counter, a sorted set of ids. ARGV: the time (empty: the time of Redis), the prefix of row keys.
_READ = f"""{NOW}
local said = {{text(now), redis.call('GET', KEYS[1]) or ''}}
for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  local row = redis.call('GET', ARGV[2] .. id)
  if row then
    table.insert(said, id)
    table.insert(said, row)
  else
    redis.call('ZREM', KEYS[2], id)
  end
end
return said
"""

# KEYS: the counter of changes, the ids of this user and session, the counter of requests, all ids, the
# waiting ids. ARGV: the counter as read, the lifetime of all keys in ms, the prefix of row keys, the prefix
# of equal approvals; then for each row: its id, its data, its lifetime in ms, how to write it, '1' if it
# waits, and the digest that equal approvals share.
_WRITE = f"""
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
for at = 5, #ARGV, 6 do
  if ARGV[at + 3] == 'add' and redis.call('EXISTS', ARGV[3] .. ARGV[at]) == 1 then return 0 end
end
for at = 5, #ARGV, 6 do
  local id, row, lasts, how, waits, same = unpack(ARGV, at, at + 5)
  if how == 'drop' then
    redis.call('DEL', ARGV[3] .. id)
    for set = 2, 5 do if set ~= 3 then redis.call('ZREM', KEYS[set], id) end end
  else
    redis.call('SET', ARGV[3] .. id, row, 'PX', lasts)
    if how == 'add' then
      local place = redis.call('INCR', KEYS[3])
      redis.call('ZADD', KEYS[2], place, id)
      redis.call('ZADD', KEYS[4], place, id)
      if waits == '1' then redis.call('ZADD', KEYS[5], place, id) end
    end
    if waits ~= '1' then redis.call('ZREM', KEYS[5], id) end
    if same ~= '' then
      redis.call('ZADD', ARGV[4] .. same, redis.call('GET', KEYS[3]) or 0, id)
      redis.call('ZREMRANGEBYRANK', ARGV[4] .. same, 0, -{SAME + 1})
      redis.call('PEXPIRE', ARGV[4] .. same, ARGV[2])
    end
  end
end
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -{MOST_OF_SESSION + 1})
redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -{MOST + 1})
redis.call('ZREMRANGEBYRANK', KEYS[5], 0, -{MOST + 1})
redis.call('INCR', KEYS[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
"""
_NEWER = (
    "INSERT INTO shared_turns (request, turn, at) VALUES (?, ?, ?) ON CONFLICT (request)"
    " DO UPDATE SET turn = excluded.turn, at = excluded.at WHERE excluded.turn > turn RETURNING 1"
)
_GET = "return redis.call('GET', KEYS[1])"
_TIME = f"{NOW}return text(now)"


class RedisRequests:
    """The rows in Redis. ``store`` is the machine's own store, which remembers the turns it has seen.
    ``clock`` replaces the clock of Redis, for tests."""

    def __init__(
        self,
        redis: SharedRedis,
        key: Key,
        store: Callable[[], Store] | None = None,
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._redis = redis
        self._key = key
        self._store = store
        self._clock = clock
        self.altered: list[str] = []  # ids of altered rows in the last listing
        self._read_before: dict[str, tuple[bytes, tuple[RequestRow, int] | None]] = {}  # by row id

    def now(self) -> float:
        return float(self._redis.run(_TIME, [], [self._told_time()]))

    def find(self, id: str) -> RequestRow | None:
        packed = self._redis.run(_GET, [self._redis.key("requests", "row", id)], [])
        if packed is None:
            return None
        found, altered = self._believed([(id, packed)])
        if altered:
            raise UsageError(f"Request {id} at {self._redis.url.shown} {UNBELIEVED}.")
        return found[0][0]

    def every(self, *, waiting: bool) -> list[RequestRow]:
        now, _, listed = self._listed("seq", "waiting" if waiting else "all")
        found, self.altered = self._believed(listed)
        return [row for row, _ in found if not waiting or (row.state == "pending" and row.expires > now)]

    def approvals(self, tool: str, rule: str, user: str) -> int:
        _, _, listed = self._listed("seq", "same", digest(tool, rule, user))
        found, _ = self._believed(listed)
        same = [
            (row.tool, row.rule, row.user, row.decision) == (tool, rule, user, "once") for row, _ in found
        ]
        return sum(same)

    def look(self, session: str, user: str) -> Rows:
        return self._read(session, user)

    def change(self, session: str, user: str, act: Callable[[Rows], T]) -> T:
        for _ in range(ATTEMPTS):
            rows = self._read(session, user)
            result = act(rows)
            if not rows.written or self._write(rows, session, user):
                return result
        raise ServerError(
            f"The requests at {self._redis.url.shown} could not be changed", "others keep changing them"
        )

    def _read(self, session: str, user: str) -> _SharedRows:
        bucket = digest(session, user)
        now, count, listed = self._listed(f"turn:{bucket}", "of", bucket)
        found, altered = self._believed(listed)
        own = [(row, turn) for row, turn in found if (row.session, row.user) == (session, user)]
        return _SharedRows(now, count, own, altered)

    def _listed(self, counter: str, *ids: str) -> tuple[float, bytes, list[tuple[str, bytes]]]:
        key = self._redis.key
        said = self._redis.run(
            _READ,
            [key("requests", counter), key("requests", *ids)],
            [self._told_time(), key("requests", "row", "")],
        )
        names = [id.decode("utf-8", "replace") for id in said[2::2]]
        return float(said[0]), said[1], list(zip(names, said[3::2], strict=True))

    def _write(self, rows: _SharedRows, session: str, user: str) -> bool:
        """Write the changes of the rows. False if another process has written them meanwhile."""
        bucket, key = digest(session, user), self._redis.key
        values: list[str | bytes | int] = []
        for row, how in rows.written.values():
            after = KEPT_SECONDS if row.state != "pending" else GRACE_SECONDS
            lasts = max(1, round(1000 * (row.expires - rows.now + after)))
            equal = row.rule and row.decision == "once" and row.state == "decided"
            same = digest(row.tool, row.rule, row.user) if equal else ""
            packed = self._packed(row, rows.turns.get(row.id, 0) + 1)
            values += [row.id, packed, lasts, how, int(row.state == "pending"), same]
        done = self._redis.run(
            _WRITE,
            [
                key("requests", *name.split())
                for name in (f"turn:{bucket}", f"of {bucket}", "seq", "all", "waiting")
            ],
            [
                rows.count,
                round(1000 * (KEPT_SECONDS + GRACE_SECONDS)),
                key("requests", "row", ""),
                key("requests", "same", ""),
                *values,
            ],
        )
        if done:
            self._remember(rows)
        return bool(done)

    def _remember(self, rows: _SharedRows) -> None:
        """Remember the turns of decided rows. Raises ServerError if this machine has seen the turn before."""
        decided = [row.id for row, _ in rows.written.values() if row.state != "pending"]
        if self._store is None or not decided:
            return
        with self._store().transaction() as run:
            run("DELETE FROM shared_turns WHERE at < ?", (rows.now - 2 * KEPT_SECONDS,))
            for id in decided:
                if not run(_NEWER, (id, rows.turns.get(id, 0) + 1, rows.now)):
                    place = self._redis.url.shown
                    raise ServerError(f"Request {id} at {place} was put back to an earlier state.")

    def _believed(
        self, listed: Sequence[tuple[str, bytes]]
    ) -> tuple[list[tuple[RequestRow, int]], list[str]]:
        """The rows with a valid signature and turn, with their turns; and the ids of the other rows."""
        found = [(id, self._unpacked(id, packed)) for id, packed in listed]
        seen = self._seen([id for id, one in found if one])
        fine = [one for id, one in found if one and one[1] >= seen.get(id, 0)]
        known = {row.id for row, _ in fine}
        return fine, [id for id, _ in listed if id not in known]

    def _seen(self, ids: Sequence[str]) -> dict[str, int]:
        if self._store is None or not ids:
            return {}
        marks = ", ".join("?" * len(ids))
        sql = f"SELECT request, turn FROM shared_turns WHERE request IN ({marks})"  # noqa: S608
        return {str(id): int(turn) for id, turn in self._store().execute(sql, ids)}

    def _packed(self, row: RequestRow, turn: int) -> bytes:
        data = json.dumps({"prefix": self._redis.prefix, "turn": turn, **vars(row)}).encode()
        return self._key.sign(KIND, data) + data

    def _unpacked(self, id: str, packed: bytes) -> tuple[RequestRow, int] | None:
        before = self._read_before.get(id)
        if before is not None and before[0] == packed:
            return before[1]
        if len(self._read_before) >= MOST:
            self._read_before.clear()
        found = self._checked(id, packed)
        self._read_before[id] = (packed, found)
        return found

    def _checked(self, id: str, packed: bytes) -> tuple[RequestRow, int] | None:
        signature, data = packed[:SIGNATURE], packed[SIGNATURE:]
        if not self._key.fits(KIND, data, signature):
            return None
        said = json.loads(data)
        if (said.get("id"), said.get("prefix")) != (id, self._redis.prefix):  # copied from another key
            return None
        return RequestRow(**{name: said[name] for name in _NAMES if name in said}), said["turn"]

    def _told_time(self) -> str:
        return "" if self._clock is None else repr(self._clock())


_NAMES = tuple(one.name for one in fields(RequestRow))


class _SharedRows:
    def __init__(
        self, now: float, count: bytes, found: Sequence[tuple[RequestRow, int]], altered: list[str]
    ) -> None:
        self.now = now
        self.count = count
        self.turns = {row.id: turn for row, turn in found}
        self.written: dict[str, tuple[RequestRow, str]] = {}
        self.altered = altered
        self._rows = {row.id: row for row, _ in found}

    def where(self, **equal: Any) -> list[RequestRow]:
        return [
            row for row in self._rows.values() if all(getattr(row, name) == equal[name] for name in equal)
        ]

    def add(self, row: RequestRow) -> None:
        self._rows[row.id] = row
        self.written[row.id] = (row, "add")

    def put(self, row: RequestRow) -> None:
        self._rows[row.id] = row
        self.written[row.id] = (row, self.written[row.id][1] if row.id in self.written else "put")

    def prune(self) -> None:
        for row in list(self._rows.values()):
            if row.expires < self.now - KEPT_SECONDS:
                del self._rows[row.id]
                self.written[row.id] = (row, "drop")
            elif row.expires <= self.now and (row.form or row.edited):
                self.put(replace(row, form="", edited=""))
