"""The commands and options that the manual and the README name exist."""

import argparse
import re
from functools import cache
from pathlib import Path

import pytest

from quoth.agent.cli.main import COMMANDS, parser
from quoth.agent.manual.pages import pages

KNOWN = {name for rows in COMMANDS.values() for name in rows}
README = Path(__file__).parents[3] / "README.org"
TEXTS = {"README": README.read_text(encoding="utf-8"), **{name: page.text for name, page in pages().items()}}
NAMED = re.compile(r"(?:^\w*\$ |=)quoth ([a-z]+)\b", re.MULTILINE)
LINE = re.compile(r"(?:^\w*\$ |=)quoth ((?:-[^\n=|]* )?)([a-z]+)\b([^\n=|#;&>\"']*)", re.MULTILINE)


def _flags(one: argparse.ArgumentParser) -> set[str]:
    """The options of a parser and of all parsers below it."""
    if fill := getattr(one, "fill", None):
        one.fill = None
        fill(one)
    flags = {flag for action in one._actions for flag in action.option_strings}
    for action in one._actions:
        if isinstance(action, argparse._SubParsersAction):
            flags.update(*map(_flags, action.choices.values()))
    return flags


@cache
def flags_of(command: str) -> frozenset[str]:
    return frozenset(_flags(parser([command])))


def unknown_flags(text: str) -> list[str]:
    return sorted(
        f"quoth {command} {flag}"
        for _, command, rest in LINE.findall(text)
        if command in KNOWN
        for flag in re.findall(r"(?<=\s)--[a-z][a-z-]*", rest.split(" -- ")[0])
        if flag not in flags_of(command)
    )


@pytest.mark.parametrize("name", TEXTS)
def test_each_option_that_a_page_gives_to_a_command_is_one_of_it(name):
    assert unknown_flags(TEXTS[name]) == []


def test_an_unknown_option_is_found():
    assert unknown_flags("$ quoth tools --json --nosuch\n") == ["quoth tools --nosuch"]


@pytest.mark.parametrize("name", TEXTS)
def test_each_command_that_a_page_names_exists(name):
    assert sorted({*NAMED.findall(TEXTS[name])} - KNOWN) == []


def test_commands_are_found_in_the_text():
    assert {*NAMED.findall("$ quoth nosuch\n see =quoth other --json=")} == {"nosuch", "other"}
