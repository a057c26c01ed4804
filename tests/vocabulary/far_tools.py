"""Tools on another machine: a table that is published in a real Redis, and a worker in this process that
takes the calls of it through a door of its own. Nothing here is sent; that is tests/tools/remote's.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from typing import Any

from words import tool

from quoth.tools.call.call import Call, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.catalog import publish_catalog
from quoth.tools.catalog.connection import RedisUrl, connected, redis_url, sync_client
from quoth.tools.catalog.payload import Key, new_key, read_key
from quoth.tools.catalog.remote_table import LiveCatalog
from quoth.tools.door.door import Door
from quoth.tools.errors import CatalogStale, ToolFailure
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.storage.paths import catalog_key_path

_NUMBERS = itertools.count()


def fruit(*, word: str = "fruit", count: int = 30, **options: Any) -> CognitiveTool:
    """The tool count-fruit, whose parameter is called ``word``."""
    params = {word: {"type": str, "doc": "Which fruit"}}
    return tool("count-fruit", lambda **kinds: count, params=params, **options)


def set_password(url: RedisUrl, password: str) -> None:
    """Let nobody into the server any more but the user kiosk, with this password."""
    with sync_client(url) as client:
        client.acl_setuser(
            "kiosk", enabled=True, passwords=f"+{password}", keys="*", channels="*", commands=["+@all"]
        )
        client.acl_setuser("default", enabled=False)


class FarTools:
    """What a worker offers under a prefix of its own."""

    def __init__(self, url: str, *tools: CognitiveTool, key: Key | None = None) -> None:
        self.url = redis_url(url, typed=False)
        self.prefix = f"far-{os.getpid()}-{next(_NUMBERS)}"
        path = catalog_key_path()
        self.key = key or (read_key(path) if path.exists() else new_key(path))
        self.catalogs: list[LiveCatalog] = []
        self.calls: list[Call] = []
        self.publish(*tools)

    def publish(self, *tools: CognitiveTool, key: Key | None = None) -> None:
        """Offer these tools from now on."""
        self.table = ToolTable(tools)
        self.publish_again(key)

    def publish_again(self, key: Key | None = None) -> None:
        """Publish the tools that are offered, as they are now."""

        async def publish() -> None:
            async with connected(self.url) as redis:
                await publish_catalog(redis, self.table, key=key or self.key, prefix=self.prefix)

        asyncio.run(publish())

    def heard(self) -> None:
        """Wait until every open catalogue has heard of the tools."""
        end = time.monotonic() + 10
        while any(one.table.catalog_hash != self.table.schema_hash for one in self.catalogs):
            assert time.monotonic() < end, "nobody has heard of the tools"
            time.sleep(0.005)

    @property
    def catalog(self) -> LiveCatalog:
        """The catalogue as an agent opens it."""
        self.catalogs.append(LiveCatalog(self.url, self.key, self.prefix, self._made))
        return self.catalogs[-1]

    async def _made(self, tool: CognitiveTool, call: Call, context: ToolContext, schema_hash: str) -> Any:
        """What the worker makes of a call."""
        self.calls.append(call)
        if schema_hash != self.table.schema_hash:
            raise CatalogStale("The tools have changed.")
        inner = new_call(call.form, user=call.user, route=call.route)
        result = await Door(self.table).dispatch(inner, ToolContext(context.workspace, user=call.user))
        if not result.ok:
            raise ToolFailure(result.status, result.message)
        return result.value
