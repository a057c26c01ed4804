"""The events of one run, for whoever iterates over them; leaving the loop early stops the run.

Knows events and a run that can be interrupted; it must not know agents.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextvars import ContextVar
from typing import Any, Protocol

from quoth.agent.events import RunEvent
from quoth.agent.reply import Reply


class Stoppable(Protocol):
    """Work that an interrupt stops: a run, or a flight. ``asking`` says that a person is being asked."""

    interrupted: bool

    def interrupt(self, asking: bool = False) -> None: ...


class EventStream:
    """The events of one run, on their way to whoever iterates. ``work`` is the run, once it has begun;
    ``beside`` are the streams of the same agent that are open."""

    def __init__(self, beside: set[EventStream]) -> None:
        self.work: Stoppable | None = None
        self._beside = beside
        self._events: asyncio.Queue[RunEvent | None] = asyncio.Queue()
        self._task: asyncio.Task[Reply] | None = None

    def tell(self, event: RunEvent) -> None:
        if event.kind != "end" or event.path:  # the Reply, as ``run`` returns it, comes last
            self._events.put_nowait(event)

    async def of(self, run: Callable[[], Coroutine[Any, Any, Reply]]) -> AsyncGenerator[RunEvent]:
        """Begin the run, and give its events. Raises what ``run`` raises."""
        self._beside.add(self)
        self._task = asyncio.create_task(self._driven(run))
        try:
            while (event := await self._events.get()) is not None:
                yield event
            yield RunEvent("end", await self._task)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Stop the run as an interrupt does, and wait until it has stopped."""
        self._beside.discard(self)
        if (task := self._task) is None:
            return
        if not task.done() and self.work is not None:
            self.work.interrupt()
        elif not task.done():
            task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # whoever iterates has had it, or wants it no more

    async def _driven(self, run: Callable[[], Coroutine[Any, Any, Reply]]) -> Reply:
        HEARS.set(self)
        try:
            return await run()
        finally:
            self._events.put_nowait(None)


# The stream that hears of what is done in this context.
HEARS: ContextVar[EventStream | None] = ContextVar("HEARS", default=None)
