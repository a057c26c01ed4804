"""Runs tests on httpx2, the continuation of httpx: for them and what they start, ``import httpx`` gives it.

python tests/vocabulary/on_httpx2.py [ARGUMENTS OF PYTEST]    (by default all of the back ends and the web)
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALL = ("tests/neuro/backends", "tests/tools/web", "tests/tools/storage/test_lean_httpx.py")
INSTEAD = "import sys\nimport httpx2\nsys.modules[__name__] = httpx2\n"


def on_httpx2(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """What pytest says and how it ends."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "httpx.py").write_text(INSTEAD)
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, env.get("PYTHONPATH")]))
        return subprocess.run(words, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, check=False)


if __name__ == "__main__":
    done = on_httpx2(sys.argv[1:] or ALL)
    sys.stdout.write(done.stdout)
    sys.exit(done.returncode)
