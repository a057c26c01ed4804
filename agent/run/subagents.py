"""The team that an agent gives its tools: other models, and sub-agents that do a part of a call's work.

The tools think and cognitive-loop (tools/builtin/agents.hy) know only the service. A sub-agent is a run of
the same loop, one call deeper: its door is its caller's with fewer tools, it spends from its caller's budget,
and the parent of its events is the call it works for."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from quoth.agent.events import AgentEvent, Listener, SubAgent
from quoth.agent.reply import Reply
from quoth.agent.run.budget import Budget, Purse, SpentError
from quoth.agent.run.host import SessionHost
from quoth.agent.run.models import OwnModel
from quoth.agent.session.past import Past
from quoth.agent.session.session import RunLog, Session, read_messages
from quoth.neuro.backends.base import Backend, Usage
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.providers import names
from quoth.neuro.backends.select import for_run
from quoth.tools.call.call import ALLOW, Call, Verdict, ask, deny
from quoth.tools.call.context import ToolContext, running_context
from quoth.tools.call.services import NO_TEAM, ModelProvider, Services
from quoth.tools.call.workspace import Workspace
from quoth.tools.door.door import Door
from quoth.tools.errors import Status, StoreError, ToolError, ToolFailure, UnknownToolError, UsageError
from quoth.tools.history.receipts import key_in
from quoth.tools.registry.table import ToolTable

if TYPE_CHECKING:
    from quoth.agent.run.run import Run, RunDoor
    from quoth.agent.run.spec import RunSpec
    from quoth.neuro.prompt.dialects import Dialect

NO_LIST = "Only a person may choose a list of models; name one model."
EMBEDDED = ("local", "local-small")
STATUS_OF: dict[str, Status] = {"failed": "error", "pending": "pending", "interrupted": "cancelled"}


def services_for(agent: SessionHost, run: Run | None = None) -> Services:
    """The services for the calls of a run; without a run, for calls of a person. The run's usage includes the
    usage of the agent's models."""
    given, spend = agent.services, _uncounted if run is None else run.spend
    backend = agent.models.backend if run is None else lambda: model_of(run)
    purse = purse_of(agent) if run is None else run.purse
    model = given.model
    if isinstance(model, OwnModel):
        model = OwnModel(backend, spend, purse, agent.parts.tracer)
    team = RunTeam(agent, run, spend, purse) if given.team is NO_TEAM else given.team
    router = given.router
    if run is not None:
        from quoth.agent.run.observation import RunRouter  # here: a call of a person needs no run

        router = RunRouter(run, router)
    return given.changed(model=model, team=team, router=router)


def model_of(run: Run) -> Backend:
    """The real model of a run, even if its loop uses a recorded one."""
    from quoth.agent.run.recorder import RecordedBackend  # here: a call of a person needs no run

    return run.backend.live() if isinstance(run.backend, RecordedBackend) else run.backend


def purse_of(agent: SessionHost) -> Purse:
    """The budget for models in a call of a person."""
    return Purse(Budget.of(agent.limits), agent.parts.funds, agent.user)


def _uncounted(usage: Usage) -> None:
    """Ignore the cost of a call outside of any run."""


