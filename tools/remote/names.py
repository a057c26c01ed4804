"""The names of what calls leave in Redis, and the scripts of both ends. Knows texts only."""

from __future__ import annotations

import hashlib

TASK = "quoth.call"  # the one task, as taskiq knows it
GROUP = "workers"  # of those who read the queue
FIELD = b"m"  # of an entry of a stream: one packed message
REVOKED = "revoked"  # in the place of an entry: a grant that its caller took back


def queue(prefix: str) -> str:
    """The stream of the calls that wait, or are at work."""
    return f"{prefix}:tools:calls"


def workers(prefix: str) -> str:
    """A sorted set: the workers that live, by the time when they last said so."""
    return f"{prefix}:tools:workers"


def replies(prefix: str, caller: str) -> str:
    """The stream that one caller reads."""
    return f"{prefix}:tools:replies:{caller}"


def grant(prefix: str, number: str) -> str:
    """The entry of the queue that has used a grant, or REVOKED."""
    return f"{prefix}:tools:grant:{number}"


def inbox(prefix: str, number: str) -> str:
    """A list: what the caller tells the worker that has used a grant."""
    return f"{prefix}:tools:inbox:{number}"


def call(prefix: str, key: str, user: str) -> str:
    """A hash: who has a call, by its key across interruptions and by its user, and how it ended (``ended``, a
    packed Ended)."""
    whose = hashlib.sha256(f"{key}\0{user}".encode("utf-8", "replace")).hexdigest()
    return f"{prefix}:tools:call:{whose}"


def server(prefix: str) -> str:
    """A hash: the run of the server that was seen last, and since when."""
    return f"{prefix}:tools:server"


def dead(prefix: str) -> str:
    """The stream of the calls that nobody tries any more."""
    return f"{prefix}:tools:dead"


# Somebody without a key may have put something else there, which would stop a script for ever.
CLEARED = """
local function cleared(key, kind)
  local found = redis.call('TYPE', key).ok
  if found ~= kind and found ~= 'none' then redis.call('UNLINK', key) end
end
"""
MOST_REPLIES = 10_000  # that one caller has not read
REPLIES_SECONDS = 3600  # after the last of them
MOST_WAITING = 10_000  # entries in the queue
FULL = f"{MOST_WAITING:,} calls wait for workers already, and no more can be sent."
# queue; MOST_WAITING, FIELD, packed message. The number of the entry, or nothing where the queue is full.
SEND = """
if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[1]) then return false end
return redis.call('XADD', KEYS[1], '*', ARGV[2], ARGV[3])
"""
