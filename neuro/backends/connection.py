"""One connection to a model server, for one request after the other. httptools reads the replies.

It must not know what is sent, nor who shares it. httpx's own transport looks through a pool of connections at
the begin and the end of each request, takes locks, reads replies in Python, and goes through the event loop a
dozen times: all of it costs more than it brings where there is one connection, and one that takes its turns.
"""

from __future__ import annotations

import asyncio
import select
import ssl
import time
from collections.abc import AsyncIterator
from typing import Any

import httptools

from quoth.neuro.backends.messages import PIECE
from quoth.tools.storage.lean_httpx import httpx

EAGER = 0.25  # seconds until the next address of a name is tried too
LONGEST_HEAD = 100_000  # bytes that a server may send before its body
BOUNDS = (b"content-length", b"transfer-encoding")
# As others read them: a line may end without a return, and chunks count more than a length.
LENIENT = {
    "lenient_optional_cr_before_lf": True,
    "lenient_chunked_length": True,
    "lenient_data_after_close": True,
}


class Connection(httpx.AsyncBaseTransport):
    """Opened by its first request, and anew by one that finds it closed, or unused for ``kept`` seconds."""

    def __init__(self, context: ssl.SSLContext | None, kept: float) -> None:
        self._context = context
        self._kept = kept
        self._line: _Line | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._line is None or not self._line.serves(self._kept):
            await self.aclose()
            self._line = await self._opened(request.url, request.extensions.get("timeout", {}).get("connect"))
        return await self._line.asked(request)

    async def _opened(self, url: httpx.URL, seconds: float | None) -> _Line:
        context = self._context if url.scheme == "https" else None
        port = url.port or (443 if context is not None else 80)
        if context is not None:
            context.set_alpn_protocols(["http/1.1"])
        try:
            async with asyncio.timeout(seconds):
                _, line = await asyncio.get_running_loop().create_connection(
                    _Line, url.raw_host.decode(), port, ssl=context, happy_eyeballs_delay=EAGER
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout("") from error
        except OSError as error:
            hung_up = isinstance(error, ConnectionResetError) and error.errno is None  # upon a greeting
            cause = ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "UNEXPECTED_EOF_WHILE_READING") if hung_up else error
            raise httpx.ConnectError("All connection attempts failed") from cause
        return line

    async def aclose(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            await line.aclose()


class _Line(asyncio.Protocol):
    """An open connection. Whoever asks keeps the time."""

    def __init__(self) -> None:
        self._heard = asyncio.Event()
        self._flows = asyncio.Event()
        self._flows.set()
        self._over = False  # nothing more is read
        self._failed: Exception | None = None
        self._expect()
        self._ended = True  # nothing is asked

    def _expect(self) -> None:
        """A reply, from its first byte on."""
        self._parser = httptools.HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(**LENIENT)
        self._headers: list[tuple[bytes, bytes]] = []
        self._status = 0  # until its head has come
        self._length = 0  # of what has come, where that is no more than a part of the head
        self._pieces: list[bytes] = []  # of its body, that nobody has read
        self._unread = 0  # bytes in them
        self._ended = False
        self._lasts = self._bounded = False  # whether the connection does, and its end can be known otherwise

    # What the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._look = select.poll()
        self._look.register(transport.get_extra_info("socket"), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        self._length += 0 if self._status else len(data)
        try:
            if self._ended:
                raise httptools.HttpParserError("It was not asked.")
            self._parser.feed_data(data)
            if not self._status and self._length > LONGEST_HEAD:
                raise httptools.HttpParserError("The head of the reply is too long.")
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.connection_lost(error)
        if self._unread > 2 * PIECE:
            self._transport.pause_reading()
        self._heard.set()
        if self._status:
            self._flows.set()  # it has answered before all was sent

    def eof_received(self) -> None:
        self._over = True
        self._heard.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._over, self._failed = True, self._failed or error
        self._heard.set()
        self._flows.set()

    def pause_writing(self) -> None:
        self._flows.clear()

    def resume_writing(self) -> None:
        self._flows.set()

    # What the parser finds

    def on_message_begin(self) -> None:
        if self._ended:
            raise ValueError("There is a second reply.")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._status:  # those behind the body are left out
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:  # another one follows
            self._headers.clear()
            return
        self._lasts = self._parser.should_keep_alive()
        self._bounded = any(name.lower() in BOUNDS for name, _ in self._headers)
        self._status = status

    def on_body(self, data: bytes) -> None:
        self._pieces.append(data)
        self._unread += len(data)

    def on_message_complete(self) -> None:
        self._ended = self._status > 0

    # What a request does

    def serves(self, kept: float) -> bool:
        """Whether another request can be sent. Perhaps its server has ended it, or said what nobody asked
        for, and the event loop has not told of it yet."""
        if self._over or not self._ended or self._look.poll(0):
            return False
        return time.monotonic() - self._since < kept

    async def asked(self, request: httpx.Request) -> httpx.Response:
        """The reply to a request, as soon as its head has come."""
        self._expect()
        try:
            sent = await self._send(request)
            while not self._status:
                self._check("Server disconnected without sending a response.")
                await self._more()
        except BaseException:
            await self.aclose()
            raise
        self._lasts = self._lasts and sent
        return httpx.Response(self._status, headers=self._headers, stream=_Body(self))

    async def _send(self, request: httpx.Request) -> bool:
        """Send it, what is short in one write; false if the answer came before its end."""
        head = b"".join(b"%b: %b\r\n" % header for header in request.headers.raw)
        data = b"%b %b HTTP/1.1\r\n%b\r\n" % (request.method.encode(), request.url.raw_path, head)
        assert isinstance(request.stream, httpx.AsyncByteStream)
        async for piece in request.stream:
            if self._over or self._status:
                return False
            self._transport.write(data + piece)
            data = b""
            await self._flows.wait()
        return True

    async def _more(self) -> None:
        """Wait until something has come."""
        self._heard.clear()
        await self._heard.wait()

    def _check(self, cut_off: str) -> None:
        """Raise an error where nothing more will come."""
        if isinstance(self._failed, OSError):
            raise httpx.ReadError(str(self._failed)) from self._failed
        if self._over:
            raise httpx.RemoteProtocolError(str(self._failed or cut_off)) from self._failed

    async def piece(self) -> bytes:
        """The next part of the body; empty at its end."""
        while not self._pieces and not self._ended:
            if self._over and self._failed is None and not self._bounded:
                break
            self._check("peer closed connection without sending complete message body")
            await self._more()
        data = b"".join(self._pieces)
        self._forget()
        return data

    def _forget(self) -> None:
        """What has come was read, or is not wanted: hear what comes next."""
        self._pieces.clear()
        if self._unread > 2 * PIECE:
            self._transport.resume_reading()
        self._unread = 0

    async def read(self) -> None:
        """End a request, perhaps before its reply ends."""
        self._since = time.monotonic()
        self._forget()
        if not (self._ended and self._lasts) or self._over:
            await self.aclose()

    async def aclose(self) -> None:
        self._over = True
        self._transport.abort()
        await asyncio.sleep(0)  # the event loop closes it


class _Body(httpx.AsyncByteStream):
    def __init__(self, line: _Line) -> None:
        self._line = line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self._line.piece():
            yield data

    async def aclose(self) -> None:
        await self._line.read()
