"""The catalog in Redis: publishing by one script, loading and watching.

The content of a catalog is in payload.py. Functions take an open client; the caller handles errors of redis
(connection.py has messages for them).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from quoth.tools.catalog.connection import READ_SECONDS, RedisUrl, async_client, check, told
from quoth.tools.catalog.payload import (
    MAX_BLOB,
    SIGNATURE,
    CatalogError,
    Key,
    build_catalog_payload,
    read_key,
    seal,
    unseal,
)
from quoth.tools.errors import StoreError, UsageError
from quoth.tools.lisp.printer import print_value
from quoth.tools.registry.table import ToolTable
from quoth.tools.registry.tool import entry_tool
from quoth.tools.storage.paths import catalog_key_path
from quoth.tools.text import one_line

PREFIX: Final = "sg"
LOOKS: Final = 5  # at a pointer whose blob is missing, because a new version may be being published
BETWEEN_LOOKS: Final = 0.05
LISTEN_SECONDS: Final = 10.0  # without a message; then it checks itself, because a message can be lost
RETRY_SECONDS: Final = 1.0
DECODES: Final = "A catalog is bytes, and this client decodes answers: open it with decode_responses=False."

# Writes blob and pointer, prunes, and sends the message in one step. If a newer version was published
# meanwhile, nothing changes, unless the pointer names a version that was never assigned (Redis has lost the
# counter). Returns the current version.
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
    """The prefix of a catalog's version keys."""
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
    """Publish the tools as a new version and keep the last ``keep`` versions. Returns the number and hash of
    the new version. If a publisher with a higher number finished first, its version stays current."""
    if key is None:
        key = read_key(catalog_key_path())
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
    """The current catalog ``{tools, permissions, schema_hash, version}``; None if none is published or its
    blob is missing. Raises CatalogError if it is not authentic, and UsageError for a client with
    ``decode_responses=True``."""
    if key is None:
        key = read_key(catalog_key_path())
    for look in range(LOOKS):
        if look:
            await asyncio.sleep(BETWEEN_LOOKS)
        named = await redis.get(f"{stem(prefix)}current")
        if named is None:
            return None
        if isinstance(named, str):
            raise UsageError(DECODES)
        if not _names(named):
            raise CatalogError(f"The pointer {stem(prefix)}current in Redis", "it names no version")
        if (found := await load_version(redis, int(named), key=key, prefix=prefix)) is not None:
            return found
    return None


def _names(named: bytes | None) -> bool:
    """Whether a pointer names a version."""
    return named is not None and named.isdigit() and len(named) < 20


async def load_version(redis: Any, version: int, *, key: Key, prefix: str = PREFIX) -> dict[str, Any] | None:
    """One version of the catalog, or None if it does not exist or is pruned. Raises CatalogError."""
    blob = await redis.getrange(
        f"{stem(prefix)}v{version}", 0, MAX_BLOB
    )  # only as much as needed to refuse it
    return unseal(blob, key, prefix, version) if blob else None


async def kept_versions(redis: Any, *, prefix: str = PREFIX) -> list[int]:
    """The versions that are kept, newest first."""
    return [int(one) for one in await redis.zrevrange(f"{stem(prefix)}versions", 0, -1) if _names(one)]


async def followed(
    url: RedisUrl,
    key: Key,
    prefix: str = PREFIX,
    trouble: Callable[[StoreError | None], None] = lambda error: None,
) -> AsyncGenerator[dict[str, Any] | None, None]:
    """Yield the current catalog and then each new one; None while there is none. Never ends.

    It checks after each message, after each reconnect, and from time to time, because a message can be lost.
    The content of a message is not used. ``trouble`` is called with an error if the server is lost or a
    catalog is refused, and with None when it works again."""
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
    """A mark that changes whenever the catalog changes: the pointer and the signature at the end of its
    blob."""
    named = await redis.get(f"{stem(prefix)}current")
    end = await redis.getrange(f"{stem(prefix)}v{named.decode()}", -SIGNATURE, -1) if _names(named) else b""
    return named, end


