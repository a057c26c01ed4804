"""The parts ``/mcp`` and ``/mcp/SERVER`` of ``quoth serve``: the Model Context Protocol over Streamable HTTP.

A key's name is the client and the user; a session of the protocol belongs to the key that began it. After a
server was trusted in a new form, its next request is served in that form; its sessions begin again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Hashable
from pathlib import Path
from typing import Any, NamedTuple

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import Route

from quoth.agent.serve.app import ServedPart
from quoth.agent.serve.gate import MAX_BODY, Receive, Scope, Send, key_of, refuse
from quoth.agent.serve.mcp_calls import Context, McpClient
from quoth.agent.serve.mcp_proxy import McpProxy
from quoth.agent.serve.mcp_server import McpServer
from quoth.tools.errors import QuothError
from quoth.tools.mcp.servers import stamp_of

PATH = "/mcp"


def client_of(ctx: Context) -> McpClient:
    """The client of a request, by its key."""
    assert ctx.request is not None, "a request over HTTP"
    key = key_of(ctx.request.scope)
    return McpClient(key.name, key.decides, key.name)


def mcp_part(made: McpServer) -> ServedPart:
    """The route of MCP to the server, whose ``client_of`` is the one here."""
    running = _HttpServer(made)
    return ServedPart([Route(PATH, running.app)], serving=running.serving)


def proxies_part(opening: Callable[[str], tuple[McpProxy, Path]]) -> ServedPart:
    """The routes of MCP to the servers that were added. ``opening`` makes the proxy of a server by its name,
    with the file of its pins; it raises UsageError for a server that is not trusted. A proxy is made at the
    first request, and again once the file has changed: then the earlier one ends after its calls in
    progress."""
    proxies = _Proxies(opening)
    return ServedPart([Route(f"{PATH}/{{name}}", proxies)], serving=proxies.serving)


class _HttpServer:
    """A server of MCP over HTTP, from entering ``serving`` on."""

    def __init__(self, made: McpServer | McpProxy) -> None:
        self.made = made
        self._manager = StreamableHTTPSessionManager(
            app=made.server,
            max_request_body_size=MAX_BODY,
            security_settings=TransportSecuritySettings(
                enable_dns_rebinding_protection=False
            ),  # the gate does
        )
        self.app = _Owned(AuthContextMiddleware(StreamableHTTPASGIApp(self._manager)))

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        async with self._manager.run():
            try:
                yield
            finally:
                await self.made.aclose()


class _Kept(NamedTuple):
    """A proxy that runs in a task of its own until ``ends`` is set; its pins are those of the ``stamp``."""

    running: _HttpServer
    pins: Path
    stamp: Hashable
    begun: asyncio.Event
    ends: asyncio.Event
    task: asyncio.Task[None]


class _Proxies:
    """The application in front of the proxies."""

    def __init__(self, opening: Callable[[str], tuple[McpProxy, Path]]) -> None:
        self._opening = opening
        self._kept: dict[str, _Kept] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            found = await self._find(scope["path_params"]["name"])
        except QuothError as error:
            await refuse(404, str(error))(scope, receive, send)
            return
        await found.app(scope, receive, send)

    async def _find(self, name: str) -> _HttpServer:
        """The proxy of a server as it is trusted now. Raises QuothError."""
        kept = self._kept.get(name)
        if kept is not None and (kept.stamp != stamp_of(kept.pins) or kept.task.done()):
            del self._kept[name]
            kept.ends.set()
            kept = None
        if kept is None:
            kept = self._kept[name] = self._begun(name)
        await kept.begun.wait()
        return kept.running

    def _begun(self, name: str) -> _Kept:
        made, pins = self._opening(name)
        running, ends, begun = _HttpServer(made), asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(_run(running, begun, ends))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return _Kept(running, pins, stamp_of(pins), begun, ends, task)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            for task in {*self._tasks}:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)


async def _run(running: _HttpServer, begun: asyncio.Event, ends: asyncio.Event) -> None:
    """Run a proxy until it ends and its calls in progress have, too."""
    try:
        async with running.serving():
            begun.set()
            await ends.wait()
            assert isinstance(running.made, McpProxy)
            await running.made.idle()
    finally:
        begun.set()


class _Owned:
    """Gives the SDK the owner of a request, so that it refuses another key's session."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = key_of(scope).name
        scope["user"] = AuthenticatedUser(AccessToken(token=name, client_id=name, scopes=[]))
        await self._app(scope, receive, send)
