"""The stdio transport: a server as a program of its own, under a keeper that ends all its descendants.

Used instead of the SDK's: a line has a limit, stdout that is not a message goes to the log, and no process
outlives quoth, even after ``kill -9``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from quoth.tools.call.redaction import SENT, SHORTEST_KEY, from_environment, sounds_secret
from quoth.tools.mcp.config import OWN_NAME, ServerConfig
from quoth.tools.mcp.messages import MAX_MESSAGE, completed, unreadable
from quoth.tools.mcp.server_log import ServerLog
from quoth.tools.shell.running import CHUNK, PIPE, Running
from quoth.tools.storage.paths import private_folder, state_dir

INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
GRACE = 2.0  # seconds for a server to end once its stdin is closed
MOMENT = 1.0  # seconds for a process to end once its stdout is closed

Messages = MemoryObjectReceiveStream[SessionMessage | Exception]
Requests = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def stdio(
    config: ServerConfig,
    root: Path,
    environ: Mapping[str, str],
    log: ServerLog,
    on_end: Callable[[str], None],
) -> AsyncIterator[tuple[Messages, Requests]]:
    """Start a server, whose variables are expanded, and connect to it. ``on_end`` gets the reason once the
    server ends or must be ended. Raises OSError and ValueError if it cannot be started."""
    env = {name: environ[name] for name in INHERITED if name in environ} | dict(config.env)
    running = await Running.start(
        (config.command, *config.args),
        cwd=folder_of(config, root),
        env=env,
        stdin=PIPE,
        stderr=PIPE,
        alone=True,
    )
    to_us, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    requests, to_server = anyio.create_memory_object_stream[SessionMessage](0)
    reader = _LineReader(running, to_us, log)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(reader.read, on_end)
            group.start_soon(_write, running, to_server)
            group.start_soon(_log, running, log)
            try:
                yield messages, requests
            finally:
                messages.close()  # from now on, stdout is read and dropped
                requests.close()
                await _end(running)
                group.cancel_scope.cancel()
    finally:
        await running.put_away()
        log.end()
        for stream in (to_us, messages, requests, to_server):
            stream.close()


def log_of(config: ServerConfig, path: Path) -> ServerLog:
    """The log of a server, whose variables are expanded. From now on, the secrets that it is given are
    removed there, and from what it answers."""
    named = [
        value
        for name, value in config.env.items()
        if sounds_secret(name) and len(value) >= SHORTEST_KEY  # a shorter one is found in ordinary words
    ]
    given = [*from_environment(config.args)]
    SENT.learn(*named, *given)
    return ServerLog(path, [*config.env.values(), *given])


class _LineReader:
    """Splits stdout into messages."""

    def __init__(
        self, running: Running, to_us: MemoryObjectSendStream[SessionMessage | Exception], log: ServerLog
    ) -> None:
        self._running, self._to_us, self._log = running, to_us, log
        self._line = bytearray()

    async def read(self, on_end: Callable[[str], None]) -> None:
        stdout = self._running.process.stdout
        assert stdout is not None
        reason = ""
        while chunk := await stdout.read(CHUNK):
            if not reason and (reason := await self._take(chunk)):
                on_end(reason)
                self._running.stop()
        if not reason:
            on_end(await self._why())
        self._to_us.close()  # answers every open request

    async def _take(self, chunk: bytes) -> str:
        """Deliver the messages that ``chunk`` completes. Returns a reason to end the server."""
        begin = 0
        while (end := chunk.find(b"\n", begin)) >= 0:
            line = bytes(self._line) + chunk[begin:end] if self._line else chunk[begin:end]
            self._line.clear()
            begin = end + 1
            await self._deliver(line)
        self._line += chunk[begin:]
        if len(self._line) > MAX_MESSAGE:
            self._line = bytearray()
            return f"sent a message of more than {MAX_MESSAGE // 1_000_000} MB"
        return ""

    async def _deliver(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError as error:
            self._log.write(b"[stdout] " + line)
            failure = unreadable(line, error)
            if failure is None:
                return
            message = failure
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it is being closed
            await self._to_us.send(completed(SessionMessage(message)))

    async def _why(self) -> str:
        """Why stdout has ended."""
        try:
            code = await asyncio.wait_for(self._running.ended(), MOMENT)
        except TimeoutError:
            self._running.stop()
            return "closed its stdout"
        except OSError as error:
            return f"could not be started: {error.strerror}"
        return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def folder_of(config: ServerConfig, root: Path) -> Path:
    """The working folder of a server. Only the workspace's own servers start in the workspace; any other
    starts in an empty folder, unless its ``cwd`` names one: else a file of the workspace, such as ``.npmrc``
    or ``uv.toml``, could decide which program is run. Raises OSError and UsageError."""
    if config.cwd or config.source == OWN_NAME:
        return root / Path(config.cwd).expanduser()
    folder = state_dir() / "mcp" / "folder"
    private_folder(folder)
    return folder


async def _write(running: Running, to_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
    stdin = running.process.stdin
    assert stdin is not None
    with suppress(OSError):  # it has ended, or closed its stdin: the reader notices the end
        async for sent in to_server:
            stdin.write(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            await stdin.drain()
    to_server.close()


async def _log(running: Running, log: ServerLog) -> None:
    stderr = running.process.stderr
    assert stderr is not None
    while chunk := await stderr.read(CHUNK):
        log.feed(chunk)


async def _end(running: Running) -> None:
    """Close its stdin, then send SIGTERM, each with a moment to end; the rest is killed later."""
    stdin = running.process.stdin
    assert stdin is not None
    for step, seconds in ((stdin.close, GRACE), (running.request_end, MOMENT)):
        step()
        with suppress(TimeoutError):
            await asyncio.wait_for(running.process.wait(), seconds)
            return
