"""The transport under httpx against servers that say byte for byte what they are told to, right and wrong.

Knows no model; nothing here is decided by how long something took.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from neuro.backends import line
from neuro.backends.line import Line

CERTIFICATE = Path(__file__).parent / "data/loopback.pem"  # of localhost; its key is worth nothing
Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter
Script = Callable[[Reader, Writer], Awaitable[None]]


class Place:
    """A server: its address, and what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connections = 0
        self.bodies: list[bytes] = []


@asynccontextmanager
async def server(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[Place]:
    """A server that runs ``script`` on each connection."""
    tasks: set[asyncio.Task[None]] = set()

    async def served(reader: Reader, writer: Writer) -> None:
        place.connections += 1
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await script(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            tasks.discard(task)
            writer.transport.abort()

    listening = await asyncio.start_server(served, "127.0.0.1", 0, ssl=tls)
    port = listening.sockets[0].getsockname()[1]
    place = Place(f"{'https' if tls else 'http'}://localhost:{port}/x")
    try:
        yield place
    finally:
        listening.close()
        for task in [*tasks]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def asked(reader: Reader) -> bytes:
    """The body of one request."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b"chunked" in head:
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
        return body
    length = next(row for row in head.split(b"\r\n") if row.startswith(b"content-length:"))
    return await reader.readexactly(int(length.split(b":")[1]))


def saying(*replies: bytes, ends: bool = False, bytewise: bool = False) -> Script:
    """Each request on a connection gets the next reply; then it ends, or is silent."""

    async def script(reader: Reader, writer: Writer) -> None:
        for reply in replies:
            await asked(reader)
            for piece in [reply[n : n + 1] for n in range(len(reply))] if bytewise else [reply]:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
        if ends:
            return
        await reader.read()

    return script


def client(transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=transport or Line(), timeout=None)


async def reply_to(script: Script) -> httpx.Response:
    async with server(script) as place, client() as http:
        return await http.post(place.url, content=b"hi")


def ok(body: bytes = b"yes", *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"content-length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


REPLIES = [
    ("of a length", ok(), 200, b"yes"),
    ("empty", ok(b""), 200, b""),
    ("without a reason", b"HTTP/1.1 404\r\nContent-Length:2\r\n\r\nno", 404, b"no"),
    ("with no body", b"HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n", 204, b""),
    ("the same length twice", ok(b"yes", b"content-length: 3"), 200, b"yes"),
    ("after a word before", b"HTTP/1.1 100 Continue\r\n\r\n" + ok(), 200, b"yes"),
    ("older", b"HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nyes", 200, b"yes"),
    (
        "in chunks",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n2\r\nye\r\n1;a=b\r\ns\r\n0\r\n\r\n",
        200,
        b"yes",
    ),
    (
        "in chunks with a word behind",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\nx: y\r\n\r\n",
        200,
        b"0123456789",
    ),
]


@pytest.mark.parametrize("bytewise", [False, True])
@pytest.mark.parametrize(
    ("reply", "status", "body"), [row[1:] for row in REPLIES], ids=[row[0] for row in REPLIES]
)
async def test_a_reply_is_read_however_it_is_framed(
    reply: bytes, status: int, body: bytes, bytewise: bool
) -> None:
    response = await reply_to(saying(reply, bytewise=bytewise))
    assert (response.status_code, response.content) == (status, body)


async def test_a_reply_without_a_length_ends_with_its_connection() -> None:
    response = await reply_to(saying(b"HTTP/1.1 200 OK\r\n\r\nyes and more", ends=True))
    assert response.content == b"yes and more"


async def test_the_headers_come_as_they_were_said() -> None:
    response = await reply_to(saying(ok(b"", b"Set-Cookie: a=1", b"set-cookie:  b=2 ", b"X-Empty:")))
    assert response.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert response.headers["x-empty"] == ""


GARBLED = "The server answered with what is not HTTP."
CUT_OFF = "The server ended the connection in the middle of its reply."
WRONG = [
    ("nothing", b"", "Server disconnected without sending a response."),
    ("half a head", b"HTTP/1.1 200 OK\r\ncontent-le", CUT_OFF),
    ("half a body", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nyes", CUT_OFF),
    ("half a chunk", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nyes", CUT_OFF),
    ("no last chunk", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nyes\r\n", CUT_OFF),
    ("no number", b"HTTP/1.1 2x0 OK\r\n\r\n", GARBLED),
    ("another protocol", b"SSH-2.0-OpenSSH_9\r\n\r\n", GARBLED),
    ("a header without a colon", b"HTTP/1.1 200 OK\r\nhello\r\n\r\n", GARBLED),
    ("a header without a name", b"HTTP/1.1 200 OK\r\n: x\r\n\r\n", GARBLED),
    ("a header with a space", b"HTTP/1.1 200 OK\r\nx : y\r\n\r\n", GARBLED),
    ("no length", b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", GARBLED),
    ("two lengths", ok(b"yes", b"content-length: 4"), GARBLED),
    ("no size", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nyes\r\n", GARBLED),
    ("a negative size", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n", GARBLED),
    (
        "a chunk too long",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nyes\r\n0\r\n\r\n",
        GARBLED,
    ),
    ("a head without end", b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 30_000, GARBLED),
]


@pytest.mark.parametrize(("reply", "sentence"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
async def test_what_is_no_whole_reply_is_told(reply: bytes, sentence: str) -> None:
    with pytest.raises(httpx.RemoteProtocolError) as raised:
        await reply_to(saying(reply, ends=True))
    assert str(raised.value) == sentence


async def test_a_connection_serves_again() -> None:
    async with server(saying(ok(b"one"), ok(b"two"))) as place, client() as http:
        assert [(await http.post(place.url, content=b"")).content for _ in range(2)] == [b"one", b"two"]
        assert place.connections == 1


NO_MORE = [
    ("that says goodbye", saying(ok(b"yes", b"Connection: close"))),
    ("of old", saying(b"HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nyes")),
    ("that ended", saying(ok(), ends=True)),
    ("that says more than it was asked", saying(ok() + b"HTTP/1.1 408 Timeout\r\n\r\n")),
]


@pytest.mark.parametrize("script", [row[1] for row in NO_MORE], ids=[row[0] for row in NO_MORE])
async def test_a_connection_that_cannot_serve_again_is_not_used(script: Script) -> None:
    async with server(script) as place, client() as http:
        for number in (1, 2):
            assert (await http.post(place.url, content=b"")).content == b"yes"
            assert place.connections == number
            await asyncio.sleep(0.05)  # so that its end has come


async def test_a_connection_that_was_idle_for_long_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "IDLE_SECONDS", 0.0)
    async with server(saying(ok(), ok())) as place, client() as http:
        for number in (1, 2):
            await http.post(place.url, content=b"")
            assert place.connections == number


async def test_requests_at_once_have_a_connection_each() -> None:
    met = asyncio.Barrier(3)

    async def script(reader: Reader, writer: Writer) -> None:
        body = await asked(reader)
        await met.wait()
        writer.write(ok(body))
        await reader.read()

    async with server(script) as place, client() as http:
        replies = await asyncio.gather(*(http.post(place.url, content=b"%d" % n) for n in range(3)))
        assert [reply.content for reply in replies] == [b"0", b"1", b"2"]
        assert place.connections == 3


async def test_a_reply_nobody_reads_to_its_end_ends_its_connection() -> None:
    async with server(saying(ok(b"y" * 10), ok())) as place, client() as http:
        async with http.stream("POST", place.url, content=b"") as response:
            assert response.status_code == 200
        assert (await http.post(place.url, content=b"")).content == b"y" * 10
        assert place.connections == 2


async def test_a_request_that_is_cancelled_ends_its_connection() -> None:
    heard, gone = asyncio.Event(), asyncio.Event()

    async def script(reader: Reader, writer: Writer) -> None:
        await asked(reader)
        heard.set()
        await reader.read()
        gone.set()

    async with server(script) as place, client() as http:
        waits = asyncio.create_task(http.post(place.url, content=b""))
        await heard.wait()
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        await gone.wait()


async def test_large_bodies_come_whole_both_ways() -> None:
    pieces = [b"a" * 70_000, b"", b"b", b"c" * 3_000_000, b"d"]

    async def content() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def script(reader: Reader, writer: Writer) -> None:
        for _ in range(2):
            writer.write(ok(await asked(reader)))
            await writer.drain()

    whole = b"".join(pieces)
    async with server(script) as place, client() as http:
        for headers in ({"content-length": str(len(whole))}, {}):  # without one it is sent in chunks
            assert (await http.post(place.url, content=content(), headers=headers)).content == whole
        assert place.connections == 1


async def test_a_server_waits_while_nobody_reads() -> None:
    sent = 0

    async def script(reader: Reader, writer: Writer) -> None:
        nonlocal sent
        await asked(reader)
        writer.write(ok(b"x" * 50_000_000)[:100])
        for _ in range(500):
            writer.write(b"x" * 100_000)
            await writer.drain()
            sent += 1

    async with server(script) as place, client() as http:
        async with http.stream("POST", place.url, content=b"") as response:
            before = -1
            while before < sent:
                before = sent
                await asyncio.sleep(0.1)
            assert sent < 400
            read = [len(piece) async for piece in response.aiter_raw()]
        assert sum(read) == 50_000_000


async def test_a_reply_that_comes_before_all_was_sent_is_read() -> None:
    async def script(reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
        await writer.drain()
        await reader.read()

    async def content() -> AsyncIterator[bytes]:
        yield b"a" * 100_000
        yield b"b" * 100_000

    async with server(script) as place, client() as http:
        response = await http.post(place.url, content=content(), headers={"content-length": "200000"})
        assert (response.status_code, response.content) == (413, b"no")


async def test_a_header_with_a_line_break_is_not_sent() -> None:
    transport = Line()
    async with server(saying(ok())) as place:
        request = httpx.Request("POST", place.url, headers=[(b"x", b"a\r\nhost: b")], content=b"")
        with pytest.raises(httpx.LocalProtocolError, match=r"^A header holds a line break\.$"):
            await transport.handle_async_request(request)
    await transport.aclose()


async def test_what_is_no_web_address_is_refused() -> None:
    async with client() as http:
        with pytest.raises(httpx.UnsupportedProtocol):
            await http.post("ftp://localhost/x", content=b"")


async def test_a_name_nobody_knows_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*args: object, **more: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    async with client() as http:
        with pytest.raises(httpx.ConnectError, match=r"^\[Errno -2\] Name or service not known$"):
            await http.post("http://no-such-host.invalid/x", content=b"")


async def test_a_server_that_does_not_let_anyone_in_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*args: object, **more: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", never)
    async with httpx.AsyncClient(transport=Line(), timeout=httpx.Timeout(9, connect=0.01)) as http:
        with pytest.raises(httpx.ConnectTimeout):
            await http.post("http://localhost:1/x", content=b"")


async def test_a_server_that_can_be_trusted_is_spoken_to_in_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATE)
    async with server(saying(ok(b"one"), ok(b"two")), tls) as place, client() as http:
        assert [(await http.post(place.url, content=b"x" * 200_000)).content for _ in range(2)] == [
            b"one",
            b"two",
        ]
        assert place.connections == 1


async def test_a_server_that_cannot_be_trusted_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATE)
    async with server(saying(ok()), tls) as place, client() as http:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await http.post(place.url, content=b"")


@pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "all_proxy"])
def test_where_a_proxy_stands_in_between_httpx_has_its_own(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for known in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(known, raising=False)
        monkeypatch.delenv(known.upper(), raising=False)
    monkeypatch.setenv("no_proxy", "localhost")
    assert isinstance(line.line(), Line)
    monkeypatch.setenv(name, "http://proxy:8080")
    assert line.line() is None
