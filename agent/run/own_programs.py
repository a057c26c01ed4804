"""What the programs of one agent's calls have: a background and a sandbox, each made when the first begins,
and the places that they see beside the workspace.

It must not know runs, or how a program is started.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.tools.knowledge.skill_folders import skill_folders

if TYPE_CHECKING:
    from quoth.tools.sandbox.runner import Sandbox
    from quoth.tools.shell.background import Background


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


class SandboxAtFirstUse:
    """The sandbox of one agent (ProgramRunner in tools/call/context.py), imported and made for the first
    program."""

    def __init__(self) -> None:
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
