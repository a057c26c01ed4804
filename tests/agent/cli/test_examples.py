"""The help of each command ends with two examples that can be typed as they are."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from words import quoth

from quoth.agent.cli.completion import Level, levels
from quoth.agent.cli.examples import EXAMPLES
from quoth.agent.cli.main import parser
from quoth.agent.cli.options import parsed


def known() -> list[Level]:
    return list(levels(parser(), ""))


def words_of(line: str) -> list[str]:
    """The words for quoth in a line: what a pipe, a file or eval "$(…)" has is the shell's."""
    line = line.removeprefix('eval "$(').removesuffix(')"')
    return shlex.split(line.partition(" < ")[0].partition(" > ")[0])[1:]


def test_no_command_is_without_two_examples() -> None:
    assert set(EXAMPLES) == {one.words for one in known()}
    assert all(len(lines) == len(set(lines)) == 2 for lines in EXAMPLES.values())


@pytest.mark.parametrize("words", sorted(EXAMPLES))
def test_an_example_is_a_line_of_its_command(words: str) -> None:
    for line in EXAMPLES[words]:
        said = words_of(line)
        if words:
            assert said[: len(words.split())] == words.split()
        parsed(parser(), said)


def test_the_help_of_a_command_ends_with_its_examples(tmp_path: Path) -> None:
    said = quoth("memory", "list", "--help", cwd=tmp_path)
    assert said.out.endswith("\nexamples:\n  quoth memory list\n  quoth memory list --kind core --json\n")
