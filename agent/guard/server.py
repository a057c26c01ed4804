"""A guard that keeps running: answers hooks on a socket that only its user can open, so that a hook need not
start a process of Python with all that a judgement needs.

A request is the agent's name, a line feed and the input of the hook, until the client closes its side. The
answer begins with the line ``answer``, so that a guard that was killed has not answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import stat
from collections.abc import Callable
from pathlib import Path

from quoth.agent.guard.formats import FORMATS, OWN_SECONDS
from quoth.agent.guard.hook import LATE
from quoth.agent.guard.judging import MOST_BYTES, GuardSettings, answer, denial
from quoth.tools.errors import UsageError

AT_ONCE = 32  # requests that are judged at the same time; later ones wait for their turn
LONGEST_NAME = 100


async def serve(path: Path, options: GuardSettings, ready: Callable[[], None]) -> None:
    """Answer requests until SIGINT or SIGTERM; ``ready`` is called once the socket is open. Raises
    UsageError."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(OWN_SECONDS + 1):
                await _answer_one(reader, writer, options, turns)
        except (OSError, TimeoutError):
            pass  # a client without an answer denies
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    opened = _listening(path)
    mine = _inode(path)
    server = await asyncio.start_unix_server(one, sock=opened)
    try:
        ready()
        await stop.wait()
    finally:
        server.close()
        if _inode(path) == mine:
            _remove(path)


async def _answer_one(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    options: GuardSettings,
    turns: asyncio.Semaphore,
) -> None:
    data = await _read(reader)
    name, _, data = data.partition(b"\n")
    agent = FORMATS.get(name.decode("ascii", "replace"))
    if agent is None:
        return
    try:
        async with asyncio.timeout(OWN_SECONDS), turns:
            # In a thread: a slow store or a large input must not hold up other hooks.
            said = await asyncio.to_thread(answer, agent, data, options)
    except TimeoutError:
        said = denial(agent, f"{LATE.format(OWN_SECONDS)}.")
    writer.write(f"answer\n{said}\n".encode())
    await writer.drain()


async def _read(reader: asyncio.StreamReader) -> bytes:
    """A whole request, at most one byte longer than the largest input."""
    pieces: list[bytes] = []
    left = LONGEST_NAME + MOST_BYTES + 1
    while left > 0 and (piece := await reader.read(min(left, 1 << 20))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _listening(path: Path) -> socket.socket:
    """A socket at this path, for this user alone. Raises UsageError if something else is there."""
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UsageError(f"The socket {path} cannot be created: {error.strerror}.") from None
    else:
        if not stat.S_ISSOCK(kind):
            raise UsageError(f"{path} exists and is not a socket.")
        if _is_served(path):
            raise UsageError(f"Another guard answers at {path} already.")
        path.unlink()  # of a guard that was killed
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        made.bind(str(path))
    except OSError as error:
        made.close()
        why = error.strerror or str(error)  # a path that is too long has no number
        raise UsageError(f"The socket {path} cannot be created: {why}.") from None
    finally:
        os.umask(before)
    made.listen()
    return made


def _is_served(path: Path) -> bool:
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
