"""Finds out who the user is, and whether a person can be asked.

Knows the environment only.
"""

from __future__ import annotations

import getpass
import os
import sys

from quoth.agent.terminal.output import is_terminal
from quoth.tools.errors import UsageError


def user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def is_inside() -> bool:
    """Whether a tool has started this process, directly or indirectly."""
    from quoth.tools.shell.at_work import is_started_by_program
    from quoth.tools.shell.view import INSIDE

    return bool(os.environ.get(INSIDE)) or is_started_by_program()  # a program may clear its environment


def require_person() -> None:
    """Raise UsageError if a tool has started this process."""
    if is_inside():
        raise UsageError("A program that a tool runs cannot decide what tools may do.")


def can_be_asked(no_input: bool = False) -> bool:
    """Whether a person can be asked: stdin and stderr are a terminal, and no tool started this process."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr) and not no_input and not is_inside()
