"""The parts of an agent, assembled once and held open: table, door, model, store, session.

Knows what a call needs; it must not know conversations, flights, replays or the public face.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Literal, Self

from quoth.agent.config.loading import load_config
from quoth.agent.events import Listener, RunEvent
from quoth.agent.run.channels import HostRouter
from quoth.agent.run.event_stream import EventSource
from quoth.agent.run.host_services import service_options
from quoth.agent.run.model_service import OwnModel
from quoth.agent.run.models import Models
from quoth.agent.run.offers import Offers
from quoth.agent.run.options import (
    ModelChoice,
    PolicyChoice,
    PolicyOptions,
    Settings,
    ToolChoice,
    model_options,
    policy_options,
    run_limits,
    takes_fields,
    tool_options,
    with_longest,
    workspace_of,
)
from quoth.agent.run.own_memory import OwnMemory, with_own
from quoth.agent.run.own_programs import OwnPrograms, SandboxAtFirstUse, boundary_of
from quoth.agent.run.purse import Funds
from quoth.agent.run.run import RUNNING, RunLimits
from quoth.agent.run.subagents import services_for
from quoth.agent.session.drift import told_versions
from quoth.agent.session.index import new_session, session_of_chat
from quoth.agent.session.origins import HostOrigins
from quoth.agent.session.session import Session
from quoth.agent.terminal.input import user_name
from quoth.agent.trace.opening import open_tracer
from quoth.neuro.prompt.belt import BeltCatalog
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import Limits
from quoth.tools.call.services import NO_MODEL, NO_ROUTER, NO_SOURCES, Embedder, Services
from quoth.tools.call.values import encodable
from quoth.tools.consent.broker import Broker
from quoth.tools.consent.requests import Person, SayYes
from quoth.tools.door import threads
from quoth.tools.door.door import Door
from quoth.tools.errors import UsageError
from quoth.tools.history.audit import StoreAudit
from quoth.tools.history.call_log import StoreCallLog
from quoth.tools.history.long_results import StorePages
from quoth.tools.history.receipts import StoreReceipts
from quoth.tools.history.transcript import Transcript
from quoth.tools.history.versions import StoreVersions
from quoth.tools.knowledge.skill_folders import has_skills
from quoth.tools.loading import KNOWLEDGE_RULES, with_shown
from quoth.tools.once import Once
from quoth.tools.policy.files import load_policy
from quoth.tools.policy.limits import StoreLimits
from quoth.tools.policy.offer import offered
from quoth.tools.policy.spending import Spending
from quoth.tools.registry.table import ToolTable
from quoth.tools.sandbox.snapshots import StoreSnapshots
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path
from quoth.tools.storage.shared_store import WorkspaceStore

# Called before a person is asked about a call of this context: a flight saves its plan.
BEFORE_ASKING: ContextVar[Callable[[], object]] = ContextVar("BEFORE_ASKING", default=lambda: None)


class Host(EventSource):
    """The assembled parts of an agent."""

    @takes_fields
    def __init__(
        self,
        *,
        workspace: str | Path | None = None,
        tools: ToolChoice = (),
        model: ModelChoice | None = None,
        policy: PolicyChoice | None = None,
        consent: Person | Literal["yes"] | None = None,
        limits: RunLimits | None = None,
        services: Services | None = None,
        session: str | None = None,
        user: str | None = None,
        on_event: Listener | None = None,
        instructions: str | None = None,
        temperature: float | None = None,
        timeout: float | None = None,
        api_key: str | None = None,
        reply_tokens: int | None = None,
        plan: bool = False,
    ) -> None:
        """Put an agent together. Raises UsageError for what cannot be used, with a sentence.

        ``workspace`` is the one folder its file tools may touch: ``workspace="shop"``; None is the project's
        root, found from the current folder as the command finds it.
        ``tools`` are ``.hy`` and ``.py`` files, or CognitiveTools, beside those that ship,
        ``tools=["shop.hy", double]``; a ToolTable in place of them all; or
        ``tools=ToolOptions(["shop.hy"], belt="search")``.
        ``model`` is a spec, ``model="local"``, ``"openai:…"`` or ``"scripted:talk.txt"``; a Backend; None for
        the default; or ``model=ModelOptions("openai:gpt-x", base_url="http://…", dialect="native")``.
        ``policy`` is a file of rules beside those of the user and of the workspace: ``policy="rules.hy"``;
        or ``policy=PolicyOptions("rules.hy", quotas=[Quota("search", 3, per="hour")])``.
        ``consent`` answers what policy and guards ask: ``consent="yes"``, an object with ``request``
        (tools/consent/requests.py, Person), or None: such a call is pending at once, ``broker`` takes the
        decision, and ``resume`` goes on.
        ``limits`` are those of each run: ``limits=RunLimits(steps=10, reply_tokens=2000, cost=0.5)``.
        ``services`` are what tools may use beside the workspace: ``services=Services(memory=notes)``; or
        ``services=HostServices(memory=notes, knowledge="It is blue.")`` for what the host knows. Without a
        memory it has that of the workspace.
        ``session`` names the session to go on with or to begin, ``session="monday"``; None is a new one.
        ``user`` is who speaks, ``user="ann"``; None is the user of this machine.
        ``on_event`` is told what happens in a run: ``on_event=lambda event: print(event.kind)``.

        ``instructions`` are told to the model before any task: ``instructions="Answer in German."``.
        ``temperature`` is that of sampling: ``temperature=0.7``.
        ``timeout`` is how many seconds a server may be silent: ``timeout=30``.
        ``api_key`` is its key: ``api_key="sk-…"``, or ``"@FILE"``.
        ``reply_tokens`` is the longest reply: ``reply_tokens=2000``. ``RunLimits(tokens=…)`` bounds a
        whole run.
        ``plan=True`` is plan mode: of the model's calls only those that read are made, and the others become
        steps of a flight plan, which the Reply names.

        A field of one of these groups can be given by itself: ``base_url="http://…"``. Each of them can be
        imported from quoth; help(ToolOptions) and the like tell of their fields.
        """
        if not (consent is None or consent == "yes" or hasattr(consent, "request")):
            raise UsageError(f'consent is "yes", None or an object with a method request, not {consent!r}.')
        user = user or user_name()
        for name, word in (("user", user), ("session", session or "")):
            if encodable(word) != word:
                raise UsageError(f"The {name} {encodable(word)} is no text: half of a character is in it.")
        policies, tooling = policy_options(policy), tool_options(tools)
        options = model_options(model).overridden(
            instructions=instructions, temperature=temperature, timeout=timeout, api_key=api_key
        )
        given = service_options(services)
        self.agent_id, self.knowledge, self.confidence = given.agent_id, given.knowledge, given.confidence
        self.workspace = workspace_of(workspace, policies, tooling, options)
        self.workspace.loaded = tuple(map(Path, tooling.files))
        self.config = load_config(self.workspace.root)
        self._gates = tuple(policies.open_gate_programs(self.config, lambda: self.table.secrets))
        self.workspace.protect(file for gate in self._gates for file in gate.files)
        self.limits = with_longest(run_limits(limits, self.config), reply_tokens)
        rules = KNOWLEDGE_RULES if given.gathers else None
        self.policy = load_policy(self.workspace.root, policies.file, shipped=rules)
        table = tooling.load(knowledge=given.gathers)
        table = table if given.sources is NO_SOURCES else with_shown(table, "sources")
        self.table = with_shown(table, "skill") if has_skills(self.workspace.root) else table
        self._opened_store = WorkspaceStore(self.workspace.root)
        self.audit = given.audit or StoreAudit(self._opened_store)
        self.hear(on_event)
        self.tracer = open_tracer(given.trace, content=given.trace_content)
        self._remote = tooling.open_remote(self.table, self.audit, self._tell_note)
        if self._remote is not None:
            self.table = self._remote.table
        self.models = Models(options, self.config, search=tooling.searched)
        self.channel = given.channel
        self.user = user
        self.session = session or new_session()
        self.named = session or ""
        self.chat = ""
        self.plan = plan
        self._given = given
        self._consent = consent
        self.offers = Offers(self.policy)
        self._closed = False
        self._troubled = ""
        self._shared = policies.open_shared()
        a_day = (*policies.budgets, *self.config.daily)
        daily = Spending(self._opened_store, a_day, zone=policies.zone)
        self.funds = Funds(daily, self.config.providers)
        self._open_records()
        self._open_session()
        self.door = self._make_door(policies)
        chosen = Settings(options, tooling, policies, given, self.limits, plan).opening()
        if memory := "given" if self.services.memory is not self._memory else given.memory_kind:
            chosen["memory"] = memory
        # Read-only: the hosts of chats are copies, and a change of one must not reach another.
        self._options: Mapping[str, Any] = MappingProxyType(chosen)
        if given.memory_url:
            self._memory.opened()  # what is wrong with the URL is said now

    def _asked(self, request: str) -> None:
        """Tell that a call waits for a person."""
        BEFORE_ASKING.get()()
        run = RUNNING.get()
        if (self.listener if run is None else run.listener) is not None:
            event = RunEvent("question", self.broker.find(request))
            (self.tell if run is None else run.pass_on)(event)

    def _shows(self, text: str) -> None:
        """Tell what a program of a call writes, as it comes."""
        run = RUNNING.get()
        (self.tell if run is None else run.pass_on)(RunEvent("output", text))

    def _open_records(self) -> None:
        """Open the records of calls and runs, the broker of approvals, and the sandbox."""
        self._sandbox = SandboxAtFirstUse()
        self._embedder = Once(self._choose_embedder)
        self.catalog = BeltCatalog(self.listed(), self._embedder)
        self._snapshots = StoreSnapshots(self._opened_store)
        person = SayYes() if self._consent == "yes" else self._consent
        self.broker = Broker(
            self._opened_store,
            self.table,
            self.workspace,
            person=person,
            audit=self.audit,
            channel=self.channel,
            asked=self._asked,
            rows=self._shared.requests(self._opened_store) if self._shared else None,
        )
        self.transcript = Transcript(self._opened_store)
        self.call_log = StoreCallLog(self.transcript, self.table.secrets)
        self.origins = HostOrigins(self.transcript, lambda: self.table, self.call_log.running)

    def _open_record(self) -> None:
        """Open the record of one session."""
        self.pages = StorePages(self._opened_store, self.session, self.user, self.limits.result_chars)
        store = store_path(self.workspace.root)
        self._session = Session(self.transcript, self.session, self.user, store, self.origins)

    def _open_session(self) -> None:
        """Open what belongs to one session: its record, its memory, its programs, the way to its people."""
        given = self._given
        self._open_record()
        self._memory = OwnMemory(self._open_memory)
        self._programs = OwnPrograms()
        self.services = with_own(given.for_tools, self._memory)
        if self.services.router is NO_ROUTER:
            router = HostRouter(self._to_user, given.channels, self.agent_id)
            self.services = replace(self.services, router=router)
        if self.services.model is NO_MODEL:
            self.services = replace(self.services, model=OwnModel(self.models.backend, tracer=self.tracer))

    def overridden(self, overrides: Mapping[str, Any]) -> Self:
        """This host, or for a run with ``overrides``, by the names of ``run``, one that shares the rest."""
        said = {name: value for name, value in overrides.items() if value is not None}
        limits = with_longest(self.limits, said.pop("reply_tokens", None))
        models = self.models.overridden(said)
        if models is self.models and limits is self.limits:
            return self
        made = copy.copy(self)
        made.models, made.limits = models, limits
        self.workspace.hide(models.options.key_file)
        return made

    def for_chat(self, chat: str, session: str = "") -> Self:
        """A host for one chat, with the parts of this one, which must outlive it: a session of its own, whose
        name comes of the chat's unless it is given, and a conversation and memory of its own."""
        self._require_open()
        made = copy.copy(self)
        made.chat, made.channel = chat, "chat"
        made.session = made.named = session or session_of_chat(chat)
        made.agent_id = f"{self.agent_id}-{session_of_chat(chat)}"
        made.hear(None)
        made._open_session()
        return made

    def _choose_embedder(self) -> Embedder | None:
        from quoth.neuro.embed.select import choose_embedder  # here: most calls use none

        return self._given.embedder or choose_embedder()

    def _open_memory(self) -> Any:
        """The memory of this agent: in the workspace's store, or where the host said."""
        from quoth.neuro.embed.select import embedder_named  # here: most calls use none
        from quoth.tools.memory.opening import open_memory

        return open_memory(
            self._given.memory_url,
            self._opened_store,
            self.agent_id,
            user=self.session if self.chat else self.user,  # whose conversations it searches
            embedder=self._embedder(),
            older=embedder_named,
        )

    def _make_door(self, policies: PolicyOptions) -> Door:
        counted = [limit.counts for limit in self.policy.limits]
        self.policy.counted = True
        rules = [*policies.quotas, *counted]
        if self._shared is None:
            limits: Limits = StoreLimits(self._opened_store, rules, zone=policies.zone)
        else:
            limits = self._shared.limits(rules, zone=policies.zone)
        return Door(
            self.table,
            policy=self.policy,
            consent=self.broker,
            gate=policies.open_gate(),
            after=self.config.after,
            gate_programs=self._gates,
            audit=self.audit,
            receipts=StoreReceipts(self._opened_store, window=self.limits.window),
            log=self.call_log,
            versions=StoreVersions(self._opened_store, self.workspace.root),
            together=self._opened_store.together,
            on_disk=self._opened_store.on_disk,
            limits=limits,
            tracer=self.tracer,
        )

    @property
    def store(self) -> Store:
        """The store of the workspace, opened at the first use."""
        return self._opened_store()

    def use_store(self, store: Store) -> None:
        """Use a store of the workspace that is already open; ``aclose`` closes it."""
        self._opened_store.opened = store

    def context(
        self,
        user_message: str = "",
        *,
        user: str = "",
        knowledge: str = "",
        services: Services | None = None,
    ) -> ToolContext:
        """The context of a call of this agent: its user and session, and the services that a tool may use, by
        default those of a call that is part of no run."""
        return ToolContext(
            self.workspace,
            user=user or self.user,
            session=self.session,
            user_message=user_message,
            sandbox=self._sandbox,
            snapshots=self._snapshots,
            agent_id=self.agent_id,
            knowledge=knowledge or self.knowledge,
            confidence=self.confidence,
            services=services_for(self) if services is None else services,
            catalog=self.catalog,
            pages=self.pages,
            chat=self.chat,
            shows=self._shows,
            programs=self._programs.opened,
            boundary=boundary_of(self.config.shell, self.workspace.root, skills="skill" in self.table.shown),
            known_files=self._session.files,
            origins=self.origins,
        )

    def listed(self) -> ToolTable:
        """The tools without those that the rules deny the user always, whatever the way of the call."""
        return offered(self.table, self.policy, self.user)

    def given(self) -> dict[str, Any]:
        """The data of the session's opening: what is needed to rebuild this agent, and its versions."""
        return {
            "user": self.user,
            **self._options,
            **({"chat": self.chat} if self.chat else {}),
            "versions": told_versions(tool for tool in self.table if not tool.remote),
            **({} if self._remote is None else {"remote-versions": self._remote.versions}),
            "rules": self.policy.digest,
        }

    async def renew(self) -> ToolTable:
        """The tools as they are now. From here on this agent has these, where remote ones have changed."""
        if self._remote is None:
            return self.table
        table = await self._remote.newest()
        if (trouble := self._remote.trouble) != self._troubled:
            self._troubled = trouble
            if trouble:
                self._tell_note(f"The remote tools stay as they were. {trouble}")
        if table is not self.table:
            self._take(table)
        return table

    def use_tools(self, table: ToolTable) -> None:
        """Have these tools from here on, or those of the table as it has become."""
        self._take(table)

    def _take(self, table: ToolTable) -> None:
        self.table, self.door = table, self.door.with_tools(table)
        self.catalog = self.catalog.of(self.listed())
        self.broker.use(table)
        self.call_log.also_hide(table.secrets)
        self._session.open_again(self.given)

    def interrupt(self) -> bool:
        """Stop the current run or flight: the model at once, a call within a second; a run's Reply then says
        ``interrupted``. A pending question to a person is withdrawn, and its call waits.

        False when there is nothing to stop, or it was already interrupted."""
        asking = bool(getattr(self._consent, "asking", False))
        run = self._running
        if run is not None and not run.interrupted:
            run.interrupt(asking)
        elif not asking:
            return False
        self.broker.interrupt()  # its call ends by that
        return True

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("This agent is closed.")

    async def aclose(self) -> None:
        """Interrupt what is in progress, end the programs in the background, then close the sandbox, the
        models, the memory and the store; of a chat only its memory. May be called twice."""
        self._closed = True
        await self.stop_all(self.interrupt)
        await self._programs.aclose()
        if self.chat:
            await self._memory.aclose()
            return
        async with contextlib.AsyncExitStack() as ending:
            ending.callback(threads.end_idle)
            ending.callback(self._opened_store.close)
            if self._shared is not None:
                ending.callback(self._shared.close)
            ending.push_async_callback(self._memory.aclose)
            ending.push_async_callback(self.models.aclose)
            ending.push_async_callback(self._sandbox.aclose)
            if self._remote is not None:
                ending.push_async_callback(self._remote.aclose)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
