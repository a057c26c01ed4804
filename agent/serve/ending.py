"""How ``quoth serve`` ends after a signal, as the gateway of chats does: it accepts nothing new, finishes the
answers in progress within STOP_SECONDS, and ends the streams of the others, which continue later."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from types import FrameType

import uvicorn

from quoth.agent.serve.app import ServedPart
from quoth.agent.serve.gate import App
from quoth.agent.terminal.output import complain

STOP_SECONDS = 30.0  # to finish the answers in progress, as in agent/chat/gateway.py
CLOSE_SECONDS = 10  # then for calls of MCP clients and connections that are still open


class EndingServer(uvicorn.Server):
    """The server of these parts. A second signal breaks off the answers in progress; ``finished`` is then
    false, as after the deadline. After a third one nothing is waited for."""

    def __init__(self, app: App, parts: Sequence[ServedPart]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level="warning",
                lifespan="on",
                timeout_graceful_shutdown=CLOSE_SECONDS,
                server_header=False,
            )
        )
        self._parts = parts
        self._at_once = asyncio.Event()
        self.finished = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Act on a signal. It is not raised again at the end: the process has its own exit code."""
        if self.should_exit:
            self.force_exit = self._at_once.is_set()
            self._at_once.set()
            return
        complain("Finishing the answers in progress. A second signal ends the server at once.")
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        left = asyncio.create_task(self._deadline())
        try:
            ends = await asyncio.gather(*(part.ending(left) for part in self._parts), return_exceptions=True)
        finally:
            left.cancel()
        self.finished = all(end is True for end in ends)
        await super().shutdown(sockets)

    async def _deadline(self) -> None:
        """Return after STOP_SECONDS, or at a second signal."""
        end = asyncio.get_running_loop().time() + STOP_SECONDS
        while not self._at_once.is_set() and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110 a signal's handler wakes no loop
            await asyncio.sleep(0.1)
