"""Streamable HTTP: replies are bounded, and a failure ends its own request and no other."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from quoth.tools.mcp.config import ServerConfig
from quoth.tools.mcp.connection import Connection, Deadlines, McpError

INFO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "x", "version": "1"},
}
JSON = "content-type: application/json\r\n"
MB = b"x" * 1_000_000


def reply(head: str, *body: bytes, size: int | None = None) -> list[bytes]:
    length = sum(map(len, body)) if size is None else size
    return [f"HTTP/1.1 200 OK\r\n{head}content-length: {length}\r\n\r\n".encode(), *body]


def result(number: Any, said: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": said}).encode()


# How the server answers a call of the tool, given its request's id.
ANSWERS: dict[str, tuple[Callable[[Any], list[bytes]], str]] = {
    "100 MB of JSON": (lambda number: reply(JSON, *[MB] * 100), "the reply is larger than 16 MB"),
    "100 MB in an event": (
        lambda number: reply("content-type: text/event-stream\r\n", b"data: ", *[MB] * 100),
        "SSE stream failed",
    ),
    "a bomb": (
        lambda number: reply(JSON + "content-encoding: gzip\r\n", gzip.compress(MB)),
        "the reply is compressed, which was not requested",
    ),
    "half a reply": (lambda number: reply(JSON, b"{", size=9), "the reply broke off"),
    "no reply": (lambda number: [], "the request broke off"),
    "no JSON": (lambda number: reply(JSON, b"not json"), "gave no answer: Failed to parse JSON"),
    "a page": (lambda number: reply("content-type: text/html\r\n", b"<p>"), "Unexpected content type"),
    "a redirect": (
        lambda number: [b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.2/mcp\r\ncontent-length: 0\r\n\r\n"],
        "not followed",
    ),
    "an error of the server": (
        lambda number: [b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n"],
        "Server returned an error response",
    ),
}  # fmt: skip


@asynccontextmanager
async def server(answer: Callable[[Any], list[bytes]]) -> AsyncIterator[tuple[str, list[str]]]:
    """A server with two tools: ``slow`` answers once ``bad`` was called. Yields its URL and the headers."""
    heads: list[str] = []
    called = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                heads.append(head)
                size = [line.split(":")[1] for line in head.lower().split("\r\n") if "content-length" in line]
                said = json.loads(await reader.readexactly(int(size[0]))) if size else {}
                number, method = said.get("id"), said.get("method")
                if number is None:
                    pieces = [b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"]
                elif method == "initialize":
                    pieces = reply(JSON, result(number, INFO))
                elif method == "tools/call" and said["params"]["name"] == "bad":
                    pieces = answer(number)
                    called.set()
                elif method == "tools/call":
                    await called.wait()
                    content = [{"type": "text", "text": "slow"}]
                    pieces = reply(JSON, result(number, {"content": content}))
                else:
                    pieces = [b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"]
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                if method == "tools/call":
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/mcp", heads
    finally:
        called.set()
        listening.close()


@pytest.mark.parametrize("case", ANSWERS)
async def test_a_bad_reply_fails_its_own_call_only(case: str, tmp_path: Path) -> None:
    answer, sentence = ANSWERS[case]
    async with server(answer) as (url, _):
        config = ServerConfig("far", url=url)
        async with aclosing(Connection(config, tmp_path, deadlines=Deadlines(call=60, idle=60))) as far:
            slow = asyncio.create_task(far.call("slow", {}))
            with pytest.raises(McpError) as caught:
                await far.call("bad", {})
            assert sentence in str(caught.value)
            assert caught.value.sent == (" gave no answer: " in str(caught.value))
            assert (await slow).content[0].text == "slow"  # type: ignore[union-attr]


async def test_headers_go_with_each_request_and_ask_for_no_compression(tmp_path: Path) -> None:
    async with server(lambda number: reply(JSON, result(number, {"content": []}))) as (url, heads):
        config = ServerConfig("far", url=url, headers={"Authorization": "Bearer mine"})
        async with aclosing(Connection(config, tmp_path)) as far:
            await far.call("bad", {})
    assert len(heads) >= 3
    assert all("authorization: bearer mine\r\n" in head.lower() for head in heads)
    assert all("accept-encoding: identity\r\n" in head.lower() for head in heads)
