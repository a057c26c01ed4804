"""What can be done, and the one door to it. Knows nothing of models (neuro) or loops (agent).

Names are imported at first use, so that a command which only lists tools does not pay for what runs them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tools import hycache

if TYPE_CHECKING:
    from tools.consent import Decision
    from tools.context import (
        Call,
        GateDecision,
        ToolContext,
        ToolError,
        ToolResult,
        Verdict,
        ask,
        current_context,
        deny,
    )
    from tools.define import cognitive_tool, define_tool, registering_in
    from tools.door import Door, dispatch, new_call
    from tools.errors import (
        DefinitionError,
        DuplicateToolError,
        InvalidCallError,
        QuothError,
        UnknownToolError,
    )
    from tools.form import CallForm, Code
    from tools.records import Block, SearchHit, SearchOptions, Source
    from tools.schema import WorkspacePath
    from tools.services import Services
    from tools.table import CognitiveTool, ToolTable, cognitive_tools
    from tools.workspace import Workspace, inside_workspace

hycache.install()

_HOMES = {
    "tools.consent": "Decision",
    "tools.context": "Call GateDecision ToolContext ToolError ToolResult Verdict ask current_context deny",
    "tools.define": "cognitive_tool define_tool registering_in",
    "tools.door": "Door dispatch new_call",
    "tools.errors": "DefinitionError DuplicateToolError InvalidCallError QuothError UnknownToolError",
    "tools.form": "CallForm Code",
    "tools.records": "Block SearchHit SearchOptions Source",
    "tools.schema": "WorkspacePath",
    "tools.services": "Services",
    "tools.table": "CognitiveTool ToolTable cognitive_tools",
    "tools.workspace": "Workspace inside_workspace",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Block",
    "Call",
    "CallForm",
    "Code",
    "CognitiveTool",
    "Decision",
    "DefinitionError",
    "Door",
    "DuplicateToolError",
    "GateDecision",
    "InvalidCallError",
    "QuothError",
    "SearchHit",
    "SearchOptions",
    "Services",
    "Source",
    "StrictModel",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "ToolTable",
    "UnknownToolError",
    "Verdict",
    "Workspace",
    "WorkspacePath",
    "ask",
    "cognitive_tool",
    "cognitive_tools",
    "current_context",
    "define_tool",
    "deny",
    "dispatch",
    "inside_workspace",
    "new_call",
    "registering_in",
]


def __getattr__(name: str) -> Any:
    if name == "StrictModel":
        return import_module("tools.schema").strict_model()
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'tools' has no attribute {name!r}")
