"""A model server that never ends, or sends more than fits: one sentence, one request, and little memory.

Every row is met over a real connection on loopback, in OpenAI's and in Anthropic's protocol.
"""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from loopback import KEY, Answer, Handler, Server, Sleeps, failure, loopback, said, status
from sentences import ANSWERED_WITH_MORE_THAN, WHICH_IT_WAS_NOT_ASKED

from quoth.neuro.backends.anthropic import AnthropicBackend
from quoth.neuro.backends.base import ModelError
from quoth.neuro.backends.http import HttpBackend
from quoth.neuro.backends.openai import OpenAIBackend

MEGABYTE = 1 << 20
MOST_MEMORY = 120 * MEGABYTE  # for a reply of 8; it was 1 to 2.7 GB, and no end
PIECE = "word " * 2000
OPENAI = {"choices": [{"index": 0, "delta": {"content": PIECE}}]}
ANTHROPIC = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": PIECE}}


@cache
def bombshell() -> bytes:
    """64 kB that become 64 MB."""
    return gzip.compress(bytes(64 * MEGABYTE), 9)


def chunks(
    pieces: Iterator[bytes], kind: str = "text/event-stream", code: int = 200, **headers: str
) -> Answer:
    def answer(handler: Handler) -> None:
        handler.send_response(code)
        handler.send_header("content-type", kind)
        handler.send_header("transfer-encoding", "chunked")
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        for piece in pieces:
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        handler.wfile.write(b"0\r\n\r\n")

    return answer


def endless(piece: bytes, first: bytes = b"", **more: Any) -> Answer:
    def pieces() -> Iterator[bytes]:
        yield first or piece
        while True:
            yield piece

    return lambda handler: chunks(pieces(), **more)(handler)


def words(event: dict[str, Any]) -> Answer:
    return endless(b"data: %b\n\n" % json.dumps(event).encode())


def drip(event: dict[str, Any]) -> Answer:
    """A token before every silence is long enough to be noticed, for ever."""
    data = b"data: %b\n\n" % json.dumps(event).replace(PIECE, "x").encode()

    def pieces(handler: Handler) -> Iterator[bytes]:
        while not handler.server.released.wait(0.05):
            yield data

    return lambda handler: chunks(pieces(handler))(handler)


def bomb(code: int, kind: str, encoding: str = "gzip") -> Answer:
    return lambda handler: handler.send(code, bombshell(), kind, content_encoding=encoding)


def many_calls(_: Any) -> Answer:
    call = {"function": {"name": "echo", "arguments": "{}"}}
    tool_use = {"type": "tool_use", "name": "echo", "input": {}}
    reply = {"choices": [{"message": {"tool_calls": [call] * 5_000}}], "content": [tool_use] * 5_000}
    return status(200, reply)


TOO_MUCH = f"{{url}} {ANSWERED_WITH_MORE_THAN} 8,000,000 bytes; it was stopped there. Is it {{kind}}?"
REFUSED_WITH_TOO_MUCH = (
    "{url} answered with status {code} and more than 8,000,000 bytes; it was stopped there. Is it {kind}?"
)
DATA = b"data: " + b"x" * 60_000
ROWS: dict[str, tuple[Callable[[Any], Answer], str]] = {
    "an endless stream of words": (words, TOO_MUCH),
    "an endless stream of nothing": (lambda event: endless(b"data: {}\n\n" * 800), TOO_MUCH),
    "an endless stream of comments": (
        lambda event: endless(b": still here%b\n\n" % (b" " * 50_000)),
        TOO_MUCH,
    ),
    "one endless line": (lambda event: endless(b"x" * 60_000, b"data: "), TOO_MUCH),
    "one endless event": (lambda event: endless(DATA + b"\n"), TOO_MUCH),
    "an endless name of an event": (lambda event: endless(b"event: " + b"x" * 60_000 + b"\n"), TOO_MUCH),
    "an endless reply in one piece": (
        lambda event: endless(b"[" * 60_000, kind="application/json"),
        TOO_MUCH,
    ),
    "a bomb": (lambda event: bomb(200, "application/json"), TOO_MUCH),
    "a bomb of events": (lambda event: bomb(200, "text/event-stream"), TOO_MUCH),
    "a bomb with another end": (lambda event: bomb(200, "application/json", "x-gzip"), TOO_MUCH),
    "what is compressed in another way": (
        lambda event: bomb(200, "application/json", "br"),
        f"{{url}} answered with a reply compressed as br, {WHICH_IT_WAS_NOT_ASKED}. Is it {{kind}}?",
    ),
    "what is compressed twice": (
        lambda event: bomb(200, "application/json", "gzip, gzip"),
        "{url} answered with a reply compressed as gzip, gzip, which it was not asked for. Is it {kind}?",
    ),
    "what cannot be decompressed": (
        lambda event: lambda handler: handler.send(200, b"what?", content_encoding="gzip"),
        "{url} answered with a reply that cannot be decompressed. Is it {kind}?",
    ),
    "a token now and then": (drip, "{url} did not finish its reply within 0.5 s."),
    "thousands of calls": (
        many_calls,
        "{url} answered with 5,000 calls in one reply. Is it {kind}?",
    ),
    **{
        f"an error page of 50 MB ({code})": (
            lambda event, code=code: status(code, bytes(50 * MEGABYTE)),
            REFUSED_WITH_TOO_MUCH.replace("{code}", str(code)),
        )
        for code in (400, 401, 404, 429, 500, 503)
    },
    "an error page without an end": (
        lambda event: endless(b" " * 60_000, kind="text/html", code=502),
        REFUSED_WITH_TOO_MUCH.replace("{code}", "502"),
    ),
    "an error page that is a bomb": (
        lambda event: bomb(503, "text/html"),
        REFUSED_WITH_TOO_MUCH.replace("{code}", "503"),
    ),
}


