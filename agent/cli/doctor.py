"""The command ``quoth doctor``: looks at what quoth needs on this machine, and says how to cure what fails.

Knows how findings are printed; the looking is in doctor_checks.py.
"""

from __future__ import annotations

import sys
import textwrap
from dataclasses import asdict, dataclass

from quoth.agent.cli.options import DONE, FAILED, Commands, Options, switch
from quoth.agent.terminal.output import columns_of, is_terminal, print_json, print_line
from quoth.tools.text import number_of

MARKS = {"ok": "ok", "note": "--", "wrong": "!!"}


@dataclass(init=False, repr=False, eq=False)
class DoctorOptions(Options):
    works_in_workspace = False
    check: bool = switch("--check", "ask the providers whose key is known, too")


def add(commands: Commands) -> None:
    about = (
        "Check the model, store, extras, keys, rights, terminal and Emacs, and say how to cure what is wrong."
    )
    commands.add("doctor", about, DoctorOptions, doctor)


def doctor(options: DoctorOptions) -> int:
    """Print what was found, each with its cure; the exit code is 1 if anything is wrong."""
    from quoth.agent.cli.doctor_checks import findings

    found = findings(options, options.check)
    wrong = [one for one in found if one.state == "wrong"]
    if options.json:
        print_json([asdict(one) for one in found])
        return FAILED if wrong else DONE
    width = max(len(one.name) for one in found)
    for one in found:
        room = columns_of(sys.stdout) - width - 6 if is_terminal(sys.stdout) else 10_000
        detail = textwrap.wrap(one.detail, max(room, 20), break_long_words=False, break_on_hyphens=False)
        print_line(f"{MARKS[one.state]}  {one.name:{width}}  {f'{chr(10):<{width + 7}}'.join(detail)}")
        if one.cure:
            print_line(f"    {'':{width}}  cure: {one.cure}")
    print_line("")
    print_line(f"{number_of(len(wrong), 'thing')} to cure." if wrong else "Nothing is wrong.")
    return FAILED if wrong else DONE