class RunTeam:
    """The team of one run, or of a call of a person."""

    def __init__(
        self, agent: SessionHost, run: Run | None, spend: Callable[[Usage], None], purse: Purse
    ) -> None:
        self._agent = agent
        self._run = run
        self._spend = spend
        self._purse = purse
        self._door: RunDoor | Door = agent.door if run is None else run.door

    async def may_use(self, model: str) -> Verdict:
        """The verdict on using a model. The agent's own, another of the same provider and the embedded ones
        are allowed. Another provider, or a file opened as a model, needs approval. A script is denied if it
        is a Hy program or may not be read."""
        provider, _, name = model.partition(":")
        own = self._agent.models.name
        if provider == "scripted":
            try:
                self._script(name)
            except ToolError as error:
                return deny(str(error))
        if provider == "cascade" and model != own:
            return deny(NO_LIST)
        if model in (own, *EMBEDDED) or (name and provider == own.partition(":")[0] != "local"):
            return ALLOW
        if name and provider in names(self._agent.config.providers):
            return ask(f"it would use another model, {model}")
        return ALLOW  # the model does not exist, and the body reports it

    async def model(self, spec: str) -> ModelProvider:
        """The model of another spec. Raises ToolError."""
        backend = self.backend_of(spec)
        return OwnModel(lambda: backend, self._spend, self._purse, self._agent.parts.tracer)

    def backend_of(self, spec: str | None) -> Backend:
        if spec is None and self._run is not None:
            return model_of(self._run)
        try:
            if spec is None or spec == self._agent.models.name:
                return self._agent.models.backend()
            provider, _, name = spec.partition(":")
            if provider == "cascade":
                raise ToolError(NO_LIST)
            if provider == "scripted" and name:
                spec = f"scripted:{self._script(name)}"
            return self._agent.models.other(spec)
        except UsageError as error:
            raise ToolError(f"There is no model to ask. {error}") from None

    def _script(self, name: str) -> Path:
        """The path of a script that a model may choose: a text file of the workspace. Raises ToolError."""
        workspace = self._agent.workspace
        real = workspace.resolve(name)
        if real.suffix == ".hy":
            raise ToolError(f"{name} is a program, which only a person may choose as a model.")
        if (around := running_context()) is not None and not around.may_read(workspace.spelling(real)):
            raise ToolError(f"{name} cannot be used as a model: the rules forbid reading it.")
        return real

    async def beside(self, call: Call, context: ToolContext) -> ToolContext:
        """The context of a sub-agent in a git worktree of its own. Its session is
        named after the call, so that the next attempt at the call resumes it."""
        from quoth.agent.run.worktrees import (
            open_worktree,
        )  # here: most sub-agents share their caller's files

        key = f"{call.session} {call.key or call.id}"
        name = f"s{hashlib.sha256(key.encode()).hexdigest()[:8]}"
        try:
            workspace, said = await asyncio.to_thread(open_worktree, context.workspace, name)
        except UsageError as error:
            raise ToolError(str(error)) from None
        context.say(said)
        return replace(context, workspace=workspace, session=name, side_effects=context.side_effects)

    async def run(
        self,
        task: str,
        *,
        call: Call,
        context: ToolContext,
        data: str = "",
        tools: Sequence[str] | None = None,
        model: str | None = None,
        steps: int | None = None,
        calls: int | None = None,
    ) -> str:
        """Run a sub-agent with a task; see tools/call/services.py."""
        from quoth.agent.run.observation import answer_of  # here: most calls have no sub-agent

        run = self._sub_run(task, call, context, data, tools, for_run(self.backend_of(model)))
        apart, merging = run.session != call.session, ""
        try:
            async with self._purse.budget.lend(run.budget, steps, calls):
                with run.log.session.driven() if apart else contextlib.nullcontext():
                    self._write_down(run, call)
                    with self._watched(run):
                        reply: Reply = await import_module("quoth.agent.loop").run_loop(run)
                    run.let_go()
                    if apart:
                        merging = await self._kept(context.workspace, run)
            if run.log.broken:
                raise StoreError(run.log.broken)
        except SpentError:
            message = "The run has no budget left for a sub-agent. Answer now."
            raise ToolFailure("limited", message) from None
        if reply.ok:
            return answer_of(run, reply.text) + merging
        waits = reply.status == "pending"
        request = next((call.result.request for call in reply.calls if call.result.request), "")
        text = reply.text if waits else answer_of(run, reply.error)
        raise ToolFailure(STATUS_OF[reply.status], text, request=request if waits else "")

    async def _kept(self, workspace: Workspace, run: Run) -> str:
        """Commit the work of a sub-agent in its worktree. Returns a text about it for its caller."""
        from quoth.agent.run.worktrees import how_to_merge, keep_work

        note = self._agent.events.note
        return how_to_merge(run.session, await keep_work(workspace, run.session, run.spec.task, note))

    @contextlib.contextmanager
    def _watched(self, run: Run) -> Iterator[None]:
        """In this context an interrupt of the caller stops the sub-agent, too."""
        beside = [] if self._run is None else self._run.state.children
        run.state.interrupted = self._run is not None and self._run.state.interrupted
        beside.append(run)
        try:
            yield
        finally:
            beside.remove(run)

    def _sub_run(
        self,
        task: str,
        call: Call,
        context: ToolContext,
        data: str,
        tools: Sequence[str] | None,
        backend: Backend,
    ) -> Run:
        """A run of the sub-agent, at its beginning. If ``call`` is resumed, the transcript answers its
        earlier requests and calls. The keys of its calls contain the key of ``call``."""
        from quoth.agent.run.recorder import build_run  # here: most calls have no sub-agent
        from quoth.agent.run.run import RunParts
        from quoth.agent.run.spec import RunSpec, facts_of
        from quoth.agent.run.surroundings import surroundings_of

        table = self._door.table if tools is None else chosen(self._door.table, tools)
        dialect, search = self._agent.models.dialect_of(backend, table, searched=tools is None)
        looks = not data and len(table.visible) > 0
        key = call.key or call.id
        name, agent = f"{key_in(call) or call.id}/agent", self._agent
        session = Session(agent.transcript, call.session, call.user, Path(), agent.parts.origins)
        if context.session != call.session:
            place = replace(agent.parts, workspace=context.workspace)
            agent = SessionHost(place, context.session, call.user, beside=agent)
            agent.keep(worktree=True)
            name, session = "r1", agent.record
        past = session.past(name) if call.resumed else Past()
        before = () if past.stimulus is None else past.stimulus.data.get("hidden", ())

        def offers(table: ToolTable) -> ToolTable:
            return agent.parts.offers.table(table, dialect, call.user, "agent", before)

        table = offers(table)
        if past.stimulus is not None:
            spec = RunSpec.read(past.stimulus.data)
        else:
            spec = RunSpec(
                task,
                user=agent.user,
                speaker="" if call.user == agent.user else call.user,
                tools=None if table.whole is agent.table else tuple(table.names()),
                hidden=tuple(table.hidden),
                surroundings=surroundings_of(agent, table, call.user, "agent") if looks else "",
                data=data,
                model=facts_of(backend),
                dialect=dialect,
                search=search,
                few=agent.models.few_of(backend, dialect, table, task) if looks else (),
                must_act=looks and agent.models.must_act(backend),
            )
        own = replace(
            context,
            dispatch=None,
            side_effects=[],
            said=[],
            clocks=context.inner_clocks,
            catalog=agent.catalog.of(table),
        )
        parts = RunParts(
            door=self._door.narrowed(table),
            backend=lambda: backend,
            context=own,
            services=lambda run: services_for(agent, run),
            limits=agent.limits,
            funds=agent.parts.funds,
            spent=self._spend,
            listener=self._heard(past, SubAgent(call.id, task), context),
            pages=agent.pages,
            renew=agent.renew,
            offers=offers,
            may_force=looks and agent.models.forces,
            turn=key,
        )
        messages = opening(session, name, past, table, spec)
        session.talk_of(messages).table = agent.table if self._run is None else self._run.whole
        return build_run(spec, RunLog(session, name), past.without_failures(), messages, parts, call)

    def _write_down(self, run: Run, call: Call) -> None:
        """Record the start of the run with its lent budget, unless it is already recorded."""
        if run.past.stimulus is None:
            run.spec = replace(run.spec, limits={**vars(run.limits), **run.budget.bounds})
            place, told = self._agent.parts.call_log.place(call.id), run.spec.written()
            if run.session != call.session:
                given = self._agent.given()
                run.log.session.open(lambda: {**given, "worktree": True})
                place = 0
                told["caller"] = {"id": call.id, "depth": call.depth, "route": call.route}
            run.log.reply = run.log.add("stimulus", told, parent=place)

    def _heard(self, past: Past, who: SubAgent, context: ToolContext) -> Listener:
        """A listener that passes on the sub-agent's events under its name. The side effects of its calls
        count for the call it works for."""
        tell = self._agent.events.tell if self._run is None else self._run.pass_on

        def listen(event: AgentEvent) -> None:
            if event.kind == "result" and not event.path:
                context.side_effects.extend(event.data.result.side_effects)
            if not past.left:
                tell(event.within(who))

        return listen


