"""``quoth serve``: what stands before every part of it, and MCP over HTTP."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_client import ERAS, YES, Person, text_of
from sentences import CANNOT_BE_OPENED
from serving import Served, serving, token
from words import files, quoth

from quoth import AsyncAgent
from quoth.agent.cli.serve import telling_the_owner
from quoth.agent.serve.gate import MAX_BODY, RequestGate, without_port
from quoth.agent.serve.keys import KeyFile, make_keys, read_keys
from quoth.tools.errors import UsageError


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = files(tmp_path_factory.mktemp("served") / "shop", {"a.txt": "one\n"})
    with serving(folder, "--expose", "*") as found:
        yield found


async def call(server: Served, name: str, mode: str, person: Person, *argv: str) -> types.CallToolResult:
    """A call of shell by the client with this key."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token(name)}"}) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        asks: dict[str, Any] = {"elicitation_callback": person.answer}
        async with Client(transport, mode=mode, **asks) as at:  # type: ignore[arg-type]
            return await at.call_tool("shell", {"argv": [*argv]})


def test_health_needs_no_key_and_everything_else_does(server: Served) -> None:
    with server.client(None) as http:
        assert http.get("/health").json()["status"] == "ok"
        for path in ("/mcp", "/v1/models", "/nothing", "/health/x", "//health"):
            assert http.get(path).status_code == 401
        for header in ({"Authorization": "Bearer no"}, {"Authorization": f"Basic {token('me')}"}):
            said = http.get("/nothing", headers=header)
            assert said.status_code == 401
            assert said.headers["WWW-Authenticate"] == "Bearer"
    with server.client() as http:
        assert http.get("/nothing").status_code == 404
        assert http.delete("/health").status_code == 405


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", ""])
def test_another_host_is_refused(server: Served, host: str) -> None:
    with server.client(Host=host) as http:
        assert http.get("/health").status_code == 421


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost.evil.example", "file://"]
)
def test_another_origin_is_refused(server: Served, origin: str) -> None:
    with server.client(Origin=origin) as http:
        assert http.get("/health").status_code == 403


def test_a_page_of_loopback_is_an_origin(server: Served) -> None:
    with server.client(Origin=server.url) as http:
        assert http.get("/health").status_code == 200


def test_a_body_has_an_end(server: Served) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(MAX_BODY // 1_000_000 + 2):
            yield b"x" * 1_000_000

    with server.client() as http:
        for body in (b"x" * (MAX_BODY + 1), pieces()):
            assert (
                http.post("/mcp", content=body, headers={"Content-Type": "application/json"}).status_code
                == 413
            )
        assert http.get("/health").status_code == 200


@pytest.mark.parametrize("mode", ERAS)
async def test_a_key_that_may_decide_is_asked_and_another_is_told_who_decides(
    server: Served, mode: str
) -> None:
    person = Person(YES)
    done = await call(server, "me", mode, person, "echo", mode)
    assert "exit" in text_of(done)
    assert len(person.asked) == 1
    waits = await call(server, "chat", mode, Person(), "echo", mode)
    assert waits.is_error
    assert "quoth approve" in text_of(waits)


async def test_a_session_of_the_protocol_belongs_to_its_key(server: Served) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        },
    }
    kinds = {"Accept": "application/json, text/event-stream"}
    with server.client(**kinds) as mine, server.client("other", **kinds) as theirs:
        session = mine.post("/mcp", json=hello).headers["mcp-session-id"]
        ask = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        own = {"mcp-session-id": session}
        assert mine.post("/mcp", json=ask, headers=own).status_code == 200
        assert theirs.post("/mcp", json=ask, headers=own).status_code in (403, 404)


