"""The state of one run of the loop: its task, its limits, what has happened; and the Reply at its end.

Knows data only; the loop itself is agent/loop.hy.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar

from quoth.agent.events import EventKind, Listener, RunEvent, Waiting
from quoth.agent.reply import CallRecord, FollowUp, Reply, RunStatus
from quoth.agent.run.budget import Budget
from quoth.agent.run.purse import NO_FUNDS, Funds, Purse
from quoth.agent.session.quotation import quoted, stands
from quoth.neuro.backends.base import Backend, RequestOptions, Usage
from quoth.neuro.backends.context_window import Gauge
from quoth.neuro.backends.messages import Image, Messages
from quoth.neuro.prompt.dialects import CALL_FORM, Dialect, NativeFound
from quoth.neuro.reading.result import FoundCall, Reading
from quoth.neuro.reading.words import Words
from quoth.tools.call.call import Call, Route, ToolResult
from quoth.tools.call.context import ToolContext
from quoth.tools.call.services import USER
from quoth.tools.errors import ServerError, StoreError, ToolError
from quoth.tools.history.receipts import WINDOW_SECONDS
from quoth.tools.text import short

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from quoth.agent.run.output import Output
    from quoth.agent.run.plan_mode import PlanMode
    from quoth.agent.session.past import Past, Sent
    from quoth.agent.session.run_log import RunLog
    from quoth.agent.trace.tracer import Tracer
    from quoth.tools.call.services import MemoryStore
    from quoth.tools.door.door import Door
    from quoth.tools.errors import Status
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
    (None: as far as it is known, neuro/backends/context_window.py), ``parallel`` how many calls of one reply
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
        if "tokens" in kept and "reply_tokens" not in kept:  # so it was called in older sessions
            kept = {**kept, "reply_tokens": kept["tokens"], "tokens": None}
        return cls(**{name: value for name, value in kept.items() if name in known})


class RunStoppedError(Exception):
    """A person has interrupted the run, and what it did was stopped."""


class RunDoor(Protocol):
    """The door as the loop sees it: the real one, or that of agent/run/recorded_door.py."""

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


@dataclass(eq=False, repr=False)
class Run:
    """The state that one run carries from turn to turn. ``backend`` and ``door`` may be those of
    agent/run/recorder.py, which answer from the transcript what has happened before."""

    task: str
    session: str
    door: RunDoor
    context: ToolContext
    backend: Backend
    messages: Messages
    user: str = ""
    depth: int = 0
    parent: str | None = None  # the id of the call a sub-agent works for
    instructions: str = ""  # in the opening of its conversation
    surroundings: str = ""  # behind them, as data
    data: str = ""  # shown to the model once, behind the task
    images: tuple[Image, ...] = ()  # and these beside it
    spent: Callable[[Usage], None] | None = None  # told of every use of a model
    route: Route = "reply"
    after_tags: AfterTags = "continue"
    must_act: bool = False
    may_force: bool = False  # whether a cascade's next model must act if it takes a grammar
    dialect: Dialect = CALL_FORM
    search: bool = False  # whether the belt shows one line a tool
    limits: RunLimits = field(default_factory=RunLimits)
    options: RequestOptions | None = None  # of each request
    output: Output | None = None  # what its answer has to be
    listener: Listener | None = None
    name: str = ""  # within its session
    turn: str = ""  # tells a message of a conversation from another in the same words
    past: Past | None = None  # what the transcript answers
    log: RunLog | None = None  # what is written there; None where nothing is
    calls: list[CallRecord] = field(default_factory=list)
    words: Words | None = None  # of the reply that comes, for the listener
    sent: list[Sent] = field(default_factory=list)
    last_words: list[Sent] = field(default_factory=list)  # those the reply consists of
    usage: Usage = field(default_factory=Usage)
    step: int = 0
    faults: int = 0
    seen: dict[str, CallRecord] = field(default_factory=dict)
    repeated: dict[str, int] = field(default_factory=dict)
    forgotten: int = 0  # how many of the calls ``seen`` tells nothing of any more
    weighed: int = 0  # how many of the calls were asked whether a change was
    tried: bool = False  # tried in them that failed, and none made since
    must_answer: bool = False
    avoided: set[str] = field(default_factory=set)
    interrupted: bool = False
    doing: dict[asyncio.Task[Any], float] = field(default_factory=dict)  # what an interrupt stops, and when
    children: list[Run] = field(default_factory=list)  # the sub-agents at work
    memory: MemoryStore | None = None  # whose core blocks the model is shown
    shows: Callable[[str], bool] = lambda label: True  # those whose label the rules let it read
    known: dict[str, Any] = field(default_factory=dict)  # the blocks it knows, as it knows them, by label
    looked: int = 0  # how many calls had been made when the memory was looked at last
    unread: bool = False  # a person was told that it cannot be read
    renew: Callable[[], Awaitable[ToolTable]] | None = None  # the agent's tools now; None: they never change
    offers: Callable[[ToolTable], ToolTable] = lambda table: table  # these, hiding what may not be called
    whole: ToolTable | None = None  # the agent's tools as the model knows them
    pages: Texts | None = None  # keeps what the model is not shown whole
    gauge: Gauge | None = None  # how full the model's window is
    reply_tokens: int = 0  # how long a reply may be, the last that was asked for
    tracer: Tracer | None = None
    measured: tuple[str, str] | None = None  # the tools it counts, by dialect and view
    given: Budget | None = None  # in place of one of its own
    funds: Funds = NO_FUNDS
    planning: PlanMode | None = None  # in plan mode: what keeps the calls that are not made
    checkpoint: Callable[[tuple[Any, ...]], None] | None = None  # told of each next stimulus

    def __post_init__(self) -> None:
        self.budget = self.given or Budget.of(self.limits, kept=1)
        self._given_context = self.context

    @property
    def purse(self) -> Purse:
        """What pays for its requests."""
        return Purse(self.budget, self.funds, self.user)

    def spend(self, usage: Usage) -> None:
        """Count the usage of a model, by this run or on its behalf."""
        self.usage += usage
        self.tell("usage", self.usage)
        if self.spent is not None:
            self.spent(usage)

    def traced(self) -> AbstractContextManager[Callable[[Reply], None]]:
        """The span of the run, which is told its Reply."""
        if self.tracer is None:
            return UNTRACED
        return self.tracer.run(self.session, self.name, self.task, self.parent)

    def traced_turn(self) -> AbstractContextManager[Any]:
        """The span of its next turn."""
        return UNTRACED if self.tracer is None else self.tracer.turn(self.step + 1)

    def waits(self, seconds: float, why: str) -> None:
        """Tell that the next try of a request is put off."""
        self.tell("waiting", Waiting(seconds, why))

    def quoted(self, found: FoundCall, text: str) -> str:
        """The name of an earlier text in which the words of a call stand, when the call was found in the text
        of a reply; else empty. A provider's native call is never a quotation."""
        if self.log is None or isinstance(found, NativeFound):
            return ""
        words = text[found.start : found.end]
        return quoted(found.form, words, self.door.table, self.log.session.read(self.log.reply))

    def sure(self, reading: Reading) -> float | None:
        """How sure the model says it is. What it repeats of an earlier text is not its own estimate."""
        if self.log is None:
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
        return self.past is not None and self.past.left

    def interrupt(self, asking: bool = False) -> None:
        """Stop: the model at once, a call after a moment in which it may end by itself. With ``asking`` a
        person is being asked about the call, and it is left alone: it ends when the question is withdrawn."""
        self.interrupted = True
        if self.log is not None:
            with contextlib.suppress(Exception):  # the end of the run will tell
                self.log.add("interrupt", self._broken_off(), parent=self.log.reply)
        for task, patience in list(self.doing.items()):
            if not patience:
                task.cancel()
            elif not asking:
                task.get_loop().call_later(patience, task.cancel)
        for child in self.children:
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
        self.doing[task] = patience
        try:
            return await task
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if self.interrupted and not (me is not None and me.cancelling()):
                raise RunStoppedError from None
            raise
        finally:
            del self.doing[task]

    def tell(self, kind: EventKind, data: Any) -> None:
        """Tell the listener, unless the event is a recorded one; a sub-agent's listener sees to that
        itself."""
        self.pass_on(RunEvent(kind, data))

    def pass_on(self, event: RunEvent) -> None:
        """Tell the listener of an event, which may be one of a sub-agent."""
        if self.listener is not None and not (self.recalling and self.parent is None):
            self.listener(event)

    def broken_off(self, error: Exception) -> Reply:
        """End where something cannot be used. Where it is the store, as by a kill: the run has no end on
        record, so that it can be resumed."""
        if self.log is not None and isinstance(error, StoreError) and not isinstance(error, ServerError):
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
    ) -> Reply:
        plan, finished = None, self.log is None or not self.log.broken
        if self.planning is not None and finished:
            try:
                plan = self.planning.written()
            except (ToolError, StoreError) as error:
                if status == "done":  # its steps are on record, and a resumed run writes them
                    status, text, finished = "failed", str(error), False
                else:
                    self.tell("note", str(error))
        answered = status in ("done", "pending")
        reply = Reply(
            self.session,
            status,
            text if answered else "",
            tuple(self.calls),
            self.usage,
            self.budget.steps_taken,
            tuple(one.text for one in self.sent if one.to == USER and (self.chats or not one.told)),
            unsent,
            follow_ups_of(self.calls) if self.chats or self.after_tags == "stop" else (),
            error="" if answered else text,
            **self._spent(),
            output=output,
            plan=plan,
            reasoning=reasoning,
        )
        if self.log is not None and finished:
            try:
                self.log.ended(reply, self.messages, after_tags="stop" if self._stops_otherwise() else "")
            except Exception as error:
                reply = self._unwritten(reply, error)
        self.tell("end", reply)
        return reply

    async def settled(self, reply: Reply) -> Reply:
        """The reply, once the end of the run is on disk."""
        if self.log is not None:
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
        self.context, self.checkpoint = self._given_context, None

    def _spent(self) -> dict[str, Any]:
        """What the Reply tells of the budget."""
        purse = self.purse if self.log is not None else self.purse._replace(funds=NO_FUNDS)
        return {"spent": purse.spent(), "left": purse.left()}

    def _stops_otherwise(self) -> bool:
        """Whether the run ends with its first reply that has calls, and was not begun so."""
        begun = self.past.stimulus if self.past is not None else None
        return self.after_tags == "stop" and (begun is None or begun.data.get("after-tags") != "stop")


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
