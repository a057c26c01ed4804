"""The command ``quoth help``: the pages of the manual, and what is found in them.

Knows how pages are looked up and shown; the words are in agent/manual.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from quoth.agent.cli.options import DONE, Commands, Options, argument, switch
from quoth.agent.terminal.output import is_dumb, is_terminal, print_json, print_line


@dataclass(init=False, repr=False, eq=False)
class HelpOptions(Options):
    works_in_workspace = False
    words: Sequence[str] = argument("TOPIC", "a page, or words to look for", nargs="*", default=())
    org: bool = switch("--org", "the Org text, for Emacs or a file")


def add(commands: Commands) -> None:
    commands.add("help", "Read the manual: a page, or what it says of some words.", HelpOptions, read_manual)


def read_manual(options: HelpOptions) -> int:
    from quoth.agent.manual.reading import answer, as_data

    if options.json:
        print_json(as_data(options.words))
        return DONE
    width = shutil.get_terminal_size((100, 24)).columns
    text = answer(options.words, width, org=options.org)
    if is_terminal(sys.stdout) and not options.org and not is_dumb():
        from quoth.agent.manual.reading import page_by_page

        page_by_page(text)
    else:
        print_line(text.rstrip("\n"))
    return DONE
