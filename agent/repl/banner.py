"""What a REPL says of itself when it begins: the model, the folder, the session, the rules and a first task.

Knows an agent; it opens no model that is not named.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import islice
from pathlib import Path

from quoth.agent.client import AsyncAgent
from quoth.agent.terminal.pages import rules_line
from quoth.tools.errors import QuothError
from quoth.tools.policy.files import at_home
from quoth.tools.text import number_of

SUGGESTION = "What does {} say?"  # a task in words that the embedded model solves: tests/bench/first_task.py
TEXTS, LARGEST, LOOKED_AT = (".txt", ".md", ".org"), 2000, 500
NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
WAYS = "(form) evaluates Lisp, other text goes to the agent, ,help tells more."


def banner(agent: AsyncAgent) -> str:
    """A line for each."""
    tools = number_of(len(agent.host.listed().visible), "tool")
    rows = {
        "model": _model(agent),
        "folder": f"{at_home(agent.workspace.root)}, {tools}",
        "session": agent.session,
        "rules": rules_line(agent.policy),
    }
    if name := _smallest_text(agent.workspace.root):
        rows["try"] = SUGGESTION.format(name)
    return "\n".join([f"quoth. {WAYS}", *(f"  {name:<8} {said}" for name, said in rows.items())])


def _model(agent: AsyncAgent) -> str:
    try:
        return agent.models.backend().name
    except QuothError as error:
        return str(error)


def _smallest_text(folder: Path) -> str:
    """The smallest of the small text files of a folder, which a small model reads soonest; empty if none."""
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, LOOKED_AT):
            if (
                entry.name.endswith(TEXTS)
                and NAME.fullmatch(entry.name)
                and entry.is_file(follow_symlinks=False)
            ):
                found.append((entry.stat().st_size, entry.name))
    return min((one for one in found if 0 < one[0] <= LARGEST), default=(0, ""))[1]
