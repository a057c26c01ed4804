"""What carries the requests of httpx to a server and its replies back: HTTP/1.1 on asyncio, and little of it.

Knows bytes, sockets and httpx's transports; it must not know models, messages or forms. httpx's own transport
does the same at some ten times the CPU time, and it is taken where a proxy stands in between. Whoever uses
this one bounds every wait by a deadline around it: only connecting has one of its own.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import urllib.request
from collections.abc import AsyncIterator, Iterator

import httpx

IDLE_SECONDS = 5.0  # a connection nobody has used for longer may be dead without our knowing
MOST_HEAD = 100_000  # bytes of a status and headers, or of a line between chunks
ENOUGH = 262_144  # bytes that have come and nobody has read yet: the server waits
PIECE = 65_536  # bytes that are sent together; larger pieces go as they are
CUT_OFF = "The server ended the connection in the middle of its reply."
GARBLED = "The server answered with what is not HTTP."


def line() -> httpx.AsyncBaseTransport | None:
    """A transport for httpx; None, which means its own, where the environment names a proxy."""
    return None if any(name != "no" for name in urllib.request.getproxies()) else Line()


class Line(httpx.AsyncBaseTransport):
    """Connections to servers, opened as they are needed and used again."""

    def __init__(self) -> None:
        self._idle: dict[tuple[str, str, int], list[_Connection]] = {}
        self._tls: ssl.SSLContext | None = None
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        if url.scheme not in ("http", "https"):
            raise httpx.UnsupportedProtocol(f"{url.scheme} is not http or https")
        origin = (url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80))
        connection = self._unused(origin) or await self._opened(origin, request)
        try:
            await _send(connection, request)
            version, status, headers = await _answered(connection)
        except BaseException:
            connection.abort()
            raise
        return httpx.Response(
            status, headers=headers, stream=_Body(self, origin, connection, version, status, headers)
        )

    async def aclose(self) -> None:
        self._closed = True
        for connections in self._idle.values():
            for connection in connections:
                connection.abort()
                await connection.gone
        self._idle.clear()

    def keep(self, origin: tuple[str, str, int], connection: _Connection) -> None:
        """Take back a connection that can serve again."""
        if self._closed:
            connection.abort()
            return
        connection.since = asyncio.get_running_loop().time()
        self._idle.setdefault(origin, []).append(connection)

    def _unused(self, origin: tuple[str, str, int]) -> _Connection | None:
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            silent = (
                not connection.ended and not connection.buffer
            )  # what says something unasked says goodbye
            if silent and asyncio.get_running_loop().time() - connection.since < IDLE_SECONDS:
                return connection
            connection.abort()
        return None

    async def _opened(self, origin: tuple[str, str, int], request: httpx.Request) -> _Connection:
        scheme, host, port = origin
        if scheme == "https" and self._tls is None:
            self._tls = httpx.create_ssl_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        tls = self._tls if scheme == "https" else None
        try:
            async with asyncio.timeout(request.extensions.get("timeout", {}).get("connect")):
                _, connection = await asyncio.get_running_loop().create_connection(
                    _Connection, host, port, ssl=tls, happy_eyeballs_delay=0.25
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout(str(error)) from error
        except ssl.SSLError as error:
            raise httpx.ConnectError(str(error)) from error
        except OSError as error:
            known = isinstance(error, socket.gaierror)
            raise httpx.ConnectError(str(error) if known else "All connection attempts failed") from error
        return connection


class _Connection(asyncio.Protocol):
    """One connection: the bytes that have come, and who waits for more."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.ended = False
        self.since = 0.0
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._error: Exception | None = None
        self._waits: asyncio.Future[None] | None = None
        self._full = False
        self._writes = True
        self._may_write: asyncio.Future[None] | None = None

    # What asyncio tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if len(self.buffer) > ENOUGH and not self._full:
            self._full = True
            self._transport.pause_reading()
        _wake(self._waits)

    def eof_received(self) -> None:
        self.ended = True
        _wake(self._waits)

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = True
        self._error = exc
        self._writes = True  # nobody waits for ever
        _wake(self._waits)
        _wake(self._may_write)
        _wake(self.gone)

    def pause_writing(self) -> None:
        self._writes = False

    def resume_writing(self) -> None:
        self._writes = True
        _wake(self._may_write)

    # What a request does

    async def write(self, data: bytes) -> None:
        """Send bytes, and wait until most of them are on their way."""
        if self.ended:  # the server may have said why; that is read next
            return
        self._transport.write(data)
        if not self._writes:
            self._may_write = asyncio.get_running_loop().create_future()
            await self._may_write

    async def more(self) -> bool:
        """Wait until more has come than is there; false at the end. Raises httpx.ReadError."""
        self._go_on()
        before = len(self.buffer)
        while len(self.buffer) == before:
            if self.ended:
                if self._error is not None:
                    raise httpx.ReadError(str(self._error)) from self._error
                return False
            self._waits = asyncio.get_running_loop().create_future()
            await self._waits
        return True

    async def until(self, mark: bytes) -> bytes:
        """The bytes before ``mark``, which is taken away with them."""
        start = 0
        while (end := self.buffer.find(mark, start)) < 0:
            start = max(0, len(self.buffer) - len(mark))
            if len(self.buffer) > MOST_HEAD:
                raise httpx.RemoteProtocolError(GARBLED)
            if not await self.more():
                raise httpx.RemoteProtocolError(CUT_OFF)
        found = bytes(self.buffer[:end])
        del self.buffer[: end + len(mark)]
        return found

    def taken(self, most: int) -> bytes:
        """What has come, ``most`` bytes of it."""
        found = bytes(self.buffer[:most])
        del self.buffer[:most]
        self._go_on()
        return found

    def _go_on(self) -> None:
        """Let the server send again."""
        if self._full and len(self.buffer) <= ENOUGH:
            self._full = False
            self._transport.resume_reading()

    def abort(self) -> None:
        self._transport.abort()


