"""The help of each command ends with two examples that can be typed as they are."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

import plain
import pytest
from words import quoth

from quoth.agent.cli.examples import EXAMPLES
from quoth.agent.cli.help import each
from quoth.agent.cli.main import parser
from quoth.agent.cli.options import parsed
from quoth.agent.settings import GROUPS


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


def test_help_fits_80_columns_and_begins_with_the_own_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    headings = {"arguments", "options", *GROUPS.values(), "examples"}
    for one in each(parser()):
        lines = one.format_help().splitlines()
        assert [line for line in lines if len(line) > 80] == []
        shown = [line[:-1] for line in lines if line.endswith(":") and line[:-1] in headings]
        order = ["arguments", "options", *dict.fromkeys(GROUPS.values()), "examples"]
        if one.prog != "quoth":
            assert shown == [heading for heading in order if heading in shown]
            assert "options" in shown


def test_each_option_says_what_it_does_in_plain_words() -> None:
    """A text of at least two words, with a default in parentheses or none, and without worn patterns."""
    texts = {
        (one.prog, action.dest): action.help
        for one in each(parser())
        for action in one._actions
        if action.help and action.help != argparse.SUPPRESS
    }
    assert len(texts) > 300
    short = [place for place, text in texts.items() if len(text.split()) < 2]
    assert short == []
    assert [place for place, text in texts.items() if plain._FOUND.search(text)] == []
    assert [place for place, text in texts.items() if text.endswith(".") or "(default " in text] == []
