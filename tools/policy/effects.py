"""The default policy, which judges a call by its tool's declared effects alone.

It knows no rules and no files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quoth.tools.call.call import Call, Verdict, ask
from quoth.tools.call.context import ToolContext
from quoth.tools.registry.table import HARMLESS, CognitiveTool

READING = frozenset({"reads"})
OWN = frozenset({"reads", "writes", "deletes", "memory", "asks"})  # what is the person's own
# Silent effects say in their own words why nobody is asked where no rule decides.
SILENT = {
    "memory": "it changes memory, as far as the blocks' permissions let it",
    "messages": "it sends a message",
    "asks": "it asks the person a question",
}
IN_WORDS = {
    "writes": "it writes files",
    "runs": "it runs a program",
    "net": "it uses the network",
    "deletes": "it deletes",
    "pays": "it pays",
}


class EffectsPolicy:
    """The default policy: a tool that reads, changes memory, sends messages, asks questions, or has no effect
    is allowed; any other needs approval."""

    def judge(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext
    ) -> Verdict:
        return by_effects(tool)

    def judge_unknown(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext, depends: str
    ) -> Verdict:
        return by_effects(tool)


def by_effects(tool: CognitiveTool) -> Verdict:
    """The default verdict on any call of this tool."""
    if felt := [IN_WORDS[effect] for effect in tool.effects if effect in IN_WORDS]:
        return ask(" and ".join(felt))
    if quiet := [SILENT[effect] for effect in tool.effects if effect in SILENT]:
        return Verdict("allow", " and ".join(quiet))
    return Verdict("allow", "it only reads" if tool.effects else "it touches nothing")


def with_maker(tool: CognitiveTool, reason: str) -> str:
    """Why a person is asked about a call of this tool, and that it is made elsewhere, if so."""
    return f"{reason}; a worker of {tool.remote} makes this call" if tool.remote else reason


def changes_nothing(tool: CognitiveTool) -> bool:
    """Whether its effects are at most to read and to ask a person: made twice, its call does no harm."""
    return HARMLESS.issuperset(tool.effects)


def is_of_own_files(tool: CognitiveTool) -> bool:
    """Whether its results are the person's own files and memory, which a model may write back whole."""
    return tool.ships and OWN.issuperset(tool.effects)


def only_reads(tool: CognitiveTool) -> bool:
    """Whether a dry run may make a call of this tool: it only reads, and is not expensive."""
    return READING.issuperset(tool.effects) and tool.cost != "expensive"
