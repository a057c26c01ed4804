"""The parts of an agent that all its sessions and chats share, made once from its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from quoth.agent.config.config import Config
from quoth.agent.config.loading import load_config
from quoth.agent.events import AgentEvent
from quoth.agent.reply import CallRecord
from quoth.agent.run.budget import Budget, Funds, Purse
from quoth.agent.run.channels import HostServices
from quoth.agent.run.event_stream import Events
from quoth.agent.run.limits import RUNNING, RunLimits
from quoth.agent.run.models import Models
from quoth.agent.run.options import PolicyOptions, Review, Settings, run_limits, workspace_of
from quoth.agent.run.own import OwnSandbox, RemoteTools
from quoth.agent.run.servers import served
from quoth.agent.session.origins import HostOrigins
from quoth.agent.trace.opening import open_tracer
from quoth.tools.call.call import Call, Route, ToolResult
from quoth.tools.call.ports import Limits, Reviewer
from quoth.tools.call.redaction import Redactor
from quoth.tools.call.services import NO_MEMORY, NO_SOURCES, Embedder
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent.broker import Broker
from quoth.tools.consent.requests import Person, SayYes
from quoth.tools.door.door import Door
from quoth.tools.history.audit import StoreAudit
from quoth.tools.history.receipts import StoreCallLog, StoreReceipts, key_in
from quoth.tools.history.transcript import Transcript
from quoth.tools.history.versions import StoreVersions
from quoth.tools.knowledge.skill_folders import has_skills
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.loading import KNOWLEDGE_RULES, with_shown
from quoth.tools.policy.files import load_policy
from quoth.tools.policy.limits import StoreLimits
from quoth.tools.policy.offer import offered, ways
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.policy.spending import Spending
from quoth.tools.registry.table import ToolTable
from quoth.tools.storage.paths import worktree_place
from quoth.tools.storage.shared_store import WorkspaceStore

if TYPE_CHECKING:
    from quoth.agent.trace.tracer import Tracer
    from quoth.neuro.prompt.dialects import Dialect
    from quoth.tools.mcp.servers import LiveServers


# The tools for the model of a run, without tools that the rules always deny to its user.


MOST_OFFERED = 100  # maximum number of cached tables


class Offers:
    """The tools that these rules offer, cached for each user, route and kind of dialect."""

    def __init__(self, policy: RulesPolicy) -> None:
        self._policy = policy
        self._offered: dict[tuple[str, Route, bool], tuple[ToolTable, int]] = {}  # with its change count

    def table(
        self,
        table: ToolTable,
        dialect: Dialect,
        user: str,
        route: Route = "reply",
        before: Iterable[str] = (),
    ) -> ToolTable:
        """The table of a run in this dialect. It hides the tools that the rules deny this user (or
        ALL_SPEAKERS of a chat) for all arguments, and the tools that were hidden from its model
        ``before``."""
        from quoth.neuro.prompt.dialects import RUN  # here: a call of a person has no dialect

        programs = dialect.name == RUN.name
        kind, changes = (user, route, programs), table.whole.changes
        made, known = self._offered.get(kind, (None, 0))
        # All runs share it, so that it is searched quickly, until a tool is defined or replaced.
        if made is None or made.whole is not table.whole or known != changes:
            routes = ways(table, self._policy, user, route, programs=programs)
            if len(self._offered) >= MOST_OFFERED:  # a chat may have any number of speakers
                self._offered.clear()
            made = offered(table, self._policy, user, routes)
            self._offered[kind] = made, changes
        return made if made.hidden.issuperset(before) else table.hiding(made.hidden.union(before))


# Called before a person is asked about a call of this context: a flight then saves its plan.
BEFORE_ASKING: ContextVar[Callable[[], object]] = ContextVar("BEFORE_ASKING", default=lambda: None)


class ForeignTools(NamedTuple):
    """The parts behind tools that run elsewhere."""

    remote: RemoteTools | None
    servers: LiveServers | None


@dataclass(frozen=True, eq=False, repr=False)
class AgentParts:
    """The parts of an agent. A session with other tools, models or settings replaces them in its own
    SessionHost, never here."""

    workspace: Workspace  # the folder that file tools may touch, and forbidden files in it
    config: Config  # the user's config.hy
    policy: RulesPolicy  # the rules of user, workspace and agent
    door: Door  # the door to the tools at the agent's start
    store: WorkspaceStore  # the database of the workspace, opened at the first use
    transcript: Transcript  # the events of all sessions in it
    call_log: StoreCallLog  # writes calls and receipts as events
    origins: HostOrigins  # the origins of a call's values, from the events of its session
    broker: Broker  # requests for approval, and the person for them
    sandbox: OwnSandbox  # the process pool for a model's programs
    embedder: Callable[[], Embedder | None]  # turns texts into vectors; chosen at the first use
    models: Models  # the agent's model, and others that its tools ask
    limits: RunLimits  # what each run may spend
    funds: Funds  # what each user may spend in a day
    offers: Offers  # a cache of the tools that the rules leave a user
    services: HostServices  # the host's services for tools, unchanged
    tracer: Tracer | None  # records spans of runs and calls; None: untraced
    foreign: ForeignTools  # the catalog and the MCP servers whose tools are in its table
    closing: AsyncExitStack  # ends what else was opened for the agent alone
    settings: Mapping[str, Any]  # the settings in an opening, from which resume rebuilds the agent

    @property
    def remote(self) -> RemoteTools | None:
        """The tools of a catalog; None: there is none."""
        return self.foreign.remote

    @property
    def servers(self) -> LiveServers | None:
        """The MCP servers; None: none is configured."""
        return self.foreign.servers


def open_parts(
    folder: str | Path | None,
    settings: Settings,
    consent: Person | Literal["yes"] | None,
    events: Events,
    session: str,
) -> AgentParts:
    """Make the parts of an agent for the workspace in ``folder`` (None: the project's root), or for the
    worktree of ``session``. ``events`` gets notice of requests for approval and of remote tools. Raises
    UsageError."""
    tools, model, policy, services = settings.tools, settings.model, settings.policy, settings.services
    workspace = workspace_of(folder, policy, tools, model)
    root = workspace.home
    workspace.loaded = tuple(map(Path, tools.files))
    config = load_config(root)
    agent = None
    if policy.agent:
        from quoth.agent.config.agents import load_agent  # here: most agents are not of agents/NAME.hy

        agent = load_agent(policy.agent, config)
        config = agent.config
    for file in config.mcp or ():
        workspace.hide(Path(file))
    gates = tuple(policy.open_gate_programs(config, lambda: broker.table.secrets))
    workspace.protect(file for gate in gates for file in gate.files)
    begins = ""
    if settings.worktree or worktree_place(root, session) is not None:  # where it began
        from quoth.agent.run.worktrees import open_worktree  # here: most agents work in the project

        workspace, begins = open_worktree(workspace, session)
    limits = run_limits(settings.limits, config)
    more = () if agent is None else (agent.layer,)
    rules = load_policy(root, policy.file, more=more, shipped=KNOWLEDGE_RULES if services.gathers else None)
    rules.notes = (*rules.notes, begins) if begins else rules.notes
    table = tools.load(knowledge=services.gathers)
    table = table if services.sources is NO_SOURCES else with_shown(table, "sources")
    table = with_shown(table, "skill") if has_skills(root) else table
    store = WorkspaceStore(root)
    audit = services.audit or StoreAudit(store)
    tracer = open_tracer(services.trace, content=services.trace_content)
    remote = tools.open_remote(table, audit, events.note)
    table = table if remote is None else remote.table
    table, servers = served(
        table, root, tools.mcp, config, lambda: rules.effects, sampling=tools.mcp_sampling
    )
    shared = policy.open_shared()
    closing = AsyncExitStack()
    if shared is not None:
        closing.callback(shared.close)
    if servers is not None:
        rules.notes = (*rules.notes, *servers.notes)
        closing.push_async_callback(servers.aclose)
    if agent is not None:
        rules.notes = (*rules.notes, *agent.unmatched(table.names()))
    models = Models(model, config, belt=tools.belt)
    funds = Funds(Spending(store, (*policy.budgets, *config.daily), zone=policy.zone), config.providers)
    broker = Broker(
        store,
        table,
        workspace,
        person=SayYes() if consent == "yes" else consent,
        audit=audit,
        channel=services.channel,
        asked=lambda request: _tell_asked(events, broker, request),
        rows=shared.requests(store) if shared else None,
        reviewer=_reviewer(
            policy,
            config,
            rules,
            models,
            lambda: origins,
            lambda user: Purse(Budget.of(limits), funds, user),
        ),
    )
    transcript = Transcript(store)
    call_log = StoreCallLog(transcript, table.secrets)
    origins = HostOrigins(transcript, lambda: broker.table, call_log.running)
    rules.counted = True
    counted = [*policy.quotas, *(limit.counts for limit in rules.limits)]
    counter: Limits = (
        StoreLimits(store, counted, zone=policy.zone)
        if shared is None
        else shared.limits(counted, zone=policy.zone)
    )
    door = Door(
        table,
        policy=rules,
        consent=broker,
        gate=policy.open_gate(),
        after=config.after,
        gate_programs=gates,
        audit=audit,
        receipts=StoreReceipts(store, window=limits.window),
        log=call_log,
        versions=StoreVersions(store, workspace.home),
        together=store.together,
        on_disk=store.on_disk,
        limits=counter,
        tracer=tracer,
        client=services.client,
        inner=partial(_tell_inner, events, lambda: broker.table),
    )
    opening = replace(settings, limits=limits).opening()
    if memory := "given" if services.memory is not NO_MEMORY else services.memory_kind:
        opening["memory"] = memory
    return AgentParts(
        workspace=workspace,
        config=config,
        policy=rules,
        door=door,
        store=store,
        transcript=transcript,
        call_log=call_log,
        origins=origins,
        broker=broker,
        sandbox=OwnSandbox(store),
        embedder=cache(lambda: _embedder(services)),
        models=models,
        limits=limits,
        funds=funds,
        offers=Offers(rules),
        services=services,
        tracer=tracer,
        foreign=ForeignTools(remote, servers),
        closing=closing,
        settings=MappingProxyType(opening),
    )


def _reviewer(
    policy: PolicyOptions,
    config: Config,
    rules: RulesPolicy,
    models: Models,
    origins: Callable[[], HostOrigins],
    purse: Callable[[str], Purse],
) -> Reviewer | None:
    """The model that looks at calls before a person is asked; None if there is none. Raises UsageError."""
    if (given := policy.review or config.review) is None:
        return None
    from quoth.agent.run.review import ModelReviewer  # here: most agents have none

    return ModelReviewer(Review.of(given), models, rules, lambda call: origins().words(call), purse)


def _embedder(services: HostServices) -> Embedder | None:
    from quoth.neuro.embed.select import choose_embedder  # here: most calls use none

    return services.embedder or choose_embedder()


def _tell_asked(events: Events, broker: Broker, request: str) -> None:
    """Report that a call waits for a person: to the run of the call, or to the agent."""
    BEFORE_ASKING.get()()
    if _is_heard(events):
        asked = broker.find(request)
        tell(events, AgentEvent("question", asked, call=asked.call, parent=asked.parent or ""))


def _tell_inner(
    events: Events, table: Callable[[], ToolTable], call: Call, result: ToolResult | None
) -> None:
    """Tell of a call that a program or a tool makes, and of its result, without declared secrets."""
    if not _is_heard(events):
        return
    shown = Redactor.of(call.form, table(), by_looks=False).form
    parent = call.parent or ""
    if result is None:
        tell(events, AgentEvent("call", shown, call=call.id, parent=parent))
    else:
        record = CallRecord(call.form, result, shown, key=key_in(call))
        tell(events, AgentEvent("result", record, call=call.id, parent=parent))


def tell(events: Events, event: AgentEvent) -> None:
    """Send an event to the listener of the run whose call runs now, or of the agent."""
    run = RUNNING.get()
    (events.tell if run is None else run.pass_on)(event)


def _is_heard(events: Events) -> bool:
    run = RUNNING.get()
    return (events.listener if run is None else run.listener) is not None
