"""Background programs: they continue after their call has ended, until their session ends."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from typing import Any

from quoth.tools.errors import ToolError, did_you_mean
from quoth.tools.lisp.printer import print_string
from quoth.tools.shell.program import exit_code, plain
from quoth.tools.shell.running import CapturedOutput, Running
from quoth.tools.shell.view import Launch
from quoth.tools.text import number_of

MOST = 8  # programs that run at once
MAX_OUTPUT = 200_000  # bytes of each program's output that are kept


@dataclass(frozen=True)
class _Program:
    name: str
    running: Running
    command: Launch
    output: CapturedOutput
    reading: asyncio.Task[int]


class Background:
    """The programs in the background of one session. ``aclose`` ends them all."""

    def __init__(self) -> None:
        self._programs: dict[str, _Program] = {}

    def require_room(self) -> None:
        """Raise ToolError if too many run; ended programs are dropped to make room, the oldest first."""
        if sum(not one.reading.done() for one in self._programs.values()) >= MOST:
            raise ToolError(f"{number_of(MOST, 'program')} run in the background, the maximum: end one. "
                            f"{self._listed()}")  # fmt: skip
        while len(self._programs) >= 2 * MOST:
            id = next(id for id, one in self._programs.items() if one.reading.done())
            del self._programs[id]

    def take(self, name: str, running: Running, command: Launch) -> str:
        """Read the output of a started program, and return its id."""
        output = CapturedOutput(MAX_OUTPUT)
        reading = asyncio.create_task(_watch(running, command, output))
        id = f"{name.rpartition('/')[2]}-{secrets.token_hex(2)}"
        self._programs[id] = _Program(name, running, command, output, reading)
        return id

    def look(self, id: str) -> dict[str, Any]:
        """Its output, and its exit code once it has ended. Raises ToolError."""
        return self._state(self._find(id))

    async def wait(self, id: str, seconds: float) -> dict[str, Any]:
        """The same, after it has ended or after ``seconds``. Raises ToolError."""
        program = self._find(id)
        await asyncio.wait({program.reading}, timeout=seconds)
        return self._state(program)

    async def kill(self, id: str) -> dict[str, Any]:
        """End it, and all processes that it has started. Raises ToolError."""
        program = self._find(id)
        await _end(program)
        return self._state(program)

    async def aclose(self) -> None:
        for program in self._programs.values():
            await _end(program)
        self._programs.clear()

    def _find(self, id: str) -> _Program:
        if (found := self._programs.get(id)) is None:
            said = did_you_mean(id, self._programs) or f" {self._listed()}"
            raise ToolError(f"No program {print_string(id[:80])} runs in the background.{said}")
        return found

    def _listed(self) -> str:
        if not self._programs:
            return "None is running: background programs end with their session."
        said = [f"{id} ({'ended' if one.reading.done() else 'runs'})" for id, one in self._programs.items()]
        return f"There {'are' if said[1:] else 'is'} {', '.join(said)}."

    @staticmethod
    def _state(program: _Program) -> dict[str, Any]:
        state: dict[str, Any] = {"running": True}
        if program.reading.done():
            state = {"exit": None if program.reading.cancelled() else exit_code(program.reading.result())}
        return {**state, "output": plain(program.output.text)}


async def _watch(running: Running, command: Launch, output: CapturedOutput) -> int:
    try:
        return await running.communicate(output.add)
    except OSError:
        return 127
    finally:
        try:
            await running.put_away()
            for sentence in await asyncio.to_thread(command.finish):
                output.add(f"\nquoth: {sentence}\n".encode())
        finally:
            command.close()


async def _end(program: _Program) -> None:
    program.running.stop()
    await asyncio.wait({program.reading})
