"""The few tools that fit a task by its words, shown in full to a small model. The others are one line of
names, and can be called.

A task that follows in the same conversation adds the tools that fit it."""

from __future__ import annotations

from collections.abc import Sequence

from quoth.agent.run.evidence import asked_by
from quoth.neuro.prompt.belt import few_text, named_by, word_scores
from quoth.tools.registry.table import ToolTable

MOST = 6  # measured with the embedded models by tests/bench/everyday.py
OTHERS = 2  # of these, for words of the task
SURE = 4  # the score of one word in a tool's name, which a question needs
FOR_QUESTIONS = ("read-file", "grep-search", "eval", "list-files")
USUAL = ("read-file", "grep-search", "edit-file", "write-file", "eval", "list-files")


def fitting(table: ToolTable, task: str) -> tuple[str, ...]:
    """The names of the tools that fit a task, in the order of the table; empty if all of them are few."""
    names = table.shown.names()
    if len(names) <= MOST:
        return ()
    asks, named = asked_by(task).only_asks, named_by(table, task)
    usual = [name for name in (FOR_QUESTIONS if asks else USUAL) if name in names]
    scores = word_scores(table, task)
    others = sorted((name for name in names if name not in USUAL), key=lambda name: -scores[name])
    sure = [name for name in others if (name in named if asks else scores[name] >= SURE)][:OTHERS]
    rest = usual if len(usual) >= len(FOR_QUESTIONS) else [*usual, *others]  # a table of other tools
    chosen = {*dict.fromkeys([*sure, *rest][:MOST])}
    return tuple(name for name in names if name in chosen)


def also_fitting(table: ToolTable, before: Sequence[str], now: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """The tools shown in full from a next task on, and the message for the model about the new ones. Without
    ``now`` the model sees all of them."""
    if not before:
        return (), ""
    names = table.shown.names()
    new = [name for name in now or names if name not in before and name in names]
    return ((*before, *new) if now else ()), few_text(table, new)
