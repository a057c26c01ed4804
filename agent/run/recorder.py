"""The model of a run as the loop sees it: the transcript answers earlier requests, and new requests are
written to it.

So running the same loop again resumes or replays a run. The door of the run is below.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from quoth.agent.run.budget import Budget, BudgetError, Purse
from quoth.agent.run.compaction import gauge_of
from quoth.agent.run.limits import CALLING, RUNNING
from quoth.agent.run.observation import BEGUN, NOT_MADE
from quoth.agent.run.run import Run, RunParts, RunState, RunStoppedError
from quoth.agent.run.spec import FACTS, OutputType, RunSpec, facts_of, images_of
from quoth.agent.session.past import REVIEW, Past, PastCall, completion_of, reply_data
from quoth.agent.session.session import RunLog
from quoth.neuro.backends.base import (
    NO_OPTIONS,
    Backend,
    Completion,
    ContextFullError,
    ModelError,
    MovedError,
    RequestOptions,
    RequestRefusedError,
    ToolsRefusedError,
    Usage,
)
from quoth.neuro.backends.messages import Image, Message, Messages
from quoth.neuro.backends.select import CascadeRun
from quoth.neuro.prompt.dialects import TAGS
from quoth.neuro.reading.result import Reading
from quoth.neuro.reading.tag_lines import SHOWN
from quoth.tools.call.call import Call, ToolResult
from quoth.tools.call.context import ToolContext
from quoth.tools.door.door import Door
from quoth.tools.errors import Status, StoreError, UsageError
from quoth.tools.history.event import Event
from quoth.tools.history.receipts import key_in, secrets_in
from quoth.tools.registry.table import ToolTable
from quoth.tools.text import short


class OwnerRun:
    """The attribute ``run``: the run of its owner, as a weak reference; None without a run."""

    def __get__(self, owner: object, kind: object = None) -> Run | None:
        run: Callable[[], Run | None] = vars(owner).get("run", lambda: None)
        return run()

    def __set__(self, owner: object, run: Run) -> None:
        vars(owner)["run"] = weakref.ref(run)


class RecordedBackend:
    """A model that replies from the transcript. When its replies are used up, asks ``live``; without it the
    run is interrupted."""

    run = OwnerRun()

    def __init__(self, parts: RunParts, past: Past, log: RunLog) -> None:
        self._live = parts.backend
        self._past = past
        self._log = log
        self._differs = parts.differs
        self._note = parts.note  # sent to the model once, at the next live request
        self._recalls = bool(past.exchanges)
        self._known = dict[str, Any](past.stimulus.data) if past.stimulus is not None else {}
        self._measured: tuple[Messages | None, int] = None, 0  # the last request, and its tokens

    def _fact(self, name: str) -> Any:
        """A recorded fact about the model; when the recording is used up, the real model's."""
        if self._live is None or self._past.place < len(self._past.exchanges):
            return self._known.get(name)
        return FACTS[name](self._live())

    @property
    def name(self) -> str:
        return str(self._fact("model") or "")

    @property
    def context(self) -> int | None:
        context: int | None = self._fact("context")
        return context

    @property
    def takes_grammar(self) -> bool:
        return bool(self._fact("takes-grammar"))

    @property
    def takes_images(self) -> bool:
        return bool(self._fact("takes-images"))

    @property
    def roomier(self) -> bool:
        """Whether the cascade has a next model with a larger window."""
        return bool(self._fact("roomier"))

    @property
    def tool_view(self) -> str:
        return str(self._fact("tool-view") or "")

    async def complete(
        self,
        messages: Messages,
        *,
        grammar: str | None = None,
        max_tokens: int = 1024,
        on_text: Callable[[str], None] | None = None,
        tools: bytes | None = None,
        tool_choice: Any = "auto",
        options: RequestOptions = NO_OPTIONS,
    ) -> Completion:
        if (exchange := self._past.next()) is not None:
            return self._recalled(messages, *exchange, _told(tools, tool_choice))
        if self._live is None:
            assert self.run is not None, "the run is set before its past is read"
            self.run.state.interrupted = True
            raise asyncio.CancelledError
        if self._log.broken:  # the model must not see anything that could not be recorded
            raise StoreError(self._log.broken)
        if self._note and self._recalls:
            messages.append("user", self._note)
        transcript = self._log.session.transcript
        await self._log.on_disk()  # the messages for the model
        request = self._request(messages, _told(tools, tool_choice))
        self._note = ""
        if self.run is not None and self.run.listener is not None and options.on_wait is None:
            options = replace(options, on_wait=self.run.waits)
        more: dict[str, Any] = {} if tools is None else {"tools": tools, "tool_choice": tool_choice}
        live, purse = self._live(), self._purse
        try:
            async with purse.paying(live, lambda: self._size(messages), max_tokens) as payment:
                if (asked := purse.options(payment, options)) != NO_OPTIONS:
                    more["options"] = asked
                most, hear = payment.reply_tokens, payment.hearing(on_text)
                completion = await self._asking(live)(
                    messages, grammar=grammar, max_tokens=most, on_text=hear, **more
                )
                purse.settle(payment, completion)
        except ModelError as error:
            said = _raised(error)
            if isinstance(error, MovedError):
                said["to"] = {**facts_of(live), "place": error.place}
            self._log.reply = self._log.add("reply", said, parent=request)
            if isinstance(error, MovedError) and self.run is not None:
                self._tell_move(self.run, str(error))
            raise
        data = reply_data(completion) | payment.record(max_tokens, completion.usage)
        self._limited(data)
        reading = self._read(completion)
        with transcript.together(synced=False):
            self._log.reply = self._log.add("reply", data, parent=request)
            self._keep_tags(completion.text, reading)
        self._log.recalled = False
        self._answered(messages, completion)
        return completion

    def _asking(self, live: Backend) -> Callable[..., Awaitable[Completion]]:
        """The function that asks the model, in a span if there is a tracer."""
        if self.run is None or self.run.tracer is None:
            return live.complete
        transcript, session = self._log.session.transcript, self._log.session.id
        return partial(
            self.run.tracer.request, live, hide=partial(transcript.hidden, session), learn=self._read
        )

    @property
    def _purse(self) -> Purse:
        """The budget that pays for the requests."""
        assert self.run is not None, "the run is set before a request"
        return self.run.purse

    def _size(self, messages: Messages) -> int:
        """The tokens of a request: an estimate, but at least the number the server reported for its
        prefix."""
        assert self.run is not None, "the run is set before a request"
        asked, told = self._measured
        return max(gauge_of(self.run).tokens(messages), told if asked is messages else 0)

    def _limited(self, reply: Mapping[str, Any]) -> None:
        """Notify the run of a reply that the budget made shorter."""
        if self.run is not None and "limit" in reply:
            self.run.state.reply_tokens = reply["limit"]

    def _tell_move(self, run: Run, why: str) -> None:
        run.tell("note", why)
        who = {"user": run.user, "session": run.session, "route": run.route}
        run.door.record("model", why, status="error", **who)

    def _move_to(self, model: Mapping[str, Any]) -> None:
        """Continue with the model to which the cascade had moved."""
        self._known |= {"roomier": False, **model}
        if self._live is not None and isinstance(live := self._live(), CascadeRun):
            live.stand_at(model["place"], model["model"])

    def live(self) -> Backend:
        """The real model. Raises UsageError in a run without one."""
        if self._live is None:
            raise UsageError("A run from a transcript has no live model.")
        return self._live()

    async def aclose(self) -> None:
        """Do nothing: the owner of the real model closes it."""

    def _request(self, messages: Messages, more: dict[str, Any]) -> int:
        """Record the messages that are new to the model."""
        talk = self._log.session.talk_of(messages)
        start, new = talk.new()
        data: dict[str, Any] = {"talk": self._log.number(messages), "from": start, "messages": new, **more}
        if self._note and self._recalls:
            data["noted"] = True
        seq = self._log.add("request", data, parent=self._log.reply)
        talk.count, talk.reply = len(messages), None
        return seq

    def _read(self, completion: Completion) -> Reading | None:
        """Read the parts of a reply that the record needs, and hide its declared secrets in everything that
        is written from here on."""
        run = self.run
        if run is None or not (run.door.table.secrets or run.dialect.name == TAGS.name):
            return None
        table = run.door.table
        reading = run.dialect.read(completion, table)
        for found in reading.calls if table.secrets else ():
            hidden = secrets_in(found.form, table.find(found.form.tool), table.secrets)
            self._log.session.transcript.hide(run.session, hidden)
        return reading

    def _keep_tags(self, text: str, reading: Reading | None) -> None:
        """Record the lines of the latest reply that are tags, each with the place of its call in the turn,
        and the lines that only look like tags, each with the reason why it is not a call."""
        if reading is None:
            return
        lines: list[list[int | str]] = [
            [found.line, short(text[found.start : found.end], SHOWN), place]
            for place, found in enumerate(reading.calls)
            if found.tag
        ]
        lines += [[passed.line, passed.text, passed.reason] for passed in reading.passed]
        if lines:
            self._log.add(
                "tags", {"lines": sorted(lines, key=lambda line: int(line[0]))}, parent=self._log.reply
            )

    def _recall_request(self, messages: Messages, request: Event, more: dict[str, Any]) -> None:
        """End the conversation with the recorded messages of a request, which differ from today's."""
        asked, talk = request.data, self._log.session.talk_of(messages)
        told: list[Message] = asked["messages"]
        if asked.get("noted"):  # the host added a note when it resumed the run
            messages.append(told[-1]["role"], told[-1]["content"])
        start, new = talk.new()
        if self._differs is not None:
            number = self._log.number(messages)
            self._differs(request, {"talk": number, "from": start, "messages": new, **more})
        if (start, new) != (asked["from"], told):  # the run continues with the messages that the model saw
            messages.end_with(asked["from"], told)

    def _answered(self, messages: Messages, completion: Completion) -> None:
        talk = self._log.session.talk_of(messages)
        talk.count, talk.reply = len(messages), completion.text
        self._measured = messages, completion.usage.input_tokens

    def _recalled(self, messages: Messages, request: Event, reply: Event, more: dict[str, Any]) -> Completion:
        said = reply.data
        talk = self._log.session.talk_of(messages)
        start, new = talk.new()
        now = {"talk": self._log.number(messages), "from": start, "messages": new, **more}
        if request.says(now):  # comparing serialised text costs less than parsing it
            if self._differs is not None:
                self._differs(request, request)
        else:
            self._recall_request(messages, request, more)
        self._log.reply, self._log.recalled = reply.seq, True
        if said.get("raised"):
            talk.count, talk.reply = len(messages), None
            if said["raised"] == "tools":
                self._known["tool-view"] = ""
                raise ToolsRefusedError(said["text"])
            if said["raised"] == "full":
                raise ContextFullError(said["text"], said["window"])
            if said["raised"] == "moved":
                self._move_to(said["to"])
                raise MovedError(said["text"])
            raise (RequestRefusedError if said.get("refused") else ModelError)(said["text"])
        completion = completion_of(said)
        if self.run is not None:
            self.run.purse.recall(self.name, completion.usage, said, live=self._live is not None)
        self._limited(said)
        self._read(completion)
        self._answered(messages, completion)
        return completion


