"""The memory, the background programs and the sandbox of an agent, each opened at the first use and
closed with the agent.

Must not know how a store keeps blocks, how a program is started, or conversations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.tools.call.services import NO_MEMORY, NO_SEARCH, NO_SHARED_BLOCKS, Services
from quoth.tools.knowledge.skill_folders import skill_folders
from quoth.tools.sandbox.snapshots import StoreSnapshots

if TYPE_CHECKING:
    from quoth.tools.sandbox.runner import Sandbox
    from quoth.tools.shell.background import Background
    from quoth.tools.storage.database import Store


class OwnMemory:
    """A memory that ``opening`` opens when one of its methods is called for the first time: most calls never
    use it, and need not wait until it is imported."""

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


class OwnPrograms:
    """The programs in the background of one session."""

    def __init__(self) -> None:
        self._background: Background | None = None

    def opened(self) -> Background:
        if self._background is None:
            from quoth.tools.shell.background import Background  # here: most sessions have none

            self._background = Background()
        return self._background

    async def aclose(self) -> None:
        if self._background is not None:
            await self._background.aclose()


class OwnSandbox:
    """The sandbox of one agent (ProgramRunner in tools/call/context.py), imported and started for the first
    program, and the ``snapshots`` of programs that wait, in the agent's store."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self.snapshots = StoreSnapshots(store)
        self._sandbox: Sandbox | None = None

    def _opened(self) -> Sandbox:
        if self._sandbox is None:
            from quoth.tools.sandbox.runner import Sandbox  # here: most calls are of no program

            self._sandbox = Sandbox()
        return self._sandbox

    async def run(self, *args: Any, **named: Any) -> tuple[Any, str]:
        return await self._opened().run(*args, **named)

    def worker(self) -> AbstractAsyncContextManager[Any]:
        return self._opened().worker()

    async def aclose(self) -> None:
        if self._sandbox is not None:
            await self._sandbox.aclose()


def boundary_of(said: Mapping[str, Any], root: Path, *, skills: bool) -> dict[str, Any]:
    """What programs see beside the workspace: what the user has ``said``, and the files of ``skills``."""
    return {**said, "readable": (*said.get("readable", ()), *(skill_folders(root) if skills else ()))}
