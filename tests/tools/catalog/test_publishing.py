"""Publishing and loading on a real Redis: versions go forward, old ones go, and readers never see half."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio
from examples import many
from hypothesis import settings
from sentences import (
    CANNOT_BE_USED,
    IN_REDIS_WAS_REFUSED,
    IT_IS_SIGNED_WITH_THE,
    THE_CATALOG_V,
    THE_REDIS_AT,
    THERE_IS_NO_KEY_AT,
)
from servers import own_redis
from words import tool

from quoth.tools.catalog import load_catalog, publish_catalog, store
from quoth.tools.catalog.connection import async_client, connected, redis_url, told
from quoth.tools.catalog.payload import MAX_BLOB, CatalogError, Key, new_key
from quoth.tools.catalog.store import followed, kept_versions, load_version, stem
from quoth.tools.errors import StoreError, UsageError
from quoth.tools.registry.table import ToolTable
from quoth.tools.storage.paths import catalog_key_path

KEY = Key(b"k" * 32)
NUMBERS = itertools.count()


def table(*names: str) -> ToolTable:
    return ToolTable(tuple(tool(name) for name in names))


class Catalog:
    """A catalogue in Redis under a prefix of the test's own."""

    def __init__(self, client: Any) -> None:
        self.redis, self.prefix = client, f"catalog-{next(NUMBERS)}"

    async def publish(self, *names: str, **more: Any) -> int:
        version, _ = await publish_catalog(self.redis, table(*names), key=KEY, prefix=self.prefix, **more)
        return version

    async def load(self) -> dict[str, Any] | None:
        return await load_catalog(self.redis, key=KEY, prefix=self.prefix)

    async def seen(self) -> tuple[int, list[str]]:
        """The version that is current, and its tools."""
        found = await self.load()
        assert found is not None
        return found["version"], [entry["name"] for entry in found["tools"]]

    async def blobs(self) -> set[int]:
        keys = await self.redis.keys(f"{stem(self.prefix)}v*")
        return {int(one.rpartition(b"v")[2]) for one in keys if one.rpartition(b"v")[2].isdigit()}

    def at(self, name: str) -> str:
        return stem(self.prefix) + name


@pytest_asyncio.fixture
async def catalog(redis: str) -> AsyncIterator[Catalog]:
    async with connected(redis_url(redis)) as client:
        yield Catalog(client)


async def refused(work: Awaitable[Any]) -> str:
    with pytest.raises(CatalogError) as error:
        await work
    return str(error.value)


async def test_what_one_publishes_another_loads(catalog: Catalog) -> None:
    assert await catalog.load() is None
    assert await catalog.publish("pears") == 1
    assert await catalog.publish("plums", "pears") == 2
    assert await catalog.seen() == (2, ["pears", "plums"])


async def test_the_functions_are_those_of_the_seed(redis: str, state: Any) -> None:
    """With their signatures and keys: what it adds has defaults."""
    new_key(catalog_key_path())
    async with connected(redis_url(f"{redis}?db=7")) as client:
        with_message = client.pubsub(ignore_subscribe_messages=True)
        await with_message.subscribe("sg:pubsub:tools:catalog")
        made = table("pears")
        assert await publish_catalog(client, made, prune_keep=3) == (1, made.schema_hash)
        found = await load_catalog(client)
        assert found is not None
        assert set(found) == {"tools", "permissions", "schema_hash", "version"}
        assert await client.get("sg:tools:catalog:current") == b"1"
        assert await client.get("sg:tools:catalog:seq") == b"1"
        assert await client.exists("sg:tools:catalog:v1")
        message = None
        while message is None:
            message = await with_message.get_message(timeout=1)
        assert json.loads(message["data"]) == {"version": 1, "schema_hash": made.schema_hash}
        await with_message.aclose()
        await client.flushdb()
    assert list(inspect.signature(publish_catalog).parameters)[:3] == ["redis", "registry", "prune_keep"]


async def test_without_a_key_nothing_is_published(catalog: Catalog) -> None:
    with pytest.raises(UsageError, match=rf"{THERE_IS_NO_KEY_AT} .*\. Create one \(quoth catalog key new\)"):
        await publish_catalog(catalog.redis, table("pears"), prefix=catalog.prefix)
    assert await catalog.load() is None


async def test_a_version_that_is_none_keeps_nobody_from_publishing(catalog: Catalog) -> None:
    await catalog.publish("pears")
    await catalog.redis.zadd(catalog.at("versions"), {"junk": 0})
    assert await kept_versions(catalog.redis, prefix=catalog.prefix) == [1]
    await catalog.publish("plums")
    assert await catalog.seen() == (2, ["plums"])


