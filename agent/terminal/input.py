"""Standard input, line by line or whole, without a thread: a wait can be cancelled and leaves nothing behind.

Knows descriptors and bytes, not what a line means.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios

from quoth.tools.errors import UsageError

CHUNK = 65536


def read_stdin() -> str:
    """Read all of standard input as text. Raises UsageError if it is closed, unreadable or not UTF-8."""
    if sys.stdin is None:
        raise UsageError("Standard input is closed.")
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"Standard input is not UTF-8 text (byte {error.start}: {error.reason}).") from None
    except OSError as error:
        raise UsageError(f"Standard input cannot be read: {error.strerror}.") from None


class StdinLines:
    """Reads a file descriptor by lines, and buffers what comes after a line for the next read."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._rest = bytearray()
        self._ended = False

    async def read(self) -> str:
        """Return the next line without its end. Raises EOFError after the last."""
        while b"\n" not in self._rest and not self._ended:
            await self._readable()
            try:
                piece = os.read(self._descriptor, CHUNK)
            except OSError:  # the terminal is gone, or the descriptor is closed
                piece = b""
            self._rest += piece
            self._ended = not piece
        if not self._rest:
            raise EOFError
        line, _, rest = bytes(self._rest).partition(b"\n")
        self._rest = bytearray(rest)
        return line.removesuffix(b"\r").decode("utf-8", "replace")

    async def _readable(self) -> None:
        """Wait until there is something to read; a plain file always has."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()

        def settle() -> None:
            if not ready.done():
                ready.set_result(None)

        try:
            loop.add_reader(self._descriptor, settle)
        except OSError:
            return
        try:
            await ready
        finally:
            loop.remove_reader(self._descriptor)

    def forget_unread(self) -> None:
        """Drop what was typed before it was asked for; of a terminal only."""
        self._rest.clear()
        with contextlib.suppress(termios.error, OSError):
            termios.tcflush(self._descriptor, termios.TCIFLUSH)
