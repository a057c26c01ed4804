"""What the programs of one agent's calls have: a background, made when the first begins, and the places
that they see beside the workspace.

It must not know runs, or how a program is started.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.tools.knowledge.skill_folders import skill_folders

if TYPE_CHECKING:
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


def boundary_of(said: Mapping[str, Any], root: Path, *, skills: bool) -> dict[str, Any]:
    """What programs see beside the workspace: what the user has ``said``, and the files of ``skills``."""
    return {**said, "readable": (*said.get("readable", ()), *(skill_folders(root) if skills else ()))}
