"""The parts ``/mcp`` and ``/mcp/SERVER`` of ``quoth serve``: the Model Context Protocol over Streamable HTTP.
A key's name is the client and the user; a session of the protocol belongs to the key that began it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import Route

from quoth.agent.serve.app import ServedPart
from quoth.agent.serve.gate import MAX_BODY, Receive, Scope, Send, key_of
from quoth.agent.serve.mcp_calls import Context, McpClient
from quoth.agent.serve.mcp_proxy import McpProxy
from quoth.agent.serve.mcp_server import McpServer

PATH = "/mcp"


def client_of(ctx: Context) -> McpClient:
    """The client of a request, by its key."""
    assert ctx.request is not None, "a request over HTTP"
    key = key_of(ctx.request.scope)
    return McpClient(key.name, key.decides, key.name)


def mcp_part(made: McpServer | McpProxy, path: str = PATH) -> ServedPart:
    """The route of MCP to a server whose ``client_of`` is the one here."""
    manager = StreamableHTTPSessionManager(
        app=made.server,
        max_request_body_size=MAX_BODY,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the gate does
    )

    @contextlib.asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        async with manager.run():
            try:
                yield
            finally:
                await made.aclose()

    return ServedPart(
        [Route(path, _Owned(AuthContextMiddleware(StreamableHTTPASGIApp(manager))))], serving=serving
    )


class _Owned:
    """Gives the SDK the owner of a request, so that it refuses another key's session."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = key_of(scope).name
        scope["user"] = AuthenticatedUser(AccessToken(token=name, client_id=name, scopes=[]))
        await self._app(scope, receive, send)
