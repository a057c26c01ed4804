"""The login of a person at an MCP server: an address for the browser, which comes back to a port of this
machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull
from pydantic import AnyUrl

from quoth.tools.errors import UsageError
from quoth.tools.mcp.config import ServerConfig, expand
from quoth.tools.mcp.connection import Connection, Deadlines, McpError
from quoth.tools.mcp.oauth import CALLBACK, Ask, Login, check_address, provider_of
from quoth.tools.text import short
from quoth.tools.visible import visible

PATIENCE = 600.0  # seconds for a person to log in
DEADLINES = Deadlines(connect=PATIENCE, list=PATIENCE, call=PATIENCE, idle=PATIENCE)
MOST_REQUESTS = 50  # at the redirect address, before a login is given up


@dataclass(frozen=True)
class RegisteredClient:
    """How quoth is known to an authorization server, if it was registered there by hand or by a document."""

    id: str = ""
    secret: str = field(default="", repr=False)
    document: str = ""
    """The URL of a client ID metadata document."""


NO_CLIENT = RegisteredClient()


async def login(
    config: ServerConfig,
    root: Path,
    ask: Ask,
    client: RegisteredClient = NO_CLIENT,
    *,
    withheld: Collection[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> str:
    """Log in; ``ask`` shows the person the address. Returns where the login was stored, or an empty text if
    the server required none. Raises McpError and UsageError."""
    expanded = expand(config, environ, withheld)
    if not expanded.url:
        raise UsageError(f"The MCP server {config.name} is a program on this machine; it has no login.")
    if any(name.lower() == "authorization" for name in expanded.headers):
        raise UsageError(
            f"The MCP server {config.name} has a header Authorization; remove it to log in instead."
        )
    async with aclosing(Interactive(expanded, ask, client)) as interactive:
        await interactive.start()
        connection = Connection(
            config, root, deadlines=DEADLINES, auth=lambda _: interactive, withheld=withheld, environ=environ
        )
        async with aclosing(connection):
            await connection.tools()
        return interactive.place


class Interactive(httpx2.Auth):
    """Logs in once a request is refused. Its owner must call ``start`` first and ``aclose`` at the end."""

    def __init__(self, config: ServerConfig, ask: Ask, client: RegisteredClient = NO_CLIENT) -> None:
        self._config, self._ask, self._client = config, ask, client
        self._login = Login(config.url)
        self._redirect: _Redirect | None = None
        self._provider: OAuthClientProvider | None = None
        self._challenge: Mapping[str, Any] | None = None

    async def start(self) -> None:
        """Prepare the redirect address, the one that an earlier login has registered if possible."""
        check_address(httpx2.Request("GET", self._config.url), self._config)
        login = self._login
        await login.read()
        registered = await login.get_client_info()
        port = _port_of(registered)
        self._redirect = await _Redirect.open(port)
        if self._redirect.port != port:
            login.record.pop("client", None)
        if self._client.id:
            await login.set_client_info(_by_hand(self._client, self._redirect.url))
        self._challenge = login.record.get("challenge")
        if not self._challenge or self._challenge.get("status") == 401:
            login.record.pop("tokens", None)  # else a server would accept them, and nothing would happen
        self._provider = provider_of(
            self._config,
            login,
            self._redirect.url,
            self._shown,
            self._answered,
            self._client.document or None,
        )
        login.provider = self._provider

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        assert self._provider is not None
        flow = self._provider.async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                if outgoing is not request:
                    check_address(outgoing, self._config)
                if outgoing is request and self._challenge:
                    response = _replayed(self._challenge, request)
                    self._challenge = None
                else:
                    response = yield outgoing
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    @property
    def place(self) -> str:
        """Where the login was stored; empty if the server required none."""
        return self._login.place if self._login.record.get("tokens") else ""

    async def aclose(self) -> None:
        if self._redirect is not None:
            await self._redirect.aclose()

    async def _shown(self, address: str) -> None:
        assert self._redirect is not None
        check_address(httpx2.Request("GET", address), self._config)
        self._redirect.expect()
        await self._ask(address)

    async def _answered(self) -> AuthorizationCodeResult:
        assert self._redirect is not None
        try:
            async with asyncio.timeout(PATIENCE):
                said = await self._redirect.answer
        except TimeoutError:
            raise McpError(f"Nobody logged in within {PATIENCE / 60:.0f} minutes.") from None
        if error := said.get("error"):
            detail = said.get("error_description", "")
            why = visible(short(f"{error} {detail}".strip(), 300))
            raise McpError(f"The login at {self._config.name} was refused: {why}")
        return AuthorizationCodeResult(
            code=said.get("code", ""), state=said.get("state"), iss=said.get("iss")
        )


class _Redirect:
    """Waits on a port of this machine for the browser to come back."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self.port = 0
        self._left = MOST_REQUESTS
        self.expect()

    def expect(self) -> None:
        """From now on, wait for a new answer."""
        self.answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(cls, port: int) -> _Redirect:
        """On ``port``, or on another if that is not free."""
        redirect = cls()
        try:
            redirect._server = await asyncio.start_server(redirect._serve, "127.0.0.1", port)
        except OSError:
            redirect._server = await asyncio.start_server(redirect._serve, "127.0.0.1", 0)
        redirect.port = redirect._server.sockets[0].getsockname()[1]
        return redirect

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{CALLBACK}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._left -= 1
        try:
            async with asyncio.timeout(10):
                line = (await reader.readline()).decode("ascii", "replace").split(" ")
                while (await reader.readline()).strip():
                    pass
            target = urlsplit(line[1] if len(line) == 3 and line[0] == "GET" else "")
            said = dict(parse_qsl(target.query))
            fits = target.path == CALLBACK and "state" in said and ("code" in said or "error" in said)
            text = "quoth has received the answer. You can close this page." if fits else "Not found."
            page = f"<!doctype html><title>quoth</title><p>{escape(text)}</p>".encode()
            head = f"HTTP/1.1 {'200 OK' if fits else '404 Not Found'}\r\nContent-Type: text/html\r\n"
            writer.write(f"{head}Content-Length: {len(page)}\r\nConnection: close\r\n\r\n".encode() + page)
            await writer.drain()
            if fits and not self.answer.done():
                self.answer.set_result(said)
            elif not self._left and not self.answer.done():
                self.answer.set_exception(McpError("Too many requests came to the redirect address."))
        except (OSError, ValueError, TimeoutError):  # not the browser
            pass
        finally:
            writer.close()

    async def aclose(self) -> None:
        assert self._server is not None
        self._server.close()
        self.answer.cancel()
        await self._server.wait_closed()


def _by_hand(client: RegisteredClient, redirect: str) -> OAuthClientInformationFull:
    return OAuthClientInformationFull(
        client_id=client.id,
        client_secret=client.secret or None,
        redirect_uris=[AnyUrl(redirect)],
        token_endpoint_auth_method="client_secret_basic" if client.secret else "none",
    )


def _port_of(client: OAuthClientInformationFull | None) -> int:
    uris = (client.redirect_uris if client else None) or []
    return (uris[0].port or 0) if uris else 0


def _replayed(challenge: Mapping[str, Any], request: httpx2.Request) -> httpx2.Response:
    """The refusal that an earlier request got, for the SDK to answer now that a person is there."""
    header = {"www-authenticate": str(challenge.get("header", ""))}
    return httpx2.Response(int(challenge["status"]), headers=header, request=request)
