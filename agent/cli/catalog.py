"""The command ``quoth catalog``; its actions are in catalog_actions.py and dead_letters.py.

It must not import them before they are wanted: every command would wait for it.
"""

from __future__ import annotations

from quoth.agent.cli.options import Commands


def add(commands: Commands) -> None:
    commands.group("catalog", "Publish tools in Redis for other machines, and see what is there.", _actions)


def _actions(commands: Commands) -> None:
    from quoth.agent.cli import catalog_actions, dead_letters

    catalog_actions.add(commands)
    dead_letters.add(commands)
