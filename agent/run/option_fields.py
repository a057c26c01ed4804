"""The fields of an agent's options that are keywords of Agent too, for type checkers: ``Agent(steps=3)``.

These are the fields that only one group has (options.py); a test compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from quoth.agent.run.limits import AfterTags
    from quoth.agent.run.options import Review
    from quoth.tools.call.ports import Audit, Gate
    from quoth.tools.call.services import (
        Embedder,
        KnowledgeBase,
        MemoryStore,
        Router,
        Search,
        SharedBlocks,
        Team,
        WebSearch,
    )
    from quoth.tools.catalog.connection import RedisUrl
    from quoth.tools.catalog.remote_table import LiveCatalog
    from quoth.tools.policy.spending import DailyBudget, Rule


class ToolFields(TypedDict, total=False):
    """The fields of ToolOptions."""

    belt: Literal["full", "few", "search"] | None
    without: Iterable[str]
    mcp: Iterable[str | Path]
    mcp_sampling: bool
    remote: str | RedisUrl | LiveCatalog | None
    local: Iterable[str]


class ModelFields(TypedDict, total=False):
    """The fields of ModelOptions."""

    base_url: str | None
    dialect: str | None
    must_act: bool | None
    after_tags: AfterTags | None


class PolicyFields(TypedDict, total=False):
    """The fields of PolicyOptions."""

    file: str | Path | None
    gate: Gate | str | Path | None
    quotas: Iterable[Rule]
    zone: str
    shared: str | RedisUrl | None
    budgets: Sequence[DailyBudget]
    gate_command: str | Sequence[str] | None
    agent: str | None
    review: str | Review | None


class ServiceFields(TypedDict, total=False):
    """The fields of HostServices."""

    memory: MemoryStore
    router: Router
    search: Search
    sources: Any
    shared_blocks: SharedBlocks
    team: Team
    knowledge_base: KnowledgeBase
    web_search: WebSearch
    knowledge: str | None
    confidence: float | None
    agent_id: str
    audit: Audit | None
    memory_url: str | None
    embedder: Embedder | None
    channels: Mapping[str, str | Path]
    channel: str
    trace: str | Path | None
    trace_content: bool


class LimitFields(TypedDict, total=False):
    """The fields of RunLimits."""

    steps: int
    calls: int
    repeats: int
    window: float
    faults: int
    result_chars: int
    context: int | None
    tokens: int | None
    cost: float | None
    seconds: float | None
    parallel: int


class OptionFields(ToolFields, ModelFields, PolicyFields, ServiceFields, LimitFields, total=False):
    """The fields of all groups."""
