"""A real browser without a window, where there is one. Knows how it is started."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def seen_in_browser(page: Path) -> str:
    """The page as the browser has it once its scripts have run, if it holds any."""
    assert BROWSER
    with tempfile.TemporaryDirectory() as own:
        how = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={own}"]
        what = ["--virtual-time-budget=2000", "--dump-dom", page.as_uri()]
        run = subprocess.run([BROWSER, *how, *what], capture_output=True, text=True, timeout=120, check=True)
    return run.stdout
