"""The Redis that several machines share for limits and consent: one client, one script a step.

Knows addresses and scripts; it must not know limits, requests or tools.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from quoth.tools.catalog.connection import RedisUrl, check_sync, checked_prefix, sync_client, told

VARIABLE = "QUOTH_SHARED"

# How a script begins that needs the time, which is its first value, or else that of Redis.
NOW = """
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] + time[2] / 1000000
end
local function text(number) return string.format('%.17g', number) end
"""


def digest(*parts: str) -> str:
    """A short name for what may be long or secret."""
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass
class SharedRedis:
    """A server, asked at the first use, and the prefix of the keys. Safe to use in several threads."""

    url: RedisUrl
    prefix: str = "sg"
    _client: Any = field(default=None, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        checked_prefix(self.prefix)

    def key(self, *parts: str) -> str:
        return ":".join((self.prefix, "tools", *parts))

    def run(self, script: str, keys: Sequence[str], values: Sequence[str | bytes | int | float]) -> Any:
        """Run a Lua script, which is one step for everybody. Raises StoreError where the server cannot be
        used."""
        with told(self.url):
            client = self._opened()
            return client.register_script(script)(keys=keys, args=values)

    def _opened(self) -> Any:
        with self._lock:
            if self._client is None:
                client = sync_client(self.url)
                check_sync(client)
                self._client = client
            return self._client

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None
