"""One connection to a model server as a transport of httpx, for one request at a time.

It must not know what is sent, nor who shares it. httpx's own transport looks through a pool of connections at
the begin and the end of each request, and writes the head of a request by itself: both cost more than they
bring where there is one connection, and one that takes its turns.
"""

from __future__ import annotations

import contextlib
from ssl import SSLContext
from typing import Any

import httpcore
import httpx

from quoth.neuro.backends.messages import PIECE


class Connection(httpx.AsyncHTTPTransport):
    """Opened by its first request, and anew by one that finds it closed, or unused for ``kept`` seconds."""

    def __init__(self, context: SSLContext | None, kept: float) -> None:
        self._pool: Any = _One(context, kept)  # in the place of httpcore's


class _One:
    def __init__(self, context: SSLContext | None, kept: float) -> None:
        self._context = context
        self._kept = kept
        self._line: httpcore.AsyncHTTPConnection | None = None

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response:
        if (line := self._line) is None or not line.is_idle() or line.has_expired():
            await self.aclose()
            line = self._line = httpcore.AsyncHTTPConnection(
                request.url.origin, self._context, self._kept, network_backend=_Network()
            )
        return await line.handle_async_request(request)

    async def aclose(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            await line.aclose()


class _Network(httpcore.AnyIOBackend):
    async def connect_tcp(self, *where: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        return _Stream(await super().connect_tcp(*where, **options))


class _Stream(httpcore.AsyncNetworkStream):
    """Writes what is short when the answer is waited for, all at once."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._unsent = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        if self._unsent:
            with contextlib.suppress(httpcore.WriteError):  # perhaps it has answered before
                await self._send(b"", timeout)
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        if len(self._unsent) + len(buffer) > 2 * PIECE:
            await self._send(buffer, timeout)
        else:
            self._unsent += buffer

    async def _send(self, more: bytes, timeout: float | None) -> None:  # noqa: ASYNC109
        data, self._unsent = self._unsent + more, b""
        await self._stream.write(data, timeout)

    async def start_tls(self, *how: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._stream.start_tls(*how, **options))

    async def aclose(self) -> None:
        await self._stream.aclose()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
