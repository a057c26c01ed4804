"""The connection to the client has an event loop of its own, in a thread. A body, or the loop of the agents,
can then block until the client answers: the connection still receives the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any

STOP_SECONDS = 5.0  # for the thread of a loop to end


class OnLoop:
    """An object whose asynchronous methods run on its own event loop, and can be awaited on any other.
    ``answered`` is called there with a value after the caller has taken it, and has done with it what needs
    no waiting: the connection has then queued the answer, and later messages follow it."""

    def __init__(
        self, of: Any, loop: asyncio.AbstractEventLoop, answered: Callable[[Any], object] | None = None
    ) -> None:
        self._of, self._loop, self._answered = of, loop, answered

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._of, name)
        if not inspect.iscoroutinefunction(method):
            return method

        async def call(*args: Any, **more: Any) -> Any:
            value = await asyncio.wrap_future(self._begin(method(*args, **more)))
            if self._answered is not None:
                here = asyncio.get_running_loop()
                here.call_soon(self._loop.call_soon_threadsafe, self._answered, value)
            return value

        return call

    def begin(self, name: str, **args: Any) -> Future[Any]:
        """Call an asynchronous method from any thread but that of its loop. Raises ConnectionError if the
        loop has ended."""
        return self._begin(getattr(self._of, name)(**args))

    def _begin(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # the loop is closed
            work.close()
            raise ConnectionError("Connection closed") from None


@contextlib.contextmanager
def loop_in_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread of its own while the context is open."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="quoth-acp", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(STOP_SECONDS)
        if not thread.is_alive():
            loop.close()


async def run_on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> Any:
    """The value of a coroutine that runs on another loop."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))
