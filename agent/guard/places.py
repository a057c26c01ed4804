"""The projects whose rules judge a call: that of its folder, and that in which the agent was started. A model
chooses the folder of a call (Codex's ``workdir``, a ``cd``), and does not leave the rules by another one."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path

from quoth.tools.errors import InvalidCallError, UsageError
from quoth.tools.policy.project import find_project
from quoth.tools.storage.atomic import new_file
from quoth.tools.storage.paths import private_folder, state_dir

KEPT_SECONDS = 30 * 86400.0  # the first folder of a session, after its last call
TOUCHED_SECONDS = 86400.0  # after which a call notes its time again


def projects_of(agent: str, session: str, cwd: str, named: str) -> list[Path]:
    """The roots of the projects that judge, the one in which the agent was started first: that of the folder
    ``named`` by the agent's environment, else of the first folder of this session. Raises QuothError."""
    if not Path(cwd).is_dir():
        raise InvalidCallError(f'"cwd" {cwd} is not a folder.')
    home = named if named.startswith("/") else _first_folder(agent, session, cwd) if session else cwd
    if not Path(home).is_dir():
        raise InvalidCallError(f"the agent was started in {home}, which is not a folder any more.")
    projects = [find_project(os.path.realpath(one)) for one in (home, cwd)]
    for project in projects:
        project.require_rules()
    return [*dict.fromkeys(project.root for project in projects)]


def _first_folder(agent: str, session: str, cwd: str) -> str:
    """The folder of the first call of a session, which is recorded."""
    folder = state_dir() / "guard"
    path = folder / f"{agent}-{hashlib.sha256(session.encode()).hexdigest()[:32]}"
    try:
        with contextlib.suppress(FileNotFoundError):
            found = os.fsdecode(path.read_bytes())
            if path.stat().st_mtime < time.time() - TOUCHED_SECONDS:
                os.utime(path)
            return found
        private_folder(folder)
        _remove_old(folder)
        with contextlib.suppress(FileExistsError):  # another call of the session was first
            new_file(path, [os.fsencode(cwd)], 0o600)
        return os.fsdecode(path.read_bytes())
    except OSError as error:
        raise UsageError(
            f"The folder of the session cannot be recorded in {folder}: {error.strerror}."
        ) from None


def _remove_old(folder: Path) -> None:
    for one in folder.iterdir():
        with contextlib.suppress(OSError):
            if one.stat().st_mtime < time.time() - KEPT_SECONDS:
                one.unlink()
