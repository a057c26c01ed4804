"""A program that is killed in its first inner call is on record, and continues."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from commands import quoth, started
from sentences import NOTHING_WAITS_IN_SESSION

TOOLS = """(require quoth [def-cognitive-tool])
(import pathlib [Path] time [sleep])
(def-cognitive-tool look
  "Look, once somebody lets it."
  :effects    [:reads]
  :body       (do (.touch (Path "begun"))
                  (while (not (.exists (Path "go"))) (sleep 0.01))
                  42))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.hy").write_text(TOOLS)
    return tmp_path


def killed(folder: Path, *words: str) -> None:
    """Kill a command once its tool has begun."""
    with started(*words, "--tools", "tools.hy", cwd=folder) as command:
        end = time.monotonic() + 60
        while not (folder / "begun").exists():
            assert command.process.poll() is None, command.stderr.read()
            assert time.monotonic() < end
            time.sleep(0.01)
        command.process.kill()
        command.process.wait()
    (folder / "go").touch()


@pytest.mark.parametrize("named", [["--session", "s"], []])
def test_a_program_that_was_killed_in_its_first_inner_call_is_found_and_goes_on(
    folder: Path, named: list[str]
) -> None:
    killed(folder, "eval", "(+ (look) 1)", *named)
    (session,) = json.loads(quoth("sessions", "--json", cwd=folder).out)
    said = quoth("resume", *named[1:], cwd=folder)
    assert (said.code, said.out) == (0, "43\n")
    said = quoth("resume", session["id"], cwd=folder)
    assert (said.code, said.err) == (2, f"quoth: {NOTHING_WAITS_IN_SESSION} {session['id']}.\n")


def test_a_program_inside_a_program_is_a_part_of_it(folder: Path) -> None:
    killed(folder, "eval", '(eval "(+ (look) 1)")', "--session", "s")
    assert quoth("resume", "s", cwd=folder).out == "43\n"
    assert quoth("resume", "s", cwd=folder).code == 2
