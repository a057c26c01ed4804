"""The memory of an agent whose host gave it none: opened at the first use, and closed with the agent.

Knows which services a memory is; it must not know how a store keeps blocks, nor conversations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from quoth.tools.call.services import NO_MEMORY, NO_SEARCH, NO_SHARED_BLOCKS, Services


class OwnMemory:
    """Stands for a memory that is opened when one of its methods is called for the first time: most calls
    never use it, and need not wait until it is imported."""

    def __init__(self, opening: Callable[[], Any]) -> None:
        self._opening = opening
        self._memory: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        async def method(*args: Any, **named: Any) -> Any:
            return await getattr(self.opened(), name)(*args, **named)

        return method

    def opened(self) -> Any:
        """The memory itself."""
        if self._memory is None:
            self._memory = self._opening()
        return self._memory

    async def aclose(self) -> None:
        """Close the memory, if it was opened and has anything to close."""
        memory, self._memory = self._memory, None
        if (close := getattr(memory, "close", None)) is not None:
            close()


def with_own(given: Services, own: Any) -> Services:
    """The services with ``own`` as memory, and as search and shared blocks where the host gave none. Beside
    a memory of the host's they stay as they are: ``own`` could not search that."""
    if given.memory is not NO_MEMORY:
        return given
    search = own if given.search is NO_SEARCH else given.search
    shared = own if given.shared_blocks is NO_SHARED_BLOCKS else given.shared_blocks
    return replace(given, memory=own, search=search, shared_blocks=shared)
