"""The gateway at a socket, on a host that answers from a function: who hears what, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from chats import Host, echo
from sentences import IS_LONGER_THAN, THE_LINE_HAS_NO_TEXT
from words import complaint

from quoth.agent.chat.gateway import BROKEN_OFF, ENDED, Gateway
from quoth.tools.errors import BusyError, UsageError
from quoth.tools.storage.database import Store


class Caller:
    """A client at the socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, text: str = "Hello", id: int | str = 1, chat: str = "7", user: str = "ann") -> None:
        said = {"id": id, "user": user, "chat": chat, "text": text}
        self._writer.write(json.dumps(said).encode() + b"\n")

    def raw(self, line: bytes) -> None:
        self._writer.write(line)

    async def hears(self) -> tuple[Any, str]:
        said = json.loads(await self._reader.readline())
        return said["id"], said["text"]

    async def hears_the_end(self) -> bool:
        return await self._reader.read() == b""

    def sends_no_more(self) -> None:
        self._writer.write_eof()

    async def leaves(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


@contextlib.asynccontextmanager
async def at(
    path: Path, store: Store, answer: Callable[[str], Awaitable[str]] = echo, **more: Any
) -> AsyncIterator[tuple[Callable[[], Awaitable[Caller]], asyncio.Task[str]]]:
    """A gateway at the socket: what connects to it, and the gateway at its work."""
    gateway = Gateway(Host(answer), lambda: store, **more)
    serving = asyncio.ensure_future(gateway.listen(str(path)))

    async def call() -> Caller:
        return Caller(*await asyncio.open_unix_connection(str(path), limit=1 << 22))

    while not path.exists() and not serving.done():
        await asyncio.sleep(0.001)
    try:
        yield call, serving
    finally:
        if not serving.done():
            os.kill(os.getpid(), signal.SIGTERM)
            await serving


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "c.sock"


def test_a_client_hears_the_chats_it_has_sent_to(path: Path, store: Store) -> None:
    async def story() -> None:
        async with at(path, store) as (call, _):
            ann, ben = await call(), await call()
            ann.send("one", 1, "7")
            assert await ann.hears() == (1, "one!")
            ben.send("two", 2, "8", "ben")
            assert await ben.hears() == (2, "two!")
            ben.send("three", 3, "7", "ben")
            assert [await ann.hears(), await ben.hears()] == [(3, "three!")] * 2

    asyncio.run(story())


def test_only_its_user_can_open_the_socket_and_it_is_gone_at_the_end(path: Path, store: Store) -> None:
    async def story() -> None:
        async with at(path, store) as (_, serving):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert (serving.result(), path.exists()) == (ENDED, False)

    asyncio.run(story())


def test_a_mistake_is_told_to_its_client_and_the_gateway_goes_on(path: Path, store: Store) -> None:
    async def story() -> None:
        async with at(path, store) as (call, _):
            ann = await call()
            ann.raw(b'{"id": 9, "user": "ann"\n' + b"x" * 1_000_001 + b"\n" + b'{"id": 9, "chat": "7"}\n')
            ann.send("fine", 1)
            assert [await ann.hears() for _ in range(4)] == [
                (None, "The line is not JSON: expecting ',' delimiter, at character 24."),
                (None, f"The line {IS_LONGER_THAN} 1,000,000 bytes."),
                (9, f"{THE_LINE_HAS_NO_TEXT}."),
                (1, "fine!"),
            ]

    asyncio.run(story())


def test_who_sends_no_more_still_hears_and_is_let_go(path: Path, store: Store) -> None:
    async def story() -> None:
        async with at(path, store) as (call, _):
            ann = await call()
            ann.send("one", 1)
            ann.send("two", 2)
            ann.sends_no_more()
            assert [await ann.hears(), await ann.hears()] == [(1, "one!"), (2, "two!")]
            assert await ann.hears_the_end()

    asyncio.run(story())


def test_who_comes_back_gets_what_was_said_meanwhile(path: Path, store: Store) -> None:
    async def story() -> None:
        go_on = asyncio.Event()

        async def slowly(text: str) -> str:
            await go_on.wait()
            return f"{text}!"

        async with at(path, store, slowly) as (call, _):
            ann = await call()
            ann.send("one", 1)
            while not store.execute("SELECT 1 FROM inbox"):
                await asyncio.sleep(0.001)
            await ann.leaves()
            go_on.set()
            while not store.execute("SELECT 1 FROM inbox WHERE lines != ''"):
                await asyncio.sleep(0.001)
            ann = await call()
            ann.send("two", 2)
            assert [await ann.hears(), await ann.hears()] == [(1, "one!"), (2, "two!")]

    asyncio.run(story())


@pytest.mark.parametrize("how", ["within its time", "too slow", "a second signal"])
def test_a_signal_ends_it_after_the_replies_in_work(path: Path, store: Store, how: str) -> None:
    async def story() -> None:
        go_on = asyncio.Event()

        async def slowly(text: str) -> str:
            await go_on.wait()
            return f"{text}!"

        seconds = 0.01 if how == "too slow" else 60
        async with at(path, store, slowly, stop_seconds=seconds) as (call, serving):
            ann = await call()
            ann.send("in work", 1)
            ann.send("waits", 2)
            while len(store.execute("SELECT 1 FROM inbox")) < 2:
                await asyncio.sleep(0.001)
            os.kill(os.getpid(), signal.SIGTERM)
            while path.exists():
                await asyncio.sleep(0.001)
            if how == "within its time":
                go_on.set()
                assert await ann.hears() == (1, "in work!")
            if how == "a second signal":
                os.kill(os.getpid(), signal.SIGTERM)
            assert await serving == (ENDED if how == "within its time" else BROKEN_OFF)
            assert await ann.hears_the_end()
        left = store.execute("SELECT text FROM inbox WHERE state = 'accepted' ORDER BY seq")
        assert left == ([("waits",)] if how == "within its time" else [("in work",), ("waits",)])

    asyncio.run(story())


def test_there_is_one_gateway_of_a_workspace(tmp_path: Path, path: Path, store: Store) -> None:
    async def story() -> None:
        async with at(path, store):
            async with at(tmp_path / "other.sock", store) as (_, other):
                pass
            said = complaint(BusyError, other.result)
            assert said == "Another gateway answers the chats of this workspace."

    asyncio.run(story())


def test_a_place_that_is_taken_is_left_alone(path: Path, store: Store) -> None:
    def refused(place: Path) -> str:
        gateway = Gateway(Host(echo), lambda: store)
        return complaint(UsageError, lambda: asyncio.run(gateway.listen(str(place))))

    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        assert refused(path) == f"Another process listens at {path}."
    assert path.exists()
    text = path.with_name("notes.txt")
    text.write_text("mine")
    assert refused(text) == f"{text} exists and is not a socket."
    assert text.read_text() == "mine"
    missing = path.with_name("none") / "c.sock"
    assert refused(missing) == f"quoth cannot listen at {missing}: No such file or directory."
    long = path.with_name("x" * 200)
    assert refused(long) == f"quoth cannot listen at {long}: AF_UNIX path too long."


def test_a_socket_that_a_dead_process_left_is_replaced(path: Path, store: Store) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))

    async def story() -> None:
        async with at(path, store) as (call, _):
            await asyncio.sleep(0.01)
            ann = await call()
            ann.send("one", 1)
            assert await ann.hears() == (1, "one!")

    asyncio.run(story())


def test_a_client_that_reads_nothing_holds_up_nobody(
    path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.agent.chat.gateway.UNREAD", 100_000)

    async def long(text: str) -> str:
        return "x" * 300_000

    async def story() -> None:
        async with at(path, store, long) as (call, _):
            deaf, ann = await call(), await call()
            for number in range(5):
                deaf.send("Say much", number, "8", "ben")
            ann.send("Say much", 1)
            assert await ann.hears() == (1, "x" * 300_000)
            while len(store.execute("SELECT 1 FROM inbox WHERE state = 'answered'")) < 6:
                await asyncio.sleep(0.001)
            assert store.execute("SELECT count(*) > 0 FROM inbox WHERE lines != ''") == [(1,)]

    asyncio.run(story())
