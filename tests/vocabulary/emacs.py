"""A real Emacs, where there is one. Knows how it is started in a batch."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

EMACS = shutil.which("emacs")
# Not what Org loads beside itself for links into mail and news: that takes twice as long as all else.
PLAIN = "(setq org-modules nil)\n"


def emacs(tmp_path: Path, *words: str | Path, script: str) -> str:
    """What Emacs prints when it runs a script with these words."""
    assert EMACS
    path = tmp_path / "script.el"
    path.write_text(PLAIN + script)
    run = subprocess.run(
        [EMACS, "-Q", "--batch", "-l", path, *words],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "LANG": "C.UTF-8"},
    )
    assert run.returncode == 0, run.stderr
    return run.stdout
