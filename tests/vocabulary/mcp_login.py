"""An MCP server that requires a login, and the authorization server beside it, in this process on loopback.

The server speaks a handshake revision in plain JSON. Every request is kept, so that a test can see who
received which header.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

TOOL = {"name": "echo", "inputSchema": {"type": "object"}}


@dataclass
class LoginServer:
    """``expire`` makes issued access tokens invalid, ``revoke`` refresh tokens too. Scopes: a list needs
    ``read``, a call ``write``."""

    url: str = ""
    issued: dict[str, str] = field(default_factory=dict)  # access token -> scope
    refreshable: set[str] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)  # path, header Authorization
    clients: int = 0
    lists_for_all: bool = False  # only calls need a login
    refuse: str = ""
    scope: str = ""
    _count: int = 0

    @property
    def mcp(self) -> str:
        return f"{self.url}/mcp"

    def expire(self) -> None:
        self.issued.clear()

    def revoke(self) -> None:
        self.issued.clear()
        self.refreshable.clear()

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def app(self) -> Starlette:
        routes = {
            "/.well-known/oauth-protected-resource/mcp": self._resource,
            "/.well-known/oauth-authorization-server": self._server,
            "/register": self._register,
            "/authorize": self._authorize,
            "/token": self._token,
            "/mcp": self._mcp,
        }
        return Starlette(
            routes=[
                Route(path, self._kept(answer), methods=["GET", "POST"]) for path, answer in routes.items()
            ]
        )

    def _kept(self, answer: Any) -> Any:
        async def serve(request: Request) -> Response:
            self.asked.append((request.url.path, request.headers.get("authorization", "")))
            response: Response = await answer(request)
            return response

        return serve

    async def _resource(self, request: Request) -> Response:
        return JSONResponse({"resource": self.mcp, "authorization_servers": [self.url]})

    async def _server(self, request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "registration_endpoint": f"{self.url}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "token_endpoint_auth_methods_supported": ["none"],
            }
        )

    async def _register(self, request: Request) -> Response:
        self.clients += 1
        said = await request.json()
        return JSONResponse(
            {**said, "client_id": f"c{self.clients}", "token_endpoint_auth_method": "none"}, 201
        )

    async def _authorize(self, request: Request) -> Response:
        asked = request.query_params
        self.scope = asked.get("scope", "")
        answer = {"error": self.refuse} if self.refuse else {"code": "code-1"}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({**answer, 'state': asked['state']})}")

    async def _token(self, request: Request) -> Response:
        async with request.form() as form:
            if form["grant_type"] == "refresh_token" and form["refresh_token"] not in self.refreshable:
                return JSONResponse({"error": "invalid_grant"}, 400)
            self.refreshable.discard(str(form.get("refresh_token")))  # each is of use once
        self._count += 1
        access, refresh = f"access-token-{self._count}", f"refresh-token-{self._count}"
        self.issued[access] = self.scope
        self.refreshable.add(refresh)
        return JSONResponse(
            {
                "access_token": access,
                "refresh_token": refresh,
                "token_type": "Bearer",
                "expires_in": 3600,
                "scope": self.scope,
            }
        )

    async def _mcp(self, request: Request) -> Response:
        if request.method == "GET":
            return Response(status_code=405)
        said = await request.json()
        scope = self.issued.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        if scope is None and (said["method"] == "tools/call" or not self.lists_for_all):
            return Response(status_code=401, headers={"www-authenticate": 'Bearer scope="read"'})
        if said["method"] == "tools/call" and "write" not in (scope or "").split():
            needs = 'Bearer error="insufficient_scope", scope="write"'
            return Response(status_code=403, headers={"www-authenticate": needs})
        if "id" not in said:
            return Response(status_code=202)
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "login", "version": "1"},
            },
            "tools/list": {"tools": [TOOL]},
            "tools/call": {"content": [{"type": "text", "text": "called"}]},
        }
        result = results.get(said["method"])
        error = {"error": {"code": -32601, "message": "Method not found"}}
        return JSONResponse({"jsonrpc": "2.0", "id": said["id"], **({"result": result} if result else error)})


@contextlib.asynccontextmanager
async def login_server() -> AsyncIterator[LoginServer]:
    made = LoginServer()
    config = uvicorn.Config(made.app(), host="127.0.0.1", port=0, log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    made.url = f"http://127.0.0.1:{socket.getsockname()[1]}"
    serving = asyncio.create_task(server.serve(sockets=[socket]))
    try:
        yield made
    finally:
        server.should_exit = True
        await serving


async def agree(address: str) -> None:
    """The browser of a person who agrees: it follows the redirect."""
    async with httpx2.AsyncClient() as browser:
        await browser.get(address, follow_redirects=True)
