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

    from quoth.agent.client import Agent as Agent
    from quoth.agent.client import AsyncAgent as AsyncAgent
    from quoth.agent.events import RunEvent as RunEvent
    from quoth.agent.flight.report import FlightReport as FlightReport
    from quoth.agent.reply import Reply as Reply
    from quoth.agent.run.channels import HostServices as HostServices
    from quoth.agent.run.options import ModelOptions as ModelOptions
    from quoth.agent.run.options import PolicyOptions as PolicyOptions
    from quoth.agent.run.options import ToolOptions as ToolOptions
    from quoth.agent.run.run import RunLimits as RunLimits
    from quoth.neuro.backends.base import Backend as Backend
    from quoth.neuro.backends.base import Completion as Completion
    from quoth.neuro.backends.base import ModelError as ModelError
    from quoth.neuro.backends.base import Usage as Usage
    from quoth.neuro.backends.messages import Messages as Messages
    from quoth.neuro.backends.scripted import ScriptedBackend as ScriptedBackend
    from quoth.neuro.backends.select import choose_backend as choose_backend
    from quoth.neuro.prompt.belt import belt as belt
    from quoth.neuro.reading.reply import ReplyStream as ReplyStream
    from quoth.neuro.reading.reply import read_reply as read_reply
    from quoth.tools.call.call import Call as Call
    from quoth.tools.call.call import GateDecision as GateDecision
    from quoth.tools.call.call import ToolResult as ToolResult
    from quoth.tools.call.call import Verdict as Verdict
    from quoth.tools.call.call import allow as allow
    from quoth.tools.call.call import ask as ask
    from quoth.tools.call.call import deny as deny
    from quoth.tools.call.call import new_call as new_call
    from quoth.tools.call.context import ToolContext as ToolContext
    from quoth.tools.call.context import current_context as current_context
    from quoth.tools.call.context import inside_workspace as inside_workspace
    from quoth.tools.call.nested import CallFailed as CallFailed
    from quoth.tools.call.nested import NestedCall as NestedCall
    from quoth.tools.call.service_types import Block as Block
    from quoth.tools.call.service_types import Filed as Filed
    from quoth.tools.call.service_types import Known as Known
    from quoth.tools.call.service_types import Origin as Origin
    from quoth.tools.call.service_types import SearchHit as SearchHit
    from quoth.tools.call.service_types import SearchOptions as SearchOptions
    from quoth.tools.call.service_types import Source as Source
    from quoth.tools.call.service_types import WebHit as WebHit
    from quoth.tools.call.services import Services as Services
    from quoth.tools.call.workspace import Workspace as Workspace
    from quoth.tools.consent.requests import Decision as Decision
    from quoth.tools.door.door import Door as Door
    from quoth.tools.errors import DefinitionError as DefinitionError
    from quoth.tools.errors import DuplicateToolError as DuplicateToolError
    from quoth.tools.errors import InvalidCallError as InvalidCallError
    from quoth.tools.errors import QuothError as QuothError
    from quoth.tools.errors import ToolError as ToolError
    from quoth.tools.errors import ToolNotFound as ToolNotFound
    from quoth.tools.errors import ToolRateLimited as ToolRateLimited
    from quoth.tools.errors import UnknownToolError as UnknownToolError
    from quoth.tools.errors import UsageError as UsageError
    from quoth.tools.knowledge.base import FileKnowledge as FileKnowledge
    from quoth.tools.knowledge.web_search import open_web_search as open_web_search
    from quoth.tools.lisp.forms import CallForm as CallForm
    from quoth.tools.lisp.printer import Code as Code
    from quoth.tools.memory.blocks import BlockMemory as BlockMemory
    from quoth.tools.memory.stored import Delta as Delta
    from quoth.tools.policy.spending import DailyBudget as DailyBudget
    from quoth.tools.registry.define import define_tool as define_tool
    from quoth.tools.registry.define import registering_in as registering_in
    from quoth.tools.registry.function import cognitive_tool as cognitive_tool
    from quoth.tools.registry.function import tool_of as tool_of
    from quoth.tools.registry.strict_model import StrictModel as StrictModel
    from quoth.tools.registry.table import CognitiveTool as CognitiveTool
    from quoth.tools.registry.table import ToolTable as ToolTable
    from quoth.tools.registry.table import cognitive_tools as cognitive_tools
    from quoth.tools.typed_registry import EchoToolInput as EchoToolInput
    from quoth.tools.typed_registry import EchoToolOutput as EchoToolOutput
    from quoth.tools.typed_registry import Registry as Registry
    from quoth.tools.typed_registry import dispatch as dispatch
    from quoth.tools.typed_registry import echo_tool as echo_tool
    from quoth.tools.typed_registry import register as register
    from quoth.tools.typed_registry import registry as registry

_HOMES = {
    "agent.client": "Agent AsyncAgent",
    "agent.events": "RunEvent",
    "agent.flight.report": "FlightReport",
    "agent.reply": "Reply",
    "agent.run.channels": "HostServices",
    "agent.run.options": "ModelOptions PolicyOptions ToolOptions",
    "agent.run.run": "RunLimits",
    "neuro.backends.base": "Backend Completion ModelError Usage",
    "neuro.backends.messages": "Messages",
    "neuro.backends.scripted": "ScriptedBackend",
    "neuro.backends.select": "choose_backend",
    "neuro.prompt.belt": "belt",
    "neuro.reading.reply": "ReplyStream read_reply",
    "neuro.think": "ask_neuro begin_conversation think",
    "tools.call.call": "Call GateDecision ToolResult Verdict allow ask deny new_call",
    "tools.call.context": "ToolContext current_context inside_workspace",
    "tools.call.nested": "CallFailed NestedCall",
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
    "tools.memory.stored": "Delta",
    "tools.policy.spending": "DailyBudget",
    "tools.registry.define": "define_tool registering_in",
    "tools.registry.function": "cognitive_tool tool_of",
    "tools.registry.strict_model": "StrictModel",
    "tools.registry.table": "CognitiveTool ToolTable cognitive_tools",
    "tools.typed_registry": "EchoToolInput EchoToolOutput Registry dispatch echo_tool register registry",
}
_HOME_OF = {name: f"quoth.{module}" for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted([*_HOME_OF, "__version__"])


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
