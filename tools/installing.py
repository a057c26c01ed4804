"""How a package is installed beside quoth, by how quoth itself was installed.

For sentences that say what to type. Knows uv's and pipx's folders; it installs nothing.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from functools import cache
from pathlib import Path


def install_extra(name: str) -> str:
    """The command that installs quoth with this extra."""
    return install_command(f"quoth[{name}]")


@cache
def install_command(package: str, *options: str) -> str:
    """The command that installs a package where this quoth finds it, quoted for a shell.

    ``uv tool`` and pipx keep quoth in an environment of its own, known by its place; elsewhere it is pip, by
    its name where that is the pip of this Python, else as a module of this Python."""
    tool = _tool_environment(Path(sys.prefix))
    own = package.startswith("quoth[")
    if tool == "uv":
        more = [package] if own else ["quoth", "--with", package]
        return shlex.join(["uv", "tool", "install", *(["--reinstall"] if options else []), *more])
    if tool == "pipx":
        words = ["pipx", "install", "--force"] if own else ["pipx", "inject", "--force", "quoth"]
        return shlex.join([*words, package])
    pip = ["pip"] if _pip_is_ours() else [sys.executable or "python3", "-m", "pip"]
    return shlex.join([*pip, "install", *options, package])


def own_command() -> str:
    """What to type for this quoth in this shell: ``quoth`` where the path finds it, else as it was typed."""
    script = Path(sys.argv[0])
    if script.name != "quoth" or not script.is_file():
        return "quoth"
    found = shutil.which("quoth")
    return "quoth" if found and script.samefile(found) else shlex.quote(sys.argv[0])


def _tool_environment(prefix: Path) -> str:
    """Whose environment this is: ``uv`` for …/uv/tools/quoth, ``pipx`` for …/pipx/venvs/quoth."""
    above = prefix.parts[-3:-1]
    return "uv" if above == ("uv", "tools") else "pipx" if above == ("pipx", "venvs") else ""


def _pip_is_ours() -> bool:
    """Whether ``pip`` on the path installs into this environment."""
    pip = shutil.which("pip")
    return pip is not None and Path(pip).parent == Path(sys.executable or "/").parent
