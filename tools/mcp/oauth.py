"""Logins at MCP servers: the SDK's OAuth flow, with storage of our own.

The record of a login is in the keyring, or in a file that only its owner may read. It is found by the URL of
the server (the resource) and contains the authorization server (the issuer) that gave it: no other server
receives its tokens. A run never begins a login: it raises LoginNeeded, and a person types ``quoth mcp login``
(login.py).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp.shared.auth_utils import resource_url_from_server_url
from pydantic import AnyUrl, ValidationError

from quoth.tools.call.redaction import SENT
from quoth.tools.errors import UsageError
from quoth.tools.installing import own_command
from quoth.tools.mcp.config import ServerConfig
from quoth.tools.mcp.failures import LoginNeeded
from quoth.tools.storage.paths import state_dir
from quoth.tools.storage.secrets import beside_loop, forget_secret, in_file, in_keyring, store_secret
from quoth.tools.visible import visible

LOOPBACK = ("127.0.0.1", "localhost", "::1")
CALLBACK = "/callback"
LONGEST_CHALLENGE = 2_000  # characters of a server's refusal
Ask = Callable[[str], Awaitable[None]]  # shows the person an address to open


def logins_path() -> Path:
    """The file with the logins, for systems without a keyring."""
    return state_dir() / "mcp" / "logins"


class Login:
    """The stored login at one URL, as the SDK reads and writes it."""

    def __init__(self, url: str) -> None:
        self.resource = resource_url_from_server_url(url)
        self._name = f"mcp-{hashlib.sha256(self.resource.encode()).hexdigest()[:32]}"
        self.provider: OAuthClientProvider | None = None  # knows what a record contains beside the tokens
        self.record: dict[str, Any] = {}
        self.place = ""  # where the record was written

    async def read(self) -> None:
        """Read the record; it is empty without a login at this URL. Raises UsageError."""
        text = await beside_loop(
            lambda: in_keyring(self._name, needed=False) or in_file(logins_path()).get(self._name, "")
        )
        try:
            said = json.loads(text or "{}")
        except ValueError:
            said = {}
        self.record = said if isinstance(said, dict) and said.get("resource") == self.resource else {}

    async def write(self, **changes: Any) -> None:
        """Change the record. Raises UsageError."""
        self.record = {**self.record, "resource": self.resource, **changes}
        text = json.dumps(self.record)
        self.place = await beside_loop(lambda: store_secret(self._name, text, logins_path()))

    def forget(self) -> list[str]:
        """Remove the record. Returns the places where it was. Raises UsageError."""
        self.record = {}
        return forget_secret(self._name, logins_path())

    def tokens(self) -> OAuthToken | None:
        found: OAuthToken | None = _parsed(OAuthToken, self.record.get("tokens"))
        return found

    # What the SDK calls

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens()

    async def set_tokens(self, tokens: OAuthToken) -> None:
        assert self.provider is not None
        context = self.provider.context
        client, server = context.client_info, context.oauth_metadata
        if client is not None and client.issuer is None and server is not None:  # registered by hand
            client.issuer = context.auth_server_url or str(server.issuer)
            await self.set_client_info(client)
        known = {"server": server, "protected": context.protected_resource_metadata}
        await self.write(
            tokens=tokens.model_dump(mode="json", exclude_none=True),
            expires=None if tokens.expires_in is None else time.time() + tokens.expires_in,
            challenge=None,
            **{
                key: value.model_dump(mode="json", exclude_none=True) for key, value in known.items() if value
            },
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        found: OAuthClientInformationFull | None = _parsed(
            OAuthClientInformationFull, self.record.get("client")
        )
        return found

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await self.write(client=client_info.model_dump(mode="json", exclude_none=True))

    # What it does not restore

    def restored(self, provider: OAuthClientProvider) -> OAuthClientProvider:
        """Give a new provider the record's expiry and addresses, without which it cannot refresh tokens."""
        self.provider, context = provider, provider.context
        context.oauth_metadata = _parsed(OAuthMetadata, self.record.get("server"))
        context.protected_resource_metadata = _parsed(ProtectedResourceMetadata, self.record.get("protected"))
        if context.protected_resource_metadata is not None:
            context.auth_server_url = str(context.protected_resource_metadata.authorization_servers[0])
        expires = self.record.get("expires")
        context.token_expiry_time = expires if isinstance(expires, int | float) else None
        return provider


