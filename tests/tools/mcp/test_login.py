"""Logins at MCP servers: tokens go to their server alone, live in a private file, and are refreshed; only a
person begins a login."""

from __future__ import annotations

import asyncio
import json
import logging
import stat
import sys
import threading
import types
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp_login import LoginServer, agree, login_server

from quoth.tools.call.redaction import SENT
from quoth.tools.errors import UsageError
from quoth.tools.mcp import oauth
from quoth.tools.mcp.config import ServerConfig
from quoth.tools.mcp.connection import Connection, LoginNeeded, McpError
from quoth.tools.mcp.login import RegisteredClient, login
from quoth.tools.mcp.oauth import forget_login, logins_path
from quoth.tools.storage import secrets

NEEDS = "The MCP server far requires a login. Type: "


def far(server: LoginServer) -> ServerConfig:
    return ServerConfig("far", url=server.mcp)


def connection(server: LoginServer, tmp_path: Path) -> Connection:
    return Connection(far(server), tmp_path)


async def listed(server: LoginServer, tmp_path: Path) -> list[str]:
    async with aclosing(connection(server, tmp_path)) as connected:
        return [tool.name for tool in (await connected.tools()).tools]


def record() -> dict[str, Any]:
    (line,) = logins_path().read_text().splitlines()
    said: dict[str, Any] = json.loads(line.partition("=")[2])
    return said


async def test_a_run_never_begins_a_login(tmp_path: Path) -> None:
    async with login_server() as server:
        with pytest.raises(LoginNeeded, match=NEEDS) as caught:
            await listed(server, tmp_path)
        assert str(caught.value).endswith(" mcp login far")
        assert set(server.paths()) == {"/mcp"}  # no discovery, no registration
        assert set(record()) == {"resource", "challenge"}


async def test_a_login_is_kept_in_a_private_file_and_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with login_server() as server:
        assert await login(far(server), tmp_path, agree) == str(logins_path())
        assert stat.S_IMODE(logins_path().stat().st_mode) == 0o600
        said = record()
        assert (said["resource"], said["client"]["issuer"]) == (server.mcp, server.url)
        asked = len(server.asked)
        assert await listed(server, tmp_path) == ["echo"]
        assert set(server.asked[asked:]) == {("/mcp", "Bearer access-token-1")}
        assert SENT.without("access-token-1") == "[secret]"
        assert server.clients == 1
        sent = {path for path, header in server.asked if "access-token" in header}
        assert sent == {"/mcp"}
        assert "token-1" not in caplog.text
        assert "token-1" not in "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())


async def test_the_tokens_of_one_server_go_to_no_other(tmp_path: Path) -> None:
    async with login_server() as server, login_server() as other:
        await login(far(server), tmp_path, agree)
        with pytest.raises(LoginNeeded):
            await listed(other, tmp_path)
        assert {header for _, header in other.asked} == {""}
        moved = logins_path().read_text().replace(server.mcp, other.mcp)  # the record of another address
        logins_path().write_text(moved)
        with pytest.raises(LoginNeeded):
            await listed(server, tmp_path)


@pytest.mark.parametrize("told", [True, False])
async def test_an_expired_token_is_refreshed_by_a_later_process(told: bool, tmp_path: Path) -> None:
    """When the server said it would expire, or earlier."""
    async with login_server() as server:
        await login(far(server), tmp_path, agree)
        server.expire()
        if told:
            text, expires = logins_path().read_text(), json.dumps(record()["expires"])
            logins_path().write_text(text.replace(expires, "1.0"))
        server.asked.clear()
        assert await listed(server, tmp_path) == ["echo"]
        assert "/token" in server.paths()
        assert not {"/register", "/authorize"} & set(server.paths())
        assert record()["tokens"]["refresh_token"] != "refresh-token-1"


async def test_two_processes_share_a_login_whose_refresh_token_is_of_use_once(tmp_path: Path) -> None:
    async with login_server() as server:
        await login(far(server), tmp_path, agree)
        async with (
            aclosing(connection(server, tmp_path)) as one,
            aclosing(connection(server, tmp_path)) as other,
        ):
            for _ in range(2):
                await one.tools()
                await other.tools()
                server.expire()
            assert (await other.tools()).tools
            assert (await one.tools()).tools
        assert server.paths().count("/token") == 3  # the login, and one refresh each time


async def test_a_revoked_login_is_requested_again(tmp_path: Path) -> None:
    async with login_server() as server:
        await login(far(server), tmp_path, agree)
        async with aclosing(connection(server, tmp_path)) as connected:
            await connected.tools()
            server.revoke()
            with pytest.raises(LoginNeeded, match=NEEDS):
                await connected.tools()
            assert await login(far(server), tmp_path, agree)
            assert (await connected.tools()).tools  # the same connection, at once
        assert server.clients == 1  # registered once, with one address to come back to


async def test_a_call_that_needs_more_rights_is_answered_by_a_login(tmp_path: Path) -> None:
    async with login_server() as server:
        await login(far(server), tmp_path, agree)
        assert server.scope == "read"
        async with aclosing(connection(server, tmp_path)) as connected:
            with pytest.raises(LoginNeeded, match=NEEDS):
                await connected.call("echo", {})
            await login(far(server), tmp_path, agree)
            assert set(server.scope.split()) == {"read", "write"}
            assert (await connected.call("echo", {})).content[0].text == "called"  # type: ignore[union-attr]


