"""Opens the limits and requests that several machines share in one Redis."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from quoth.tools.catalog.connection import RedisUrl, redis_url
from quoth.tools.catalog.payload import Key, read_key
from quoth.tools.policy.spending import Rule
from quoth.tools.shared.limits import RedisLimits
from quoth.tools.shared.requests import RedisRequests
from quoth.tools.shared.server import VARIABLE, SharedRedis
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import catalog_key_path


@dataclass(frozen=True)
class Shared:
    """A Redis and the key that its machines share."""

    redis: SharedRedis
    key: Key

    def limits(self, rules: Iterable[Rule] = (), *, zone: str = "UTC") -> RedisLimits:
        """The limits for a door."""
        return RedisLimits(self.redis, rules, zone=zone)

    def requests(self, store: Callable[[], Store] | None) -> RedisRequests:
        """The requests for a broker; ``store`` is the machine's own store."""
        return RedisRequests(self.redis, self.key, store)

    def close(self) -> None:
        self.redis.close()


def open_shared(given: str | RedisUrl, prefix: str, key: str | Path | None) -> Shared:
    """The shared limits and requests at ``given``. The server is contacted at first use. Raises UsageError if
    the URL, prefix or key is invalid."""
    url = redis_url(given, VARIABLE, typed=False) if isinstance(given, str) else given
    return Shared(SharedRedis(url, prefix), read_key(catalog_key_path(key)))
