"""The Redis that several machines share for limits and consent: one client; each step is one script."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from quoth.tools.catalog.connection import RedisUrl, check_sync, checked_prefix, sync_client, told

VARIABLE = "QUOTH_SHARED"

# Beginning of a script that needs the time: its first argument, otherwise the time of Redis.
NOW = """
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] + time[2] / 1000000
end
local function text(number) return string.format('%.17g', number) end
"""


def digest(*parts: str) -> str:
    """A short name for parts that may be long or secret."""
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass
class SharedRedis:
    """A server, contacted at first use, and the prefix of its keys. Safe to use in several threads."""

    url: RedisUrl
    prefix: str = "sg"
    _client: Any = field(default=None, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        checked_prefix(self.prefix)

    def key(self, *parts: str) -> str:
        return ":".join((self.prefix, "tools", *parts))

    def run(self, script: str, keys: Sequence[str], values: Sequence[str | bytes | int | float]) -> Any:
        """Run a Lua script as one atomic step. Raises StoreError if the server cannot be used."""
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
