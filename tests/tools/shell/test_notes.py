"""What is told beside the failure of a program, and what is kept of its end."""

from __future__ import annotations

from typing import Any

import pytest
from sentences import WAS_ENDED_BY

from quoth.tools.shell.program import exit_code, notes

NO_SHELL = 'No shell reads :argv: {} was an ordinary argument. To use a shell: ["sh" "-c" "…"].'
MEMORY = "It may have used more memory than it is given."
WRITTEN = "Programs can write only in the workspace and /tmp."
NETWORK = "It had no network; :network True requests it."


def told(argv: str, code: int = 1, output: str = "", network: bool = False) -> list[str]:
    return list(notes(argv.split(), {"exit": code, "output": output}, network))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"argv": "ls | cat", "code": 0}, []),
        ({"argv": "ls | cat"}, [NO_SHELL.format("|")]),
        ({"argv": "ls > a | cat"}, [NO_SHELL.format(">")]),
        ({"argv": "test 1 > 2"}, []),
        ({"argv": "[ 1 > 2 ]"}, []),
        ({"argv": "find . ;"}, []),
        ({"argv": "ls *.py", "output": "*.py: No such file"}, [NO_SHELL.format("*.py")]),
        ({"argv": "ls a?", "output": "a?: No such file"}, [NO_SHELL.format("a?")]),
        ({"argv": "ls *.py", "output": "*.py: denied"}, []),
        ({"argv": "ls *.py", "output": "b: No such file"}, []),
        ({"argv": "ls a.py", "output": "a.py: No such file"}, []),
        ({"argv": "*? a", "output": "*?: No such file"}, []),
        ({"argv": "ls", "code": 128}, []),
        ({"argv": "ls", "code": 129}, [f"ls {WAS_ENDED_BY} SIGHUP."]),
        (
            {"argv": "ls", "code": 137},
            [f"ls {WAS_ENDED_BY} SIGKILL. {MEMORY}"],
        ),
        ({"argv": "ls", "code": 255}, []),
        ({"argv": "curl x", "output": "Could not resolve host"}, [NETWORK]),
        ({"argv": "curl x", "output": "Could not resolve host", "network": True}, []),
        (
            {"argv": "cp", "output": "EROFS", "network": True},
            [WRITTEN],
        ),
    ],
)
def test_a_failure_is_explained(given: dict[str, Any], said: list[str]) -> None:
    assert told(**given) == said


def test_a_signal_is_an_exit_code_as_a_shell_gives_it() -> None:
    assert [exit_code(code) for code in (0, 1, 255, -1, -9)] == [0, 1, 255, 129, 137]