def _wake(waits: asyncio.Future[None] | None) -> None:
    if waits is not None and not waits.done():
        waits.set_result(None)


async def _send(connection: _Connection, request: httpx.Request) -> None:
    """Write a request, in as few pieces as that can be done without copying large ones."""
    target, raw = request.url.raw_path, request.headers.raw
    head = [request.method.encode(), b" ", target, b" HTTP/1.1\r\n"]
    for name, value in raw:
        if b"\n" in value or b"\r" in value or b"\n" in name or b"\r" in name:
            raise httpx.LocalProtocolError("A header holds a line break.")
        head += (name, b": ", value, b"\r\n")
    head.append(b"\r\n")
    pending, size = head, 0
    chunked = "transfer-encoding" in request.headers
    assert isinstance(request.stream, httpx.AsyncByteStream)
    async for piece in request.stream:
        if chunked:
            piece = b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""
        pending.append(piece)
        size += len(piece)
        if size >= PIECE:
            *small, last = pending
            if small:
                await connection.write(b"".join(small))
            await connection.write(last)
            pending, size = [], 0
    if chunked:
        pending.append(b"0\r\n\r\n")
    if pending:
        await connection.write(b"".join(pending))


_Headers = list[tuple[bytes, bytes]]


async def _answered(connection: _Connection) -> tuple[bytes, int, _Headers]:
    """The version, status and headers of the reply; what comes before the final one is passed over."""
    if not connection.buffer and not await connection.more():
        raise httpx.RemoteProtocolError("Server disconnected without sending a response.")
    while True:
        first, *rest = (await connection.until(b"\r\n\r\n")).split(b"\r\n")
        version, _, words = first.partition(b" ")
        code = words[:3]
        if version not in (b"HTTP/1.1", b"HTTP/1.0") or len(code) != 3 or not code.isdigit():
            raise httpx.RemoteProtocolError(GARBLED)
        if not 100 <= (status := int(code)) < 200:
            return version, status, list(_headers(rest))


def _headers(lines: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip():
            raise httpx.RemoteProtocolError(GARBLED)
        yield name, value.strip()


class _Body(httpx.AsyncByteStream):
    """The body of a reply, as it comes. Closed at its end it leaves the connection for the next request,
    closed before that it ends it."""

    def __init__(
        self,
        line: Line,
        origin: tuple[str, str, int],
        connection: _Connection,
        version: bytes,
        status: int,
        headers: _Headers,
    ) -> None:
        self._line = line
        self._origin = origin
        self._connection = connection
        said: dict[bytes, bytes] = {}
        for name, value in headers:
            name, value = name.lower(), value.lower()
            said[name] = said[name] + b"," + value if name in said else value
        wishes = said.get(b"connection", b"")
        self._again = b"close" not in wishes and (version == b"HTTP/1.1" or b"keep-alive" in wishes)
        self._chunked = b"chunked" in said.get(b"transfer-encoding", b"")
        self._left: int | None = None  # None: until the server ends the connection
        if status in (204, 304):
            self._left = 0
        elif not self._chunked and b"content-length" in said:
            lengths = set(said[b"content-length"].split(b","))
            length = lengths.pop().strip()
            if lengths or not length.isdigit():
                connection.abort()
                raise httpx.RemoteProtocolError(GARBLED)
            self._left = int(length)
        self._done = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._chunks() if self._chunked else self._plain(self._left):
                yield piece
        except httpx.RequestError:
            self._connection.abort()
            raise
        self._done = True

    async def _plain(self, left: int | None) -> AsyncIterator[bytes]:
        connection = self._connection
        while left is None or left > 0:
            if not connection.buffer and not await connection.more():
                if left is not None:
                    raise httpx.RemoteProtocolError(CUT_OFF)
                self._again = False
                return
            piece = connection.taken(len(connection.buffer) if left is None else left)
            if left is not None:
                left -= len(piece)
            yield piece

    async def _chunks(self) -> AsyncIterator[bytes]:
        connection = self._connection
        while True:
            size = (await connection.until(b"\r\n")).partition(b";")[0].strip()
            try:
                length = int(size, 16) if size.isalnum() else -1
            except ValueError:
                length = -1
            if length < 0:
                raise httpx.RemoteProtocolError(GARBLED)
            if not length:
                while await connection.until(b"\r\n"):  # trailers say nothing to us
                    pass
                return
            async for piece in self._plain(length):
                yield piece
            if await connection.until(b"\r\n"):
                raise httpx.RemoteProtocolError(GARBLED)

    async def aclose(self) -> None:
        connection, again = self._connection, self._again and self._done and not self._connection.ended
        self._again = False
        if again:
            self._line.keep(self._origin, connection)
        elif not connection.ended or not self._done:
            connection.abort()
