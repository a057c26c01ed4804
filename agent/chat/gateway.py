"""A gateway: passes lines between clients and chats, over standard streams or a unix socket.

lines.py parses the lines, chats.py acts on them.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import stat
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from quoth.agent.chat.chats import WAITING, Chats
from quoth.agent.chat.inbox import Inbox
from quoth.agent.chat.lines import ChatMessage, LineError, Outgoing, Splitter, read_line
from quoth.agent.run.runs import Runs
from quoth.agent.terminal.input import CHUNK, StdinLines
from quoth.agent.terminal.output import complain
from quoth.tools.errors import QuothError, UsageError
from quoth.tools.storage.database import Store
from quoth.tools.storage.file_lock import hold

STOP_SECONDS = 30.0  # to finish current replies after a signal
UNREAD = 16_000_000  # maximum unread bytes of a client; beyond that it is disconnected
PIPE_BYTES = 4096  # bytes that a writable pipe accepts without blocking
ENDED, GONE, BROKEN_OFF = "ended", "gone", "broken off"  # how a gateway ends


class Client:
    """A sender of lines. ``chats`` are the chats whose lines it receives: those it wrote to, or all
    (None)."""

    hears_all = False

    def __init__(self) -> None:
        self.chats: set[str] = set()

    async def send(self, line: bytes) -> bool:
        """Send a line; return whether it was sent."""
        raise NotImplementedError


class Streams(Client):
    """The client at the standard streams. It receives the lines of every chat."""

    hears_all = True

    def __init__(self, gone: Callable[[], None], out: int = 1) -> None:
        super().__init__()
        self._gone = gone
        self._out = out
        self._turn = asyncio.Lock()

    async def send(self, line: bytes) -> bool:
        async with self._turn:
            try:
                for start in range(0, len(line), PIPE_BYTES):
                    await self._writable()
                    os.write(self._out, line[start : start + PIPE_BYTES])
            except OSError as error:
                if error.errno != errno.EPIPE:
                    complain(f"Standard output cannot be written: {error.strerror}.")
                self._gone()
                return False
            return True

    async def _writable(self) -> None:
        """Wait until the reader has room, as a file always has. Other chats continue meanwhile."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        try:
            loop.add_writer(self._out, ready.set)
        except PermissionError:
            return
        try:
            await ready.wait()
        finally:
            loop.remove_writer(self._out)