class StoredLogin(httpx2.Auth):
    """Sends the stored tokens, and refreshes them; a server that wants more ends in LoginNeeded."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._login = Login(config.url)
        self._provider: OAuthClientProvider | None = None
        self._turn = asyncio.Lock()

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        for again in (False, True):
            async with self._turn:
                # The SDK would keep its lock until the reply, so that no two calls could run. It gets a
                # request that is never sent, and only refreshes.
                probe = httpx2.Request("GET", self._config.url, headers=request.headers)
                flow = (await self._known(again)).async_auth_flow(probe)
                try:
                    outgoing = await anext(flow)
                    while outgoing is not probe:
                        check_address(outgoing, self._config)
                        outgoing = await flow.asend((yield outgoing))
                finally:
                    await flow.aclose()
            if token := probe.headers.get("authorization"):
                request.headers["authorization"] = token
                SENT.learn(token.partition(" ")[2])
            else:
                request.headers.pop("authorization", None)
            response = yield request
            if not _wants_login(response):
                return
            async with self._turn:  # not while another call stores refreshed tokens
                await self._login.read()
                known = self._login.record.get("tokens")
            if response.status_code != 401 or not known:
                break
        header = response.headers.get("www-authenticate", "")[:LONGEST_CHALLENGE]
        challenge = {"status": response.status_code, "header": header}
        async with self._turn:
            await self._login.read()
            if self._login.record.get("challenge") != challenge:
                await self._login.write(challenge=challenge)  # the next login answers it
        command = f"{own_command()} mcp login {self._config.named}"
        raise LoginNeeded(f"The MCP server {self._config.name} requires a login. Type: {command}")

    async def _known(self, refused: bool) -> OAuthClientProvider:
        """The SDK's provider, with the newest tokens: another process may have refreshed them. ``refused``
        tokens count as expired."""
        provider = self._provider
        if provider is None or refused or not provider.context.is_token_valid():
            await self._login.read()
            if provider is None or provider.context.current_tokens != self._login.tokens():
                provider, refused = self._login.restored(provider_of(self._config, self._login)), False
        if refused:
            provider.context.token_expiry_time = 1.0
        self._provider = provider
        return provider


def forget_login(url: str) -> list[str]:
    """Remove the login at a URL; returns where it was. Raises UsageError."""
    return Login(url).forget()


def provider_of(
    config: ServerConfig,
    login: Login,
    redirect: str = f"http://127.0.0.1{CALLBACK}",
    show: Ask | None = None,
    answered: Callable[[], Awaitable[AuthorizationCodeResult]] | None = None,
    document: str | None = None,
) -> OAuthClientProvider:
    own = OAuthClientMetadata(
        client_name="quoth",
        redirect_uris=[AnyUrl(redirect)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    return OAuthClientProvider(config.url, own, login, show, answered, document)


def _parsed(model: Any, said: Any) -> Any:
    """A part of a record; None if there is none, or if it is damaged."""
    try:
        return None if said is None else model.model_validate(said)
    except ValidationError:
        return None


def _wants_login(response: httpx2.Response) -> bool:
    return response.status_code == 401 or (
        response.status_code == 403 and "insufficient_scope" in response.headers.get("www-authenticate", "")
    )


def check_address(request: httpx2.Request, config: ServerConfig) -> None:
    """A token is sent over https only, or to this machine if the server is on it too. Raises UsageError."""
    host, own = request.url.host, urlsplit(config.url).hostname
    if request.url.scheme == "https" or (host in LOOPBACK and own in LOOPBACK):
        return
    address = visible(f"{request.url.scheme}://{host}")
    raise UsageError(f"The login at {config.name} is refused: {address} is not https.")
