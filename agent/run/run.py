"""The state of one run of the loop: its task, its limits, its progress; and the Reply at its end. The loop
itself is agent/loop.hy.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from quoth.agent.events import AgentEvent, EventKind, Listener, Waiting
from quoth.agent.reply import CallRecord, FollowUp, Reply, ReplyReason, RunStatus
from quoth.agent.run.budget import NO_FUNDS, Budget, Funds, Purse
from quoth.agent.run.limits import RunLimits
from quoth.agent.run.spec import OutputType, RunSpec
from quoth.agent.session.origins import quoted, stands
from quoth.neuro.backends.base import Backend, Gauge, Usage
from quoth.neuro.backends.messages import Image, Messages
from quoth.neuro.prompt.dialects import Dialect, NativeFound
from quoth.neuro.reading.result import FoundCall, Reading
from quoth.tools.call.call import Call, Route, ToolResult
from quoth.tools.call.context import ToolContext
from quoth.tools.call.redaction import Redactor
from quoth.tools.call.services import USER, MemoryStore, Services
from quoth.tools.errors import ServerError, Status, StoreError, ToolError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm
from quoth.tools.text import short

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from quoth.agent.run.plan_mode import PlanMode
    from quoth.agent.session.past import Differs, Past, SentMessage
    from quoth.agent.session.session import RunLog
    from quoth.agent.trace.tracer import Tracer
    from quoth.neuro.reading.prose import ReplyWords
    from quoth.tools.door.door import Door
    from quoth.tools.history.long_results import Texts
    from quoth.tools.registry.table import ToolTable

T = TypeVar("T")
UNTRACED = contextlib.nullcontext[Any](lambda reply: None)
UNWRITTEN = "The end of the run could not be recorded."
SENTENCE = 300  # maximum of characters about a failed call, for a person


class RunStoppedError(Exception):
    """A person has interrupted the run, and its work was stopped."""


class RunDoor(Protocol):
    """The door as the loop sees it: the real one, or the one in agent/run/recorder.py."""

    @property
    def table(self) -> ToolTable: ...

    def narrowed(self, table: ToolTable) -> Door: ...

    def use(self, table: ToolTable) -> None: ...

    def may_run_beside(self, call: Call) -> bool: ...

    async def dispatch(self, call: Call, context: ToolContext) -> ToolResult: ...

    def refuse(self, call: Call, context: ToolContext, status: Status, message: str) -> ToolResult: ...

    def unreadable(self, call: Call, context: ToolContext, text: str, message: str) -> Any: ...

    def record(self, stage: str, message: str, **marks: Any) -> None: ...


@dataclass
class Turn:
    """One reply of the model with its effects: its calls with their results (``records``), the digests of
    earlier calls (``old``), its unreadable forms (``errors``: the provider's call id and the fault), and its
    text, whole and for a person (``display``)."""

    records: list[CallRecord] = field(default_factory=list)
    old: set[str] = field(default_factory=set)
    errors: list[tuple[str, str]] = field(default_factory=list)
    text: str = ""
    display: str = ""
    cut: str = ""  # how the reply was cut off, if it was
    reasoning: str = ""  # the model's thoughts before it


@dataclass(frozen=True, eq=False, repr=False)
class RunParts:
    """The host's parts for a run: its door and its model, and the receivers of its events."""

    door: Door  # the door to the tools of the run
    backend: Callable[[], Backend] | None  # opens the real model; None: the transcript alone answers
    context: ToolContext  # the context of its calls
    services: Callable[[Run], Services]  # the services for its calls
    limits: RunLimits
    budget: Budget | None = None  # None: made from the limits
    funds: Funds = NO_FUNDS  # the daily budget of its user
    spent: Callable[[Usage], None] | None = None  # called with every use of a model
    listener: Listener | None = None  # called with every event
    pages: Texts | None = None  # keeps texts of which the model sees only a part
    memory: MemoryStore | None = None  # the model sees its core blocks
    shows: Callable[[str], bool] = lambda label: True  # whether the rules let it read a block
    renew: Callable[[], Awaitable[ToolTable]] | None = None  # the agent's tools now; None: they never change
    offers: Callable[[ToolTable], ToolTable] = lambda table: table  # without forbidden tools
    planning: PlanMode | None = None  # in plan mode: records the calls instead of running them
    may_force: bool = False  # whether a cascade's next model must act if it takes a grammar
    output: OutputType | None = None  # the type of its answer; None: as in the spec
    turn: str = ""  # replaces the spec's, for a sub-agent or a step of a flight
    differs: Differs | None = None  # called to compare when the transcript answers
    note: str = ""  # for the model, once, at the next live request


@dataclass(eq=False, repr=False)
class RunState:
    """The counts and collections of a run so far."""

    step: int = 0  # turns of the model
    faults: int = 0  # unusable replies in a row
    calls: list[CallRecord] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    sent: list[SentMessage] = field(default_factory=list)  # messages of its calls
    last_words: list[SentMessage] = field(default_factory=list)  # the messages that the reply consists of
    seen: dict[str, CallRecord] = field(default_factory=dict)  # calls by digest, since the last change
    repeated: dict[str, int] = field(default_factory=dict)  # how often each was repeated
    forgotten: int = 0  # the number of calls that are no longer in ``seen``
    weighed: int = 0  # the number of calls examined for ``tried``
    doubted: int = -1  # the number of calls when an answer was doubted; -1: none was
    tried: bool = False  # a change failed, and none has succeeded since
    must_answer: bool = False  # the next reply may have no call
    avoided: set[str] = field(default_factory=set)  # tools that the next reply may not call
    known: dict[str, Any] = field(default_factory=dict)  # memory blocks known to the model, by label
    looked: int = 0  # the number of calls when the memory was read last
    unread: bool = False  # a person knows that it cannot be read
    reply_tokens: int = 0  # the maximum of the last request
    interrupted: bool = False
    doing: dict[asyncio.Task[Any], float] = field(default_factory=dict)  # tasks to stop, and their patience
    children: list[Run] = field(default_factory=list)  # the sub-agents at work


@dataclass(eq=False, repr=False)
class Run:
    """One run of the loop. ``backend`` and ``door`` come from agent/run/recorder.py and answer earlier
    requests and calls from the transcript."""

    spec: RunSpec
    log: RunLog  # writes its events, if it is live
    past: Past  # the recorded part of the run
    parts: RunParts
    door: RunDoor
    backend: Backend
    messages: Messages
    context: ToolContext  # of its calls
    budget: Budget
    dialect: Dialect  # first the spec's; the next model of a cascade may need another
    must_act: bool  # like the dialect
    caller: Call | None = None  # the call that a sub-agent works for
    output: OutputType | None = None  # the type of its answer
    images: tuple[Image, ...] = ()  # shown with the task
    stops: bool = False  # it ends with the first reply that has calls
    whole: ToolTable | None = None  # the agent's tools as the model knows them
    gauge: Gauge | None = None  # measures the use of the model's window; made at its first use
    words: ReplyWords | None = None  # the words of the arriving reply, for the listener
    state: RunState = field(default_factory=RunState)

    @property
    def session(self) -> str:
        return self.log.session.id

    @property
    def name(self) -> str:
        """Its name in the session."""
        return self.log.run

    @property
    def user(self) -> str:
        """The user of its calls."""
        return self.spec.speaker or self.log.session.user

    @property
    def turn(self) -> str:
        """The name that distinguishes equal messages of a conversation."""
        return self.parts.turn or self.spec.turn

    @property
    def route(self) -> Route:
        route: Route = "agent" if self.caller is not None else "chat" if self.spec.chat else "reply"
        return route

    @property
    def depth(self) -> int:
        return 0 if self.caller is None else self.caller.depth + 1

    @property
    def parent(self) -> str | None:
        """The id of the call that a sub-agent works for."""
        return None if self.caller is None else self.caller.id

    @property
    def interrupted(self) -> bool:
        return self.state.interrupted

    @property
    def limits(self) -> RunLimits:
        return self.parts.limits

    @property
    def listener(self) -> Listener | None:
        return self.parts.listener

    @property
    def tracer(self) -> Tracer | None:
        return cast("Tracer | None", self.parts.door.tracer) if self.log.live else None

    @property
    def purse(self) -> Purse:
        """The budget that pays for its requests."""
        return Purse(self.budget, self.parts.funds, self.user)

    def spend(self, usage: Usage) -> None:
        """Count the usage of a model by this run or by its calls."""
        self.state.usage += usage
        self.tell("usage", self.state.usage)
        if self.parts.spent is not None:
            self.parts.spent(usage)

    def traced(self) -> AbstractContextManager[Callable[[Reply], None]]:
        """The span of the run; its function receives the Reply."""
        if self.tracer is None:
            return UNTRACED
        return self.tracer.run(self.session, self.name, self.spec.task, self.parent)

    def traced_turn(self) -> AbstractContextManager[Any]:
        """The span of its next turn."""
        return UNTRACED if self.tracer is None else self.tracer.turn(self.state.step + 1)

    def waits(self, seconds: float, why: str) -> None:
        """Report the seconds until a request is retried."""
        self.tell("waiting", Waiting(seconds, why))

    def quoted(self, found: FoundCall, text: str) -> str:
        """The name of an earlier text that contains the words of a call found in the text of a reply;
        otherwise empty. A native call of a provider is never a quotation."""
        if not self.log.live or isinstance(found, NativeFound):
            return ""
        words = text[found.start : found.end]
        return quoted(found.form, words, self.door.table, self.log.session.read(self.log.reply))

    def sure(self, reading: Reading) -> float | None:
        """The model's stated confidence, 0 to 1. A number repeated from an earlier text does not count."""
        if not self.log.live:
            return reading.confidence
        read = self.log.session.read
        return min(
            (sure for sure, line in reading.sure if not stands(line, read(self.log.reply))), default=None
        )

    @property
    def chats(self) -> bool:
        """Whether people in a chat get the result of each call, and only the part of a reply that is for
        them."""
        return self.route == "chat"

    @property
    def recalling(self) -> bool:
        """Whether the run is still repeating recorded events."""
        return self.past.left

    def interrupt(self, asking: bool = False) -> None:
        """Stop: the model at once, a call after a short time to end by itself. With ``asking`` a person is
        being asked about the call: it is not stopped here, because it ends when the question is withdrawn."""
        self.state.interrupted = True
        with contextlib.suppress(Exception):  # the end of the run will report it
            self.log.add("interrupt", self._broken_off(), parent=self.log.reply)
        for task, patience in list(self.state.doing.items()):
            if not patience:
                task.cancel()
            elif not asking:
                task.get_loop().call_later(patience, task.cancel)
        for child in self.state.children:
            child.interrupt(asking)

    def _broken_off(self) -> dict[str, str]:
        """The data of an ``interrupt`` event: the received part of the model's unfinished reply. Its calls
        are left out if a tool has secret parameters, because half a call does not show which they are."""
        text = self.words.so_far(calls=not self.door.table.secrets) if self.words is not None else ""
        return {"text": text} if text else {}

    async def stoppably(self, work: Coroutine[Any, Any, T], patience: float = 0.0) -> T:
        """Do ``work``. An interrupt stops it after ``patience`` seconds and raises RunStoppedError."""
        task = asyncio.ensure_future(work)
        self.state.doing[task] = patience
        try:
            return await task
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if self.state.interrupted and not (me is not None and me.cancelling()):
                raise RunStoppedError from None
            raise
        finally:
            del self.state.doing[task]

    def tell(self, kind: EventKind, data: Any, call: str = "") -> None:
        """Send the listener an event, unless it is a recorded one. The listener of a sub-agent checks that
        itself."""
        self.pass_on(AgentEvent(kind, data, call=call, parent=(self.parent or "") if call else ""))

    def pass_on(self, event: AgentEvent) -> None:
        """Send the listener an event of this run or a sub-agent."""
        if self.listener is not None and not (self.recalling and self.parent is None):
            self.listener(event)

    def hearing(self) -> Callable[[str], None]:
        """A function for the pieces of a streamed reply: it sends the listener each piece, each complete
        block of words and each complete call."""
        from quoth.neuro.reading.prose import ReplyWords  # here: a single call has no reply

        words = self.words = ReplyWords(lambda text: self.dialect.read_text(text, self.door.table))
        calls = self.dialect.stream(self.door.table)

        def hear(piece: str) -> None:
            self.tell("text", piece)
            for block in words.feed(piece):
                self.tell("said", block)
            for form in calls(piece):
                self.tell("written", str(self.shown_form(form)))

        return hear

    def tell_words(self, thought: Any) -> None:
        """Send the listener the words of a reply that it has not received. Words from the transcript were
        sent when they arrived."""
        words, self.words = self.words, None
        if words is None or (self.log.live and self.log.recalled) or thought.finish == "refused":
            return
        if rest := words.rest(thought.reading.display if self.chats else thought.reading.text):
            self.tell("said", rest)

    def shown_form(self, form: CallForm) -> CallForm:
        """The form as a person may see it, without the arguments that its tool declares secret."""
        return Redactor.of(form, self.door.table, by_looks=False).form

    def marks(self, place: int, name: str = "") -> dict[str, Any]:
        """The fields of a call that only the host sets, for its place in a reply. Its key is the same in a
        resumed run."""
        return {
            "key": f"{self.session}/{self.name}/{self.state.step}.{name or place}",
            "resumed": False,
            "route": self.route,
            "user": self.user,
            "session": self.session,
            "depth": self.depth,
            "parent": self.parent,
            "round": self.state.step,
            "order": place,
            "message": self.context.user_message,
            "turn": self.turn,
        }

    def broken_off(self, error: Exception) -> Reply:
        """End the run because something failed. If it is the store, no end is recorded (as after a kill), so
        that the run can be resumed."""
        if isinstance(error, StoreError) and not isinstance(error, ServerError):
            self.log.broken = str(error)
        return self.end("failed", str(error))

    def end(
        self,
        status: RunStatus,
        text: str,
        unsent: str | None = None,
        output: Any = None,
        *,
        reasoning: str = "",
        reason: ReplyReason | None = None,
    ) -> Reply:
        plan, finished = None, not self.log.broken
        if self.parts.planning is not None and finished:
            try:
                plan = self.parts.planning.written()
            except (ToolError, StoreError) as error:
                if status == "done":  # the steps are recorded, and a resumed run writes the plan
                    status, text, finished = "failed", str(error), False
                else:
                    self.tell("note", str(error))
        state = self.state
        answered = status in ("done", "pending")
        reply = Reply(
            self.session,
            status,
            text if answered else "",
            tuple(state.calls),
            state.usage,
            self.budget.steps_taken,
            tuple(one.text for one in state.sent if one.to == USER and (self.chats or not one.told)),
            unsent,
            follow_ups_of(state.calls) if self.chats or self.stops else (),
            error="" if answered else text,
            **self._spent(),
            output=output,
            plan=plan,
            reasoning=reasoning,
            ended_by=reason,
        )
        if finished:
            otherwise = self.stops and not self.spec.dialect.stops
            try:
                self.log.ended(reply, self.messages, after_tags="stop" if otherwise else "")
            except Exception as error:
                reply = self._unwritten(reply, error)
        self.tell("end", reply)
        return reply

    async def settled(self, reply: Reply) -> Reply:
        """The reply; waits until the end of the run is on disk."""
        try:
            await self.log.on_disk()
        except StoreError as error:
            return self._unwritten(reply, error)
        return reply

    def _unwritten(self, reply: Reply, error: Exception) -> Reply:
        """The reply of a run whose end is not on disk: ``done`` becomes broken off, but the answer stays."""
        said = f"{UNWRITTEN} {error}"
        self.tell("note", said)
        return replace(reply, status="failed", error=said) if reply.ok else reply

    def let_go(self) -> None:
        """Drop references to the finished run, so that it is freed without waiting for the garbage
        collector."""
        self.context = self.parts.context

    def _spent(self) -> dict[str, Any]:
        """The fields of the Reply about the budget."""
        purse = self.purse if self.log.live else self.purse._replace(funds=NO_FUNDS)
        return {"spent": purse.spent(), "left": purse.left()}


def follow_ups_of(calls: Sequence[CallRecord]) -> tuple[FollowUp, ...]:
    """The messages for a person about these calls: for an ok call, the message of its body, which may be
    empty; for any other, the reason, each once. Waiting calls are left out, because their request was shown,
    and so are repeated ones."""
    found, reasons = [], set[str]()
    for call in calls:
        result = call.result
        if result.status == "pending" or result.audit.get("stage") == "receipt":
            continue
        told = result.follow_up if result.ok else _one_line(result.follow_up or result.message)
        if not told or told in reasons:
            continue
        found.append(FollowUp(call.key, told))
        if not result.ok:
            reasons.add(told)
    return tuple(found)


def _one_line(text: str) -> str:
    return short(" ".join(text.split()), SENTENCE)