def _raised(error: ModelError) -> dict[str, Any]:
    """The data of a ``reply`` event for a request that failed."""
    if isinstance(error, ContextFullError):
        return {"raised": "full", "text": str(error), "window": error.window}
    if isinstance(error, BudgetError):
        return {"raised": "budget", "text": str(error), "bound": error.bound}
    if isinstance(error, MovedError):
        return {"raised": "moved", "text": str(error)}
    if isinstance(error, RequestRefusedError):
        return {"raised": "model", "text": str(error), "refused": True}
    return {"raised": "tools" if isinstance(error, ToolsRefusedError) else "model", "text": str(error)}


def _told(tools: bytes | None, choice: str) -> dict[str, Any]:
    """The data of a ``request`` event about native tools."""
    return {} if tools is None else {"tools": hashlib.sha256(tools).hexdigest()[:16], "choice": choice}


# The door of a run as the loop sees it: the transcript answers earlier calls, and new calls are written to
# it.
#
# Tools run only through the real door, and a finished call is not repeated.


PATIENCE = 0.5  # seconds for a call to end by itself after an interrupt


class RecordedDoor:
    """A door that repeats no call: the receipt answers a finished one. With a log that is not live it runs
    nothing."""

    run = OwnerRun()

    def __init__(self, parts: RunParts, past: Past, log: RunLog) -> None:
        self._door = parts.door
        self._past = past
        self._log = log
        self._live = log.live
        self._differs = parts.differs
        self._recorded = Usage(), Budget(0, 0)  # the spending at its last record

    @property
    def table(self) -> ToolTable:
        return self._door.table

    def use(self, table: ToolTable) -> None:
        """Use these tools from now on."""
        self._door = self._door.with_tools(table)

    def narrowed(self, table: ToolTable) -> Door:
        """The real door with fewer tools, for a sub-agent, which has its own past."""
        return self._door.narrowed(table)

    def may_run_beside(self, call: Call) -> bool:
        """Whether the call may run at the same time as others of its reply. A call of an earlier process may
        not: it is answered in order."""
        return self._live and key_in(call) not in self._past.calls and self._door.may_run_beside(call)

    async def dispatch(self, call: Call, context: ToolContext) -> ToolResult:
        past = self._past.calls.get(key_in(call))
        if self.run is not None:
            self.run.state.sent += self._past.sent_in(key_in(call))
        for event in self._past.reviews.pop(key_in(call), ()):
            self._count(event.data)
        if past is not None and past.finished:
            return self._recalled(past, call)
        if not self._live:
            return self._broken_off(past, call)
        run = self.run
        assert run is not None, "the run is set before a call"
        if run.state.interrupted:
            return self.refuse(call, context, "cancelled", "The run was interrupted before this call.")
        # A limit and a decision may have been used for a call that has no event yet.
        marked = call.changed(run=self._log.run, event=self._log.reply, resumed=self._log.recalled)
        budget = run.budget
        if not run.state.doing:
            self._recorded = run.state.usage, replace(budget)

        def written() -> str:
            """Record the spending since the last record, with the receipt, so that a resumed run does not
            count it again. Of parallel calls, the first to end may record the spending of another."""
            usage, before = self._recorded
            self._recorded = run.state.usage, replace(budget)
            if run.state.usage != usage or budget.steps_taken != before.steps_taken:
                spent = {
                    "usage": {
                        name: value - getattr(usage, name)
                        for name, value in vars(run.state.usage).items()
                        if value != getattr(usage, name)
                    },
                    "steps": budget.steps_taken - before.steps_taken,
                    "calls": budget.calls_taken - before.calls_taken,
                }
                if budget.bounded:
                    spent["tokens"] = budget.tokens_taken - before.tokens_taken
                    spent["cost"] = budget.cost_taken - before.cost_taken
                self._log.add("spent", spent, parent=self._log.reply, key=key_in(call))
            return ""

        token, key_token = RUNNING.set(run), CALLING.set(key_in(call))
        work = self._door.dispatch(marked, context.changed(written=[written]))
        began = time.monotonic()
        try:
            result = await run.stoppably(work, PATIENCE)
        except RunStoppedError:
            return _cancelled(call, f"{call.tool} was cancelled.", "body", time.monotonic() - began)
        finally:
            RUNNING.reset(token)
            CALLING.reset(key_token)
        if result.audit.get("written") is False:
            self._log.broken = result.message
        return result

    def refuse(self, call: Call, context: ToolContext, status: Status, message: str) -> ToolResult:
        past = self._past.calls.get(key_in(call))
        if past is not None and past.finished:
            return self._recalled(past, call)
        if not self._live:
            return self._broken_off(past, call)
        return self._door.refuse(self._marked(call), context, status, message)

    def unreadable(self, call: Call, context: ToolContext, text: str, message: str) -> None:
        if self._live and key_in(call) not in self._past.faults:
            self._door.unreadable(self._marked(call), context, text, message)

    def record(self, stage: str, message: str, **marks: Any) -> None:
        """Write an audit row about an event of the run that is not a call."""
        self._door.record(stage, message, **marks)

    def _marked(self, call: Call) -> Call:
        return call.changed(run=self._log.run, event=self._log.reply)

    def _recalled(self, past: PastCall, call: Call) -> ToolResult:
        self._past.unused -= 1
        if (spent := self._past.spent.get(key_in(call))) is not None:
            self._count(spent.data)
        if self._differs is not None:
            self._differs(past.begun, call)
        return past.result()

    def _count(self, data: Mapping[str, Any]) -> None:
        """Count what a call took in an earlier process."""
        if self.run is not None:
            usage, budget = Usage(**data["usage"]), self.run.budget
            self.run.spend(usage)
            budget.steps_taken += data["steps"]
            budget.calls_taken += data["calls"]
            budget.take(data.get("tokens", usage.tokens), data.get("cost", 0.0), usage.seconds)

    def reviewed(self, usage: Usage, cost: float) -> None:
        """Count the review of the current call, and record it at once: unlike all else that the call takes,
        it is not repeated if the call waits and a resumed run makes it again."""
        assert self.run is not None, "a call is reviewed in a run"
        self.run.spend(usage)
        said = {name: value for name, value in vars(usage).items() if value}
        data = {"usage": said, "steps": 0, "calls": 0, "cost": cost}
        self._log.add("spent", data, parent=self._log.reply, key=f"{CALLING.get()}{REVIEW}")
        recorded, budget = self._recorded
        budget = replace(budget)
        budget.take(usage.tokens, cost)
        self._recorded = recorded + usage, budget

    def _broken_off(self, past: PastCall | None, call: Call) -> ToolResult:
        """A result for an unfinished call, in a conversation that continues without it."""
        if self._differs is not None:
            self._differs(past.begun if past is not None else None, call)
        if past is not None and past.receipt is not None and past.receipt.status == "pending":
            return past.result()
        return _cancelled(call, BEGUN if past is not None and past.begun is not None else NOT_MADE, "host")