async def test_old_versions_go_and_the_current_one_stays(catalog: Catalog) -> None:
    for _ in range(5):
        await catalog.publish("pears")
    assert await catalog.blobs() == {3, 4, 5}
    assert await kept_versions(catalog.redis, prefix=catalog.prefix) == [5, 4, 3]
    await catalog.publish("plums", prune_keep=0)
    assert await catalog.blobs() == {6}
    assert await catalog.seen() == (6, ["plums"])


async def test_a_slower_publisher_does_not_move_it_back(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    took, go_on = asyncio.Event(), asyncio.Event()
    incr = catalog.redis.incr

    async def slow(name: str) -> int:
        monkeypatch.setattr(catalog.redis, "incr", incr)
        number: int = await incr(name)
        took.set()
        await go_on.wait()
        return number

    monkeypatch.setattr(catalog.redis, "incr", slow)
    slower = asyncio.create_task(catalog.publish("old"))
    await took.wait()
    assert await catalog.publish("new") == 2
    go_on.set()
    assert await slower == 1
    assert await catalog.seen() == (2, ["new"])
    assert await catalog.blobs() == {2}


async def test_when_redis_loses_its_counter_the_next_one_counts(catalog: Catalog) -> None:
    for _ in range(3):
        await catalog.publish("old")
    await catalog.redis.delete(catalog.at("seq"))
    assert await catalog.publish("new") == 1
    assert await catalog.seen() == (1, ["new"])
    assert await catalog.blobs() == {1}  # those of the lost count are none of its past


async def test_a_pointer_to_nothing_is_looked_at_again(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "BETWEEN_LOOKS", 0.01)
    await catalog.publish("pears")
    blob = await catalog.redis.get(catalog.at("v1"))
    await catalog.redis.delete(catalog.at("v1"))
    assert await catalog.load() is None
    monkeypatch.setattr(store, "LOOKS", 1000)
    loading = asyncio.create_task(catalog.load())
    await asyncio.sleep(0.05)
    await catalog.redis.set(catalog.at("v1"), blob)
    assert await loading
    assert await load_version(catalog.redis, 9, key=KEY, prefix=catalog.prefix) is None


@pytest.mark.parametrize("named", [b"", b"one", b"-1", b"1.5", b"9" * 20, "²".encode()])
async def test_a_pointer_that_is_no_number(catalog: Catalog, named: bytes) -> None:
    await catalog.redis.set(catalog.at("current"), named)
    assert (
        await refused(catalog.load()) == f"The pointer {catalog.at('current')} in Redis: it names no version."
    )


async def test_a_blob_of_17_mb_is_not_even_read_whole(catalog: Catalog) -> None:
    await catalog.redis.set(catalog.at("current"), 1)
    await catalog.redis.setrange(catalog.at("v1"), 17 * 1024 * 1024, b"x")
    said = f"{THE_CATALOG_V}1 of {catalog.prefix} {IN_REDIS_WAS_REFUSED}: it has more than 16,777,216 bytes."
    assert await refused(catalog.load()) == said
    assert MAX_BLOB == 16_777_216


async def test_an_old_version_cannot_be_passed_off_as_a_new_one(catalog: Catalog) -> None:
    await catalog.publish("old")
    await catalog.publish("new")
    await catalog.redis.copy(catalog.at("v1"), catalog.at("v2"), replace=True)
    assert "signed for another version" in await refused(catalog.load())


async def test_another_kind_of_key_is_a_sentence(catalog: Catalog, redis: str) -> None:
    await catalog.redis.rpush(catalog.at("current"), "1")
    url = redis_url(redis)
    with (
        pytest.raises(StoreError, match="a value of another type under a key of quoth"),
        told(url),
    ):
        await catalog.load()


async def test_two_publishers_and_ten_readers_race(catalog: Catalog, redis: str) -> None:
    """All readers end with the newest, see nothing older after something newer, and nothing half."""
    url = redis_url(redis)
    rounds = 1000 if settings.default.max_examples > 30 else many(1)
    seen: list[list[int]] = [[] for _ in range(10)]
    done = asyncio.Event()

    async def publisher(name: str) -> None:
        client = async_client(url)
        for number in range(rounds):
            made = table(name, f"tool-{number}")
            await publish_catalog(client, made, key=KEY, prefix=catalog.prefix, prune_keep=1)
        await client.aclose()

    async def reader(mine: list[int]) -> None:
        client = async_client(url)
        while not done.is_set():
            if found := await load_catalog(client, key=KEY, prefix=catalog.prefix):
                mine.append(found["version"])
            await asyncio.sleep(0)
        found = await load_catalog(client, key=KEY, prefix=catalog.prefix)
        assert found
        mine.append(found["version"])
        await client.aclose()

    async def publishers() -> None:
        await asyncio.gather(publisher("ann"), publisher("ben"))
        done.set()

    await asyncio.gather(publishers(), *map(reader, seen))
    for mine in seen:
        assert mine == sorted(mine)
        assert mine[-1] == 2 * rounds
    assert await catalog.blobs() == {2 * rounds}


async def test_an_acl_can_let_callers_only_read(catalog: Catalog, redis: str) -> None:
    """What a user of Redis needs to publish, and what to load and follow."""
    begin = "resetchannels", f"~{catalog.prefix}:*", f"&{catalog.prefix}:*"
    reads = "+get", "+getrange", "+subscribe", "+unsubscribe"
    writes = "+incrby", "+get", "+set", "+del", "+zadd", "+zrevrange", "+zrem", "+publish", "+eval"
    url_of = {}
    for name, may in {"catalog-reader": reads, "catalog-writer": writes}.items():
        await catalog.redis.execute_command("ACL", "SETUSER", name, "reset", "on", ">hush-hush", *begin, *may)
        url_of[name] = redis_url(redis.replace("://", f"://{name}:hush-hush@"), typed=False)
    try:
        async with connected(url_of["catalog-writer"]) as client:
            await publish_catalog(client, table("pears"), key=KEY, prefix=catalog.prefix)
        async with aclosing(followed(url_of["catalog-reader"], KEY, catalog.prefix)) as following:
            assert (await following.__anext__() or {})["version"] == 1
        with pytest.raises(StoreError) as forbidden:
            async with connected(url_of["catalog-reader"]) as client:
                await publish_catalog(client, table("plums"), key=KEY, prefix=catalog.prefix)
        assert str(forbidden.value) == (
            f"{THE_REDIS_AT} {redis} {CANNOT_BE_USED}: its user may not use the command incrby (ACL)."
        )
        with pytest.raises(StoreError, match="the ACL must allow ~PREFIX:\\* and &PREFIX:\\*"):
            async with connected(url_of["catalog-writer"]) as client:
                await publish_catalog(client, table("plums"), key=KEY, prefix="another")
    finally:
        await catalog.redis.execute_command("ACL", "DELUSER", *url_of)
    assert await catalog.seen() == (1, ["pears"])


async def test_who_follows_sees_each_change_and_survives_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "RETRY_SECONDS", 0.02)
    with own_redis("--appendonly", "yes", "--appendfsync", "always") as server:
        url = redis_url(server.url)
        troubles: list[str] = []

        def trouble(error: StoreError | None) -> None:
            troubles.append(str(error) if error else "")

        async def publish(name: str) -> None:
            async with connected(url) as client:
                await publish_catalog(client, table(name), key=KEY)

        async with aclosing(followed(url, KEY, trouble=trouble)) as following:
            next_one: Callable[[], Awaitable[Any]] = following.__anext__
            assert await next_one() is None
            await publish("pears")
            assert (await next_one())["version"] == 1
            server.kill()
            waiting = asyncio.ensure_future(next_one())
            while not troubles[-1]:
                await asyncio.sleep(0.01)
            assert troubles[-1].startswith(f"{THE_REDIS_AT} {server.url} {CANNOT_BE_USED}: ")
            server.start()
            await publish("plums")
            assert (await waiting)["version"] == 2
            assert troubles[-1] == ""