def openai(server: Server, **options: Any) -> tuple[HttpBackend, str]:
    return OpenAIBackend("m", server.base_url, KEY, sleep=Sleeps(), **options), "/chat/completions"


def anthropic(server: Server, **options: Any) -> tuple[HttpBackend, str]:
    return AnthropicBackend("m", server.base_url, KEY, sleep=Sleeps(), **options), "/messages"


PROVIDERS = [(openai, OPENAI), (anthropic, ANTHROPIC)]


@pytest.mark.parametrize(("provider", "event"), PROVIDERS, ids=["openai", "anthropic"])
@pytest.mark.parametrize("row", ROWS)
async def test_it_ends_with_one_sentence_and_is_not_asked_again(
    row: str, provider: Any, event: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, sentence = ROWS[row]
    monkeypatch.setattr("quoth.neuro.backends.answers.MOST_EVENTS", 5_000)  # or it would take a while
    with loopback(answer(event)) as server:
        backend, path = provider(server, total=0.5 if row == "a token now and then" else 60.0)
        tracemalloc.start(1)
        try:
            with pytest.raises(ModelError) as caught:
                await backend.complete(said("hi"), on_text=lambda _: None)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            await backend.aclose()
        expected = sentence.replace("{url}", server.base_url + path).replace("{kind}", backend.kind)
        assert str(caught.value) == expected
        assert len(server.requests) == 1
        assert peak < MOST_MEMORY


# Words of the server's that are shown or matched


@pytest.mark.parametrize("code", [400, 500])
@pytest.mark.parametrize(
    "shape",
    [str, lambda words: {"message": words}, lambda words: {"type": words}],
    ids=["str", "said", "type"],
)
async def test_a_complaint_is_cut_before_it_is_cleaned_and_matched(code: int, shape: Any) -> None:
    """The key lies across the cut of what is looked at, behind so many spaces that it would be shown."""
    for place in (3_985, 3_995, 3_999):
        with loopback(status(code, {"error": shape("x" + " " * place + KEY + " y" * 100_000)})) as server:
            backend, _ = openai(server, retries=0)
            with pytest.raises(ModelError) as caught:
                await backend.complete(said("hi"))
            await backend.aclose()
        assert KEY[:5] not in str(caught.value)
        assert len(str(caught.value)) < 500


async def test_a_page_in_place_of_a_reply_is_cut_before_it_is_cleaned() -> None:
    with loopback(status(200, "é".encode() * 3_000_000)) as server:
        backend, path = openai(server)
        with pytest.raises(ModelError) as caught:
            await backend.complete(said("hi"))
        await backend.aclose()
        assert str(caught.value) == (
            f"{server.base_url}{path} answered with text that is not JSON ({'é' * 300}…). "
            "Is it an OpenAI-compatible server?"
        )


# What is not cut short


async def test_a_long_reply_in_small_pieces_is_heard_whole() -> None:
    """What stands around each word in a stream is no part of the reply."""
    event = {"id": "x" * 300, "choices": [{"index": 0, "delta": {"content": "word "}}]}
    data = b"data: %b\n\n" % json.dumps(event).encode()
    end = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    with loopback(lambda handler: chunks(iter([*[data * 1000] * 25, end]))(handler)) as server:
        backend, _ = openai(server)
        completion = await backend.complete(said("hi"), max_tokens=25_000, on_text=lambda _: None)
        await backend.aclose()
    assert completion.text == "word " * 25_000


@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_a_compressed_stream_comes_whole_and_at_once(size: int) -> None:
    event = {"choices": [{"index": 0, "delta": {"content": "é" * 70_000}, "finish_reason": "stop"}]}
    raw = gzip.compress(b"data: %b\n\ndata: [DONE]\n\n" % json.dumps(event, ensure_ascii=False).encode())

    def answer(handler: Handler) -> None:
        pieces = (raw[at : at + size] for at in range(0, len(raw), size))
        chunks(pieces, content_encoding="GZip")(handler)

    with loopback(answer) as server:
        backend, _ = openai(server)
        for _ in range(2):  # the second over the same connection
            assert (await backend.complete(said("hi"), on_text=lambda _: None)).text == "é" * 70_000
        await backend.aclose()


async def test_the_deadline_of_a_reply_covers_its_tries() -> None:
    with loopback(failure(503, "busy")) as server:
        backend = OpenAIBackend("m", server.base_url, KEY, total=0.3, retries=10_000)
        with pytest.raises(ModelError) as caught:
            await backend.complete(said("hi"))
        await backend.aclose()
    assert str(caught.value) == f"{server.base_url}/chat/completions did not finish its reply within 0.3 s."
