"""Ends of tasks: what a call came to, and tasks that are to end. Knows asyncio only."""

from __future__ import annotations

import asyncio
from typing import TypeVar

T = TypeVar("T")


async def result_of(task: asyncio.Task[T]) -> T | None:
    """The result of a task; None if it was cancelled, but not who waits for it here."""
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise
    return None if task.cancelled() else task.result()


async def end(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks, more than once: redis-py forgets a cancellation that comes while it connects."""
    while left := [task for task in tasks if not task.done()]:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=1.0)
