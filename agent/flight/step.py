"""Runs one attempt at a step: its forms, or a model on its objective; then checks its expectation.

An attempt is one run of the transcript, and its calls have keys made from step, attempt and block. An
interrupted attempt is continued by running it again: finished calls are answered from the transcript.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from quoth.agent.events import AgentEvent, SubAgent
from quoth.agent.flight.approval import Approval, approval_of, approved_words, approves, cover, note_left
from quoth.agent.flight.briefing import briefing, task_of
from quoth.agent.flight.plan_file import FlightLog
from quoth.agent.flight.status import StepAttempt, _key, result_of
from quoth.agent.plan.check import reads_only
from quoth.agent.plan.model import RESULT, Form, Part, Plan, StepBudget
from quoth.agent.plan.reading import called, knows_all, variables
from quoth.agent.reply import Reply
from quoth.agent.run.budget import Budget, Purse
from quoth.agent.run.limits import RunLimits
from quoth.agent.run.recorder import build_run
from quoth.agent.run.run import Run, RunParts
from quoth.agent.run.spec import RunSpec, facts_of
from quoth.agent.run.subagents import RunTeam, chosen, opening, services_for
from quoth.agent.run.surroundings import surroundings_of
from quoth.agent.session.session import RunLog
from quoth.agent.terminal.forms import failure_text, shortened, show_value
from quoth.neuro.backends.base import Backend, Usage
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.select import for_run
from quoth.tools.call.call import Call, ToolResult, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.errors import StoreError, ToolError, UsageError
from quoth.tools.history.long_results import StorePages, more_form
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import Code, print_value
from quoth.tools.program.compiler import PROGRAM_LIMITS
from quoth.tools.registry.table import ToolTable
from quoth.tools.storage.database import Store

if TYPE_CHECKING:
    from quoth.agent.run.host import SessionHost

RESULT_CHARS = 200  # maximum characters of a result quoted in a reason
EVAL, MORE = "eval", "more"
Ended = Literal["done", "failed", "denied", "waits", "interrupted"]


@dataclass(frozen=True)
class StepOutcome:
    """The end of an attempt, the reason if it is not done, and the tokens that its models used."""

    status: Ended
    text: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass
class FlightContext:
    """The data shared by all steps of a flight. ``found`` returns the attempt with the result of a step."""

    agent: SessionHost
    store: Store
    plan: Plan
    path: str
    log: FlightLog
    found: Callable[[Part], StepAttempt | None]
    runs: list[Run] = field(default_factory=list)
    interrupted: bool = False

    @property
    def session(self) -> str:
        return self.log.session.id

    def approval(self, step: Part) -> Approval | None:
        return approval_of(self.store, self.plan, self.path, step, self.agent.table)

    @contextlib.contextmanager
    def running(self, run: Run) -> Iterator[None]:
        """Within the ``with`` block, let ``interrupt`` stop this run too."""
        self.runs.append(run)
        try:
            yield
        finally:
            self.runs.remove(run)

    def interrupt(self, asking: bool = False) -> None:
        """Stop the flight and its runs."""
        self.interrupted = True
        for run in self.runs:
            run.interrupt(asking)


async def attempt(context: FlightContext, step: Part, number: int) -> StepOutcome:
    """Run or continue attempt ``number`` at a step, or at the expectation of a group."""
    return await _Attempt(context, step, number).go()


def bounded(limits: RunLimits, budget: StepBudget) -> RunLimits:
    """The agent's limits, lowered to the budget of a step."""
    lower = {
        name: value if (own := getattr(limits, name)) is None else min(own, value)
        for name, value in vars(budget).items()
        if value is not None
    }
    return replace(limits, **lower)


