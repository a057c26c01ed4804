"""The state of one run of the loop: its task, its limits, what has happened; and the Reply at its end.

Knows data only; the loop itself is agent/loop.hy.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar, cast

from quoth.agent.events import AgentEvent, EventKind, Listener, Waiting
from quoth.agent.reply import CallRecord, FollowUp, Reply, ReplyReason, RunStatus
from quoth.agent.run.budget import NO_FUNDS, Budget, Funds, Purse
from quoth.agent.run.spec import OutputType, RunSpec
from quoth.agent.session.origins import quoted, stands
from quoth.neuro.backends.base import Backend, Gauge, Usage
from quoth.neuro.backends.messages import Image, Messages
from quoth.neuro.prompt.dialects import Dialect, NativeFound
from quoth.neuro.reading.result import FoundCall, Reading, ReplyWords
from quoth.tools.call.call import Call, Route, ToolResult
from quoth.tools.call.context import ToolContext
from quoth.tools.call.redaction import Redactor
from quoth.tools.call.services import USER, MemoryStore, Services
from quoth.tools.errors import ServerError, Status, StoreError, ToolError
from quoth.tools.history.receipts import WINDOW_SECONDS
from quoth.tools.lisp.forms import CallForm
from quoth.tools.text import short

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from quoth.agent.run.plan_mode import PlanMode
    from quoth.agent.session.past import Differs, Past, SentMessage
    from quoth.agent.session.session import RunLog
    from quoth.agent.trace.tracer import Tracer
    from quoth.tools.door.door import Door
    from quoth.tools.history.long_results import Texts
    from quoth.tools.registry.table import ToolTable

# What follows on a reply with calls: the run ends and the model sees their results at the next message, or
# it goes on at once.
AfterTags = Literal["stop", "continue"]
T = TypeVar("T")
UNTRACED = contextlib.nullcontext[Any](lambda reply: None)
UNWRITTEN = "The end of the run was not written down."
SENTENCE = 300  # characters that a person is told of a call that failed


@dataclass(frozen=True)
class RunLimits:
    """What a run may spend.

    ``steps`` is the number of replies of the model, ``calls`` of the calls in them, ``repeats`` after how
    many repetitions of the same call the run is stopped, ``window`` the seconds within which a repeated call
    is answered by its receipt (0: never), ``faults`` how many unusable replies may follow each other,
    ``result_chars`` how many characters of one result the model is shown at once, ``reply_tokens`` the
    longest reply (None: depending on the model), ``context`` the model's context window in tokens
    (None: as far as it is known, neuro/backends/base.py), ``parallel`` how many calls of one reply
    may run at once, if they only read. ``tokens`` (in and out), ``cost`` (US
    dollars) and ``seconds`` bound the whole run (None: no bound).
    """

    steps: int = 25
    calls: int = 100
    repeats: int = 3
    window: float = WINDOW_SECONDS
    faults: int = 3
    result_chars: int = 6000
    reply_tokens: int | None = None
    context: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    parallel: int = 4

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Self:
        """The limits that a session has kept; those that this version does not know are left out."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in kept.items() if name in known})


class RunStoppedError(Exception):
    """A person has interrupted the run, and what it did was stopped."""


class RunDoor(Protocol):
    """The door as the loop sees it: the real one, or that of agent/run/recorder.py."""

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
    """What one reply of the model led to: its calls with their results (``records``), the digests of calls
    made before it (``old``), what could not be read (``errors``: the provider's call id and the fault), and
    its text, whole and as a person may see it (``display``)."""

    records: list[CallRecord] = field(default_factory=list)
    old: set[str] = field(default_factory=set)
    errors: list[tuple[str, str]] = field(default_factory=list)
    text: str = ""
    display: str = ""
    cut: str = ""  # how its reply was cut off, if it was
    reasoning: str = ""  # what the model thought before it


@dataclass(frozen=True)
class RunParts:
    """What a host gives a run: its door and its model, and ports to whatever wants to know of the run."""

    door: Door  # to the tools of the run
    backend: Callable[[], Backend] | None  # opens the real model; None: the transcript alone answers
    context: ToolContext  # of its calls
    services: Callable[[Run], Services]  # what its calls may use
    limits: RunLimits
    budget: Budget | None = None  # None: one by the limits
    funds: Funds = NO_FUNDS  # what its user may spend in a day
    spent: Callable[[Usage], None] | None = None  # called with every use of a model
    listener: Listener | None = None  # called with every event
    pages: Texts | None = None  # keeps what the model is not shown whole
    memory: MemoryStore | None = None  # whose core blocks the model is shown
    shows: Callable[[str], bool] = lambda label: True  # those whose label the rules let it read
    renew: Callable[[], Awaitable[ToolTable]] | None = None  # the agent's tools now; None: they never change
    offers: Callable[[ToolTable], ToolTable] = lambda table: table  # these, hiding what may not be called
    planning: PlanMode | None = None  # in plan mode: keeps the calls that are not made
    may_force: bool = False  # whether a cascade's next model must act if it takes a grammar
    output: OutputType | None = None  # the type of its answer; None: as the spec has it
    turn: str = ""  # in place of the spec's, of a sub-agent or a step of a flight
    differs: Differs | None = None  # called where the transcript answers, to compare
    note: str = ""  # for the model, once, when it is asked again


