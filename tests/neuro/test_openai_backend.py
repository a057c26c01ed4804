"""The OpenAI-compatible backend against a real server on loopback that fails in every way a server can.

Knows no provider and no key that is worth anything; nothing here is decided by how long something took.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from neuro.backends.base import Backend, Messages, ModelError
from neuro.backends.openai import OpenAIBackend
from tools.errors import UsageError

KEY = "sk-very-secret-1234"
Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Takes the next answer of the server's list; the last one is given again and again."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append((self.path, dict(self.headers), body))
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


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[Answer] = [reply("hello")]
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.released = threading.Event()  # set when the test is over: slow answers end then

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of these tests, and nothing to print a traceback for."""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def asked(self, index: int = -1) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.requests[index][2])
        return body


def reply(content: object, finish: str = "stop", **more: object) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
    return lambda handler: handler.send(200, json.dumps({"choices": [choice], **more}).encode())


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


def piece(content: str | None, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish}]}


def silence(handler: Handler) -> None:
    handler.server.released.wait(60)
    handler.close_connection = True


def silence_after_a_piece(handler: Handler) -> None:
    sse(piece("he"), cut=True)(handler)
    handler.wfile.flush()
    silence(handler)


def cut_off(handler: Handler) -> None:
    handler.send(200, b"{", content_length="9")
    handler.close_connection = True


def hang_up(handler: Handler) -> None:
    handler.close_connection = True


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


