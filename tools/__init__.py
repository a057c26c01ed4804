"""What can be done, and the one door to it. Knows nothing of models (neuro) or loops (agent).

Names are imported at first use, so that a command which only lists tools does not pay for what runs them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from quoth.tools import hy_loader as hycache

if TYPE_CHECKING:
    from quoth.tools.consent.broker import Decision
    from quoth.tools.call.context import Call, GateDecision, ToolContext, ToolError, ToolResult, Verdict, ask, current_context, deny
    from quoth.tools.registry.define import cognitive_tool, define_tool, registering_in
    from quoth.tools.door.door import Door, dispatch, new_call
    from quoth.tools.errors import DefinitionError, DuplicateToolError, InvalidCallError, QuothError, UnknownToolError
    from quoth.tools.lisp.forms import CallForm, Code
    from quoth.tools.call.service_types import Block, SearchHit, SearchOptions, Source
    from quoth.tools.registry.parameters import WorkspacePath
    from quoth.tools.call.services import Services
    from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools
    from quoth.tools.call.workspace import Workspace, inside_workspace

hycache.install()

_HOMES = {
    "quoth.tools.consent.broker": "Decision",
    "quoth.tools.call.context": "Call GateDecision ToolContext ToolError ToolResult Verdict ask current_context deny",
    "quoth.tools.registry.define": "cognitive_tool define_tool registering_in",
    "quoth.tools.door.door": "Door dispatch new_call",
    "quoth.tools.errors": "DefinitionError DuplicateToolError InvalidCallError QuothError UnknownToolError",
    "quoth.tools.lisp.forms": "CallForm Code",
    "quoth.tools.call.service_types": "Block SearchHit SearchOptions Source",
    "quoth.tools.registry.parameters": "WorkspacePath",
    "quoth.tools.call.services": "Services",
    "quoth.tools.registry.table": "CognitiveTool ToolTable cognitive_tools",
    "quoth.tools.call.workspace": "Workspace inside_workspace",
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
        return import_module("quoth.tools.registry.parameters").strict_model()
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'tools' has no attribute {name!r}")
