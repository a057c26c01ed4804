"""The tools of a catalog as a ToolTable, kept up to date while it is used. ``Deliver`` sends calls to
workers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, Self, TypeVar

from quoth.tools.call.call import Call
from quoth.tools.call.context import ToolContext
from quoth.tools.catalog.connection import RedisUrl, cancelled, connected
from quoth.tools.catalog.payload import CatalogError, Key, garbage_left
from quoth.tools.catalog.store import followed, load_catalog
from quoth.tools.errors import (
    CatalogStale,
    DuplicateToolError,
    QuothError,
    ToolError,
    UsageError,
    no_such,
)
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.tool import entry_tool

PATIENCE: Final = 40.0  # seconds added to a tool's own timeout, for another worker to take the call over
RELOAD_SECONDS: Final = 5.0  # how long a turn waits for a newer catalog when its own is stale
TO_CALL: Final = 'To call the tools of a catalog: Agent(tools=ToolOptions(remote="redis://…")).'
T = TypeVar("T")


# Runs a call on a worker and returns its value (tools/remote/sender.py). The text is the schema hash of the
# catalog that the caller uses.
Deliver = Callable[[CognitiveTool, Call, ToolContext, str], Awaitable[Any]]


class RemoteToolTable(ToolTable):
    """The tools of one version of a catalog. Their bodies deliver the call; otherwise the table is like a
    local one. ``catalog_hash`` is the catalog's own hash of its tools. Without ``deliver`` the tools can be
    read but not called."""

    def __init__(
        self, payload: Mapping[str, Any], deliver: Deliver | None = None, *, name: str = "sg"
    ) -> None:
        self.version: int = payload["version"]
        self.catalog_hash: str = payload["schema_hash"]

        def body_of(name: str) -> Callable[..., Any]:
            async def body(call: Call, ctx: ToolContext) -> Any:
                if deliver is None:
                    raise ToolError(f"{name} cannot be called from here. {TO_CALL}")
                return await deliver(self._tools[name], call, ctx, self.catalog_hash)

            return body

        self.published: list[dict[str, Any]] = payload["tools"]
        made = (
            entry_tool(entry, body_of(entry["name"]), remote=name, patience=PATIENCE)
            for entry in self.published
        )
        with garbage_left():
            super().__init__(tuple(made))
        self.permit(payload["permissions"])

    @classmethod
    async def load(cls, url: RedisUrl, key: Key, prefix: str, deliver: Deliver) -> Self:
        """The table of the current catalog. Raises UsageError if none is published, and StoreError."""
        async with connected(url) as redis:
            payload = await _current(redis, url, key, prefix)
        return cls(payload, deliver, name=prefix)


RemoteToolRegistry = RemoteToolTable  # seed 003's name


async def _current(redis: Any, url: RedisUrl, key: Key, prefix: str) -> Mapping[str, Any]:
    payload = await load_catalog(redis, key=key, prefix=prefix)
    if payload is None:
        raise UsageError(
            f"No worker has published tools at {url.shown} under the prefix {prefix}. Start one: quoth worker"
            " --tools FILE --redis URL"
        )
    return payload


class LiveCatalog:
    """The catalog that an agent uses. ``table`` is the last table read; a background task, started by
    ``watch``, replaces it by newer ones. If that fails, ``trouble`` says why and the last table stays.
    ``send`` delivers the calls; ``refused`` is called with the reason for each rejected catalog."""

    def __init__(
        self,
        url: RedisUrl,
        key: Key,
        prefix: str,
        send: Deliver,
        refused: Callable[[str], None] = lambda why: None,
    ) -> None:
        self.url = url
        self._key, self._prefix = key, prefix
        self._send, self._refused = send, refused
        self._stale = False
        self._task: asyncio.Task[None] | None = None
        self.trouble = ""
        try:
            self.table: RemoteToolTable = _at_once(RemoteToolTable.load(url, key, prefix, self._deliver))
        except CatalogError as error:
            refused(str(error))
            raise

    async def _deliver(self, tool: CognitiveTool, call: Call, context: ToolContext, schema_hash: str) -> Any:
        try:
            return await self._send(tool, call, context, schema_hash)
        except CatalogStale:
            self._stale = True
            raise

    async def newest(self) -> RemoteToolTable:
        """The newest known table. If a worker has reported it as stale, it is read again first, for at most
        RELOAD_SECONDS."""
        self.watch()
        if self._stale:
            with contextlib.suppress(QuothError, TimeoutError):
                async with asyncio.timeout(RELOAD_SECONDS), connected(self.url) as redis:
                    await self._take(await _current(redis, self.url, self._key, self._prefix))
                self._stale = False
        return self.table

    def watch(self) -> None:
        """Start to listen for newer catalogs, unless that is running already."""
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._task = loop.create_task(self._follow())

    async def _follow(self) -> None:
        async for payload in followed(self.url, self._key, self._prefix, self._in_trouble):
            if payload is not None:  # a catalog missing for a moment stays in use
                await self._take(payload)

    def _in_trouble(self, error: QuothError | None) -> None:
        before, self.trouble = self.trouble, "" if error is None else str(error)
        if isinstance(error, CatalogError) and self.trouble != before:
            self._refused(self.trouble)

    async def _take(self, payload: Mapping[str, Any]) -> None:
        if payload["tools"] == self.table.published:
            self.table.version = payload["version"]
            return
        build = partial(RemoteToolTable, payload, self._deliver, name=self._prefix)
        try:
            self.table = await asyncio.to_thread(build)  # a large table takes time
        except QuothError as error:  # signed, but by an incompatible version of quoth
            self._in_trouble(error)

    async def aclose(self) -> None:
        """Stop listening, and close the connection to the workers."""
        task, self._task = self._task, None
        if close := getattr(self._send, "aclose", None):
            await close()
        if task is not None and task.get_loop() is asyncio.get_running_loop():
            await cancelled([task])


def _at_once(work: Awaitable[T]) -> T:
    """The result of a coroutine, for synchronous code, whether or not an event loop is running."""

    async def done() -> T:
        return await work

    with ThreadPoolExecutor(1, "quoth-catalog") as thread:
        return thread.submit(lambda: asyncio.run(done())).result()


def merged(here: ToolTable, remote: ToolTable, kept: Collection[str] = ()) -> ToolTable:
    """A table of the local and the remote tools. For names in ``kept`` the local tool is used. Raises
    DuplicateToolError if both have any other name, and UsageError if a name in ``kept`` is not a local
    tool."""
    for name in kept:
        if name not in here:
            raise UsageError(no_such("tool", name, here.names(), "The tools here are", " here to keep"))
    stays = {here.get(name).name for name in kept}
    taken = [tool for tool in remote if tool.name not in stays]
    if both := sorted(tool.name for tool in taken if tool.name in here):
        name = here.get(both[0]).name
        other = f", --without {name} leaves it out" if here.get(name).ships else ""
        raise DuplicateToolError(
            f"Both this agent and the catalog {taken[0].remote} have a tool {name}:"
            f" --local {name} keeps the local one{other}."
        )
    table = ToolTable((*here, *taken))
    table.permit({name: users for name, users in remote.permissions.items() if name not in stays})
    table.permit(here.permissions)
    return table