def test_the_first_start_writes_keys_that_only_their_owner_reads(tmp_path: Path) -> None:
    path = tmp_path / "state/serve.keys"
    assert make_keys(path)
    assert not make_keys(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    keys = read_keys(path)
    assert {one.name: one.decides for one in keys.keys} == {"me": True, "chat": False}
    assert all(one.token not in repr(keys) for one in keys.keys)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("me short ask\n", "line 1"),
        ("# x\nme " + "t" * 20 + "\n", "line 2"),
        ("me " + "t" * 20 + " decide\n", "rights"),
        ("me " + "t" * 20 + " ask,all\n", "rights"),
        ("1me " + "t" * 20 + " ask\n", "name"),
        ("me " + "t" * 20 + " ask\nme " + "u" * 20 + " ask\n", "same name"),
        ("me " + "t" * 20 + " ask\nyou " + "t" * 20 + " ask\n", "same token"),
        ("", "no key"),
    ],
)
def test_a_mistake_in_the_keys_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(UsageError, match=said):
        read_keys(path)


def test_keys_that_others_may_read_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("me " + "t" * 20 + " ask\n")
    path.chmod(0o640)
    said = quoth("serve", "--token-file", str(path), cwd=tmp_path)
    assert said.code == 2
    assert "chmod 600" in said.err


def test_the_keys_are_read_again_after_each_change(tmp_path: Path) -> None:
    path, said = tmp_path / "keys", list[str]()
    make_keys(path)
    keys = KeyFile(path, said.append)
    me, chat = keys.keys
    assert keys.find(chat.token) == chat
    text = path.read_text()
    path.write_text(text.replace("ask,decide", "ask").replace(chat.token, "n" * 20))
    assert keys.find(chat.token) is None
    assert keys.find(me.token) == replace(me, rights=frozenset({"ask"}))
    assert not keys.has(me)
    for broken in ("me\n", ""):
        path.write_text(broken)
        assert keys.find(me.token) is None
        assert keys.keys == ()
    assert len(said) == 2
    assert "line 1" in said[0]
    path.unlink()
    assert keys.keys == ()
    path.touch(0o600)
    path.write_text(text)
    assert keys.has(me)


def test_a_removed_key_ends_without_a_restart(tmp_path: Path) -> None:
    folder = files(tmp_path / "shop", {"r.txt": "Hi."})
    with serving(folder, "--model", "scripted:r.txt") as server, server.client("other") as http:
        assert http.get("/v1/models").status_code == 200
        keys = tmp_path / "keys"
        keys.write_text("".join(line for line in keys.open() if not line.startswith("other")))
        assert http.get("/v1/models").status_code == 401
        with server.client() as mine:
            assert mine.get("/v1/models").status_code == 200


async def test_a_stream_ends_once_its_key_is_removed(tmp_path: Path) -> None:
    path, sent = tmp_path / "keys", list[dict[str, Any]]()
    make_keys(path)
    keys = KeyFile(path, print)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            path.write_text("you " + "t" * 20 + " ask\n")

    async def send(message: Any) -> None:
        sent.append(message)

    headers = {"host": "localhost", "authorization": f"Bearer {keys.keys[0].token}"}
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await RequestGate(app, keys)({"type": "http", "path": "/", "headers": pairs}, send, send)
    assert [one.get("body") for one in sent] == [None, b"x", b""]
    assert sent[-1]["more_body"] is False


def test_a_taken_port_is_a_sentence(server: Served, tmp_path: Path) -> None:
    port = server.url.rpartition(":")[2]
    said = quoth("serve", "--port", port, cwd=tmp_path)
    assert said.code == 2
    assert f"Port {port}" in said.err


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost:80", "localhost"),
        ("[::1]:80", "[::1]"),
        ("[::1]", "[::1]"),
        ("A.b", "a.b"),
        ("x:y", "x:y"),
    ],
)
def test_a_host_is_compared_without_its_port(host: str, name: str) -> None:
    assert without_port(host) == name


def test_why_an_agent_cannot_be_opened_is_for_its_owner_alone(capsys: pytest.CaptureFixture[str]) -> None:
    def opening(name: str) -> AsyncAgent:
        raise UsageError(f'policy.hy:1:1: for {name}: (deny (shell "mine"))')

    with pytest.raises(UsageError, match=CANNOT_BE_OPENED) as told:
        telling_the_owner(opening)("chat")
    assert "mine" not in str(told.value)
    assert 'for chat: (deny (shell "mine"))' in capsys.readouterr().err
