"""Dead letters: calls that are not retried, because each of them ended three workers.

A person looks at them and retries or drops each one. The worker that buries a call signs the dead letter, so
that a process without the key cannot trick a person into retrying an old call."""

from __future__ import annotations

import dataclasses
import hmac
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quoth.tools.catalog.connection import clock_offset
from quoth.tools.errors import QuothError, UsageError, did_you_mean
from quoth.tools.remote import wire
from quoth.tools.remote.wire import Asks, Begin, Begins, Delegated, Ended, Stale, WireError, unpack

if TYPE_CHECKING:
    import redis

    from quoth.tools.catalog.payload import Key

MOST = 1_000  # maximum number of dead letters listed
AT_LEAST_SECONDS = 10.0  # minimum time for a worker to run a retried call


@dataclass(frozen=True)
class DeadCall:
    """A call that ended ``tries`` workers. ``sent`` is the time it was sent, in seconds since 1970. ``call``
    is None unless the whole dead letter is signed with the key."""

    id: str
    sent: float
    tries: int
    call: Delegated | None

    def to_json(self) -> dict[str, Any]:
        """The fields that may be shown. Arguments are left out: only the worker knows which are secret."""
        call = self.call
        told = {"tool": call.form.get("tool"), "user": call.user, "session": call.session} if call else {}
        return {"id": self.id, "sent": self.sent, "tries": self.tries, **told}


def dead_calls(client: redis.Redis, key: Key, prefix: str) -> list[DeadCall]:
    """All dead letters, oldest first."""
    rows: Any = client.xrange(wire.dead(prefix), count=MOST)
    return [_dead(key, id, said) for id, said in rows]


def signature(key: Key, packed: bytes, entry: str, tries: str) -> bytes:
    """Signature of a dead letter: this call, from that queue entry, was buried after ``tries`` tries."""
    return key.sign("dead", f"{entry} {tries} ".encode() + packed)


def _dead(key: Key, id: bytes, said: dict[bytes, bytes]) -> DeadCall:
    packed, signed = said.get(wire.FIELD, b""), said.get(b"signature", b"")
    entry, tries = (said.get(name, b"").decode("utf-8", "replace") for name in (b"entry", b"tries"))
    buried, sent = id.decode(), entry.partition("-")[0]
    try:
        if not hmac.compare_digest(signature(key, packed, entry, tries), signed):
            raise WireError("It is not signed with the key that is used here.")
        call = unpack(key, packed, Delegated)
        assert isinstance(call, Delegated)
    except WireError:
        return DeadCall(buried, 0.0, 0, None)
    return DeadCall(buried, int(sent) / 1000, int(tries), call)


def drop(client: redis.Redis, key: Key, prefix: str, id: str) -> DeadCall:
    """Delete a dead letter. Raises UsageError if it does not exist."""
    found = _found(client, key, prefix, id)
    client.xdel(wire.dead(prefix), found.id)
    return found


def retry(client: redis.Redis, key: Key, prefix: str, id: str) -> tuple[str, Ended]:
    """Retry a dead letter under its old key and wait for its result. Returns the tool's name and the result.
    When a worker answers, the dead letter is deleted. Raises QuothError if no worker answers, or if the tool
    must be called again instead."""
    found = _found(client, key, prefix, id)
    if found.call is None:
        raise UsageError(
            f"The call {id} is not signed with the key that is used here; it can only be dropped."
        )
    call = again(found.call, found.sent, clock_offset(client), prefix)
    record = wire.call(prefix, call.key, call.user)
    kept: Any = client.hget(record, "ended")
    if kept and _went_well(key, kept):
        raise UsageError(f"The call {id} has been run since; it can only be dropped.")
    client.hdel(record, "ended")
    send: Any = client.register_script(wire.SEND)
    args = [wire.MOST_WAITING, wire.FIELD, call.pack(key)]
    if send(keys=[wire.queue(prefix)], args=args) is None:
        raise QuothError(wire.FULL)
    reply = _reply(client, key, prefix, call, call.expires)
    if reply is None:
        client.set(wire.grant(prefix, call.grant), wire.REVOKED, nx=True, ex=3600)
        raise QuothError(f"No worker answered in time; the call {id} remains in the list.")
    client.xdel(wire.dead(prefix), found.id)
    tool = str(call.form.get("tool"))
    if isinstance(reply, Stale):
        raise QuothError(f"The tools have changed since {tool} was called; call it again.")
    if isinstance(reply, Asks):
        raise QuothError(f"{tool} needs a person's approval ({reply.reason}); call it again.")
    return tool, reply


def _went_well(key: Key, kept: bytes) -> bool:
    try:
        ended = unpack(key, kept, Ended)
    except WireError:
        return False
    return isinstance(ended, Ended) and ended.status == "ok"


def again(call: Delegated, sent: float, offset: float, prefix: str) -> Delegated:
    """The same call with a new grant and the time limit it had."""
    until = time.time() + offset + max(call.expires - sent, AT_LEAST_SECONDS)
    return dataclasses.replace(
        call,
        grant=secrets.token_hex(16),
        resumed=True,
        deadline=until,
        expires=until,
        replies=wire.replies(prefix, secrets.token_hex(8)),
    )


def _reply(
    client: redis.Redis, key: Key, prefix: str, call: Delegated, until: float
) -> Ended | Asks | Stale | None:
    last: Any = b"0"
    begun = ""
    offset = clock_offset(client)
    try:
        while time.time() + offset < until:
            found: Any = client.xread({call.replies: last}, count=1, block=1000)
            for _, entries in found or ():
                for last, said in entries:  # noqa: B007
                    try:
                        reply = unpack(key, said.get(wire.FIELD, b""), Ended, Asks, Stale, Begins)
                    except WireError:
                        continue  # a progress message, or a message that is not authentic
                    if isinstance(reply, Begins) and reply.grant == call.grant:
                        begun = begun or reply.by
                        inbox = wire.inbox(prefix, call.grant)
                        client.rpush(inbox, Begin(call.grant, reply.by, reply.by == begun).pack(key))
                        client.expire(inbox, 3600)
                    if reply.grant == call.grant and isinstance(reply, (Ended, Asks, Stale)):
                        return reply
        return None
    finally:
        client.delete(call.replies)


def _found(client: redis.Redis, key: Key, prefix: str, id: str) -> DeadCall:
    found = dead_calls(client, key, prefix)
    for one in found:
        if one.id == id:
            return one
    hint = did_you_mean(id, [one.id for one in found]) or " quoth catalog dead lists them."
    raise UsageError(f"No dead letter {id}.{hint}")
