"""The receivers of an agent's events: its listener, and loops over the events of a run. A run stops when such
a loop is left early.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextvars import ContextVar
from typing import Any, Protocol

from quoth.agent.events import AgentEvent, Listener


class Stoppable(Protocol):
    """Work that an interrupt stops: a run or a flight. ``asking``: a person is being asked at the moment."""

    @property
    def interrupted(self) -> bool: ...

    @property
    def session(self) -> str: ...

    def interrupt(self, asking: bool = False) -> None: ...


class EventStream:
    """The queue of one run's events for a loop over them. ``work`` is the run, once it has begun; ``beside``
    is the set of the agent's open streams."""

    def __init__(self, beside: set[EventStream]) -> None:
        self.work: Stoppable | None = None
        self._beside = beside
        self._events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        self._task: asyncio.Task[object] | None = None

    def tell(self, event: AgentEvent) -> None:
        if event.kind != "end" or event.path:  # the Reply that ``run`` returns comes last
            self._events.put_nowait(event)

    async def of(self, run: Callable[[], Coroutine[Any, Any, object]]) -> AsyncGenerator[AgentEvent]:
        """Begin the run, or a call, and yield its events; the last has its result. Raises its errors."""
        self._beside.add(self)
        self._task = asyncio.create_task(self._driven(run))
        try:
            while (event := await self._events.get()) is not None:
                yield event
            yield AgentEvent("end", await self._task)
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
            task.exception()  # the loop has received it, or no longer wants it

    async def _driven(self, run: Callable[[], Coroutine[Any, Any, object]]) -> object:
        HEARS.set(self)
        try:
            return await run()
        finally:
            self._events.put_nowait(None)


PATIENCE = 5.0  # seconds for a run to end by itself when its agent is closed

# The stream that receives the events of this context.
HEARS: ContextVar[EventStream | None] = ContextVar("HEARS", default=None)


class Events:
    """The receivers of the events of one agent or chat: its listener, open streams, and the user.

    ``on_event`` is the listener and ``deliver`` brings a message to the user; both may be replaced at any
    time."""

    def __init__(self, on_event: Listener | None = None) -> None:
        self.on_event = on_event
        self.deliver: Callable[[str], object] | None = None
        self.streams: set[EventStream] = set()
        self._drivers: set[asyncio.Task[Any]] = set()  # the tasks of the runs and flights in progress
        self._failed: Listener | None = None  # the listener whose failure was reported

    def to_user(self, text: str) -> None:
        """Bring a message to the user: notify the listener, then deliver it."""
        self.tell(AgentEvent("message", text))
        if self.deliver is not None:
            self.deliver(text)

    def note(self, text: str) -> None:
        """Send the listener a note for a person."""
        self.tell(AgentEvent("note", text))

    def tell(self, event: AgentEvent) -> None:
        """Send an event to the listener and to the stream of the run. If the listener fails, the run
        continues, and the failure is reported once: to it, to the stream and to the program's log."""
        if (stream := self._stream) is not None:
            stream.tell(event)
        if self.on_event is None:
            return
        try:
            self.on_event(event)
        except Exception as error:
            if self._failed is self.on_event:
                return
            self._failed = self.on_event
            said = f"The listener failed at the event {event.kind}: {type(error).__name__}: {error}"
            logging.getLogger("quoth").warning(said, exc_info=error)
            note = AgentEvent("note", said)
            if stream is not None:
                stream.tell(note)
            with contextlib.suppress(Exception):
                self.on_event(note)

    @property
    def listener(self) -> Listener | None:
        """The function that a run calls with its events; None if there is no receiver."""
        return None if self.on_event is None and self._stream is None else self.tell

    @property
    def _stream(self) -> EventStream | None:
        """The open stream of this context; None if it belongs to another agent."""
        stream = HEARS.get()
        return stream if stream in self.streams else None

    @contextlib.contextmanager
    def driving(self, work: Stoppable) -> Iterator[None]:
        """In this context the current task drives ``work``, and its stream can stop it."""
        if (stream := self._stream) is not None and stream.work is None:
            stream.work = work
        driver = {task for task in [asyncio.current_task()] if task} - self._drivers
        self._drivers |= driver
        try:
            yield
        finally:
            self._drivers -= driver

    async def stop_all(self, interrupt: Callable[[], object]) -> None:
        """Interrupt all runs and flights in progress, and wait until they have ended."""
        for stream in list(self.streams):
            await stream.stop()
        if driving := self._drivers - {asyncio.current_task()}:
            interrupt()
            await asyncio.wait(driving, timeout=PATIENCE)
