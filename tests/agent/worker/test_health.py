"""What a worker answers about its health, over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from quoth.agent.worker.service import health_server
from quoth.tools.errors import UsageError

BUSY = {"ready": True, "running": 2}
WAITS = {"ready": False, "why": "Redis is away."}


async def ask(url: str, request: bytes) -> tuple[str, Any]:
    """The status line, and the body as data."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return head.splitlines()[0], json.loads(body) if body else None


@pytest.mark.parametrize(
    ("request_line", "state", "status", "said"),
    [
        ("GET /live HTTP/1.1", WAITS, "200 OK", {"live": True}),
        ("GET /ready HTTP/1.1", BUSY, "200 OK", BUSY),
        ("GET /ready?x=1 HTTP/1.0", WAITS, "503 Service Unavailable", WAITS),
        ("HEAD /ready HTTP/1.1", BUSY, "200 OK", None),
        ("GET /secrets HTTP/1.1", BUSY, "404 Not Found", {"error": "there are /live and /ready"}),
        ("POST /ready HTTP/1.1", BUSY, "405 Method Not Allowed", {"error": "only GET and HEAD are answered"}),
        ("\x16\x03\x01", BUSY, "405 Method Not Allowed", {"error": "only GET and HEAD are answered"}),
    ],
)
async def test_the_two_questions(request_line: str, state: Any, status: str, said: Any) -> None:
    async with health_server("0", lambda: state) as url:
        assert url.startswith("http://127.0.0.1:")
        request = f"{request_line}\r\nHost: x\r\n\r\n".encode("latin-1")
        assert await ask(url, request) == (f"HTTP/1.1 {status}", said)


async def test_one_who_sends_too_much_is_left_without_an_answer() -> None:
    async with health_server("0", lambda: BUSY) as url:
        host, _, port = url.removeprefix("http://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /" + b"x" * 100_000)
        assert await reader.read() == b""
        writer.close()
        assert (await ask(url, b"GET /live HTTP/1.1\r\n\r\n"))[1] == {"live": True}


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http", "--health takes a port, or HOST:PORT, such as 8080, not http."),
        ("70000", "--health takes a port, or HOST:PORT, such as 8080, not 70000."),
        (
            "no.such.host.:80",
            "The worker cannot report its health at no.such.host.:80: unknown host.",
        ),
        ("{taken}", "The worker cannot report its health at {taken}: Address already in use."),
    ],
)
async def test_a_port_that_cannot_be_used_is_said(address: str, said: str) -> None:
    async with health_server("0", lambda: BUSY) as url:
        taken = url.rpartition(":")[2]
        with pytest.raises(UsageError) as refused:
            async with health_server(address.format(taken=taken), lambda: BUSY):
                pass
        assert str(refused.value) == said.format(taken=taken)