def chosen(table: ToolTable, names: Sequence[str]) -> ToolTable:
    """The tools with these names, all visible. Raises ToolError with the nearest name."""
    found = {}
    for name in names:
        try:
            tool = table.get(name)
        except UnknownToolError as error:
            raise ToolError(f"A sub-agent can have only tools of its caller. {error}") from None
        found[tool.name] = tool if tool.shown else replace(tool, shown=True)
    kept = ToolTable(tuple(found.values()))
    kept.permit({name: users for name, users in table.permissions.items() if name in kept})
    return kept


def begin(
    table: ToolTable,
    dialect: Dialect,
    search: bool,
    instructions: str = "",
    surroundings: str = "",
    few: Sequence[str] = (),
) -> Messages:
    """A new conversation with the opening message for these tools."""
    messages: Messages = import_module("quoth.neuro.think").begin_conversation(
        table, dialect=dialect, search=search, few=few, instructions=instructions, surroundings=surroundings
    )
    return messages


def opening(session: Session, name: str, past: Past, table: ToolTable, spec: RunSpec) -> Messages:
    """The conversation at the start of a run, also of a resumed one."""
    before = session.messages_before(name) if past.exchanges else []
    if before:
        return read_messages(before)
    return begin(table, spec.dialect, spec.search, spec.instructions, spec.surroundings, spec.few)