async def test_a_server_that_requires_a_login_for_calls_only(tmp_path: Path) -> None:
    async with login_server() as server:
        server.lists_for_all = True
        assert await login(far(server), tmp_path, agree) == ""
        async with aclosing(connection(server, tmp_path)) as connected:
            await connected.tools()
            with pytest.raises(LoginNeeded, match=NEEDS):
                await connected.call("echo", {})
            assert await login(far(server), tmp_path, agree) == str(logins_path())
            with pytest.raises(LoginNeeded, match=NEEDS):  # now for the scope of a call
                await connected.call("echo", {})
            await login(far(server), tmp_path, agree)
            assert (await connected.call("echo", {})).content[0].text == "called"  # type: ignore[union-attr]


async def test_a_client_that_was_registered_by_hand(tmp_path: Path) -> None:
    async with login_server() as server:
        await login(far(server), tmp_path, agree, RegisteredClient("mine"))
        assert (record()["client"]["client_id"], server.clients) == ("mine", 0)
        assert record()["client"]["issuer"] == server.url


async def test_a_refused_login_says_so(tmp_path: Path) -> None:
    async with login_server() as server:
        server.refuse = "access_denied"
        with pytest.raises(McpError, match="The login at far was refused: access_denied"):
            await login(far(server), tmp_path, agree)


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (ServerConfig("a", "x"), "The MCP server a is a program on this machine; it has no login."),
        (ServerConfig("a", url="http://example.org/mcp"), "http://example.org is not https."),
        (
            ServerConfig("a", url="https://example.org", headers={"authorization": "Bearer x"}),
            "The MCP server a has a header Authorization; remove it to log in instead.",
        ),
    ],
)
async def test_servers_without_a_login(config: ServerConfig, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        await login(config, tmp_path, agree)
    assert sentence in str(caught.value)


async def test_a_login_is_forgotten(tmp_path: Path) -> None:
    async with login_server() as server:
        await login(far(server), tmp_path, agree)
        assert forget_login(server.mcp) == [str(logins_path())]
        assert forget_login(server.mcp) == []
        with pytest.raises(LoginNeeded):
            await listed(server, tmp_path)


async def test_a_login_is_in_the_keyring_if_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[tuple[str, str], str] = {}
    ring = types.ModuleType("keyring")
    ring.errors = types.ModuleType("keyring.errors")  # type: ignore[attr-defined]
    ring.errors.KeyringError = type("KeyringError", (Exception,), {})  # type: ignore[attr-defined]
    ring.get_password = lambda service, name: kept.get((service, name))  # type: ignore[attr-defined]
    ring.set_password = lambda service, name, secret: kept.update({(service, name): secret})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", ring)
    monkeypatch.setitem(sys.modules, "keyring.errors", ring.errors)  # type: ignore[attr-defined]
    async with login_server() as server:
        assert await login(far(server), tmp_path, agree) == "the keyring"
        assert await listed(server, tmp_path) == ["echo"]
    assert not logins_path().exists()
    assert [service for service, _ in kept] == ["quoth"]


async def test_a_keyring_that_waits_for_its_person_stops_neither_the_loop_nor_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlocked = threading.Event()

    class Ring:
        errors = types.SimpleNamespace(KeyringError=OSError)

        def get_password(self, service: str, name: str) -> str | None:
            unlocked.wait()
            return None

    monkeypatch.setattr(secrets, "_keyring", Ring)
    monkeypatch.setattr(secrets, "KEYRING_SECONDS", 0.01)
    async with login_server() as server:
        try:
            with pytest.raises(UsageError, match=r"The keyring did not answer within 0\.01 s"):
                await oauth.Login(server.mcp).read()
            with pytest.raises(UsageError):  # at once: the first question is still open
                await oauth.Login(server.mcp).read()
        finally:
            unlocked.set()
            while secrets._Silence.question is not None and not secrets._Silence.question.done():
                await asyncio.sleep(0.001)
        monkeypatch.setattr(secrets, "KEYRING_SECONDS", 60)
        login = oauth.Login(server.mcp)
        await login.read()
        assert login.record == {}


async def test_a_refused_call_keeps_the_tokens_that_another_call_stores_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    auth = oauth.StoredLogin(ServerConfig("far", url="http://127.0.0.1:9/mcp"))
    old, new = ({"access_token": word, "token_type": "Bearer"} for word in ("old", "new"))
    await auth._login.write(tokens=old)
    begun, go, stored = threading.Event(), threading.Event(), threading.Event()
    store = oauth.store_secret

    def storing(name: str, text: str, path: Path) -> str:
        first = not begun.is_set()
        begun.set()
        (go if first else stored).wait(0.5)
        place = store(name, text, path)
        stored.set()
        return place

    flow = auth.async_auth_flow(httpx2.Request("POST", "http://127.0.0.1:9/mcp"))
    sent = await anext(flow)
    assert sent.headers["authorization"] == "Bearer old"
    monkeypatch.setattr(oauth, "store_secret", storing)

    async def refresh() -> None:
        async with auth._turn:
            await auth._login.write(tokens=new)

    refreshing = asyncio.create_task(refresh())
    await asyncio.to_thread(begun.wait, 60)
    refused = {"www-authenticate": 'Bearer error="insufficient_scope"'}
    with pytest.raises(LoginNeeded):
        await flow.asend(httpx2.Response(403, headers=refused, request=sent))
    await refreshing
    assert record()["tokens"] == new
    assert record()["challenge"]["status"] == 403
