"""The command ``quoth knowledge``; its actions are in knowledge_actions.py.

It must not import them before they are wanted: every command would wait for it.
"""

from __future__ import annotations

from quoth.agent.cli.options import Commands


def add(commands: Commands) -> None:
    commands.group("knowledge", "See and forget what was filed in knowledge/.", _actions)


def _actions(commands: Commands) -> None:
    from quoth.agent.cli import knowledge_actions

    knowledge_actions.add(commands)
