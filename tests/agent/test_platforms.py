"""Where quoth cannot run it says so in one sentence, before it imports what is not there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from quoth.agent.entry import NO_WINDOWS

# What Python on Windows lacks.
LACKING = ["fcntl", "termios", "pwd", "grp", "resource", "tty", "pty"]
AS_WINDOWS = f"import sys; sys.platform = 'win32'; sys.modules.update(dict.fromkeys({LACKING!r})); "


@pytest.mark.parametrize("words", [[], ["--help"], ["doctor"], ["run", "hi", "--json"]])
def test_on_windows_the_command_is_one_sentence(words: list[str]) -> None:
    code = f"sys.argv[1:] = {words!r}; from quoth.agent import entry; sys.exit(entry.main())"
    said = subprocess.run([sys.executable, "-c", AS_WINDOWS + code], capture_output=True, text=True)

    assert (said.returncode, said.stdout, said.stderr) == (2, "", f"quoth: {NO_WINDOWS}\n")


def test_on_windows_the_library_says_the_same() -> None:
    said = subprocess.run(
        [sys.executable, "-c", f"{AS_WINDOWS}from quoth import Agent"], capture_output=True, text=True
    )

    assert said.returncode == 1
    assert said.stderr.endswith(f"ImportError: {NO_WINDOWS}\n")
