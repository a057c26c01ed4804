"""The command that installs a package beside quoth, depending on how quoth itself was installed: for messages
that say what to type.
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
def install_command(package: str, *, again: bool = False) -> str:
    """The command that installs a package where this quoth finds it, quoted for a shell; with ``again`` even
    if it is installed.

    ``uv tool`` and pipx keep quoth in a separate environment, known by its place. It is changed in place:
    installing the tool again would remove its other extras, and fails if quoth came from a file. Otherwise
    the command is pip: by name if that is the pip of this Python, otherwise as a module of this Python."""
    tool = _tool_environment(Path(sys.prefix))
    if tool == "uv":
        return shlex.join(
            ["uv", "pip", "install", "--python", sys.prefix, *(["--reinstall"] if again else []), package]
        )
    pip = ["pipx", "runpip", "quoth"] if tool == "pipx" else _pip()
    return shlex.join([*pip, "install", *(["--force-reinstall"] if again else []), package])


def own_command() -> str:
    """The command for this quoth in this shell: ``quoth`` if PATH finds it, otherwise as it was typed."""
    script = Path(sys.argv[0])
    if script.name != "quoth" or not script.is_file():
        return "quoth"
    found = shutil.which("quoth")
    return "quoth" if found and script.samefile(found) else shlex.quote(sys.argv[0])


def own_program() -> list[str]:
    """The words that start this very quoth, independent of PATH and the current folder."""
    beside = Path(sys.executable).with_name("quoth")
    return [str(beside)] if beside.is_file() else [sys.executable, "-P", "-m", "quoth"]


def _tool_environment(prefix: Path) -> str:
    """The owner of this environment: ``uv`` for …/uv/tools/quoth, ``pipx`` for …/pipx/venvs/quoth."""
    above = prefix.parts[-3:-1]
    return "uv" if above == ("uv", "tools") else "pipx" if above == ("pipx", "venvs") else ""


def _pip() -> list[str]:
    """The words for the pip of this environment."""
    pip = shutil.which("pip")
    if pip is not None and Path(pip).parent == Path(sys.executable or "/").parent:
        return ["pip"]
    return [sys.executable or "python3", "-m", "pip"]
