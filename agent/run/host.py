"""The host of one session: its record, memory, programs and listener, and the parts that its agent shares."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from quoth.agent.config.config import Config
from quoth.agent.events import AgentEvent, Listener
from quoth.agent.run.channels import HostRouter, service_options
from quoth.agent.run.crowd import join, leave
from quoth.agent.run.event_stream import Events, Stoppable
from quoth.agent.run.limits import RunLimits
from quoth.agent.run.models import Models, OwnModel
from quoth.agent.run.options import (
    ModelChoice,
    PolicyChoice,
    Settings,
    ToolChoice,
    kept,
    model_options,
    policy_options,
    run_limits,
    takes_fields,
    tool_options,
    with_longest,
)
from quoth.agent.run.own import OwnMemory, OwnPrograms, boundary_of, with_own
from quoth.agent.run.parts import AgentParts, open_parts, tell
from quoth.agent.session.drift import ToolDrift, changes_of, told_versions
from quoth.agent.session.index import new_session, session_of_chat
from quoth.agent.session.session import Session
from quoth.agent.terminal.input import user_name
from quoth.agent.terminal.output import complain
from quoth.neuro.prompt.belt import BeltCatalog
from quoth.tools.call.context import ToolContext
from quoth.tools.call.services import NO_MODEL, NO_ROUTER, NO_SERVICES, Services
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent.broker import Broker
from quoth.tools.consent.requests import Person
from quoth.tools.door.door import Door
from quoth.tools.door.execution import end_idle_threads
from quoth.tools.errors import BusyError, UsageError
from quoth.tools.history.long_results import StorePages
from quoth.tools.history.transcript import Transcript
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.policy.offer import offered
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.table import ToolTable
from quoth.tools.registry.values import encodable
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

if TYPE_CHECKING:
    from quoth.agent.run.option_fields import OptionFields
    from quoth.neuro.prompt.dialects import Dialect

BUSY = (
    "This agent's session is busy: a conversation answers one message at a time. Await the earlier message "
    "first. For several tasks at once use run(…): each gets its own session."
)

HINT_AFTER = 1.0  # seconds; an interrupted run usually stops sooner


@dataclass(frozen=True, eq=False)
class Belongings:
    """The objects of one agent or one chat; its parallel runs share them."""

    events: Events  # the receivers of its events
    memory: OwnMemory  # its memory if the host gave none, opened at the first use
    programs: OwnPrograms  # its programs in the background
    services: Services  # the services of its tools, with this memory, router and model


class SessionHost:
    """The host of one session of a user. Make the first with ``open_host``; each chat and each parallel run
    has its own. Hosts share nothing that changes, except Belongings between the runs of one agent or chat.
    Use it as an async context manager, or call ``aclose``."""

    def __init__(
        self,
        parts: AgentParts,
        session: str,
        user: str,
        chat: str = "",
        *,
        events: Events | None = None,
        like: SessionHost | None = None,
        beside: SessionHost | None = None,
    ) -> None:
        """Host a session whose listeners are ``events``. Its tools, models, limits and settings are those of
        the host ``like``, by default the agent's. With ``beside`` it begins like that host and shares its
        Belongings, and its record if the session is the same."""
        like = like or beside
        begins: SessionHost | AgentParts = parts if like is None else like
        self.parts = parts
        self.session = session  # its id
        self.named = (
            session  # the same if the name was chosen, so that it can be found again; otherwise empty
        )
        self.user = user
        self.chat = chat  # the chat of this session; empty for none
        self.knowledge: str | None = (like or parts.services).knowledge  # text of the host for tools
        self.door: Door = begins.door  # the door to its tools
        self.models: Models = begins.models
        self.limits: RunLimits = begins.limits
        self.settings: Mapping[str, Any] = begins.settings  # kept in its opening; replaced, never changed
        self.catalog: BeltCatalog = (
            BeltCatalog(self.listed(), parts.embedder) if like is None else like.catalog
        )
        self.own: Belongings = self._belongings(events or Events()) if beside is None else beside.own
        same = beside if beside is not None and beside.session == session else None
        self.record: Session = (
            same.record
            if same
            else Session(parts.transcript, session, user, store_path(self.workspace.home), parts.origins)
        )
        self.pages: StorePages = (
            same.pages if same else StorePages(parts.store, session, user, parts.limits.result_chars)
        )
        self._working = 0  # the number of works in progress in this session
        self._running: Stoppable | None = None  # the run or flight that an interrupt stops
        self._beside: tuple[SessionHost, ...] = ()  # the hosts of parallel runs in progress
        self._trouble: str = like._trouble if like else ""  # why remote tools may be old, as last reported
        self._closed = False
        join(self)

    # What it has

    @property
    def workspace(self) -> Workspace:
        return self.parts.workspace

    @property
    def config(self) -> Config:
        return self.parts.config

    @property
    def policy(self) -> RulesPolicy:
        return self.parts.policy

    @property
    def transcript(self) -> Transcript:
        return self.parts.transcript

    @property
    def broker(self) -> Broker:
        return self.parts.broker

    @property
    def store(self) -> Store:
        """The store of the workspace, opened at the first use."""
        return self.parts.store()

    @property
    def table(self) -> ToolTable:
        """Its tools."""
        return self.door.table

    @property
    def events(self) -> Events:
        return self.own.events

    @property
    def services(self) -> Services:
        return self.own.services

    @property
    def plan(self) -> bool:
        """Whether it is in plan mode."""
        return bool(self.settings.get("plan"))

    @property
    def agent_id(self) -> str:
        """The id of the caller: the agent, or the agent in this chat."""
        whole = self.parts.services.agent_id
        return f"{whole}-{session_of_chat(self.chat)}" if self.chat else whole

    def _belongings(self, events: Events) -> Belongings:
        # Services that kept the host would be freed with it by a search for garbage alone, which is seldom.
        parts, host, first = self.parts, weakref.ref(self), self.models
        whose = self.session if self.chat else self.user  # whose conversations it searches
        memory = OwnMemory(partial(_open_memory, parts, self.agent_id, whose))
        services = with_own(parts.services.for_tools, memory)
        if services.router is NO_ROUTER:
            router = HostRouter(events.to_user, parts.services.channels, self.agent_id)
            services = replace(services, router=router)
        if services.model is NO_MODEL:
            services = replace(
                services,
                model=OwnModel(
                    lambda: (one.models if (one := host()) else first).backend(), tracer=parts.tracer
                ),
            )
        return Belongings(events, memory, OwnPrograms(), services)

    def use_store(self, store: Store) -> None:
        """Use a store of the workspace that is already open; ``aclose`` closes it."""
        self.parts.store.opened = store

    def context(
        self,
        user_message: str = "",
        *,
        user: str = "",
        knowledge: str = "",
        services: Services = NO_SERVICES,
    ) -> ToolContext:
        """The context of a call of this agent: its user and session, and the services that a tool may use."""
        parts, given = self.parts, self.parts.services
        return ToolContext(
            parts.workspace,
            user=user or self.user,
            session=self.session,
            user_message=user_message,
            sandbox=parts.sandbox,
            snapshots=parts.sandbox.snapshots,
            agent_id=self.agent_id,
            knowledge=knowledge or self.knowledge,
            confidence=given.confidence,
            services=services,
            catalog=self.catalog,
            pages=self.pages,
            chat=self.chat,
            shows=self._show,
            programs=self.own.programs.opened,
            boundary=boundary_of(
                parts.config.shell, parts.workspace.home, skills="skill" in self.table.shown
            ),
            known_files=self.record.files,
            origins=parts.origins,
        )

    def _show(self, text: str) -> None:
        """Send the output of a call's program to the listener, as it arrives."""
        tell(self.events, AgentEvent("output", text))

    # Its tools, models and settings

    def listed(self) -> ToolTable:
        """The tools, except the ones that the rules always deny this user on every route."""
        return offered(self.table, self.policy, self.user)

    def given(self) -> dict[str, Any]:
        """The data of the session's opening: the settings to rebuild this agent, and its versions."""
        remote = self.parts.remote
        return {
            "user": self.user,
            **self.settings,
            **({"chat": self.chat} if self.chat else {}),
            **({"worktree": True} if self.workspace.root != self.workspace.home else {}),
            "versions": told_versions(tool for tool in self.table if not tool.remote),
            **({} if remote is None else {"remote-versions": remote.versions}),
            "rules": self.policy.digest,
        }

    def changes(self) -> ToolDrift:
        """The changes of tools and policy since this user last drove the session."""
        return changes_of(self.record.given(), self.given())

    async def renew(self) -> ToolTable:
        """The current tools. If remote ones have changed, the session has the new ones from now on."""
        if (remote := self.parts.remote) is None:
            return self.table
        table = await remote.newest()
        if (trouble := remote.trouble) != self._trouble:
            self._trouble = trouble
            if trouble:
                self.events.note(f"The remote tools were not updated. {trouble}")
        if table is not self.table:
            self.use_tools(table)
        return table

    def use_tools(self, table: ToolTable) -> None:
        """Use these tools from now on; without an argument, the current ones of the table."""
        self.broker.use(table)
        self.use_own_tools(table)

    def use_own_tools(self, table: ToolTable) -> None:
        """Use these tools from now on in this session alone."""
        self.door = self.door.with_tools(table)
        self.catalog = self.catalog.of(self.listed())
        self.broker.use_in(self.session, table)
        self.parts.call_log.also_hide(table.secrets)
        self.record.open_again(self.given)

    async def use_model(self, spec: str) -> None:
        """Use another model from now on. Raises UsageError for an unknown spec, and then keeps the old
        one."""
        models = self.models.with_model(spec)
        with self.working():
            await models.open()
        models.dialect()
        self.models = models
        self.keep(**kept("model", models.options))

    def use_dialect(self, dialect: str | None) -> None:
        """Let its model call tools in another notation from now on; None is the usual one. Raises UsageError
        for one that is unknown or does not fit, and then keeps the old one."""
        models = self.models.with_dialect(dialect)
        models.dialect()
        self.models = models
        self.keep(dialect=dialect)

    def dialect(self) -> Dialect:
        """The dialect of its model, chosen together with the model at the first use. Raises UsageError for an
        unknown dialect, or one that does not fit the model or the tool list."""
        dialect, note = self.models.dialect()
        if note:
            self.events.note(note)
        return dialect

    def use_plan_mode(self, on: bool) -> None:
        """Turn plan mode on or off: with it, calls that do more than read become steps of a plan."""
        self.keep(plan=on)

    def keep(self, **settings: Any) -> None:
        """Keep settings in the opening of the session, for a later process; one that is false or None is
        removed."""
        kept = {**self.settings, **settings}
        left_out = {name for name, value in settings.items() if value is None or value is False}
        self.settings = MappingProxyType({name: kept[name] for name in kept if name not in left_out})
        self.record.open_again(self.given)

    # Other sessions of its agent

    def for_chat(self, chat: str | int, session: str = "") -> SessionHost:
        """A host for one chat, with its own conversation and memory. Its session is ``session``, by default
        one named after the chat. Close it before its agent."""
        self.require_open()
        name = str(chat)
        self.broker.use_in(session or session_of_chat(name), self.table)
        return SessionHost(self.parts, session or session_of_chat(name), self.user, name, like=self)

    @contextlib.contextmanager
    def free(self, overrides: Mapping[str, Any]) -> Iterator[SessionHost]:
        """In this context, the host for one more run: this one, unless the run has ``overrides`` (named as in
        ``run``). If the session is busy, a host with a new session."""
        said = {name: value for name, value in overrides.items() if value is not None}
        limits = with_longest(self.limits, said.pop("reply_tokens", None))
        models = self.models.overridden(said)
        busy = bool(self._working or self.running)
        if not busy and models is self.models and limits is self.limits:
            with self.working():
                yield self
            return
        made = SessionHost(
            self.parts, new_session() if busy else self.session, self.user, self.chat, beside=self
        )
        made.models, made.limits = models, limits
        made.named = "" if busy else self.named
        self.workspace.hide(models.options.key_file)
        self._beside += (made,)
        try:
            with made.working(), contextlib.nullcontext() if busy else self.working():
                yield made
        finally:
            self._beside = tuple(host for host in self._beside if host is not made)

    # Work in progress

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """In this context no run begins in this session."""
        self._working += 1
        try:
            yield
        finally:
            self._working -= 1

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Like ``working``, and the session cannot be removed. Raises BusyError if other work is in progress
        in it, or if it is being removed."""
        if self._working:
            raise BusyError(BUSY)
        with self.working(), self.record.used("chat message" if self.chat else "run"):
            yield

    @contextlib.contextmanager
    def stoppable(self, work: Stoppable) -> Iterator[None]:
        """In this context an interrupt stops ``work``."""
        before, self._running = self._running, work
        try:
            with self.events.driving(work):
                yield
        finally:
            self._running = before

    @property
    def running(self) -> bool:
        """Whether a run or a flight is in progress."""
        return self._running is not None

    @property
    def stopping(self) -> bool:
        """Whether a run or flight was interrupted and has not yet ended."""
        own = self._running is not None and self._running.interrupted
        return own or any(host.stopping for host in self._beside)

    def interrupt(self) -> bool:
        """Stop the current run or flight: the model at once, a call within a second. The Reply of the run has
        the status ``interrupted``. A pending question of this session to a person is withdrawn, and its
        call waits.

        Returns false if there is nothing to stop, or it was already interrupted."""
        stopped = [host.interrupt() for host in self._beside]
        return self._interrupt() or any(stopped)

    def _interrupt(self) -> bool:
        run = self._running
        sessions = {self.session} if run is None else {self.session, *_sessions_of(run)}
        asking = self.broker.asking(sessions)
        if run is not None and not run.interrupted:
            run.interrupt(asking)
        elif not asking:
            return False
        self.broker.interrupt(sessions)  # this ends its call
        return True

    def interrupt_politely(self) -> bool:
        """Like ``interrupt``, for the first Ctrl-C: prints a hint if it takes longer than HINT_AFTER seconds.
        After false the caller should stop at once."""

        def explain() -> None:
            if self.stopping:
                complain("Still stopping. Press Ctrl-C again to quit at once.")

        if stopped := self.interrupt():
            asyncio.get_running_loop().call_later(HINT_AFTER, explain)
        return stopped

    def require_open(self) -> None:
        if self._closed:
            raise UsageError("This agent is closed.")

    async def aclose(self) -> None:
        """Interrupt the work in progress, end the programs in the background, then close the sandbox, the
        models, the memory and the store; for a chat, close only its memory. May be called twice."""
        self._closed = True
        leave(self)
        await self.events.stop_all(self.interrupt)
        await self.own.programs.aclose()
        if self.chat:
            self.broker.use_in(self.session, None)
            await self.own.memory.aclose()
            return
        parts = self.parts
        async with contextlib.AsyncExitStack() as ending:
            ending.callback(end_idle_threads)
            ending.callback(parts.store.close)
            ending.push_async_callback(parts.closing.aclose)
            ending.push_async_callback(self.own.memory.aclose)
            ending.push_async_callback(self.models.aclose)
            ending.push_async_callback(parts.sandbox.aclose)
            if parts.remote is not None:
                ending.push_async_callback(parts.remote.aclose)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _sessions_of(work: Stoppable) -> Iterator[str]:
    """The sessions of a run or flight and of its sub-agents, which may have their own."""
    yield work.session
    state = getattr(work, "state", None)
    for child in (*getattr(work, "runs", ()), *getattr(state, "children", ())):
        yield from _sessions_of(child)


def require_text(what: str, word: str) -> None:
    """Raise UsageError for the name of a user or session that is not a text without half characters, or for
    a session's with a slash, which separates it from the names of its runs and calls."""
    if not isinstance(word, str):
        raise UsageError(f"The {what} is a text, not {word!r}.")
    if encodable(word) != word:
        raise UsageError(
            f"The {what} {encodable(word)} contains an invalid character (an unpaired surrogate)."
        )
    if what == "session" and "/" in word:
        raise UsageError(f"The name of a session has no slash: {word}. An example: monday")