@dataclass(eq=False, repr=False)
class RunState:
    """What a run has counted and collected so far."""

    step: int = 0  # turns of the model
    faults: int = 0  # unusable replies in a row
    calls: list[CallRecord] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    sent: list[SentMessage] = field(default_factory=list)  # messages of its calls
    last_words: list[SentMessage] = field(default_factory=list)  # those the reply consists of
    seen: dict[str, CallRecord] = field(default_factory=dict)  # calls by digest, since the last change
    repeated: dict[str, int] = field(default_factory=dict)  # how often each was repeated
    forgotten: int = 0  # the number of calls that are no longer in ``seen``
    weighed: int = 0  # the number of calls that were asked whether a change was
    tried: bool = False  # tried in them that failed, and none made since
    must_answer: bool = False  # the next reply may have no call
    avoided: set[str] = field(default_factory=set)  # tools that it may not call next
    known: dict[str, Any] = field(default_factory=dict)  # memory blocks as the model knows them, by label
    looked: int = 0  # the number of calls when the memory was read last
    unread: bool = False  # a person was told that it cannot be read
    reply_tokens: int = 0  # the longest reply, in the last request
    interrupted: bool = False
    doing: dict[asyncio.Task[Any], float] = field(default_factory=dict)  # what an interrupt stops, and when
    children: list[Run] = field(default_factory=list)  # the sub-agents at work


