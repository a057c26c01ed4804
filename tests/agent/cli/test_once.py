"""A command opens the store of its workspace once, and reads a plan once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from words import files

from quoth.agent.cli.main import main
from quoth.agent.flight.plan_file import PlanFile
from quoth.tools.storage.database import Store

WRITE = '(write-file :path "a.txt" :content "x")'
PLAN = """* PLAN Look
  #+begin_src hy
  (read-file :path "r.txt")
  #+end_src
"""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many of each were made by the commands so far."""
    count: Counter[str] = Counter()
    for kind in (Store, PlanFile):

        def begin(self: Any, *args: Any, _kind: Any = kind, _init: Any = kind.__init__, **more: Any) -> None:
            count[_kind.__name__] += 1
            _init(self, *args, **more)

        monkeypatch.setattr(kind, "__init__", begin)
    return count


def test_a_command_opens_the_store_once_and_reads_a_plan_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    made: Counter[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    files(tmp_path, {"r.txt": "Done.\n---\nDone.", "p.org": PLAN})

    def request(session: str, code: int = 3) -> str:
        assert main(["call", WRITE, "--session", session, "--no-input"]) == code
        found = re.search(r"quoth approve (\S+),", capsys.readouterr().err)
        assert found, "it waits"
        return found[1]

    first, second, third = request("s1"), request("s2"), request("s3")
    commands: list[list[str]] = [
        ["pending"],
        ["approve", first],
        ["approve", second, "--scope", "--yes"],
        ["approve", third, "--edit", '(write-file :path "b.txt" :content "y")'],
        ["resume", "s1"],
        ["run", "Go.", "--model", "scripted:r.txt", "--session", "s4"],
        ["resume", "s4", "Go", "on."],
        ["sessions"],
        ["log", "s1"],
        ["audit", "verify"],
        ["fork", "s1"],
        ["export", "s1", "s1.hy"],
        ["import", "s1.hy", "--as", "s5"],
        ["rm", "s5", "--yes"],
        ["fly", "p.org", "--check"],
        ["fly", "p.org", "--dry-run"],
        ["approve", "p.org"],
        ["fly", "p.org"],
    ]
    for words in commands:
        made.clear()
        assert main(words) == 0, (words, capsys.readouterr())
        assert made["Store"] == 1, words
        assert made["PlanFile"] == ("p.org" in words), words
