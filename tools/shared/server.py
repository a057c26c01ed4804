"""The Redis that several machines share for limits and consent: one client, one script a step.

Knows addresses and scripts; it must not know limits, requests or tools.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from quoth.tools.catalog.connection import RedisUrl, check_sync, checked_prefix, sync_client, told

VARIABLE = "QUOTH_SHARE"


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
