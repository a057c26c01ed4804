"""Runs a worker: publishes the offer of its files, follows their changes, and handles signals.

This is the process of a worker: its memory, its signals and the socket for its health. tools/remote/worker.py
runs the calls. Each change of state is reported once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from quoth.agent.worker.assembly import Offer, Reloader
from quoth.tools.call.context import ToolContext
from quoth.tools.catalog.connection import RedisUrl, connected
from quoth.tools.catalog.payload import CatalogError, ForeignCatalog, Key
from quoth.tools.catalog.store import followed, load_catalog, publish_catalog
from quoth.tools.door.door import Door
from quoth.tools.door.execution import brief
from quoth.tools.errors import QuothError, StoreError, UsageError
from quoth.tools.remote.worker import Worker
from quoth.tools.text import number_of

POLL_SECONDS = 0.5  # between two checks of the files


# Reports a change of state: its name, a sentence, and the same as keywords.
Say = Callable[..., None]


class Service:
    """A running worker, from its first catalog to its last call."""

    def __init__(
        self,
        offers: Reloader[Offer],
        door: Callable[[Offer], Door],
        context: ToolContext,
        place: tuple[RedisUrl, Key, str],
        say: Say,
        *,
        takeover: float,
    ) -> None:
        """``place`` is the server, the key and the prefix of the keys in Redis. After ``takeover`` seconds
        other workers take over the calls of a lost worker."""
        self._reloader, self._door, self._say = offers, door, say
        self._url, self._key, self._prefix = place
        self._worker = Worker(
            door(self._offer),
            url=self._url,
            key=self._key,
            prefix=self._prefix,
            context=context,
            takeover=takeover,
            tell=self._noticed,
        )
        self._version = 0
        self._published = ""  # the hash of the last published tools
        self._left = ""  # why the calls are left to other workers
        self._alone = 0.0  # seconds without any of these workers
        self._takeover = takeover
        self._unread = ""  # why the catalog cannot be read
        self._trouble = ""
        self._at_terminal = os.isatty(0)
        self._ending = asyncio.Event()
        self._at_once = asyncio.Event()
        self._hung_up = asyncio.Event()

    @property
    def _offer(self) -> Offer:
        return self._reloader.made

    async def run(self, jobs: int, health: str | None = None) -> bool:
        """Work until a signal comes, with ``jobs`` calls at once, and report the state at the address
        ``health``, if it is given. Returns whether every call had ended by then. Raises StoreError if Redis
        cannot be used at the start."""
        await self._publish()
        async with contextlib.AsyncExitStack() as stack:
            at = await stack.enter_async_context(health_server(health, self.state)) if health else ""
            stack.enter_context(self._heard())
            work = asyncio.create_task(self._worker.run(jobs, self._ending))
            followers = [asyncio.create_task(self._watch()), asyncio.create_task(self._follow())]
            more = f" Its health is at {at}." if at else ""
            self._say(
                "started", self._told("Started with") + more, **self._data(), **({"health": at} if at else {})
            )
            try:
                done = await _first(work, self._at_once)
                if not done:
                    work.cancel()
                    await asyncio.wait([work])
                if done or not work.cancelled():
                    work.result()
            finally:
                for one in followers:
                    one.cancel()
        self._say(
            "ended", "Ended." if done else "Ended at once. Another worker takes over the running calls."
        )
        return done

    def state(self) -> dict[str, Any]:
        """The answer of /ready."""
        why = "it is ending" if self._ending.is_set() else self._trouble
        more = {"why": why} if why else {}
        return {"ready": not why, **more, "running": self._worker.running, **self._data()}

    # The catalog

    async def _publish(self) -> None:
        """Publish the offered tools, unless the catalog already contains exactly these: every caller reads
        each message about a new catalog."""
        table = self._offer.table
        async with connected(self._url) as redis:
            try:
                there = await load_catalog(redis, key=self._key, prefix=self._prefix)
            except ForeignCatalog:
                raise
            except CatalogError:  # altered, or of another version of quoth: replace it
                there = None
            if there is not None and there["tools"] == table.entries:
                self._version = there["version"]
            else:
                self._version, _ = await publish_catalog(redis, table, key=self._key, prefix=self._prefix)
        self._published = table.schema_hash

    async def _reload(self, *, asked: bool) -> None:
        """Run the files again, publish their offer, and use it from the next call on. Running calls keep the
        old tools."""
        before, old = self._version, self._offer.table.entries
        try:
            offer = await asyncio.to_thread(self._reloader.reload)
        except Exception as error:  # people's files may raise anything
            why = str(error) if isinstance(error, QuothError) else f"The files cannot be run: {brief(error)}."
            self._say("refused", f"{why}\nThe tools were not changed.", message=why)
            return
        try:
            if asked or offer.table.entries != old:
                await self._publish()
                self._left, self._worker.paused = "", False
        finally:  # before it is published, no caller knows the new tools
            self._worker.door = self._door(offer)
        same = " Nothing that callers see has changed." if self._version == before else ""
        self._say("reloaded", self._told("Reloaded:") + same, **self._data())

    async def _follow(self) -> None:
        """Follow the catalog. If Redis has lost it, publish it again. If another worker has published other
        tools since, leave the calls to that worker."""
        async for there in followed(self._url, self._key, self._prefix, self._looked):
            mine = self._offer.table.schema_hash
            self._left = ""
            if there is not None and there["schema_hash"] != mine == self._published:
                self._left = (
                    f"Another worker has published other tools, version {there['version']}, and gets the"
                    " calls now. Give both the same files, or send this one SIGHUP to publish its tools."
                )
            elif there is None or there["schema_hash"] != mine:
                with contextlib.suppress(StoreError):  # the server is lost again, which is reported elsewhere
                    await self._publish()
                    self._say("published", self._told("Published again:"), **self._data())
                continue
            self._worker.paused = bool(self._left)
            self._version = there["version"]
            self._looked(None)

    def _looked(self, error: StoreError | None) -> None:
        """Note the error of reading the catalog, or None."""
        self._unread = str(error) if error is not None else ""
        self._see()

    def _noticed(self, sentence: str) -> None:
        """Note a message of the worker: a fault of Redis, its end, or anything else."""
        if not self._see() and not self._worker.trouble:
            self._say("note", sentence, message=sentence)

    def _see(self) -> bool:
        """Report that this worker waits, or is back. Returns whether there was a report."""
        why = self._unread or self._worker.trouble or self._left
        before, self._trouble = self._trouble, why
        if why and why != before and (not before or why == self._left):
            self._say("waiting", f"{why} This worker waits until that is fixed.", message=why)
            return True
        if before and not why:
            self._say("back", self._told("Back at work:"), **self._data())
        return bool(before or why)

    async def _watch(self) -> None:
        """Follow the files, and SIGHUP."""
        while not self._ending.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hung_up.wait(), POLL_SECONDS)
            asked = self._hung_up.is_set()
            self._hung_up.clear()
            if asked or self._reloader.changed():
                with contextlib.suppress(StoreError):  # published when Redis is back
                    await self._reload(asked=asked)
            if self._left:
                with contextlib.suppress(StoreError):
                    await self._come_back()

    async def _come_back(self) -> None:
        """Publish this worker's tools again if the workers with other tools are gone: such a worker may have
        been started by mistake."""
        self._alone = 0.0 if await self._worker.others() else self._alone + POLL_SECONDS
        if self._alone >= self._takeover:
            await self._publish()
            self._left, self._worker.paused, self._alone = "", False, 0.0
            self._say("published", self._told("Published again:"), **self._data())
            self._see()

    # Signals

    @contextlib.contextmanager
    def _heard(self) -> Iterator[None]:
        """SIGHUP loads the files again, unless its terminal is gone; SIGTERM and SIGINT end the worker, the
        second one at once."""
        loop = asyncio.get_running_loop()
        handlers = {signal.SIGHUP: self._hangs_up, signal.SIGTERM: self._end, signal.SIGINT: self._end}
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)

    def _hangs_up(self) -> None:
        if self._at_terminal and not os.isatty(0):  # its window was closed
            self._end()
        else:
            self._hung_up.set()

    def _end(self) -> None:
        if self._ending.is_set():
            self._at_once.set()
            return
        self._ending.set()
        running = self._worker.running
        what = f"Ending after {number_of(running, 'running call')}; a second signal ends the worker at once."
        self._say("draining", what if running else "Ending.", running=running)

    # Messages

    def _data(self) -> dict[str, Any]:
        return {
            "tools": len(self._offer.table),
            "version": self._version,
            "hash": self._offer.table.schema_hash,
        }

    def _told(self, begin: str) -> str:
        table = self._offer.table
        what = f"{number_of(len(table), 'tool')}, version {self._version}, hash {table.schema_hash[:12]}"
        return f"{begin} {what}, at {self._url.shown}."


async def _first(work: asyncio.Task[Any], event: asyncio.Event) -> bool:
    """Wait for the work or the event. Returns whether the work was done first."""
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait([work, waiting], return_when=asyncio.FIRST_COMPLETED)
        return work.done()
    finally:
        waiting.cancel()


LOOPBACK = "127.0.0.1"
PATIENCE = 5.0  # seconds for the request
REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}

State = Callable[[], Mapping[str, Any]]  # with ``ready`` and other fields


@contextlib.asynccontextmanager
async def health_server(address: str, state: State) -> AsyncIterator[str]:
    """In this context, answer at ``PORT`` or ``HOST:PORT``; yields the URL. Raises UsageError."""
    host, port = _host_and_port(address)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                request = await reader.readline()
                while (await reader.readline()).strip():
                    pass
                writer.write(_answer(request, state))
                await writer.drain()
        writer.close()

    try:
        server = await asyncio.start_server(answer, host, port, limit=8192)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else "unknown host"
        raise UsageError(f"The worker cannot report its health at {address}: {why}.") from None
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
    finally:
        server.close()


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--health takes a port, or HOST:PORT, such as 8080, not {address}.")
    return host.strip("[]") or LOOPBACK, int(port)


def _answer(request: bytes, state: State) -> bytes:
    """The response to the first line of a request."""
    method, _, rest = request.decode("latin-1").partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    told: Mapping[str, Any]
    if method not in ("GET", "HEAD"):
        code, told = 405, {"error": "only GET and HEAD are answered"}
    elif path == "/live":
        code, told = 200, {"live": True}
    elif path == "/ready":
        told = state()
        code = 200 if told["ready"] else 503
    else:
        code, told = 404, {"error": "there are /live and /ready"}
    body = json.dumps(dict(told)).encode() + b"\n"
    head = (
        f"HTTP/1.1 {code} {REASONS[code]}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if method == "HEAD" else body)


THREAD = 8  # MB that a thread reserves
SPARE = 64  # MB for the calls themselves


def limit_memory(megabytes: str, threads: int) -> None:
    """Limit the memory of this process, with ``threads`` threads at once; its child processes have the same
    limit. Raises UsageError for a limit that leaves no memory for calls."""
    if not megabytes.isdecimal():
        raise UsageError(f"--memory of a worker takes a number of megabytes, such as 2000, not {megabytes}.")
    needed = _reserved() + THREAD * threads + SPARE
    if int(megabytes) < needed:
        raise UsageError(
            f"--memory {megabytes} is too low: with these tools and {threads} calls at once the worker"
            f" needs {needed} MB of address space."
        )
    most = int(megabytes) << 20
    try:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (ValueError, OSError, OverflowError) as error:
        raise UsageError(f"The memory cannot be limited to {megabytes} MB here: {error}.") from None


def _reserved() -> int:
    """MB of address space of this process; if the system does not report that, of memory."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return pages * resource.getpagesize() >> 20
