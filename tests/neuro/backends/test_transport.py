"""The transport to a model server: how replies end, when a connection is opened again, what is closed."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
import trustme
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, StreamEnded
from loopback import Handler, QuietServer, Sleeps, said
from server_speech import OPENAI

from quoth.neuro.backends.base import ModelError
from quoth.neuro.backends.http import HttpBackend
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.request import join
from quoth.tools.storage import addresses


async def asked(base_url: str, messages: Messages, **options: object) -> str:
    backend = OPENAI.backend(base_url, **options)
    try:
        return (await backend.complete(messages, tools=b"[]")).text
    finally:
        await backend.aclose()


def test_a_server_of_the_vocabulary_queues_a_hundred_connections_that_it_has_not_accepted_yet() -> None:
    with QuietServer(("127.0.0.1", 0), Handler) as busy, ExitStack() as callers:
        for _ in range(100):
            callers.enter_context(socket.create_connection(busy.server_address[:2], timeout=10))


@contextmanager
def raw(
    answer: Callable[[socket.socket], None], times: int = 1, closed: threading.Semaphore | None = None
) -> Iterator[int]:
    """The port of a server that answers as it likes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for _ in range(times):
                caller, _ = listening.accept()
                with caller:
                    answer(caller)
                if closed is not None:
                    closed.release()

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(20)


