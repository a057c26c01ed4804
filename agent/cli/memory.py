"""The command ``quoth memory``; its actions are in memory_looks.py and memory_changes.py.

It must not import them before they are wanted: their options are many, and every command would wait.
"""

from __future__ import annotations

from quoth.agent.cli.options import Commands


def add(commands: Commands) -> None:
    commands.group("memory", "See, search and change what is remembered.", _actions)


def _actions(commands: Commands) -> None:
    from quoth.agent.cli import memory_looks

    memory_looks.add(commands)
