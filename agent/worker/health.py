"""Answers whether a worker is alive and ready, over HTTP: for what starts it, and sends it calls.

Knows one listening socket and the two questions; what the answers are, its owner says. The only answer that
needs more than a running loop is ``ready``, so that a worker that waits for Redis is not started again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from quoth.tools.errors import UsageError

LOOPBACK = "127.0.0.1"
PATIENCE = 5.0  # seconds for the request
REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}

State = Callable[[], Mapping[str, Any]]  # with ``ready``, and what else is told of it


@contextlib.asynccontextmanager
async def health_server(address: str, state: State) -> AsyncIterator[str]:
    """Answer at ``PORT``, or ``HOST:PORT``, while the context lasts; gives the URL. Raises UsageError."""
    host, port = _host_and_port(address)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                request = await reader.readline()
                while (await reader.readline()).strip():
                    pass
                writer.write(_answer(request, state))
                await writer.drain()
        writer.close()

    try:
        server = await asyncio.start_server(answer, host, port, limit=8192)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else "there is no such host"
        raise UsageError(f"The health of the worker cannot be told at {address}: {why}.") from None
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
    finally:
        server.close()


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--health takes a port, or HOST:PORT, such as 8080, not {address}.")
    return host.strip("[]") or LOOPBACK, int(port)


def _answer(request: bytes, state: State) -> bytes:
    """The response to the first line of a request."""
    method, _, rest = request.decode("latin-1").partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    told: Mapping[str, Any]
    if method not in ("GET", "HEAD"):
        code, told = 405, {"error": "only GET and HEAD are answered"}
    elif path == "/live":
        code, told = 200, {"live": True}
    elif path == "/ready":
        told = state()
        code = 200 if told["ready"] else 503
    else:
        code, told = 404, {"error": "there are /live and /ready"}
    body = json.dumps(dict(told)).encode() + b"\n"
    head = (
        f"HTTP/1.1 {code} {REASONS[code]}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if method == "HEAD" else body)
