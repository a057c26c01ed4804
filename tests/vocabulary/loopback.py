"""A real server on loopback that fails in every way a server can, for the tests of back ends.

Knows no provider and no key that is worth anything.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from quoth.neuro.backends.messages import Messages

KEY = "sk-very-secret-1234"
Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Takes the next answer of the server's list; the last one is given again and again."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or, on a connection used again, a body waits 40 ms for an ACK
    server: Server

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.requests.append((self.path, dict(self.headers), body))
        self.server.callers.append(self.client_address[1])
        answers = self.server.answers
        (answers.pop(0) if len(answers) > 1 else answers[0])(self)

    def send(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        for name, value in {"content_length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class QuietServer(ThreadingHTTPServer):
    """A server of the tests. A client that hangs up is part of them, and no traceback is printed for it: that
    would be printed in a thread, after its test, and Python 3.11 parses the lines of a traceback, which must
    not happen in two threads at once (python/cpython#106905)."""

    daemon_threads = True
    request_queue_size = 128  # with the default, 5, a sixth connection waits seconds for the kernel's retry

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


class Server(QuietServer):
    def __init__(self, answer: Answer, certificate: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.scheme = "http" if certificate is None else "https"
        if certificate is not None:  # each connection is greeted in a thread of its own
            self.socket = certificate.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )
        self.answers: list[Answer] = [answer]
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.callers: list[int] = []  # the port each request came from
        self.released = threading.Event()  # set when the test is over: slow answers end then

    @property
    def base_url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}/v1"

    def asked(self, index: int = -1) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.requests[index][2])
        return body


def status(code: int, body: object = None, **headers: str) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
    return lambda handler: handler.send(code, raw, **headers)


def failure(status_code: int, message: str, **more: str) -> Answer:
    return status(status_code, {"error": {"message": message, **more}})


def sse(*events: object, cut: bool = False) -> Answer:
    def answer(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream; charset=utf-8")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        for event in events:
            data = f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        if cut:
            handler.close_connection = True
        else:
            handler.wfile.write(b"0\r\n\r\n")

    return answer


def silence(handler: Handler) -> None:
    handler.server.released.wait(60)
    handler.close_connection = True


def cut_off(handler: Handler) -> None:
    handler.send(200, b"{", content_length="9")
    handler.close_connection = True


def hang_up(handler: Handler) -> None:
    handler.close_connection = True


class Sleeps(list[float]):
    """Waits nothing and remembers how long it should have."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def said(*contents: str) -> Messages:
    """A conversation in which a person and the model took turns."""
    messages = Messages()
    for place, content in enumerate(contents):
        messages.append("assistant" if place % 2 else "user", content)
    return messages


@contextmanager
def loopback(answer: Answer, certificate: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server that runs while the block does, and gives ``answer`` until it is told otherwise; with a
    ``certificate`` it speaks TLS."""
    server = Server(answer, certificate)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.002})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