class _Attempt:
    def __init__(self, context: FlightContext, step: Part, number: int) -> None:
        self.context = context
        self.step = step
        self.plan = context.plan
        self.agent = context.agent
        self.name = context.log.run_of(step.id, number)
        self.session = context.log.session
        self.past = self.session.past(self.name)
        self.limits = bounded(self.agent.limits, step.budget)
        self.budget = Budget.of(self.limits, kept=1)  # for all runs of the attempt
        self.usage = Usage()

    async def go(self) -> StepOutcome:
        try:
            await self.agent.renew()
            came = await self._go()
        except (ToolError, UsageError) as error:
            came = StepOutcome("failed", str(error))
        return replace(came, usage=self.usage)

    def _record_approval(self) -> None:
        """Record the words of a step that a person approved: from then on they count as that person's
        words."""
        approval, log = self.context.approval(self.step), self.context.log
        if not (self.step.is_step and approves(approval)):
            return
        transcript = self.session.transcript
        if any(transcript.events(self.session.id, run=self.name, kind="approval")):
            return
        said = f"step {self.step.id} of {self.plan.source.name}, approved by {approval.user or 'a person'}"
        words = approved_words(self.plan, self.step)
        data = {"said": said, "words": words}
        transcript.add(self.session.id, "approval", data, run=self.name, parent=log.begun)

    async def _go(self) -> StepOutcome:
        step = self.step
        self._record_approval()
        if step.model and (refused := await self._model_refused()):
            return StepOutcome("denied", refused)
        if step.is_step:
            run = self._run(self._tools())
            for form in step.running:
                if (came := await self._block(run, form)).status != "done":
                    return came
            if step.objective and (came := await self._prose()).status != "done":
                return came
        return await self._expectation() if step.expect else StepOutcome("done")

    # Forms

    async def _block(self, run: Run, form: Form) -> StepOutcome:
        """Run a block; a block finished earlier is answered from the transcript."""
        text = await self._program_of(run, form, form)
        return self._came(await self._evaluate(run, text, _key(self.step, form), form))

    async def _program_of(self, run: Run, form: Form, block: Form, seen: tuple[str, ...] = ()) -> str:
        """Return the program of ``block`` with its values. ``form`` is the block of the step that needs it,
        ``seen`` are the library blocks in between."""
        values = {
            var.name: await self._value(run, form, var.ref, seen) if var.ref else var.value
            for var in variables(self.plan, block)
        }
        return _program(block, values, called(self.plan, block).text)

    async def _evaluate(self, run: Run, text: str, name: str, form: Form | None = None) -> ToolResult:
        """Run a program through the door of the run. ``form`` is its block, if an approval may cover it."""
        marks = {"route": "flight", "user": run.user, "session": run.session, "turn": run.name}
        call = new_call(
            CallForm(EVAL, {"form": Code(text)}),
            key=f"{run.session}/{run.name}/{name}",
            resumed=False,
            **marks,
        )
        files: Mapping[str, str] = {}
        if form is not None and knows_all(self.plan, form):
            approval = self.context.approval(self.step)
            if approves(approval):
                files = approval.files
                await self._cover(
                    run, replace(call, form=self.agent.table.get(EVAL).checked(call.form)[0]), text, approval
                )
        with self.context.running(run):
            result = await run.door.dispatch(call, run.context)
        if files and (left := self.agent.broker.left_by(call)):
            note_left(self.context.store, self.context.path, files, left)
        if result.audit.get("written") is False:  # the flight stops, and later continues in this step
            raise StoreError(result.message)
        return result

    async def _cover(self, run: Run, call: Call, text: str, approval: Approval) -> None:
        """Apply the person's approval to this one run of the block."""
        if self.agent.broker.is_planned(call, text):
            return
        looks = replace(call.form, args={**call.form.args, "dry-run": "pure"})
        look = replace(call, id=secrets.token_hex(5), form=looks, key=f"{call.key}.look")
        found = await run.door.dispatch(look, run.context)
        if found.ok:
            why = f"approved as step {self.step.id} of {self.plan.source.name}"
            cover(self.agent.broker, call, found.value, approval, why)

    def _came(self, result: ToolResult) -> StepOutcome:
        if result.ok:
            return StepOutcome("done")
        if result.status == "pending":
            return StepOutcome("waits", result.message)
        if result.status == "cancelled" and self.context.interrupted:
            return StepOutcome("interrupted", "The flight was interrupted.")
        return StepOutcome("denied" if result.status == "denied" else "failed", failure_text(result))

    async def _value(self, run: Run, form: Form, ref: str, seen: tuple[str, ...]) -> Any:
        """Return the value of a name. Raises UsageError if it has none."""
        plan = self.plan
        if ref in plan.data:
            return plan.data[ref].value
        if ref in plan.library:
            return await self._library(run, form, ref, seen)
        part, block = plan.blocks[ref] if ref in plan.blocks else (plan.by_id[ref], None)
        if part is self.step:
            made: StepAttempt | None = StepAttempt(self.name, self.session.past(self.name))
        else:
            made = self.context.found(part)
        if made is None:
            raise UsageError(f"{part.id} has no result yet, and this step needs it.")
        return result_of(part, made, block)

    async def _library(self, run: Run, form: Form, name: str, seen: tuple[str, ...]) -> Any:
        """The value of a named block outside all steps."""
        if name in seen:
            raise UsageError(f"{name} needs its own value: {' needs '.join((*seen, name))}.")
        text = await self._program_of(run, form, self.plan.library[name], (*seen, name))
        result = await self._evaluate(run, text, f"{_key(self.step, form)}.{name}")
        if not result.ok:
            raise UsageError(f"{name} has no value: {failure_text(result)}")
        return result.value

    # Prose

    async def _prose(self) -> StepOutcome:
        """Let the model work on the step's objective, with its tools and within its budget."""
        if self.past.end is not None and self.past.end.status == "done":
            return StepOutcome("done")
        backend = for_run(self._backend())
        run = self._run(self._tools(), backend)
        run.purse.require_price(backend)
        try:
            with self.context.running(run):
                reply: Reply = await import_module("quoth.agent.loop").run_loop(run)
        finally:
            self.session.let_go(run.messages)
        if run.log.broken:
            raise StoreError(run.log.broken)
        status: dict[str, Ended] = {"done": "done", "failed": "failed", "pending": "waits"}
        return StepOutcome(status.get(reply.status, "interrupted"), "" if reply.ok else reply.said)

    def _aside(self, text: str, head: int) -> str:
        """Return a note with the call that shows the rest of a shortened text, if the step has that tool."""
        id = self._pages.keep(text) if MORE in self._tools() else ""
        return f"; {more_form(id, head + 1)} shows the next part" if id else ""

    # The expectation

    async def _expectation(self) -> StepOutcome:
        """Evaluate the expectation with read-only tools, and RESULT bound to the result of the step."""
        form = self.step.expectation()
        assert form is not None, "called only for steps with an expectation"
        program, was = form.text, ""
        if self.step.says_result:
            value = result_of(self.step, StepAttempt(self.name, self.session.past(self.name)))
            program = _program(form, {RESULT: value}, form.text)
            was = f"; {RESULT} was {shortened(show_value(value), RESULT_CHARS) or 'an empty text'}"
        looking = self.agent.table.where(reads_only)
        run = self._run(
            looking, name=f"{self.name}/expect"
        )  # a separate run, because the model's run has ended
        result = await self._evaluate(run, program, "0")
        if not result.ok:
            came = self._came(result)
            return came if came.status != "failed" else replace(came, text=f"{form.text}: {came.text}{was}")
        if result.value:
            return StepOutcome("done")
        value = shortened(show_value(result.value), RESULT_CHARS) or "an empty text"
        return StepOutcome("failed", f"{form.text} is not true: its value is {value}{was or '.'}")

    # The run of an attempt

    def _tools(self) -> ToolTable:
        """Return the tools of the step, plus eval, which runs its forms."""
        table, names = self.agent.table, self.step.tools
        if names is None:
            return table
        own = () if self.step.objective or EVAL in names else (EVAL,)
        return chosen(table, (*names, *own))

    def _run(self, table: ToolTable, backend: Backend | None = None, name: str = "") -> Run:
        """Create the run of this attempt: with ``backend`` for an objective, without it for forms."""
        agent, session = self.agent, self.session
        name = name or self.name
        past = self.past if backend is None and name == self.name else session.past(name)
        log = RunLog(session, name)
        log.reply = self.context.log.begun
        log.recalled = backend is None  # for a form, only its receipts show whether it had begun
        messages, looks = Messages(), backend is not None and len(table.visible) > 0
        before = () if past.stimulus is None else past.stimulus.data.get("hidden", ())
        spec = RunSpec(self.step.title) if past.stimulus is None else RunSpec.read(past.stimulus.data)
        if backend is not None:
            dialect, search = agent.models.dialect_of(backend, table, searched=self.step.tools is None)
            table = agent.parts.offers.table(table, dialect, session.user, "reply", before)
            if past.stimulus is None:
                options = agent.models.request_options
                task, data = self._briefed()
                spec = RunSpec(
                    task,
                    user=session.user,
                    hidden=tuple(table.hidden),
                    instructions=agent.models.instructions,
                    surroundings=surroundings_of(agent, table, session.user, "flight"),
                    temperature=None if options is None else options.temperature,
                    data=data,
                    model=facts_of(backend),
                    dialect=dialect,
                    search=search,
                    few=agent.models.few_of(backend, dialect, table, task) if looks else (),
                    must_act=looks and agent.models.must_act(backend),
                    limits=vars(agent.limits),
                )
                log.reply = log.add("stimulus", spec.written(), parent=self.context.log.begun)
            messages = opening(session, name, past, table, spec)
        session.talk_of(messages).table = agent.table

        def offers(table: ToolTable) -> ToolTable:
            return agent.parts.offers.table(table, spec.dialect, session.user, "reply", before)

        parts = RunParts(
            door=agent.door.narrowed(table),
            backend=self._backend if backend is None else lambda: backend,
            context=self._context(table, spec.task),
            services=lambda run: services_for(agent, run),
            limits=self.limits,
            budget=self.budget,
            funds=agent.parts.funds,
            spent=self._spent,
            listener=None if agent.events.listener is None else self._heard,
            pages=self._pages,
            renew=agent.renew,
            offers=(lambda table: table) if backend is None else offers,
            may_force=looks and agent.models.forces,
            turn=name,
        )
        return build_run(spec, log, past.without_failures(), messages, parts)

    def _briefed(self) -> tuple[str, str]:
        """Return the task and the briefing for the model of this attempt."""
        log, room = self.context.log, self.agent.limits.result_chars
        failed, answer = log.failed_last(self.step.id, self.plan.digest(self.step)), None
        if failed is not None:
            name = log.run_of(self.step.id, failed.attempt)
            answer = StepAttempt(name, log.past(self.step.id, failed.attempt)).said
        told = briefing(self.plan, self.step, self.context.found, failed, answer, room, self._aside)
        return task_of(self.step, bool(answer)), told

    @property
    def _pages(self) -> StorePages:
        return StorePages(lambda: self.context.store, self.session.id, self.session.user,
                          self.agent.limits.result_chars)  # fmt: skip

    def _context(self, table: ToolTable, task: str) -> ToolContext:
        return replace(
            self.agent.context(task),
            session=self.session.id,
            catalog=self.agent.catalog.of(table),
            pages=self._pages,
        )

    def _heard(self, event: AgentEvent) -> None:
        """Pass an event on to the agent's listener, as an event of this step."""
        self.agent.events.tell(event.within(SubAgent(self.name, self.step.title or self.step.id)))

    def _spent(self, usage: Usage) -> None:
        self.usage += usage

    # Its model

    def _backend(self) -> Backend:
        return self._team.backend_of(self.step.model or None)

    @property
    def _team(self) -> RunTeam:
        return RunTeam(self.agent, None, self._spent, Purse(self.budget))

    async def _model_refused(self) -> str:
        """The reason why the step may not use its model; empty if it may."""
        spec = self.step.model
        if spec == self.agent.models.name:
            return ""
        verdict = await self._team.may_use(spec)
        if verdict.kind == "allow":
            return ""
        if verdict.kind == "deny":
            return verdict.reason
        if approves(self.context.approval(self.step)):
            return ""
        how = f"quoth approve {self.plan.source.name}"
        return f"The step uses another model, {spec}, which needs your approval: {how}"


def _program(form: Form, values: Mapping[str, Any], text: str) -> str:
    """Return the program of a block with the values of its variables. Raises UsageError if a value makes it
    longer than a program may be."""
    found = form.program(values, text)
    if len(found) > PROGRAM_LIMITS.max_chars >= len(text):
        sizes = {name: len(print_value(value)) for name, value in values.items()}
        name = max(sizes, key=sizes.__getitem__)
        raise UsageError(
            f"The value of {name} has {sizes[name]:,} characters, but a program may have only"
            f" {PROGRAM_LIMITS.max_chars:,}. Pass on a part of it, or write it to a file."
        )
    return found
