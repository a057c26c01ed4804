"""Law: no program of the tool shell makes git outside run anything, whatever the layout of the repository.

The table is tests/vocabulary/git_layouts.py; each row of it got through before the private .git. git still
works inside: after a day of it the repository is as it would be outside.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import git_layouts
import pytest
from powerless import NOBODY, can_be_nobody

WHO = [pytest.param((), id="as-me")]
if os.getuid() == 0 and can_be_nobody():
    WHO.append(pytest.param(NOBODY, id="as-nobody"))


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that an ordinary user reaches, and no program's scratch covers."""
    path = Path(tempfile.mkdtemp(prefix="quoth-git-", dir="/var/lib" if os.getuid() == 0 else None))
    yield path
    shutil.rmtree(path)


def tried(who: tuple[str, ...], folder: Path, *words: str) -> object:
    """What tests/vocabulary/git_layouts.py prints, as this user."""
    if who:
        os.chown(folder, 65534, 65534)
    (home := folder / "own").mkdir()
    home.chmod(0o777)
    own = {name: str(home / name) for name in ("QUOTH_STATE", "QUOTH_CONFIG", "QUOTH_CACHE")}
    env = {"PATH": os.environ["PATH"], "HOME": str(home), **own}
    command = [*who, sys.executable, git_layouts.__file__, str(folder), *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("who", WHO)
def test_git_outside_runs_nothing_of_a_programs(who: tuple[str, ...], folder: Path) -> None:
    assert tried(who, folder) == []


@pytest.mark.parametrize("who", WHO)
def test_a_day_inside_leaves_what_a_day_outside_leaves(who: tuple[str, ...], folder: Path) -> None:
    assert tried(who, folder, "day") == []
