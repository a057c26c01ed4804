"""A user without root's rights, for what only such a one meets: folders that cannot be searched.

Knows processes and modes of files. Root stops at no mode, so root's tests start the command as nobody.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from commands import Said, quoth

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")


@cache
def can_be_nobody() -> bool:
    """Whether nobody can import what is tested: not from an environment in a folder that only root reads."""
    reads = f"import quoth.agent; open({__file__!r}).close()"
    return (
        shutil.which(NOBODY[0]) is not None
        and not subprocess.run(
            [*NOBODY, sys.executable, "-c", reads], cwd="/", capture_output=True, timeout=120
        ).returncode
    )


class Powerless:
    """A home with a workspace and a folder of settings, and a user who owns them and nothing else; what is
    ``of_root`` stays root's where root runs the tests."""

    of_root: tuple[Path, ...] = ()

    def __init__(self, home: Path) -> None:
        self.home = home
        self.workspace, self.config = home / "workspace", home / "config"
        for folder in (self.workspace, self.config):
            folder.mkdir()

    def quoth(self, *words: str, stdin: str = "", inside: str = "") -> Said:
        """Run the command in the workspace as this user, or in a folder inside of it."""
        user = 0
        if os.getuid() == 0:
            user = 65534
            for path in (self.home, *self.home.rglob("*")):
                owner = 0 if path in self.of_root else user
                os.chown(path, owner, owner, follow_symlinks=False)
        kept = {f"QUOTH_{name}": str(self.home / name.lower()) for name in ("STATE", "CONFIG", "CACHE")}
        env = {**kept, "HOME": str(self.home)}
        return quoth(*words, cwd=self.workspace / inside, env=env, stdin=stdin, user=user)

    @contextmanager
    def closed(self, folder: Path) -> Iterator[None]:
        """While the block lasts, the folder cannot be searched."""
        folder.chmod(0)
        try:
            yield
        finally:
            folder.chmod(0o755)


@contextmanager
def powerless() -> Iterator[Powerless]:
    """Such a user; the folder is not below those of root's tests, which nobody can reach."""
    if os.getuid() == 0 and not can_be_nobody():
        pytest.skip("nobody cannot read this environment or this checkout")
    with tempfile.TemporaryDirectory() as folder:
        yield Powerless(Path(folder).resolve())
