"""The command ``quoth completion``: a script with which a shell completes commands, options and files.

Knows which words the parser lists nowhere, and which name in the help stands for a path; shtab writes the
script.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from quoth.agent.cli.options import DONE, Commands, Options, argument
from quoth.agent.cli.parser import Parser
from quoth.agent.terminal.output import print_json, print_line
from quoth.tools.errors import UsageError, did_you_mean
from quoth.tools.visible import visible

SHELLS = ("bash", "zsh", "fish")
# What the arguments may be of which the parser knows no choices, and the parts of a name that mean a file.
WORDS = {
    "ACTION": ("login", "logout"),
    "KIND": ("tool", "plan", "policy", "bridge"),
    "SHELL": SHELLS,
    "verify": ("verify",),
}
FILES = ("FILE", "PATH", "PLAN", "SESSION")


@dataclass(init=False, repr=False, eq=False)
class CompletionOptions(Options):
    works_in_workspace = False
    shell: str = argument("SHELL", "bash, zsh or fish")


def add(commands: Commands) -> None:
    about = "Print a script with which a shell completes commands, options and files."
    whole = commands.whole
    commands.add("completion", about, CompletionOptions, lambda options: completion(options, whole))


def completion(options: CompletionOptions, whole: Parser | None) -> int:
    import shtab

    if options.shell not in SHELLS:
        hint = did_you_mean(options.shell, SHELLS) or f" There are {', '.join(SHELLS)}."
        raise UsageError(f"There is no completion for {visible(options.shell)}.{hint}")
    assert whole is not None, "it is a command and no action"
    for action in (action for parser in each(whole) for action in parser._actions):
        name = action.metavar if isinstance(action.metavar, str) else ""
        if name in WORDS and not (action.option_strings or action.choices):
            action.choices = WORDS[name]
        elif name == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif any(part in name for part in FILES):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    script = shtab.complete(whole, options.shell)
    print_json({"shell": options.shell, "script": script}) if options.json else print_line(script)
    return DONE


def each(parser: Parser) -> Iterator[Parser]:
    """A parser, and those of its commands and their actions, each with all its options."""
    if parser.fill is not None:
        fill, parser.fill = parser.fill, None
        fill(parser)
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from each(inner)