class Sleeps(list[float]):
    """Waits nothing and remembers how long it should have."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def backend_for(server: Server, **options: Any) -> OpenAIBackend:
    return OpenAIBackend(
        "gpt-x", **{"base_url": server.base_url, "api_key": KEY, "sleep": Sleeps(), **options}
    )


def said(*contents: str) -> Messages:
    messages = Messages()
    for content in contents:
        messages.append("user", content)
    return messages


async def failing(backend: OpenAIBackend, **options: Any) -> str:
    with pytest.raises(ModelError) as raised:
        await backend.complete(said("hi"), **options)
    await backend.aclose()
    return str(raised.value)


async def test_a_reply_comes_with_its_usage(server: Server) -> None:
    details = {"cached_tokens": 3}
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": details}
    server.answers = [reply("hello", usage=usage)]
    backend = backend_for(server)
    assert isinstance(backend, Backend)
    completion = await backend.complete(said("hi"), max_tokens=5)
    assert (completion.text, completion.finish) == ("hello", "stop")
    counted = completion.usage
    assert (counted.input_tokens, counted.output_tokens, counted.cached_tokens) == (7, 2, 3)
    assert counted.seconds > 0
    path, headers, _ = server.requests[0]
    assert path == "/v1/chat/completions"
    assert {name.lower(): value for name, value in headers.items()}["authorization"] == f"Bearer {KEY}"
    assert server.asked() == {
        "model": "gpt-x",
        "temperature": 0,
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "hi"}],
    }
    await backend.aclose()
    await backend.aclose()


@pytest.mark.parametrize(
    ("content", "finish", "expected"),
    [("cut", "length", ("cut", "length")), ("", "stop", ("", "stop")), (None, "stop", ("", "stop"))],
)
async def test_a_cut_or_empty_reply_is_handed_on(
    server: Server, content: str | None, finish: str, expected: tuple[str, str]
) -> None:
    server.answers = [reply(content, finish, usage=None)]
    backend = backend_for(server)
    completion = await backend.complete(said("hi"))
    assert (completion.text, completion.finish) == expected
    await backend.aclose()


async def test_a_streamed_reply_is_told_piece_by_piece(server: Server) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    server.answers = [sse(piece(None), piece("hé"), piece("llo"), piece(None, "length"), usage, "[DONE]")]
    backend = backend_for(server)
    pieces: list[str] = []
    for _ in range(2):  # the second request uses the same connection
        completion = await backend.complete(said("hi"), on_text=pieces.append)
    assert pieces == ["hé", "llo"] * 2
    assert (completion.text, completion.finish) == ("héllo", "length")
    assert (completion.usage.input_tokens, completion.usage.output_tokens) == (7, 2)
    assert server.asked()["stream"] is True
    assert server.asked()["stream_options"] == {"include_usage": True}
    await backend.aclose()


async def test_a_server_that_cannot_stream_is_heard_all_the_same(server: Server) -> None:
    backend = backend_for(server)
    pieces: list[str] = []
    assert (await backend.complete(said("hi"), on_text=pieces.append)).text == "hello"
    assert pieces == ["hello"]
    await backend.aclose()


async def test_the_history_is_sent_as_a_prefix_and_tool_results_as_user(server: Server) -> None:
    backend = backend_for(server)
    messages = said("é")
    await backend.complete(messages)
    messages.append("tool", "42")
    await backend.complete(messages)

    def history(index: int) -> bytes:
        return server.requests[index][2].partition(b'"messages":')[2].removesuffix(b"]}")

    assert history(0) == '[{"role":"user","content":"é"}'.encode()
    assert history(1) == history(0) + b',{"role":"user","content":"42"}'
    await backend.aclose()


async def test_tool_results_keep_their_role_when_the_server_takes_it(server: Server) -> None:
    backend = backend_for(server, tool_role=True)
    messages = said("hi")
    messages.append("tool", "42")
    await backend.complete(messages)
    assert server.asked()["messages"][1] == {"role": "tool", "content": "42"}
    await backend.aclose()


@pytest.mark.parametrize("takes_grammar", [True, False])
async def test_a_grammar_is_sent_only_to_servers_that_take_one(server: Server, takes_grammar: bool) -> None:
    backend = backend_for(server, takes_grammar=takes_grammar)
    await backend.complete(said("hi"), grammar='root ::= "a"')
    assert server.asked().get("grammar") == ('root ::= "a"' if takes_grammar else None)
    await backend.aclose()


async def test_extra_options_are_sent_and_none_removes_a_default(server: Server) -> None:
    backend = backend_for(server, extra={"temperature": None, "top_p": 0.5})
    await backend.complete(said("hi"))
    assert "temperature" not in server.asked()
    assert server.asked()["top_p"] == 0.5
    await backend.aclose()


async def test_options_a_model_refuses_are_given_up_once_and_for_all(server: Server) -> None:
    server.answers = [
        failure(400, "use max_completion_tokens", param="max_tokens", code="unsupported_parameter"),
        failure(400, "only the default (1)", param="temperature", code="unsupported_value"),
        reply("hello"),
    ]
    backend = backend_for(server, retries=0)
    for _ in range(2):
        assert (await backend.complete(said("hi"), max_tokens=9)).text == "hello"
    assert len(server.requests) == 4
    assert server.asked() == {
        "model": "gpt-x",
        "max_completion_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
    }
    await backend.aclose()


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
async def test_a_passing_failure_is_tried_again(server: Server, code: int) -> None:
    server.answers = [failure(code, "busy"), hang_up, reply("hello")]
    sleeps = Sleeps()
    backend = backend_for(server, sleep=sleeps)
    assert (await backend.complete(said("hi"))).text == "hello"
    first, second = sleeps
    assert 0.25 <= first <= 0.5 <= second <= 1.0
    await backend.aclose()


async def test_the_wait_a_server_asks_for_is_kept(server: Server) -> None:
    server.answers = [status(429, retry_after="7"), reply("hello")]
    sleeps = Sleeps()
    backend = backend_for(server, sleep=sleeps)
    assert (await backend.complete(said("hi"))).text == "hello"
    assert sleeps == [7.0]
    await backend.aclose()


REPEATED = f"you sent {KEY}"  # a server that repeats the key in its complaint
FAILURES: list[tuple[str, Answer, bool, str, int]] = [
    (
        "500",
        failure(500, "out of memory"),
        False,
        "{url} failed (500). It said: out of memory (tried 3 times)",
        3,
    ),
    (
        "429",
        failure(429, "slow down"),
        False,
        "{url} is limiting requests (429). It said: slow down (tried 3 times)",
        3,
    ),
    (
        "429 for long",
        status(429, retry_after="3600"),
        False,
        "{url} is limiting requests (429) and asks to wait 3600 s.",
        1,
    ),
    (
        "400",
        failure(400, "context " + "x" * 400),
        False,
        "{url} refused the request (400): context " + "x" * 292 + "…",
        1,
    ),
    ("400 without words", status(400), False, "{url} refused the request (400): it did not say why", 1),
    (
        "400 with a bare string",
        status(400, {"error": "bad\n model"}),
        False,
        "{url} refused the request (400): bad model",
        1,
    ),
    (
        "401",
        failure(401, REPEATED),
        False,
        "{url} refused the key (401); check OPENAI_API_KEY. It said: you sent ***",
        1,
    ),
    ("403", status(403, b"<html>"), False, "{url} refused the key (403); check OPENAI_API_KEY.", 1),
    (
        "404",
        failure(404, "no gpt-x"),
        False,
        "{url} has no model gpt-x, or no such address (404). It said: no gpt-x",
        1,
    ),
    (
        "302",
        status(302, location="http://elsewhere/"),
        False,
        "{url} answered with status 302 instead of a reply.",
        1,
    ),
    (
        "not JSON",
        status(200, b"<html>welcome"),
        False,
        "{url} answered with text that is not JSON (<html>welcome). Is it an OpenAI-compatible server?",
        1,
    ),
    (
        "bytes that would steer a terminal",
        status(200, b"\xff\x00\x1b[31m"),
        False,
        "{url} answered with text that is not JSON (\ufffd [31m). Is it an OpenAI-compatible server?",
        1,
    ),
    (
        "JSON of no use",
        status(200, {"ok": True}),
        False,
        "{url} answered with JSON without choices. Is it an OpenAI-compatible server?",
        1,
    ),
    (
        "a JSON list",
        status(200, [1]),
        False,
        "{url} answered with JSON without choices. Is it an OpenAI-compatible server?",
        1,
    ),
    ("an error as 200", status(200, {"error": "overloaded"}), False, "{url} failed: overloaded", 1),
    (
        "hangs up",
        hang_up,
        False,
        "Cannot reach {url} (Server disconnected without sending a response.). Is the server running? "
        "(tried 3 times)",
        3,
    ),
    (
        "a reply cut off",
        cut_off,
        False,
        "The answer from {url} was cut off in the middle; try again.",
        1,
    ),
    (
        "a stream cut off",
        sse(piece("he"), cut=True),
        True,
        "The answer from {url} was cut off in the middle; try again.",
        1,
    ),
    (
        "a stream without an end",
        sse(piece("he")),
        True,
        "The answer from {url} was cut off in the middle; try again.",
        1,
    ),
    (
        "a stream of garbage",
        sse("what?"),
        True,
        "{url} answered with text that is not JSON (what?). Is it an OpenAI-compatible server?",
        1,
    ),
    (
        "an error in the stream",
        sse(piece("he"), {"error": {"message": REPEATED}}),
        True,
        "{url} failed: you sent ***",
        1,
    ),
]


@pytest.mark.parametrize(
    ("answer", "streamed", "sentence", "requests"),
    [row[1:] for row in FAILURES],
    ids=[row[0] for row in FAILURES],
)
async def test_every_failure_is_one_sentence_without_the_key(
    server: Server, answer: Answer, streamed: bool, sentence: str, requests: int
) -> None:
    server.answers = [answer]
    options = {"on_text": lambda _: None} if streamed else {}
    message = await failing(backend_for(server), **options)
    assert message == sentence.replace("{url}", f"{server.base_url}/chat/completions")
    assert KEY not in message
    assert len(server.requests) == requests


async def test_a_missing_key_is_told_apart_from_a_refused_one(server: Server) -> None:
    server.answers = [status(401)]
    message = await failing(backend_for(server, api_key=None, key_variable="LLAMA_API_KEY"))
    assert message == f"{server.base_url}/chat/completions wants a key (401); set LLAMA_API_KEY."


@pytest.mark.parametrize("answer", [silence, silence_after_a_piece])
async def test_a_silent_server_is_not_waited_for_beyond_the_deadline(server: Server, answer: Answer) -> None:
    server.answers = [answer]
    message = await failing(backend_for(server, timeout=0.2), on_text=lambda _: None)
    url = f"{server.base_url}/chat/completions"
    assert message == f"{url} gave no answer for 0.2 s; it is slow or overloaded."
    assert len(server.requests) == 1


async def test_a_server_that_is_down_is_named_without_user_password_or_query() -> None:
    with socket.socket() as taken:  # bound but not listening: nobody else can answer there
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        url = f"http://ann:pa55word@127.0.0.1:{port}/v1/?api-key=hidden"
        message = await failing(OpenAIBackend("gpt-x", url, KEY, sleep=Sleeps()))
    assert message == (
        f"Cannot reach http://127.0.0.1:{port}/v1/chat/completions (All connection attempts failed). "
        "Is the server running? (tried 3 times)"
    )


async def test_a_password_in_the_base_url_is_sent_and_not_told(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    server.answers = [failure(403, "ann:pa55word may not")]
    url = server.base_url.replace("//", "//ann:pa55word@")
    message = await failing(backend_for(server, base_url=url, api_key=None))
    assert message.endswith("wants a key (403); set OPENAI_API_KEY. It said: ann:*** may not")
    sent = {name.lower(): value for name, value in server.requests[0][1].items()}
    assert sent["authorization"] == "Basic " + base64.b64encode(b"ann:pa55word").decode()
    assert "pa55word" not in caplog.text


async def test_a_key_at_the_cut_of_a_long_complaint_is_not_told_in_part(server: Server) -> None:
    server.answers = [failure(400, "x" * 290 + KEY)]
    assert KEY[:4] not in await failing(backend_for(server))


async def test_a_query_in_the_base_url_is_kept_in_the_request(server: Server) -> None:
    backend = backend_for(server, base_url=f"{server.base_url}/?api-version=1")
    await backend.complete(said("hi"))
    assert server.requests[0][0] == "/v1/chat/completions?api-version=1"
    await backend.aclose()


async def test_cancelling_ends_the_request(server: Server) -> None:
    server.answers = [silence]
    backend = backend_for(server)
    task = asyncio.create_task(backend.complete(said("hi")))
    while not server.requests:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    server.answers = [reply("again")]
    assert (await backend.complete(said("hi"))).text == "again"
    await backend.aclose()


def test_one_backend_serves_several_event_loops(server: Server) -> None:
    backend = backend_for(server)

    async def ask() -> str:
        try:
            return (await backend.complete(said("hi"))).text
        finally:
            await backend.aclose()

    assert [asyncio.run(ask()) for _ in range(2)] == ["hello", "hello"]


@pytest.mark.parametrize("base_url", ["", "127.0.0.1:8080/v1", "ftp://x/v1", "http://", "http://[::1/v1"])
def test_a_base_url_of_no_use_is_a_sentence(base_url: str) -> None:
    with pytest.raises(UsageError, match=r"^The base URL must look like http://127\.0\.0\.1:8080/v1\.$"):
        OpenAIBackend("gpt-x", base_url)


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-é"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(UsageError) as raised:
        OpenAIBackend("gpt-x", api_key=key)
    assert str(raised.value) == "OPENAI_API_KEY holds characters that no key can have."