@takes_fields
def open_host(
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
    worktree: bool = False,
    **fields: Unpack[OptionFields],
) -> SessionHost:
    """Open an agent. Raises UsageError for settings that cannot be used.

    ``workspace``: the only folder that its file tools may touch, ``workspace="shop"``. Default: the project's
    root, found from the current folder as the command finds it.
    ``tools``: ``.hy`` and ``.py`` files, or CognitiveTools, in addition to the built-in tools,
    ``tools=["shop.hy", double]``; a ToolTable replaces them all; or
    ``tools=ToolOptions(["shop.hy"], belt="search")``.
    ``model``: a spec, ``model="local"``, ``"openai:…"`` or ``"scripted:talk.txt"``; a Backend; None for
    the default; or ``model=ModelOptions("openai:gpt-x", base_url="http://…", dialect="native")``.
    ``policy``: a file of rules in addition to those of the user and of the workspace, ``policy="rules.hy"``;
    or ``policy=PolicyOptions("rules.hy", quotas=[Quota("search", 3, per="hour")])``.
    ``consent`` answers the questions of policy and guards: ``consent="yes"``, or an object with ``request``
    (tools/consent/requests.py, Person). With None such a call is pending at once: ``broker`` takes the
    decision, and ``resume`` continues.
    ``limits``: the limits of each run, ``limits=RunLimits(steps=10, reply_tokens=2000, cost=0.5)``.
    ``services``: the services of tools besides the workspace, ``services=Services(memory=notes)``; or
    ``services=HostServices(memory=notes, knowledge="It is blue.")``. Without a memory it uses the
    workspace's.
    ``session``: the name of a session to continue or begin, ``session="monday"``. Default: a new session.
    ``user``: the user's name, ``user="ann"``. Default: the login name.
    ``on_event``: called with each event of a run, ``on_event=lambda event: print(event.kind)``.

    ``instructions``: text for the model before any task, ``instructions="Answer in German."``.
    ``temperature``: the sampling temperature, 0 to 2, ``temperature=0.7``.
    ``timeout``: seconds that a server may be silent, ``timeout=30``.
    ``api_key``: the key of the server, ``api_key="sk-…"`` or ``"@FILE"``.
    ``reply_tokens``: the maximum number of tokens in a reply, ``reply_tokens=2000``.
    ``RunLimits(tokens=…)`` bounds a whole run.
    ``plan=True``: plan mode. Only calls that read are run; the others become steps of a flight plan, which
    the Reply names.

    ``worktree=True``: work in a git worktree of its session, and commit there; ``merge-worktree`` brings the
    work back.

    A field of one of these groups can be given by itself: ``base_url="http://…"``. Import the groups from
    quoth; help(ToolOptions) and help of the others describe their fields.
    """
    if not (consent is None or consent == "yes" or hasattr(consent, "request")):
        raise UsageError(f'consent is "yes", None or an object with a method request, not {consent!r}.')
    user = user or user_name()
    require_text("user", user)
    require_text("session", session or "")
    options = model_options(model).overridden(
        instructions=instructions, temperature=temperature, timeout=timeout, api_key=api_key
    )
    settings = Settings(
        options,
        tool_options(tools),
        policy_options(policy),
        service_options(services),
        with_longest(run_limits(limits), reply_tokens),
        plan,
        worktree,
    )
    events = Events(on_event)
    name = session or new_session()
    parts = open_parts(workspace, settings, consent, events, name)
    host = SessionHost(parts, name, user, events=events)
    host.named = session or ""
    if settings.services.memory_url:
        host.own.memory.opened()  # raise an error in the URL now
    return host


def _open_memory(parts: AgentParts, agent: str, whose: str) -> Any:
    """The memory of an agent: in the workspace's store, or where the host put it."""
    from quoth.neuro.embed.select import embedder_named  # here: most calls need none
    from quoth.tools.memory.sqlite import open_memory

    return open_memory(
        parts.services.memory_url,
        parts.store,
        agent,
        user=whose,
        embedder=parts.embedder(),
        older=embedder_named,
    )
