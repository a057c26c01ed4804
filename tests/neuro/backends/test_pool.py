"""The connections that back ends share: who opens and closes them, and who gets a place in turn.

Nothing here is decided by how long something took.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import httpx
import pytest
from loopback import Handler, Server, loopback, said, status
from server_speech import ANTHROPIC, OPENAI

from quoth.neuro.backends import request
from quoth.neuro.backends.base import ModelError, RequestOptions
from quoth.neuro.backends.http import HttpBackend


@pytest.fixture
def server() -> Iterator[Server]:
    with loopback(OPENAI.reply()) as server:
        yield server


def backend_for(server: Server) -> HttpBackend:
    return OPENAI.backend(server.base_url)


async def ask(backend: HttpBackend, words: str = "hi", seconds: float | None = None) -> str:
    return (await backend.complete(said(words), options=RequestOptions(seconds=seconds))).text


class Gate:
    """A server that answers nobody before it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()

    def __call__(self, handler: Handler) -> None:
        self.opened.wait(60)
        OPENAI.reply()(handler)


async def until_asked(server: Server, times: int) -> None:
    while len(server.requests) < times:
        await asyncio.sleep(0.005)


async def test_back_ends_share_connections_and_the_last_closes_them(server: Server) -> None:
    first, second = backend_for(server), backend_for(server)
    assert await ask(first) == await ask(second) == "hello"
    assert len(set(server.callers)) == 1
    await first.aclose()
    await first.aclose()
    assert await ask(second) == "hello"
    assert len(set(server.callers)) == 1
    await second.aclose()
    third = backend_for(server)
    await ask(third)
    assert len(set(server.callers)) == 2
    await third.aclose()


async def test_a_way_with_other_certificates_is_another(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = backend_for(server), backend_for(server)
    await ask(first)
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    await ask(second)
    assert len(set(server.callers)) == 2
    await first.aclose()
    await second.aclose()


async def test_a_connection_that_nobody_uses_is_closed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = backend_for(server)

    async def two() -> int:
        """How many connections there were once two more requests have been made at once."""
        gate = Gate()
        server.answers, before = [gate], len(server.requests)
        asking = [asyncio.create_task(ask(backend)) for _ in range(2)]
        await until_asked(server, before + 2)
        gate.opened.set()
        await asyncio.gather(*asking)
        return len(set(server.callers))

    assert (await two(), await two()) == (2, 2)
    monkeypatch.setattr(request, "KEPT", 0.0)
    await ask(backend)
    assert await two() == 3
    await backend.aclose()


@pytest.mark.parametrize("places", [1, 2])
async def test_places_are_given_in_turn(server: Server, monkeypatch: pytest.MonkeyPatch, places: int) -> None:
    monkeypatch.setattr(request, "PLACES", places)
    gate = Gate()
    server.answers = [gate]
    backends = [backend_for(server), backend_for(server)]
    asking = [asyncio.create_task(ask(backends[n % 2], str(n))) for n in range(8)]
    await until_asked(server, places)
    await asyncio.sleep(0.05)
    assert len(server.requests) == places
    gate.opened.set()
    assert await asyncio.gather(*asking) == ["hello"] * 8
    asked = [server.asked(place)["messages"][0]["content"] for place in range(8)]
    assert sorted(asked[:places]) == list("01"[:places])
    if places == 1:  # of two that are on the way, either arrives first
        assert asked == list("01234567")
    for backend in backends:
        await backend.aclose()


async def test_to_wait_for_a_place_is_not_to_wait_for_the_server(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request, "PLACES", 1)
    gate = Gate()
    server.answers = [gate]
    first, second = backend_for(server), OPENAI.backend(server.base_url, timeout=0.02)
    asking = asyncio.create_task(ask(first))
    await until_asked(server, 1)
    with pytest.raises(ModelError) as raised:
        await ask(second, seconds=0.1)
    assert str(raised.value) == (
        f"No request was sent to {server.base_url}/chat/completions within 0.1 s: "
        "100 other requests of this process were in progress there all the time."
    )
    gate.opened.set()
    assert await asking == "hello"
    assert len(server.requests) == 1
    for backend in (first, second):
        await backend.aclose()


async def test_who_gives_up_leaves_the_place_to_the_next(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request, "PLACES", 1)
    gate = Gate()
    server.answers = [gate, OPENAI.reply()]
    backend = backend_for(server)
    first, second, third = (asyncio.create_task(ask(backend, name)) for name in ("a", "b", "c"))
    await until_asked(server, 1)
    for task in (second, first):  # one that waits, and one that is under way
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert await third == "hello"
    gate.opened.set()
    await backend.aclose()


async def test_servers_do_not_wait_for_each_other(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "PLACES", 1)
    gate = Gate()
    server.answers = [gate]
    slow = backend_for(server)
    asking = asyncio.create_task(ask(slow))
    await until_asked(server, 1)
    with loopback(ANTHROPIC.reply()) as other:
        quick = ANTHROPIC.backend(other.base_url)
        assert await ask(quick) == "hello"
        await quick.aclose()
    gate.opened.set()
    assert await asking == "hello"
    await slow.aclose()


async def test_a_retry_waits_without_a_place(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "PLACES", 1)
    server.answers = [status(503), OPENAI.reply()]
    other = backend_for(server)

    async def meanwhile(_: float) -> None:
        assert await ask(other) == "hello"

    backend = OPENAI.backend(server.base_url, sleep=meanwhile)
    assert await ask(backend) == "hello"
    for one in (backend, other):
        await one.aclose()


async def test_the_last_free_connection_may_be_taken_while_an_old_one_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closes, closed = asyncio.Event(), asyncio.Event()

    class Slow(httpx.AsyncBaseTransport):
        async def aclose(self) -> None:
            closes.set()
            await closed.wait()

    async def make() -> httpx.AsyncBaseTransport:
        return Slow()

    url = httpx.URL("http://127.0.0.1/")
    ours = request.Pool(make, (False, "", "", ""))
    async with ours.place(url), ours.place(url):
        pass
    monkeypatch.setattr(request, "KEPT", 0.0)

    async def use() -> None:
        async with ours.place(url):
            pass

    using = asyncio.create_task(use())
    await closes.wait()
    async with ours.place(url):
        closed.set()
        await using
    await ours.leave()
