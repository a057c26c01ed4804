"""The folders of skills: the user's and the workspace's. Every command checks whether there are any.

So this module is light: it reads only the record of trust. tools/knowledge/skills.py reads the skills.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from quoth.tools.storage.paths import config_dir

WORKSPACE_FOLDERS = (".quoth/skills", ".agents/skills", ".claude/skills")
KIND = ".skills"  # of record of trust


def user_skills() -> Path:
    """The folder of the user's own skills."""
    return config_dir() / "skills"


def skill_folders(root: Path) -> tuple[Path, ...]:
    """The folders of skills, with their scripts. They are hidden from programs unless they are shown."""
    return (user_skills(), root / WORKSPACE_FOLDERS[0])


def has_skills(root: Path) -> bool:
    """Whether there may be skills for this workspace: the user has skills, or has trusted skills of the
    workspace."""
    if folders_in(user_skills()):
        return True
    if not has_folders(root):
        return False
    from quoth.tools.policy.files import Trust  # imported here: few workspaces have skills

    return Trust(kind=KIND).trusted(root) is not None


def has_folders(root: Path) -> bool:
    """Whether there is a folder that may be a skill, trusted or not."""
    own = (folders_in(root / name, links=False) for name in WORKSPACE_FOLDERS)
    return bool(folders_in(user_skills())) or any(own)


def folders_in(place: Path, *, links: bool = True) -> list[Path]:
    with contextlib.suppress(OSError), os.scandir(place) as found:
        return sorted(
            place / one.name
            for one in found
            if not one.name.startswith(".") and one.is_dir(follow_symlinks=links)
        )
    return []