async def test_a_message_that_was_missed_is_found_by_looking(
    catalog: Catalog, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LISTEN_SECONDS", 0.02)
    monkeypatch.setattr(store, "channel", lambda prefix: "another")
    async with aclosing(followed(redis_url(redis), KEY, catalog.prefix)) as following:
        assert await following.__anext__() is None
        monkeypatch.undo()
        await catalog.publish("pears")
        found = await following.__anext__()
        assert found
        assert found["version"] == 1


async def test_a_message_that_lies_changes_nothing(catalog: Catalog, redis: str) -> None:
    await catalog.publish("pears")
    async with aclosing(followed(redis_url(redis), KEY, catalog.prefix)) as following:
        found = await following.__anext__()
        assert found
        told_lies = asyncio.ensure_future(following.__anext__())
        for lie in (b"\xff", b"{}", b'{"version": 9, "schema_hash": "0"}'):
            await catalog.redis.publish(store.channel(catalog.prefix), lie)
        await catalog.publish("plums")
        assert (await told_lies or {})["version"] == 2


async def test_a_refused_catalogue_is_told_and_the_next_good_one_is_taken(
    catalog: Catalog, redis: str
) -> None:
    troubles: list[str] = []
    await publish_catalog(catalog.redis, table("evil"), key=Key(b"e" * 32), prefix=catalog.prefix)
    following = followed(
        redis_url(redis), KEY, catalog.prefix, lambda error: troubles.append(str(error) if error else "")
    )
    async with aclosing(following):
        waiting = asyncio.ensure_future(following.__anext__())
        while not troubles:
            await asyncio.sleep(0.01)
        assert f"{IT_IS_SIGNED_WITH_THE} {Key(b'e' * 32).name}" in troubles[0]
        await catalog.publish("pears")
        assert (await waiting or {})["version"] == 2
        assert troubles[-1] == ""