@dataclass(eq=False, repr=False)
class Run:
    """One run of the loop. ``backend`` and ``door`` are those of agent/run/recorder.py, which
    answer from the transcript what has happened before."""

    spec: RunSpec
    log: RunLog  # writes its events, if it is live
    past: Past  # what the transcript answers
    parts: RunParts
    door: RunDoor
    backend: Backend
    messages: Messages
    context: ToolContext  # of its calls
    budget: Budget
    dialect: Dialect  # at first the spec's; a cascade's next model may need another
    must_act: bool  # the same
    caller: Call | None = None  # the call that a sub-agent works for
    output: OutputType | None = None  # the type of its answer
    images: tuple[Image, ...] = ()  # shown beside the task
    stops: bool = False  # it ends with the first reply that has calls
    whole: ToolTable | None = None  # the agent's tools as the model knows them
    gauge: Gauge | None = None  # how full the model's window is, once that was asked
    words: ReplyWords | None = None  # of the reply that arrives, for the listener
    state: RunState = field(default_factory=RunState)

    @property
    def session(self) -> str:
        return self.log.session.id

    @property
    def name(self) -> str:
        """Its name within the session."""
        return self.log.run

    @property
    def user(self) -> str:
        """The user of its calls."""
        return self.spec.speaker or self.log.session.user

    @property
    def turn(self) -> str:
        """Tells a message of a conversation from another in the same words."""
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
        """What pays for its requests."""
        return Purse(self.budget, self.parts.funds, self.user)

    def spend(self, usage: Usage) -> None:
        """Count the usage of a model, by this run or on its behalf."""
        self.state.usage += usage
        self.tell("usage", self.state.usage)
        if self.parts.spent is not None:
            self.parts.spent(usage)

    def traced(self) -> AbstractContextManager[Callable[[Reply], None]]:
        """The span of the run, which is told its Reply."""
        if self.tracer is None:
            return UNTRACED
        return self.tracer.run(self.session, self.name, self.spec.task, self.parent)

    def traced_turn(self) -> AbstractContextManager[Any]:
        """The span of its next turn."""
        return UNTRACED if self.tracer is None else self.tracer.turn(self.state.step + 1)

    def waits(self, seconds: float, why: str) -> None:
        """Tell that the next try of a request is put off."""
        self.tell("waiting", Waiting(seconds, why))

    def quoted(self, found: FoundCall, text: str) -> str:
        """The name of an earlier text in which the words of a call stand, when the call was found in the text
        of a reply; else empty. A provider's native call is never a quotation."""
        if not self.log.live or isinstance(found, NativeFound):
            return ""
        words = text[found.start : found.end]
        return quoted(found.form, words, self.door.table, self.log.session.read(self.log.reply))

    def sure(self, reading: Reading) -> float | None:
        """How sure the model says it is. What it repeats of an earlier text is not its own estimate."""
        if not self.log.live:
            return reading.confidence
        read = self.log.session.read
        return min(
            (sure for sure, line in reading.sure if not stands(line, read(self.log.reply))), default=None
        )

    @property
    def chats(self) -> bool:
        """Whether people in a chat are told of each call, and see of a reply what is for them."""
        return self.route == "chat"

    @property
    def recalling(self) -> bool:
        """Whether the run is still repeating recorded events."""
        return self.past.left

    def interrupt(self, asking: bool = False) -> None:
        """Stop: the model at once, a call after a moment in which it may end by itself. With ``asking`` a
        person is being asked about the call, and it is left alone: it ends when the question is withdrawn."""
        self.state.interrupted = True
        with contextlib.suppress(Exception):  # the end of the run will tell
            self.log.add("interrupt", self._broken_off(), parent=self.log.reply)
        for task, patience in list(self.state.doing.items()):
            if not patience:
                task.cancel()
            elif not asking:
                task.get_loop().call_later(patience, task.cancel)
        for child in self.state.children:
            child.interrupt(asking)

    def _broken_off(self) -> dict[str, str]:
        """The data of an ``interrupt`` event: what the model has said of the reply that will not be read. Its
        calls are left out where a tool has secret parameters: half a call does not tell which they are."""
        text = self.words.so_far(calls=not self.door.table.secrets) if self.words is not None else ""
        return {"text": text} if text else {}

    async def stoppably(self, work: Coroutine[Any, Any, T], patience: float = 0.0) -> T:
        """Do ``work``, which an interrupt stops after so many seconds of patience. Raises RunStoppedError
        when it has."""
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

    def tell(self, kind: EventKind, data: Any) -> None:
        """Tell the listener, unless the event is a recorded one; a sub-agent's listener sees to that
        itself."""
        self.pass_on(AgentEvent(kind, data))

    def pass_on(self, event: AgentEvent) -> None:
        """Tell the listener of an event, which may be one of a sub-agent."""
        if self.listener is not None and not (self.recalling and self.parent is None):
            self.listener(event)

    def hearing(self) -> Callable[[str], None]:
        """A function for the pieces of a streamed reply: it tells the listener of each piece, each complete
        block of words and each complete call."""
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
        """Tell the listener the words of a reply that it has not been told; those that the transcript has
        answered were told when they came."""
        words, self.words = self.words, None
        if words is None or (self.log.live and self.log.recalled) or thought.finish == "refused":
            return
        if rest := words.rest(thought.reading.display if self.chats else thought.reading.text):
            self.tell("said", rest)

    def shown_form(self, form: CallForm) -> CallForm:
        """The form as a person may see it, without the arguments that its tool declares secret."""
        return Redactor.of(form, self.door.table, by_looks=False).form

    def marks(self, place: int, name: str = "") -> dict[str, Any]:
        """The fields of the call at a place in a reply that only the host knows. Its key stays the same when
        the run is resumed."""
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
        """End where something cannot be used. Where it is the store, as by a kill: the run has no end on
        record, so that it can be resumed."""
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
                if status == "done":  # its steps are on record, and a resumed run writes them
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
        """The reply, once the end of the run is on disk."""
        try:
            await self.log.on_disk()
        except StoreError as error:
            return self._unwritten(reply, error)
        return reply

    def _unwritten(self, reply: Reply, error: Exception) -> Reply:
        """The reply of a run whose end is not on disk: one that was done is broken off, though its answer is
        there."""
        said = f"{UNWRITTEN} {error}"
        self.tell("note", said)
        return replace(reply, status="failed", error=said) if reply.ok else reply

    def let_go(self) -> None:
        """Let go of what knows this run, now that it is over: else all that it holds lived on until Python
        looks for garbage."""
        self.context = self.parts.context

    def _spent(self) -> dict[str, Any]:
        """What the Reply tells of the budget."""
        purse = self.purse if self.log.live else self.purse._replace(funds=NO_FUNDS)
        return {"spent": purse.spent(), "left": purse.left()}


RUNNING: ContextVar[Run | None] = ContextVar("RUNNING", default=None)  # the run whose call is being made
CALLING: ContextVar[str] = ContextVar("CALLING", default="")  # the key of that call


def follow_ups_of(calls: Sequence[CallRecord]) -> tuple[FollowUp, ...]:
    """What a person is told of these calls: of one that is ok, what its body said, which may be nothing; of
    any other, why, each reason once. One that waits is told of by its request, and a repeated one was told
    of."""
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