def read_request(caller: socket.socket) -> None:
    """Read one request from its first byte to its last."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += caller.recv(65536)
    head, _, body = head.partition(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    left = int(length.partition(b":")[2]) - len(body)
    while left:
        left -= len(caller.recv(left))


async def test_a_connection_that_its_server_has_closed_costs_no_try() -> None:
    closed, callers = threading.Semaphore(0), list[str]()
    body = json.dumps(OPENAI.whole("hello")).encode()

    def answer(caller: socket.socket) -> None:
        callers.append(str(caller.getpeername()))
        read_request(caller)
        caller.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))

    with raw(answer, 3, closed) as port:
        backend = OPENAI.backend(f"http://127.0.0.1:{port}/v1", retries=0)
        for _ in range(3):
            assert (await backend.complete(said("hi"))).text == "hello"
            closed.acquire(timeout=20)  # while the loop stands still, and so knows nothing of it
        await backend.aclose()
    assert len(set(callers)) == 3


async def test_an_answer_that_comes_before_all_is_sent_is_heard() -> None:
    body = b'{"error": {"message": "request too large"}}'

    def refuse(caller: socket.socket) -> None:
        caller.recv(1000)
        caller.sendall(b"HTTP/1.1 413 Too Large\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        while caller.recv(65536):
            pass

    with raw(refuse) as port, pytest.raises(ModelError, match=r"\(413\): request too large"):
        await asked(f"http://127.0.0.1:{port}/v1", said("x" * 1_000_000))


async def test_a_reset_while_a_reply_is_read_is_a_reply_cut_off() -> None:
    def reset(caller: socket.socket) -> None:
        read_request(caller)
        caller.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{")
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with raw(reset) as port, pytest.raises(ModelError, match="was cut off in the middle"):
        await asked(f"http://127.0.0.1:{port}/v1", said("hi"), retries=0)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
WHOLE = json.dumps(OPENAI.whole("hello")).encode()
LENGTH = b"content-length: %d\r\n" % len(WHOLE)
CHUNKS = b"%x\r\n%b\r\n%x;why=none\r\n%b\r\n0\r\n" % (9, WHOLE[:9], len(WHOLE[9:]), WHOLE[9:])

WELL_SAID = {
    "a length": HEAD + LENGTH + b"\r\n" + WHOLE,
    "an end": HEAD + b"connection: close\r\n\r\n" + WHOLE,
    "an old version": b"HTTP/1.0 200 OK\r\n\r\n" + WHOLE,
    "chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS + b"\r\n",
    "chunks and a length": HEAD + LENGTH + b"transfer-encoding: chunked\r\n\r\n" + CHUNKS + b"\r\n",
    "trailers": HEAD + b"transfer-encoding: chunked\r\n\r\n" + CHUNKS + b"content-encoding: br\r\n\r\n",
    "news before it": b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + HEAD + LENGTH + b"\r\n" + WHOLE,
    "no returns": (HEAD + LENGTH).replace(b"\r", b"") + b"\n" + WHOLE,
    "no reason": b"HTTP/1.1 200\r\n" + LENGTH + b"\r\n" + WHOLE,
    "more than was asked": (HEAD + LENGTH + b"\r\n" + WHOLE) * 2,
}


@pytest.mark.parametrize("how", WELL_SAID)
@pytest.mark.parametrize("size", [1, 100_000])
async def test_a_reply_is_read_however_its_end_is_told(how: str, size: int) -> None:
    whole = WELL_SAID[how]

    def answer(caller: socket.socket) -> None:
        caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        read_request(caller)
        with suppress(OSError):  # who heard more than was asked does not listen on
            for place in range(0, len(whole), size):
                caller.sendall(whole[place : place + size])

    closed = threading.Semaphore(0)
    with raw(answer, 2, closed) as port:
        backend = OPENAI.backend(f"http://127.0.0.1:{port}/v1", retries=0)
        for _ in range(2):  # the second on another connection, whatever was left of the first
            assert (await backend.complete(said("hi"))).text == "hello"
            closed.acquire(timeout=20)
        await backend.aclose()


@pytest.mark.parametrize(
    ("answered", "why"),
    [
        (HEAD + LENGTH + b"\r\n" + WHOLE[:-1], "was cut off in the middle"),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n" + CHUNKS[:-3], "was cut off in the middle"),
        (HEAD + b"transfer-encoding: chunked\r\n\r\nhello\r\n", "was cut off in the middle"),
        (HEAD + LENGTH, "closed the connection without an answer"),
        (HEAD + b"x: " + b"y" * 200_000 + b"\r\n\r\n", "closed the connection without an answer"),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "closed the"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "closed the connection without an answer"),
        (b"", "closed the connection without an answer"),
    ],
)
async def test_half_a_reply_is_none(answered: bytes, why: str) -> None:
    def answer(caller: socket.socket) -> None:
        read_request(caller)
        with suppress(OSError):  # who heard enough does not read on
            caller.sendall(answered)

    with raw(answer) as port, pytest.raises(ModelError, match=why):
        await asked(f"http://127.0.0.1:{port}/v1", said("hi"), retries=0)


async def test_a_server_that_hangs_up_on_a_greeting_speaks_no_tls() -> None:
    def greeted(caller: socket.socket) -> None:
        caller.recv(65536)

    with raw(greeted) as port, pytest.raises(ModelError) as raised:
        await asked(f"https://127.0.0.1:{port}/v1", said("hi"), sleep=Sleeps())
    assert "(UNEXPECTED_EOF_WHILE_READING). Does it support https" in str(raised.value)


class Http2Server(asyncio.Protocol):
    """Remembers what is asked on which connection, and which end; ``answers`` are told in turn, the last one
    again: None says nothing."""

    asked = 0
    ended = 0
    connections: set[object] = set()  # noqa: RUF012  of all instances
    answers: list[Callable[[Http2Server, int], None] | None] = []  # noqa: RUF012

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.wire, self.state = transport, H2Connection(H2Configuration(client_side=False))
        self.connections.add(self)
        self.state.initiate_connection()
        transport.write(self.state.data_to_send())

    def connection_lost(self, error: Exception | None) -> None:
        type(self).ended += 1

    def data_received(self, data: bytes) -> None:
        for event in self.state.receive_data(data):
            if isinstance(event, DataReceived):
                self.state.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if isinstance(event, StreamEnded):
                answer = self.answers[min(self.asked, len(self.answers) - 1)]
                type(self).asked += 1
                if answer is not None:
                    self.state.send_headers(event.stream_id, [(":status", "200")])
                    answer(self, event.stream_id)
        self.wire.write(self.state.data_to_send())


def all_at_once(server: Http2Server, stream: int) -> None:
    server.state.send_data(stream, WHOLE, end_stream=True)


def without_end(server: Http2Server, stream: int) -> None:
    word = b'data: {"choices":[{"index":0,"delta":{"content":"a "}}]}\n\n'
    server.state.send_data(stream, word * 200)


def wrong_frame(server: Http2Server, stream: int) -> None:
    data_of_stream_0 = b"\0\0\1\0\0\0\0\0\0x"
    asyncio.get_running_loop().call_later(0.3, server.wire.write, data_of_stream_0)  # once the head was read


@asynccontextmanager
async def http2(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *answers: Callable[[Http2Server, int], None] | None
) -> AsyncIterator[HttpBackend]:
    """A back end whose server speaks HTTP/2 alone."""
    ca, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    context.set_alpn_protocols(["h2"])
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
    Http2Server.asked, Http2Server.ended = 0, 0
    Http2Server.connections, Http2Server.answers = set(), [*answers]
    served = await asyncio.get_running_loop().create_server(Http2Server, "127.0.0.1", 0, ssl=context)
    backend = OPENAI.backend(f"https://127.0.0.1:{served.sockets[0].getsockname()[1]}/v1", retries=0)
    async with asyncio.timeout(20):
        yield backend
    await backend.aclose()
    served.close()


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


async def test_over_http_2_a_request_that_is_given_up_ends_at_its_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with http2(monkeypatch, tmp_path, None, all_at_once) as backend:
        asking = asyncio.create_task(backend.complete(said("hi")))
        await until(lambda: Http2Server.asked)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await until(lambda: Http2Server.ended)
        for _ in range(2):
            assert (await backend.complete(said("hi"))).text == "hello"
        assert len(Http2Server.connections) == 2


async def test_over_http_2_a_reply_that_does_not_end_is_not_left_to_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with http2(monkeypatch, tmp_path, without_end, all_at_once) as backend:
        cut = await backend.complete(said("hi"), max_tokens=10, on_text=lambda _: None)
        assert cut.finish == "length"
        await until(lambda: Http2Server.ended)
        assert (await backend.complete(said("hi"))).text == "hello"


async def test_over_http_2_a_wrong_frame_is_a_reply_cut_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with http2(monkeypatch, tmp_path, wrong_frame) as backend:
        with pytest.raises(ModelError, match="cut off in the middle"):
            await backend.complete(said("hi"))


async def test_certificates_are_read_once_and_for_https_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    make = httpx.create_ssl_context
    monkeypatch.setattr(httpx, "create_ssl_context", lambda *given: (read.append(given), make(*given))[1])
    addresses._trusted.clear()

    async def go(url: str) -> None:
        pool = join(httpx.URL(url))
        async with pool.place(httpx.URL(url)):
            pass
        await pool.leave()

    await go("http://127.0.0.1/v1")
    assert read == []
    for _ in range(3):
        await go("https://127.0.0.1/v1")
        assert await addresses.certificates("https") is await addresses.trusted()
    assert read == [()]
    monkeypatch.setenv("SSL_CERT_FILE", __file__)  # others, and none
    with pytest.raises(ModelError):
        await go("https://127.0.0.1/v1")
