"""The names of what callers and workers keep in Redis. Each begins with the prefix, for ACLs.

Knows names only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

CALL: Final = b"data"  # the field of an entry of ``calls``, as RedisStreamBroker reads it
REPLY: Final = b"m"  # the field of an entry of a stream of replies
REPLY_SECONDS: Final = 3600  # that a stream of replies lasts after the last one
MOST_REPLIES: Final = 10_000  # in one stream; the caller deletes what it has read
REVOKED: Final = b"revoked"  # instead of the id of an entry: a grant that its caller took back


@dataclass(frozen=True)
class Keys:
    """The keys under one prefix."""

    prefix: str

    @cached_property
    def calls(self) -> str:
        """The stream of packed calls."""
        return f"{self.prefix}:tools:calls"

    @cached_property
    def workers(self) -> str:
        """A sorted set: each worker, and when it was last alive, by the clock of Redis."""
        return f"{self.prefix}:tools:workers"

    @cached_property
    def dead(self) -> str:
        """The stream of calls that ended several workers."""
        return f"{self.prefix}:tools:dead"

    def grant(self, grant: str) -> str:
        """The id of the entry that used this grant, or REVOKED."""
        return f"{self.prefix}:tools:grant:{grant}"

    def inbox(self, grant: str) -> str:
        """A list of what the caller tells a worker that runs the call of this grant."""
        return f"{self.prefix}:tools:inbox:{grant}"

    def replies(self, caller: str) -> str:
        """The stream of what workers tell this caller."""
        return f"{self.prefix}:tools:replies:{caller}"

    def call(self, digest: str) -> str:
        """What is known of a call: that it was begun, and its result."""
        return f"{self.prefix}:tools:call:{digest}"
