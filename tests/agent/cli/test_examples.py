"""The help of each command ends with two examples that can be typed as they are."""

from __future__ import annotations

import shlex
from pathlib import Path

from words import quoth

from quoth.agent.cli.examples import EXAMPLES
from quoth.agent.cli.help import each
from quoth.agent.cli.main import parser
from quoth.agent.cli.options import parsed


def words_of(line: str) -> list[str]:
    """The words for quoth in a line: what a pipe, a file or eval "$(…)" has is the shell's."""
    line = line.removeprefix('eval "$(').removesuffix(')"')
    return shlex.split(line.partition(" < ")[0].partition(" > ")[0])[1:]


def test_each_command_has_two_examples_that_are_lines_of_it() -> None:
    whole = parser()
    assert set(EXAMPLES) == {one.prog.removeprefix("quoth").strip() for one in each(whole)}
    for words, lines in EXAMPLES.items():
        assert len(set(lines)) == 2
        for said in map(words_of, lines):
            assert said[: len(words.split())] == words.split()
            parsed(whole, said)


def test_the_help_of_a_command_ends_with_its_examples(tmp_path: Path) -> None:
    said = quoth("memory", "list", "--help", cwd=tmp_path)
    assert said.out.endswith("\nexamples:\n  quoth memory list\n  quoth memory list --kind core --json\n")
