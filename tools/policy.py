"""What may be done without asking, judged by a tool's declared effects.

Knows nothing of doors or people. Reading and computing are allowed; whatever can change something is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from tools.context import ALLOW, Call, Verdict, ask
from tools.table import CognitiveTool

SILENT_EFFECTS = frozenset({"reads"})
IN_WORDS = {
    "writes": "it writes files",
    "runs": "it runs a program",
    "net": "it uses the network",
    "memory": "it changes memory",
}


class Policy(Protocol):
    """Judges a validated call before its guard runs."""

    def judge(self, tool: CognitiveTool, call: Call, args: Mapping[str, Any]) -> Verdict: ...


class EffectsPolicy:
    """The built-in layer: a tool that only reads, or touches nothing, is allowed; any other is asked."""

    def judge(self, tool: CognitiveTool, call: Call, args: Mapping[str, Any]) -> Verdict:
        felt = [IN_WORDS[effect] for effect in tool.effects if effect not in SILENT_EFFECTS]
        return ask(" and ".join(felt)) if felt else ALLOW
