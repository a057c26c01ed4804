"""What a task came to. Knows asyncio only."""

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