# The differences between two catalogs, as a person reads them.


Entry = dict[str, Any]
UNTOLD = ("name", "parameters")  # the schema follows from the parameters
WIDEST = 100


@dataclass(frozen=True)
class CatalogDiff:
    """Tools that were added, were removed, changed as shown to a model (before, after), or changed only their
    code; each list is sorted by name."""

    added: tuple[Entry, ...]
    removed: tuple[Entry, ...]
    changed: tuple[tuple[Entry, Entry], ...]
    code: tuple[Entry, ...]

    def __bool__(self) -> bool:
        return any(self.names().values())

    def names(self) -> dict[str, list[str]]:
        """The names of the tools in each list, as JSON data."""
        after = [after for _, after in self.changed]
        kinds = {"added": self.added, "removed": self.removed, "changed": after, "code": self.code}
        return {what: [one["name"] for one in entries] for what, entries in kinds.items()}

    def summary(self) -> str:
        """``1 added: pears; 2 changed: apples, plums``, on one line."""
        words = {"code": "with other code"}
        told = [
            f"{len(names)} {words.get(what, what)}: {', '.join(names)}"
            for what, names in self.names().items()
            if names
        ]
        return one_line("; ".join(told), 10 * WIDEST) or "the same tools"

    def lines(self) -> Iterator[str]:
        """A line for each tool, and for a changed tool a line for each difference."""
        for one in self.added:
            yield f"+ {signature(one)}"
        for one in self.removed:
            yield f"- {signature(one)}"
        for before, after in self.changed:
            yield f"~ {after['name']}"
            yield from (f"    {line}" for line in _differences(before, after))
        if self.code:
            yield f"Only the code changed: {', '.join(one['name'] for one in self.code)}."


def changes(before: Sequence[Entry], after: Sequence[Entry]) -> CatalogDiff:
    old, new = ({one["name"]: one for one in entries} for entries in (before, after))
    both = [(old[name], new[name]) for name in sorted(old.keys() & new.keys()) if old[name] != new[name]]
    return CatalogDiff(
        tuple(new[name] for name in sorted(new.keys() - old.keys())),
        tuple(old[name] for name in sorted(old.keys() - new.keys())),
        tuple((one, other) for one, other in both if one != {**other, "version": one["version"]}),
        tuple(other for one, other in both if one == {**other, "version": one["version"]}),
    )


def signature(entry: Entry) -> str:
    """The signature of the tool of an entry."""
    return entry_tool(entry, never).signature()


def never(*_: Any) -> None:
    """The body of a tool that is only shown."""
    raise AssertionError("it is not called")


def _differences(before: Entry, after: Entry) -> Iterator[str]:
    old, new = signature(before), signature(after)
    if old != new:
        yield f"- {old}"
        yield f"+ {new}"
    for name in sorted((before.keys() | after.keys()) - {*UNTOLD, "params", "version"}):
        if before.get(name) != after.get(name):
            yield from _both(name.replace("_", "-"), before.get(name), after.get(name))
    params = [{one["name"]: one for one in entry["params"]} for entry in (before, after)]
    for name in sorted(params[0].keys() & params[1].keys()):
        one, other = params[0][name], params[1][name]
        for part in sorted(one.keys() | other.keys()):
            if one.get(part) != other.get(part) and not (part in ("type", "default") and old != new):
                yield from _both(f"{name}, {part}", one.get(part), other.get(part))


def _both(what: str, old: Any, new: Any) -> Iterator[str]:
    texts = [one if isinstance(one, str) else print_value(one) for one in (old, new)]
    texts = [one_line(text, WIDEST) or "none" for text in texts]
    if sum(map(len, texts)) <= WIDEST:
        yield f"{what}: {texts[0]} → {texts[1]}"
    else:
        yield f"- {what}: {texts[0]}"
        yield f"+ {what}: {texts[1]}"
