"""The process that runs one program under Landlock; a library in place of sandlock shows what it may do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from words import files

from quoth.tools.shell import landlock_child
from quoth.tools.shell.landlock import filter_program

LIBRARY = """
import json
class ExitReason:
    EXITED = "exited"
class Sandbox:
    def __init__(self, **rules):
        self.rules = rules
    def popen(self, words):
        with open("/proc/self/status") as file:
            status = dict(line.split(":") for line in file if line.count(":") == 1)
        print(json.dumps({"rules": self.rules, "words": words, "status": status}), flush=True)
        self.reason, self.exit_code, self.signal = words[0], int(words[1]), int(words[1])
        return self
    def wait(self):
        return self
"""


def started(folder: Path, *words: str, instructions: bytes = b"") -> tuple[int, dict[str, Any]]:
    """The exit code of the process, and what the library saw."""
    library = files(folder, {"sandlock.py": LIBRARY})
    script = str(landlock_child.__file__)
    given = (str(library), instructions.hex(), json.dumps({"readable": ["/usr"]}), *words)
    done = subprocess.run(
        [sys.executable, "-I", "-S", script, *given], capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, json.loads(done.stdout)


def test_a_program_starts_with_its_rules_and_without_rights(tmp_path: Path) -> None:
    _, seen = started(tmp_path, "exited", "0", instructions=filter_program())
    assert seen["words"] == ["exited", "0"]
    assert seen["rules"]["readable"] == ["/usr"]
    assert "ptrace" in seen["rules"]["extra_deny_syscalls"]
    status = {name: text.strip() for name, text in seen["status"].items()}
    assert {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {0}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_where_no_filter_is_known_none_is_set(tmp_path: Path) -> None:
    code, seen = started(tmp_path, "exited", "0")
    assert code == 0
    assert seen["status"]["NoNewPrivs"].strip() == "1"


@pytest.mark.parametrize(
    ("how", "number", "code"),
    [
        ("exited", "0", 0),
        ("exited", "7", 7),
        ("killed", "15", 143),
        ("killed", "1", 129),
        ("killed", "0", 137),
        ("killed", "-1", 137),
    ],
)
def test_its_exit_code_is_the_program_s(tmp_path: Path, how: str, number: str, code: int) -> None:
    assert started(tmp_path, how, number)[0] == code
