"""The pool of crash-isolated Monty worker processes. It starts with the first program."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

MAX_WORKERS = 32


@dataclass(frozen=True)
class SandboxLimits:
    """Limits of one run: seconds of execution (not counting waits for calls), bytes of memory, recursion
    depth, and number of inner calls (each branch of a pmap counts as one)."""

    seconds: float = 5.0
    memory: int = 128 * 1024 * 1024
    recursion: int = 200
    calls: int = 500


class WorkerPool:
    """At most MAX_WORKERS worker processes. Each running path of a program uses one."""

    def __init__(self, limits: SandboxLimits | None = None) -> None:
        self.limits = limits or SandboxLimits()
        self._pool: Any = None
        self._starting = asyncio.Lock()
        self._free = asyncio.Semaphore(MAX_WORKERS)
        self._waiting = 0  # number of paths that wait for a worker
        self._told: set[asyncio.Future[None]] = set()  # futures set when a path begins to wait

    @contextlib.asynccontextmanager
    async def worker(self, seconds: float | None = None) -> AsyncIterator[Any]:
        """A Monty session in its own worker; waits until one is free. Each of its feeds may take ``seconds``
        (default: the limit of the pool)."""
        pool = await self._started()
        if self._free.locked():
            self._waiting += 1
            for told in self._told:
                if not told.done():
                    told.set_result(None)
            try:
                await self._free.acquire()
            finally:
                self._waiting -= 1
        else:
            await self._free.acquire()
        try:
            async with pool.checkout(limits=self._resource_limits(seconds)) as session:
                yield session
        finally:
            self._free.release()

    def _when_wanted(self) -> asyncio.Future[None]:
        """A future that is done when a path waits for a worker. The caller must cancel it."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._waiting:
            told.set_result(None)
        else:
            self._told.add(told)
            told.add_done_callback(self._told.discard)
        return told

    async def _started(self) -> Any:
        async with self._starting:
            if self._pool is None:
                import pydantic_monty as monty

                pool = monty.AsyncMonty(
                    max_processes=MAX_WORKERS, checkout_timeout=30.0, request_timeout=60.0
                )
                with _deaf():
                    await pool.__aenter__()
                self._pool = pool
                atexit.unregister(_let_threads_leave)
                atexit.register(_let_threads_leave)
        return self._pool

    def _resource_limits(self, seconds: float | None) -> Any:
        return {
            "max_feed_duration_secs": self.limits.seconds if seconds is None else seconds,
            "max_memory": self.limits.memory,
            "max_recursion_depth": self.limits.recursion,
            "max_suspensions": 2 * self.limits.calls + 200,  # name look-ups count, too
            "max_total_sleep_secs": self.limits.seconds,
        }

    async def aclose(self) -> None:
        """Stop the workers. The next program starts new ones. May be called twice."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Block SIGINT and SIGHUP in this thread while Monty starts, so that its threads and workers inherit the
    mask: Ctrl-C is for this process, and a program that waits for approval must survive it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _let_threads_leave() -> None:
    """Release the GIL for a moment at exit. Monty's threads wake our event loop; a thread that is inside
    Python when the interpreter shuts down aborts the process (seen: exit code 134, one run in twenty on a
    busy machine)."""
    time.sleep(0.1)
