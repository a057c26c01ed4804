"""quoth: a Lisp-inspired, homoiconic agent loop. This file is its public API, and ``quoth`` is the only
package installed.

Names are imported at first use, so that a command starts fast. From Hy:
``(require quoth [def-cognitive-tool def-shell-tool def-http-tool])``.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; importing typing here would delay agent/entry.py
if TYPE_CHECKING:
    from collections.abc import KeysView
    from typing import Any

    from quoth.agent.client import Agent as Agent
    from quoth.agent.client import AsyncAgent as AsyncAgent
    from quoth.agent.event_types import RunEvent as RunEvent
    from quoth.agent.event_types import Thought as Thought
    from quoth.agent.events import AgentEvent as AgentEvent
    from quoth.agent.events import EventKind as EventKind
    from quoth.agent.events import Listener as Listener
    from quoth.agent.events import SubAgent as SubAgent
    from quoth.agent.events import Waiting as Waiting
    from quoth.agent.flight.report import FlightReport as FlightReport
    from quoth.agent.flight.report import FlightStatus as FlightStatus
    from quoth.agent.flight.report import StepReport as StepReport
    from quoth.agent.plan.model import Plan as Plan
    from quoth.agent.replay.replay import Replay as Replay
    from quoth.agent.replay.replay import ReplayDifference as ReplayDifference
    from quoth.agent.reply import CallRecord as CallRecord
    from quoth.agent.reply import FollowUp as FollowUp
    from quoth.agent.reply import Output as Output
    from quoth.agent.reply import Reply as Reply
    from quoth.agent.reply import RunStatus as RunStatus
    from quoth.agent.reply import WrittenPlan as WrittenPlan
    from quoth.agent.run.channels import HostServices as HostServices
    from quoth.agent.run.compaction import Compaction as Compaction
    from quoth.agent.run.limits import AfterTags as AfterTags
    from quoth.agent.run.limits import RunLimits as RunLimits
    from quoth.agent.run.options import ModelChoice as ModelChoice
    from quoth.agent.run.options import ModelOptions as ModelOptions
    from quoth.agent.run.options import PolicyChoice as PolicyChoice
    from quoth.agent.run.options import PolicyOptions as PolicyOptions
    from quoth.agent.run.options import Review as Review
    from quoth.agent.run.options import ToolChoice as ToolChoice
    from quoth.agent.run.options import ToolOptions as ToolOptions
    from quoth.agent.run.runs import RunSettings as RunSettings
    from quoth.agent.run.spec import TaskFile as TaskFile
    from quoth.agent.session.index import Having as Having
    from quoth.neuro.backends.base import Backend as Backend
    from quoth.neuro.backends.base import Completion as Completion
    from quoth.neuro.backends.base import ModelError as ModelError
    from quoth.neuro.backends.base import PlainBackend as PlainBackend
    from quoth.neuro.backends.base import RequestOptions as RequestOptions
    from quoth.neuro.backends.base import Usage as Usage
    from quoth.neuro.backends.messages import Image as Image
    from quoth.neuro.backends.messages import Message as Message
    from quoth.neuro.backends.messages import Messages as Messages
    from quoth.neuro.backends.messages import NativeCall as NativeCall
    from quoth.neuro.backends.providers import ServerSettings as ServerSettings
    from quoth.neuro.backends.select import Scripted as Scripted
    from quoth.neuro.backends.select import ScriptedBackend as ScriptedBackend
    from quoth.neuro.backends.select import choose_backend as choose_backend
    from quoth.neuro.prompt.belt import belt as belt
    from quoth.neuro.reading.reply import ReplyStream as ReplyStream
    from quoth.neuro.reading.reply import read_reply as read_reply
    from quoth.neuro.reading.result import FoundCall as FoundCall
    from quoth.neuro.reading.result import Reading as Reading
    from quoth.tools.call.call import ArgumentOrigin as ArgumentOrigin
    from quoth.tools.call.call import Call as Call
    from quoth.tools.call.call import GateDecision as GateDecision
    from quoth.tools.call.call import Route as Route
    from quoth.tools.call.call import ToolResult as ToolResult
    from quoth.tools.call.call import ValueOrigin as ValueOrigin
    from quoth.tools.call.call import Verdict as Verdict
    from quoth.tools.call.call import allow as allow
    from quoth.tools.call.call import ask as ask
    from quoth.tools.call.call import deny as deny
    from quoth.tools.call.call import new_call as new_call
    from quoth.tools.call.context import AuditDetails as AuditDetails
    from quoth.tools.call.context import CallFailed as CallFailed
    from quoth.tools.call.context import Catalog as Catalog
    from quoth.tools.call.context import Dispatch as Dispatch
    from quoth.tools.call.context import NestedCall as NestedCall
    from quoth.tools.call.context import Origins as Origins
    from quoth.tools.call.context import Pages as Pages
    from quoth.tools.call.context import PausableClock as PausableClock
    from quoth.tools.call.context import Planning as Planning
    from quoth.tools.call.context import PreviewCall as PreviewCall
    from quoth.tools.call.context import ProgramRunner as ProgramRunner
    from quoth.tools.call.context import SavedValues as SavedValues
    from quoth.tools.call.context import Snapshots as Snapshots
    from quoth.tools.call.context import ToolContext as ToolContext
    from quoth.tools.call.context import current_context as current_context
    from quoth.tools.call.context import inside_workspace as inside_workspace
    from quoth.tools.call.keeping import Keeper as Keeper
    from quoth.tools.call.ports import Audit as Audit
    from quoth.tools.call.ports import Gate as Gate
    from quoth.tools.call.question import Question as Question
    from quoth.tools.call.service_types import Block as Block
    from quoth.tools.call.service_types import BlockKind as BlockKind
    from quoth.tools.call.service_types import BlockPermission as BlockPermission
    from quoth.tools.call.service_types import BlockVersion as BlockVersion
    from quoth.tools.call.service_types import Filed as Filed
    from quoth.tools.call.service_types import Known as Known
    from quoth.tools.call.service_types import Origin as Origin
    from quoth.tools.call.service_types import SearchDomain as SearchDomain
    from quoth.tools.call.service_types import SearchHit as SearchHit
    from quoth.tools.call.service_types import SearchOptions as SearchOptions
    from quoth.tools.call.service_types import SearchScope as SearchScope
    from quoth.tools.call.service_types import Source as Source
    from quoth.tools.call.service_types import WebHit as WebHit
    from quoth.tools.call.services import Embedder as Embedder
    from quoth.tools.call.services import KnowledgeBase as KnowledgeBase
    from quoth.tools.call.services import MemoryStore as MemoryStore
    from quoth.tools.call.services import ModelProvider as ModelProvider
    from quoth.tools.call.services import PermissionBroker as PermissionBroker
    from quoth.tools.call.services import Router as Router
    from quoth.tools.call.services import Search as Search
    from quoth.tools.call.services import Services as Services
    from quoth.tools.call.services import SharedBlocks as SharedBlocks
    from quoth.tools.call.services import SourceManager as SourceManager
    from quoth.tools.call.services import Team as Team
    from quoth.tools.call.services import WebSearch as WebSearch
    from quoth.tools.call.workspace import Workspace as Workspace
    from quoth.tools.catalog.connection import RedisUrl as RedisUrl
    from quoth.tools.catalog.remote_table import LiveCatalog as LiveCatalog
    from quoth.tools.catalog.remote_table import RemoteToolRegistry as RemoteToolRegistry
    from quoth.tools.consent.requests import Decision as Decision
    from quoth.tools.consent.requests import Person as Person
    from quoth.tools.consent.requests import Request as Request
    from quoth.tools.door.door import Door as Door
    from quoth.tools.errors import BusyError as BusyError
    from quoth.tools.errors import DefinitionError as DefinitionError
    from quoth.tools.errors import DuplicateToolError as DuplicateToolError
    from quoth.tools.errors import InvalidCallError as InvalidCallError
    from quoth.tools.errors import QuothError as QuothError
    from quoth.tools.errors import Status as Status
    from quoth.tools.errors import StoreError as StoreError
    from quoth.tools.errors import ToolError as ToolError
    from quoth.tools.errors import ToolNotFound as ToolNotFound
    from quoth.tools.errors import ToolRateLimited as ToolRateLimited
    from quoth.tools.errors import UnknownToolError as UnknownToolError
    from quoth.tools.errors import UsageError as UsageError
    from quoth.tools.knowledge.base import FileKnowledge as FileKnowledge
    from quoth.tools.knowledge.web_search import open_web_search as open_web_search
    from quoth.tools.lisp.forms import CallForm as CallForm
    from quoth.tools.lisp.printer import Code as Code
    from quoth.tools.loading import ToolSource as ToolSource
    from quoth.tools.memory.blocks import BlockMemory as BlockMemory
    from quoth.tools.memory.stored import Blocks as Blocks
    from quoth.tools.memory.stored import Delta as Delta
    from quoth.tools.policy.spending import Cooldown as Cooldown
    from quoth.tools.policy.spending import DailyBudget as DailyBudget
    from quoth.tools.policy.spending import Quota as Quota
    from quoth.tools.policy.spending import Rule as Rule
    from quoth.tools.program.compiler import Program as Program
    from quoth.tools.registry.define import define_tool as define_tool
    from quoth.tools.registry.define import registering_in as registering_in
    from quoth.tools.registry.function import FunctionSettings as FunctionSettings
    from quoth.tools.registry.function import ModelSettings as ModelSettings
    from quoth.tools.registry.function import ToolSettings as ToolSettings
    from quoth.tools.registry.function import cognitive_tool as cognitive_tool
    from quoth.tools.registry.function import tool_of as tool_of
    from quoth.tools.registry.param_types import WorkspacePath as WorkspacePath
    from quoth.tools.registry.parameters import Content as Content
    from quoth.tools.registry.parameters import Destination as Destination
    from quoth.tools.registry.parameters import Outside as Outside
    from quoth.tools.registry.parameters import Param as Param
    from quoth.tools.registry.parameters import Secret as Secret
    from quoth.tools.registry.parameters import Tag as Tag
    from quoth.tools.registry.parameters import Wire as Wire
    from quoth.tools.registry.returns import Returns as Returns
    from quoth.tools.registry.strict_model import StrictModel as StrictModel
    from quoth.tools.registry.table import CognitiveTool as CognitiveTool
    from quoth.tools.registry.table import ToolTable as ToolTable
    from quoth.tools.registry.table import cognitive_tools as cognitive_tools
    from quoth.tools.registry.tool import ServedTool as ServedTool
    from quoth.tools.typed_registry import EchoToolInput as EchoToolInput
    from quoth.tools.typed_registry import EchoToolOutput as EchoToolOutput
    from quoth.tools.typed_registry import Registry as Registry
    from quoth.tools.typed_registry import dispatch as dispatch
    from quoth.tools.typed_registry import echo_tool as echo_tool
    from quoth.tools.typed_registry import register as register
    from quoth.tools.typed_registry import registry as registry

_HOMES = {
    "agent.client": "Agent AsyncAgent",
    "agent.event_types": "RunEvent Thought",
    "agent.events": "AgentEvent EventKind Listener SubAgent Waiting",
    "agent.flight.report": "FlightReport FlightStatus StepReport",
    "agent.plan.model": "Plan",
    "agent.replay.replay": "Replay ReplayDifference",
    "agent.reply": "CallRecord FollowUp Output Reply RunStatus WrittenPlan",
    "agent.run.channels": "HostServices",
    "agent.run.compaction": "Compaction",
    "agent.run.limits": "AfterTags RunLimits",
    "agent.run.options": "ModelChoice ModelOptions PolicyChoice PolicyOptions Review ToolChoice ToolOptions",
    "agent.run.runs": "RunSettings",
    "agent.run.spec": "TaskFile",
    "agent.session.index": "Having",
    "neuro.backends.base": "Backend Completion ModelError PlainBackend RequestOptions Usage",
    "neuro.backends.messages": "Image Message Messages NativeCall",
    "neuro.backends.providers": "ServerSettings",
    "neuro.backends.select": "Scripted ScriptedBackend choose_backend",
    "neuro.prompt.belt": "belt",
    "neuro.reading.reply": "ReplyStream read_reply",
    "neuro.reading.result": "FoundCall Reading",
    "neuro.think": "ask_neuro begin_conversation think",
    "tools.call.call": "ArgumentOrigin Call GateDecision Route ToolResult "
    "ValueOrigin Verdict allow ask deny new_call",
    "tools.call.context": "AuditDetails CallFailed Catalog Dispatch NestedCall Origins Pages "
    "PausableClock Planning PreviewCall ProgramRunner SavedValues Snapshots ToolContext current_context "
    "inside_workspace",
    "tools.call.keeping": "Keeper",
    "tools.call.ports": "Audit Gate",
    "tools.call.question": "Question",
    "tools.call.service_types": "Block BlockKind BlockPermission BlockVersion Filed Known "
    "Origin SearchDomain SearchHit SearchOptions SearchScope Source WebHit",
    "tools.call.services": "Embedder KnowledgeBase MemoryStore ModelProvider PermissionBroker Router "
    "Search Services SharedBlocks SourceManager Team WebSearch",
    "tools.call.workspace": "Workspace",
    "tools.catalog.connection": "RedisUrl",
    "tools.catalog.remote_table": "LiveCatalog RemoteToolRegistry",
    "tools.consent.requests": "Decision Person Request",
    "tools.door.door": "Door",
    "tools.errors": "BusyError DefinitionError DuplicateToolError InvalidCallError QuothError Status "
    "StoreError ToolError ToolNotFound ToolRateLimited UnknownToolError UsageError",
    "tools.knowledge.base": "FileKnowledge",
    "tools.knowledge.web_search": "open_web_search",
    "tools.lisp.forms": "CallForm",
    "tools.lisp.printer": "Code",
    "tools.loading": "ToolSource",
    "tools.memory.blocks": "BlockMemory",
    "tools.memory.stored": "Blocks Delta",
    "tools.policy.spending": "Cooldown DailyBudget Quota Rule",
    "tools.program.compiler": "Program",
    "tools.registry.define": "define_tool registering_in",
    "tools.registry.function": "FunctionSettings ModelSettings ToolSettings cognitive_tool tool_of",
    "tools.registry.param_types": "WorkspacePath",
    "tools.registry.parameters": "Content Destination Outside Param Secret Tag Wire",
    "tools.registry.returns": "Returns",
    "tools.registry.strict_model": "StrictModel",
    "tools.registry.table": "CognitiveTool ToolTable cognitive_tools",
    "tools.registry.tool": "ServedTool",
    "tools.typed_registry": "EchoToolInput EchoToolOutput Registry dispatch echo_tool register registry",
}
_HOME_OF = {name: f"quoth.{module}" for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted([*_HOME_OF, "__version__"])


class _Macros(dict):  # type: ignore[type-arg]  # Any is not imported here
    """The macros for ``(require quoth […])``, loaded at the first use, because Hy takes 30 ms to import."""

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
