"""quoth: a Lisp-inspired, homoiconic agent loop. This file is its public API, and ``quoth`` is the only
package installed.

Names are imported at first use, so that a command starts fast. From Hy:
``(require quoth [def-cognitive-tool def-shell-tool def-http-tool])``.
"""

from __future__ import annotations

TYPE_CHECKING = (
    False  # what a type checker takes for true; typing itself would be imported before agent/entry.py
)
if TYPE_CHECKING:
    from collections.abc import KeysView
    from typing import Any

    from quoth.agent.client import Agent, AsyncAgent
    from quoth.agent.events import RunEvent
    from quoth.agent.flight.report import FlightReport
    from quoth.agent.reply import Reply
    from quoth.agent.run.host_services import HostServices
    from quoth.agent.run.options import ModelOptions, PolicyOptions, ToolOptions
    from quoth.agent.run.run import RunLimits
    from quoth.neuro.backends.base import Backend, Completion, ModelError, Usage
    from quoth.neuro.backends.messages import Messages
    from quoth.neuro.backends.scripted import ScriptedBackend
    from quoth.neuro.backends.select import choose_backend
    from quoth.neuro.prompt.belt import belt
    from quoth.neuro.reading.reply import read_reply
    from quoth.neuro.reading.stream import ReplyStream
    from quoth.tools.call.call import Call, GateDecision, ToolResult, Verdict, allow, ask, deny, new_call
    from quoth.tools.call.context import ToolContext, current_context, inside_workspace
    from quoth.tools.call.service_types import (
        Block,
        Filed,
        Known,
        Origin,
        SearchHit,
        SearchOptions,
        Source,
        WebHit,
    )
    from quoth.tools.call.services import Services
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.consent.requests import Decision
    from quoth.tools.door.door import Door
    from quoth.tools.errors import (
        DefinitionError,
        DuplicateToolError,
        InvalidCallError,
        QuothError,
        ToolError,
        ToolNotFound,
        ToolRateLimited,
        UnknownToolError,
        UsageError,
    )
    from quoth.tools.knowledge.base import FileKnowledge
    from quoth.tools.knowledge.web_search import open_web_search
    from quoth.tools.lisp.forms import CallForm
    from quoth.tools.lisp.printer import Code
    from quoth.tools.memory.blocks import BlockMemory
    from quoth.tools.memory.versions import Delta
    from quoth.tools.policy.spending import DailyBudget
    from quoth.tools.registry.define import cognitive_tool, define_tool, registering_in
    from quoth.tools.registry.strict_model import StrictModel
    from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools
    from quoth.tools.typed_registry import (
        EchoToolInput,
        EchoToolOutput,
        Registry,
        dispatch,
        echo_tool,
        register,
        registry,
    )

_HOMES = {
    "agent.client": "Agent AsyncAgent",
    "agent.events": "RunEvent",
    "agent.flight.report": "FlightReport",
    "agent.reply": "Reply",
    "agent.run.host_services": "HostServices",
    "agent.run.options": "ModelOptions PolicyOptions ToolOptions",
    "agent.run.run": "RunLimits",
    "neuro.backends.base": "Backend Completion ModelError Usage",
    "neuro.backends.messages": "Messages",
    "neuro.backends.scripted": "ScriptedBackend",
    "neuro.backends.select": "choose_backend",
    "neuro.prompt.belt": "belt",
    "neuro.reading.reply": "read_reply",
    "neuro.reading.stream": "ReplyStream",
    "neuro.think": "ask_neuro begin_conversation think",
    "tools.call.call": "Call GateDecision ToolResult Verdict allow ask deny new_call",
    "tools.call.context": "ToolContext current_context inside_workspace",
    "tools.call.service_types": "Block Filed Known Origin SearchHit SearchOptions Source WebHit",
    "tools.call.services": "Services",
    "tools.call.workspace": "Workspace",
    "tools.consent.requests": "Decision",
    "tools.door.door": "Door",
    "tools.errors": "DefinitionError DuplicateToolError InvalidCallError "
    "QuothError ToolError ToolNotFound ToolRateLimited UnknownToolError UsageError",
    "tools.knowledge.base": "FileKnowledge",
    "tools.knowledge.web_search": "open_web_search",
    "tools.lisp.forms": "CallForm",
    "tools.lisp.printer": "Code",
    "tools.memory.blocks": "BlockMemory",
    "tools.memory.versions": "Delta",
    "tools.policy.spending": "DailyBudget",
    "tools.registry.define": "cognitive_tool define_tool registering_in",
    "tools.registry.strict_model": "StrictModel",
    "tools.registry.table": "CognitiveTool ToolTable cognitive_tools",
    "tools.typed_registry": "EchoToolInput EchoToolOutput Registry dispatch echo_tool register registry",
}
_HOME_OF = {name: f"quoth.{module}" for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Agent",
    "AsyncAgent",
    "Backend",
    "Block",
    "BlockMemory",
    "Call",
    "CallForm",
    "Code",
    "CognitiveTool",
    "Completion",
    "DailyBudget",
    "Decision",
    "DefinitionError",
    "Delta",
    "Door",
    "DuplicateToolError",
    "EchoToolInput",
    "EchoToolOutput",
    "FileKnowledge",
    "Filed",
    "FlightReport",
    "GateDecision",
    "HostServices",
    "InvalidCallError",
    "Known",
    "Messages",
    "ModelError",
    "ModelOptions",
    "Origin",
    "PolicyOptions",
    "QuothError",
    "Registry",
    "Reply",
    "ReplyStream",
    "RunEvent",
    "RunLimits",
    "ScriptedBackend",
    "SearchHit",
    "SearchOptions",
    "Services",
    "Source",
    "StrictModel",
    "ToolContext",
    "ToolError",
    "ToolNotFound",
    "ToolOptions",
    "ToolRateLimited",
    "ToolResult",
    "ToolTable",
    "UnknownToolError",
    "Usage",
    "UsageError",
    "Verdict",
    "WebHit",
    "Workspace",
    "__version__",
    "allow",
    "ask",
    "ask_neuro",
    "begin_conversation",
    "belt",
    "choose_backend",
    "cognitive_tool",
    "cognitive_tools",
    "current_context",
    "define_tool",
    "deny",
    "dispatch",
    "echo_tool",
    "inside_workspace",
    "new_call",
    "open_web_search",
    "read_reply",
    "register",
    "registering_in",
    "registry",
    "think",
]


class _Macros(dict):  # type: ignore[type-arg]  # Any is not imported here
    """The macros for ``(require quoth […])``, loaded when somebody asks for one: Hy costs 30 ms."""

    def _load(self) -> None:
        if not super().__len__():
            from importlib import import_module

            self.update(import_module("quoth.tools.macros")._hy_macros)

    def __len__(self) -> int:
        self._load()
        return super().__len__()

    def __contains__(self, name: object) -> bool:
        self._load()
        return super().__contains__(name)

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        self._load()
        return super().keys()


_hy_macros = _Macros()


def __getattr__(name: str) -> Any:
    import sys
    from importlib import import_module

    if name == "__version__":
        from importlib.metadata import version

        return version("quoth")
    if name in _HOME_OF:
        if sys.platform == "win32":
            from quoth.agent.entry import NO_WINDOWS

            raise ImportError(NO_WINDOWS)
        value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
        return value
    raise AttributeError(f"module 'quoth' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
