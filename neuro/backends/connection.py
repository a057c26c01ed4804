"""One connection to a model server as a transport of httpx, for one request at a time.

It must not know what is sent, nor who shares it. httpx's own transport looks through a pool of connections at
the begin and the end of each request, takes locks, and goes through the event loop a dozen times: all of it
costs more than it brings where there is one connection, and one that takes its turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import ssl
from typing import Any

import httpcore
import httpx

from quoth.neuro.backends.messages import PIECE

EAGER = 0.25  # seconds until the next address of a name is tried too


class Connection(httpx.AsyncHTTPTransport):
    """Opened by its first request, and anew by one that finds it closed, or unused for ``kept`` seconds."""

    def __init__(self, context: ssl.SSLContext | None, kept: float) -> None:
        self._pool: Any = _One(context, kept)  # in the place of httpcore's


class _One:
    def __init__(self, context: ssl.SSLContext | None, kept: float) -> None:
        self._context = context
        self._kept = kept
        self._line: _Line | None = None

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response:
        if (line := self._line) is None or not line.is_idle() or line.has_expired():
            await self.aclose()
            origin = request.url.origin
            stream = await self._opened(origin, request.extensions.get("timeout", {}).get("connect"))
            line = self._line = _Line(origin, stream, self._kept)
        return await line.handle_async_request(request)

    async def _opened(self, origin: httpcore.Origin, seconds: float | None) -> _Stream:
        context = self._context if origin.scheme == b"https" else None
        where: dict[str, Any] = {"host": origin.host.decode(), "port": origin.port, "ssl": context}
        if context is not None:
            context.set_alpn_protocols(["http/1.1"])
        try:
            async with asyncio.timeout(seconds):
                loop = asyncio.get_running_loop()
                _, stream = await loop.create_connection(_Stream, **where, happy_eyeballs_delay=EAGER)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout from error
        except OSError as error:
            hung_up = isinstance(error, ConnectionResetError) and error.errno is None  # upon a greeting
            cause = ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "UNEXPECTED_EOF_WHILE_READING") if hung_up else error
            raise httpcore.ConnectError("All connection attempts failed") from cause
        return stream

    async def aclose(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            await line.aclose()


class _Line(httpcore.AsyncHTTP11Connection):
    def __init__(self, origin: httpcore.Origin, stream: _Stream, kept: float) -> None:
        super().__init__(origin, stream, kept)
        self._state_lock: Any = contextlib.nullcontext()  # nobody else asks


class _Stream(asyncio.Protocol, httpcore.AsyncNetworkStream):
    """Writes what is short when the answer is waited for, all at once. Whoever asks keeps the time."""

    def __init__(self) -> None:
        self._unsent = b""
        self._unread = bytearray()
        self._over = False
        self._lost: Exception | None = None
        self._heard = asyncio.Event()
        self._flows = asyncio.Event()
        self._flows.set()

    # What the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._unread += data
        self._heard.set()
        if len(self._unread) > 2 * PIECE:
            self._transport.pause_reading()

    def eof_received(self) -> None:
        self._over = True
        self._heard.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._over, self._lost = True, error
        self._heard.set()
        self._flows.set()

    def pause_writing(self) -> None:
        self._flows.clear()

    def resume_writing(self) -> None:
        self._flows.set()

    # What httpcore asks for

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        if self._unsent:
            with contextlib.suppress(httpcore.WriteError):  # perhaps it has answered before
                await self._send(b"")
        await self._heard.wait()
        if not self._unread and self._lost is not None:
            raise httpcore.ReadError(str(self._lost)) from self._lost
        data = bytes(self._unread[:max_bytes])
        del self._unread[:max_bytes]
        if not self._unread and not self._over:
            self._heard.clear()
            self._transport.resume_reading()
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        if len(self._unsent) + len(buffer) > 2 * PIECE:
            await self._send(buffer)
        else:
            self._unsent += buffer

    async def _send(self, more: bytes) -> None:
        data, self._unsent = self._unsent + more, b""
        self._transport.write(data)
        await self._flows.wait()
        if self._lost is not None:
            raise httpcore.WriteError(str(self._lost)) from self._lost

    async def aclose(self) -> None:
        self._transport.abort()
        await asyncio.sleep(0)  # the event loop closes it

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # whether its server has ended it, or said what nobody asked for
            return self._heard.is_set() or self._waits()
        return self._transport.get_extra_info("ssl_object" if info == "ssl_object" else "socket")

    def _waits(self) -> bool:
        """Whether something has come that the event loop has not told of yet."""
        look = select.poll()
        look.register(self._transport.get_extra_info("socket"), select.POLLIN)
        return bool(look.poll(0))
