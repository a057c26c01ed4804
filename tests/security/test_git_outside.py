"""Law: no program of the tool shell makes git outside run anything, whatever the layout of the repository.

The table is tests/vocabulary/git_layouts.py; each row of it got through once. git still works
inside: after a day of it the repository is as it would be outside.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import git_trials
import pytest
from examples import many
from powerless import NOBODY, can_be_nobody

WHO = [pytest.param((), id="as-me")]
if os.getuid() == 0 and can_be_nobody():
    WHO.append(pytest.param(NOBODY, id="as-nobody"))


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that an ordinary user reaches, and no program's scratch covers."""
    path = Path(mkdtemp(prefix="quoth-git-", dir="/var/lib" if os.getuid() == 0 else None))
    yield path / "trials"
    rmtree(path)


def tried(who: tuple[str, ...], folder: Path, *words: str) -> None:
    """What tests/vocabulary/git_trials.py tries, as this user."""
    if who:
        os.chown(folder.parent, 65534, 65534)
    command = [*who, sys.executable, git_trials.__file__, str(folder), *words]
    done = subprocess.run(
        command, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_git_outside_runs_nothing_of_a_programs(folder: Path) -> None:
    tried((), folder, "--plain", "--some", str(many(1) // 2))


@pytest.mark.parametrize("who", WHO)
def test_nor_while_it_runs_nor_after_quoth_was_killed(who: tuple[str, ...], folder: Path) -> None:
    tried(who, folder, "--some", str(many(1) // 10))


@pytest.mark.parametrize("who", WHO[-1:])
def test_a_day_inside_leaves_what_a_day_outside_leaves(who: tuple[str, ...], folder: Path) -> None:
    tried(who, folder, "--day")