class SocketClient(Client):
    """A client at the socket."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        super().__init__()
        self._writer = writer

    async def send(self, line: bytes) -> bool:
        transport = self._writer.transport
        if transport.is_closing():
            return False
        if transport.get_write_buffer_size() > UNREAD:
            transport.abort()
            return False
        self._writer.write(line)
        return not transport.is_closing()  # closed at once if the client is gone


class Gateway:
    """The gateway of an agent's chats, a context manager. A workspace has at most one gateway."""

    def __init__(
        self,
        runs: Runs,
        store: Callable[[], Store],
        *,
        approvers: Collection[str] = (),
        waiting: int = WAITING,
        stop_seconds: float = STOP_SECONDS,
    ) -> None:
        self._store = store
        self._clients: set[Client] = set()
        self._ending = asyncio.Event()  # stop reading
        self._at_once = asyncio.Event()
        self._how = ENDED
        self._stop_seconds = stop_seconds
        self._chats = Chats(runs, Inbox(store), self._send, approvers=approvers, waiting=waiting)

    async def stdio(self) -> str:
        """Serve the client at the standard streams until all its lines are read and answered, or until a
        signal. Returns ENDED, GONE or BROKEN_OFF."""
        async with self._serving():
            client = Streams(self._reader_gone)
            self._clients.add(client)
            await self._chats.hand_over(client.send)
            self._chats.start()
            if await self._before_end(self._read(client, StdinLines().read_some)):
                await self._before_end(self._chats.finish())
        return self._how

    async def listen(self, path: str) -> str:
        """Serve clients at a unix socket that only this user can open, until a signal."""
        async with self._serving():
            with _socket(path) as ours:
                server = await asyncio.start_unix_server(self._called, sock=ours)
                complain(f"Listening at {path}.")
                self._chats.start()
                await self._ending.wait()
                server.close()
        return self._how

    @contextlib.asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        """Lock the workspace; at the end, finish the current messages."""
        loop = asyncio.get_running_loop()
        refusal = "Another gateway answers the chats of this workspace."
        with hold(f"chats {self._store().path}", refusal):
            for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(ending, self._told_to_end)
            watch = asyncio.ensure_future(self._chats.watch())
            try:
                yield
                stopping = asyncio.ensure_future(self._chats.stop(self._stop_seconds))
                if not await _first(stopping, self._at_once) or not stopping.result():
                    self._how = BROKEN_OFF
                    await self._chats.stop(0)
            finally:
                watch.cancel()

    def _told_to_end(self) -> None:
        if self._ending.is_set():
            self._at_once.set()
            return
        complain("Finishing the current replies. A second signal ends the gateway at once.")
        self._chats.begin_no_more()
        self._ending.set()

    def _reader_gone(self) -> None:
        """The reader is gone: keep unanswered messages for the next start."""
        self._how = GONE
        self._ending.set()

    async def _before_end(self, work: Any) -> bool:
        """Whether ``work`` finished before the gateway was ended."""
        return await _first(asyncio.ensure_future(work), self._ending)

    async def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = SocketClient(writer)
        self._clients.add(client)
        try:
            await self._before_end(self._read(client, lambda: reader.read(CHUNK)))
            await self._chats.finish(client.chats)  # a client may still read after its last line
        finally:
            self._clients.discard(client)
            writer.close()

    async def _read(self, client: Client, some: Callable[[], Any]) -> None:
        lines, data = Splitter(), b"-"
        while data:
            try:
                data = await some()
            except OSError:  # the connection was lost
                data = b""
            for line in lines.feed(data) if data else lines.end():
                await self._take(client, line)
                await asyncio.sleep(0)  # let the chats run between lines

    async def _take(self, client: Client, line: bytes) -> None:
        """Act on a line of a client; answer a faulty line at once with an error."""
        try:
            said = read_line(line)
        except LineError as error:
            await client.send(Outgoing(error.id, error.chat, "error", str(error)).to_line())
            return
        try:
            if said.chat not in client.chats:
                client.chats.add(said.chat)
                await self._chats.hand_over(client.send, said.chat)
            answer = self._chats.accept(said) if isinstance(said, ChatMessage) else self._chats.decide(said)
        except QuothError as error:
            answer = Outgoing(said.id, said.chat, "error", f"The line was not accepted: {error}")
        if answer is not None:
            await client.send(answer.to_line())

    async def _send(self, line: Outgoing) -> bool:
        text, took = line.to_line(), False
        for client in list(self._clients):
            if client.hears_all or line.chat in client.chats:
                took = await client.send(text) or took
        return took


async def _first(work: asyncio.Future[Any], event: asyncio.Event) -> bool:
    """Wait for the work or the event, and return whether the work finished first. Cancels unfinished work."""
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait([work, waiting], return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
            return True
        work.cancel()
        return False
    finally:
        waiting.cancel()


@contextlib.contextmanager
def _socket(path: str) -> Iterator[socket.socket]:
    """A context with a socket at ``path`` that only this user can open. Replaces the socket of a dead
    process. Raises UsageError."""
    place = Path(path)
    with contextlib.suppress(OSError):
        if not stat.S_ISSOCK(place.lstat().st_mode):
            raise UsageError(f"{path} exists and is not a socket.")
        if _is_answered(path):
            raise UsageError(f"Another process listens at {path}.")
        place.unlink()
    ours = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        ours.bind(path)
    except OSError as error:
        ours.close()
        why = error.strerror or str(error)  # Python refuses a path that is too long
        raise UsageError(f"quoth cannot listen at {path}: {why}.") from None
    finally:
        os.umask(before)
    try:
        yield ours
    finally:
        with contextlib.suppress(OSError):
            place.unlink()


def _is_answered(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
        return True
