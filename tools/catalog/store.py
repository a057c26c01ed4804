"""The catalogue in Redis: published by one script, loaded, and watched.

Knows the names of its keys and what happens to them; what is in a catalogue is payload.py's. A client is
given to it, and redis' errors are the caller's (connection.py has words for them).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any, Final

from quoth.tools.catalog.connection import READ_SECONDS, RedisUrl, async_client, check, told
from quoth.tools.catalog.payload import MAX_BLOB, SIGNATURE, CatalogError, build_catalog_payload, seal, unseal
from quoth.tools.catalog.signing import Key, key_path, read_key
from quoth.tools.errors import StoreError
from quoth.tools.registry.table import ToolTable

PREFIX: Final = "sg"
LOOKS: Final = 5  # at a pointer whose blob is not there: the next one may be just coming
BETWEEN_LOOKS: Final = 0.05
LISTEN_SECONDS: Final = 10.0  # without a message; then it looks itself, for one may have been missed
RETRY_SECONDS: Final = 1.0

# Blob, pointer, pruning and message at once. A publisher that was overtaken changes nothing, unless the
# pointer names a version that was never given out (Redis has lost the counter). Answers the current version.
PUBLISH: Final = """
local counter, pointer, versions = KEYS[1], KEYS[2], KEYS[3]
local mine, blob, message, channel, stem = ARGV[1], ARGV[2], ARGV[4], ARGV[5], ARGV[6]
local keep = tonumber(ARGV[3])
local number = tonumber(mine)
local named = tonumber(redis.call('GET', pointer) or '') or 0
local given = tonumber(redis.call('GET', counter) or '') or 0
if named >= number and named <= given then return named end
redis.call('SET', stem .. mine, blob)
redis.call('SET', pointer, mine)
redis.call('ZADD', versions, number, mine)
local kept = 1
for _, old in ipairs(redis.call('ZREVRANGE', versions, 0, -1)) do
  if old ~= mine then
    if (tonumber(old) or number) < number and kept < keep then
      kept = kept + 1
    else
      redis.call('DEL', stem .. old)
      redis.call('ZREM', versions, old)
    end
  end
end
redis.call('PUBLISH', channel, message)
return number
"""


def stem(prefix: str) -> str:
    """How the keys of a catalogue begin."""
    return f"{prefix}:tools:catalog:"


def channel(prefix: str) -> str:
    return f"{prefix}:pubsub:tools:catalog"


async def publish_catalog(
    redis: Any,
    registry: ToolTable,
    *,
    prune_keep: int = 3,
    key: Key | None = None,
    prefix: str = PREFIX,
) -> tuple[int, str]:
    """Publish the tools as a new version, and keep so many versions, the new one among them. Returns its
    number and hash. Whoever took a number later and was quicker stays current."""
    if key is None:
        key = read_key(key_path())
    payload = build_catalog_payload(registry)
    begin = stem(prefix)
    version = int(await redis.incr(f"{begin}seq"))
    blob = seal(payload, key, prefix, version)
    message = json.dumps({"version": version, "schema_hash": payload["schema_hash"]})
    keys = (f"{begin}seq", f"{begin}current", f"{begin}versions")
    words = (version, blob, max(prune_keep, 1), message, channel(prefix), f"{begin}v")
    await redis.eval(PUBLISH, len(keys), *keys, *words)
    return version, payload["schema_hash"]


async def load_catalog(redis: Any, *, key: Key | None = None, prefix: str = PREFIX) -> dict[str, Any] | None:
    """The current catalogue ``{tools, permissions, schema_hash, version}``; None if none is published, or
    the one that is named stays away. Raises CatalogError for one that cannot be believed."""
    if key is None:
        key = read_key(key_path())
    for look in range(LOOKS):
        if look:
            await asyncio.sleep(BETWEEN_LOOKS)
        named = await redis.get(f"{stem(prefix)}current")
        if named is None:
            return None
        if not _names(named):
            raise CatalogError(f"The pointer {stem(prefix)}current in Redis", "it names no version")
        if (found := await load_version(redis, int(named), key=key, prefix=prefix)) is not None:
            return found
    return None


def _names(named: bytes | None) -> bool:
    """Whether a pointer names a version."""
    return named is not None and named.isdigit() and len(named) < 20


async def load_version(redis: Any, version: int, *, key: Key, prefix: str = PREFIX) -> dict[str, Any] | None:
    """One version of the catalogue, or None if it is not there (any more). Raises CatalogError."""
    blob = await redis.getrange(
        f"{stem(prefix)}v{version}", 0, MAX_BLOB
    )  # no more than is needed to refuse it
    return unseal(blob, key, prefix, version) if blob else None


async def kept_versions(redis: Any, *, prefix: str = PREFIX) -> list[int]:
    """The versions that are kept, the newest first."""
    return [int(one) for one in await redis.zrevrange(f"{stem(prefix)}versions", 0, -1) if _names(one)]


async def followed(
    url: RedisUrl,
    key: Key,
    prefix: str = PREFIX,
    trouble: Callable[[StoreError | None], None] = lambda error: None,
) -> AsyncGenerator[dict[str, Any] | None, None]:
    """The current catalogue, and then each that takes its place; None while there is none. Looks at each
    message, after each reconnect, and from time to time, for a message may be missed; nothing of a message is
    believed. Goes on for ever: ``trouble`` is told when the server is lost or a catalogue is refused, and
    with None when all is well again."""
    seen: dict[str, Any] | None = {}
    found: dict[str, Any] | None = None
    refused: CatalogError | None = None
    mark: tuple[Any, Any] | None = None
    while True:
        client = async_client(url, LISTEN_SECONDS + READ_SECONDS)
        try:
            with told(url):
                await check(client)
                async with client.pubsub(ignore_subscribe_messages=True) as listener:
                    await listener.subscribe(channel(prefix))
                    while True:
                        before, mark = mark, await _mark(client, prefix)
                        if mark != before:
                            try:
                                found = await load_catalog(client, key=key, prefix=prefix)
                                refused = None
                            except CatalogError as error:
                                found, refused = seen, error
                        trouble(refused)
                        if found != seen:
                            seen = found
                            yield found
                        await listener.get_message(timeout=LISTEN_SECONDS)
        except StoreError as error:
            trouble(error)
        finally:
            with suppress(Exception):
                await client.aclose()
        await asyncio.sleep(RETRY_SECONDS)


async def _mark(redis: Any, prefix: str) -> tuple[Any, Any]:
    """What is another as soon as the catalogue is: the pointer, and the signature that ends its blob."""
    named = await redis.get(f"{stem(prefix)}current")
    end = await redis.getrange(f"{stem(prefix)}v{named.decode()}", -SIGNATURE, -1) if _names(named) else b""
    return named, end
