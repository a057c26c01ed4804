"""What a REPL says of itself when it begins: the model, the folder, the session and the rules.

Knows an agent; it opens no model that is not named.
"""

from __future__ import annotations

from quoth.agent.client import AsyncAgent
from quoth.agent.terminal.policy_page import rules_line
from quoth.tools.errors import QuothError
from quoth.tools.policy.files import at_home
from quoth.tools.text import number_of

WAYS = "(form) evaluates Lisp, other text goes to the agent, ,help tells more."


def banner(agent: AsyncAgent) -> str:
    """A line for each."""
    tools = number_of(len(agent.listed().visible), "tool")
    rows = {
        "model": _model(agent),
        "folder": f"{at_home(agent.workspace.root)}, {tools}",
        "session": agent.session,
        "rules": rules_line(agent.policy),
    }
    return "\n".join([f"quoth. {WAYS}", *(f"  {name:<8} {said}" for name, said in rows.items())])


def _model(agent: AsyncAgent) -> str:
    try:
        return agent.models.backend().name
    except QuothError as error:
        return str(error)