def _cancelled(call: Call, message: str, stage: str, seconds: float = 0.0) -> ToolResult:
    """A ``cancelled`` result; the receipt of the call, if it has one, says the same."""
    audit = {
        "tool": call.tool,
        "status": "cancelled",
        "stage": stage,
        "duration_ms": int(seconds * 1000),
    }
    return ToolResult(call.id, call.tool, "cancelled", None, message, (), audit)


# The only place where a Run is made: for the loop, a sub-agent, a step of a flight, or a replay.


def build_run(
    spec: RunSpec, log: RunLog, past: Past, messages: Messages, parts: RunParts, caller: Call | None = None
) -> Run:
    """The run that ``log`` records: ``past`` answers earlier requests and calls, new events are written to
    ``log``. If ``parts`` have no back end, the run ends where ``past`` ends, and nothing is written.
    ``caller`` is the call that a sub-agent works for. The model's knowledge of the memory and the tools is
    that of the conversation in ``messages``."""
    log.live, images = parts.backend is not None, tuple[Image, ...]()
    if spec.files:
        images = images_of(spec.files, parts.pages if log.live else None)
    backend, door = RecordedBackend(parts, past, log), RecordedDoor(parts, past, log)
    talk, known_output = log.session.talk_of(messages), parts.output
    if known_output is None and spec.output is not None:
        known_output = OutputType.known_by(spec.output)
    run = Run(
        spec=spec,
        log=log,
        past=past,
        parts=parts,
        door=door,
        backend=backend,
        messages=messages,
        context=parts.context,
        budget=parts.budget or Budget.of(parts.limits, kept=1),
        dialect=spec.dialect,
        must_act=spec.must_act,
        caller=caller,
        output=known_output,
        images=images,
        stops=spec.dialect.stops,
        whole=talk.table,
        state=RunState(known=dict(talk.known or {})),
    )
    backend.run = door.run = run
    run.context = replace(
        parts.context,
        services=parts.services(run),
        talk=lambda: log.session.talk(log.run),
        clocks=(*parts.context.clocks, run.budget.clock),
        seconds_left=lambda: run.budget.seconds_left,
        planning=parts.planning or parts.context.planning,
    )
    return run
