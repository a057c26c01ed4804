"""The door's ports: policy, limits, gate, consent, audit, receipts and call log, each as a protocol, most of
them with a null object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from quoth.tools.call.call import (
    Call,
    Decided,
    EditedCall,
    GateDecision,
    RemainingQuota,
    ToolResult,
    Verdict,
    deny,
)
from quoth.tools.call.context import ToolContext
from quoth.tools.errors import Pending, Status
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import CognitiveTool, ToolTable

if TYPE_CHECKING:
    from quoth.tools.call.question import Question


class Policy(Protocol):
    """Judges a validated call before its guard runs. ``args`` are the body's arguments, with defaults."""

    def judge(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext
    ) -> Verdict: ...

    def judge_unknown(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext, depends: str
    ) -> Verdict:
        """Judge a previewed call some of whose ``args`` are UNKNOWN. The verdict is valid for every value of
        theirs; otherwise it is an ask whose reason begins with ``depends``, a text that names them."""
        ...


class PersonAnswer(NamedTuple):
    """A person's answer to a question, and a sentence for the audit that names the person."""

    text: str
    by: str = ""


# Questions of fact about the past. Only the answer of a person to this very question counts.
BEGUN_BEFORE = "it was begun before, and how that ended is not known"
LOST_REQUEST = "Redis lost the request, and whether a worker had begun it is not known"
QUOTED = "these words are in"


def asks_fact(reason: str) -> bool:
    """Whether a question is about a past fact: a permission, earlier or wider, does not answer it."""
    return BEGUN_BEFORE in reason or LOST_REQUEST in reason


class Reviewer(Protocol):
    """Looks at each call that a person would be asked about, before the person is."""

    async def review(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict:
        """``deny`` refuses the call, ``allow`` runs it; ``ask`` asks the person, with its reason."""
        ...


class Refusal(NamedTuple):
    """The call is over a limit; ``reason`` names the limit and the time when calls are possible again.
    ``room_at`` is that time in seconds since 1970 (None: unknown, or never)."""

    reason: str
    room_at: float | None = None


class Reservation:
    """The slot of one call within its limits; this base class is for a call without limits.

    The door calls ``commit`` when the body begins: the call is then counted, also if it fails. ``release``
    frees the slot, and does nothing after ``commit``. ``left`` is a text for the model: the calls left.
    """

    left: str = ""

    def commit(self) -> None:
        """Count the call permanently."""

    def release(self) -> None:
        """Free the slot without counting the call."""


class Limits(Protocol):
    """Counts calls: reserves a slot for a call, or refuses it."""

    def reserve(self, tool: CognitiveTool, call: Call) -> Reservation | Refusal: ...

    def left(self, tool: CognitiveTool, call: Call) -> Sequence[RemainingQuota]:
        """The calls like this one that each limit still allows; it reserves nothing."""
        ...


class Gate(Protocol):
    """An external reviewer for tools with ``:gate`` (seed 000). It may return a Verdict to ask a person. A
    plain function instead of the method runs in a thread. ``check`` may take only some of these parameters,
    by name, or the tool and the context."""

    async def check(
        self, tool: CognitiveTool, call: Call, context: ToolContext
    ) -> GateDecision | Verdict: ...


class Consent(Protocol):
    """Asks a person to approve a call. ``None``, or a Verdict that asks, leaves the call pending. The
    implementation that stores its requests is tools/consent/broker.py."""

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | EditedCall | None: ...

    async def answer(self, tool: CognitiveTool, call: Call, question: Question) -> PersonAnswer | Verdict:
        """The person's answer to a question of the body. A Verdict that asks leaves the call pending."""
        return deny("there is no person to ask")

    def begins(self, tool: CognitiveTool, call: Call) -> None:
        """Called when the program of ``call`` starts."""
        return

    def asked_inside(self, tool: CognitiveTool, call: Call) -> Sequence[Pending]:
        """The earlier requests of this call's body, in order: permissions that are open, or decided and
        unused, and open questions."""
        return ()

    def bound(self, call: Call) -> Mapping[str, str]:
        """The files that the approval of ``call`` is bound to: path to the digest that each file must have
        when the call changes it (tools/consent/shown.py)."""
        return {}

    def wrote(self, call: Call, path: str, digest: str) -> None:
        """Called before ``call`` changes a file, with the digest of its new content."""
        return

    def waits(self, call: Call, instead: CallForm | None = None) -> None:
        """Called when an approved call, or the call ``instead`` that replaced it, waits for another
        decision."""
        return


class NoLimits:
    """Limits without a counter. It refuses any tool that declares a limit, since it could not enforce it."""

    def reserve(self, tool: CognitiveTool, call: Call) -> Reservation | Refusal:
        if tool.cooldown or tool.daily_limit:
            return Refusal("its :cooldown or :daily-limit cannot be counted here, so it is not run")
        return Reservation()

    def left(self, tool: CognitiveTool, call: Call) -> Sequence[RemainingQuota]:
        return ()


class NobodyToAsk(Consent):
    """Consent without a person to ask or a store for requests: every request is denied at once."""

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | EditedCall | None:
        return deny(f"a person's approval is needed ({reason}), and there is no person to ask")


class Receipt(NamedTuple):
    """The result of an earlier call, and the id of that call."""

    call: str
    status: Status
    value: Any
    message: str
    follow_up: str | None = None


class Logged(NamedTuple):
    """The event in the call log that contains the result of a call: its sequence number and digest.
    ``plain``: neither it nor the event of the call contained anything to hide."""

    event: int
    digest: str
    plain: bool


class Receipts(Protocol):
    """Finds the receipt that answers a call, if there is one, and stores the results of calls. ``decided``:
    a person denied the call; ``asked``: a person approved it."""

    def find(self, tool: CognitiveTool, call: Call) -> Receipt | None: ...

    def begins(self, tool: CognitiveTool, call: Call, *, logged: bool = False) -> None:
        """Called before the body of the call starts. ``logged``: the call log contains the call."""
        return

    def begun(self, tool: CognitiveTool, call: Call) -> bool:
        """Whether a body of this very call has started without leaving a result."""
        ...

    def keep(
        self,
        tool: CognitiveTool,
        call: Call,
        result: ToolResult,
        *,
        decided: bool,
        asked: bool = False,
        again: bool = False,
        logged: Logged | None = None,
    ) -> None:
        """Store the result of the call, or its place in the call log. ``again``: its body is waiting, and
        begins again only after a person has allowed it."""
        return


class NoReceipts(Receipts):
    """Receipts without a store: no call is ever answered by one."""

    def find(self, tool: CognitiveTool, call: Call) -> Receipt | None:
        return None

    def begun(self, tool: CognitiveTool, call: Call) -> bool:
        return False


class CallLog(Protocol):
    """Records every call that passes the door. ``consent`` is a person's verdict, if a person was asked."""

    def begins(self, tool: CognitiveTool, call: Call, consent: Decided | None) -> bool:
        """Called before the body starts; returns whether the call is now written."""
        return False

    def ends(
        self,
        tool: CognitiveTool | None,
        call: Call,
        result: ToolResult,
        consent: Decided | None,
        row: Mapping[str, Any],
    ) -> Logged | None:
        """Called with the result and its audit row, before they are returned or shown; returns the event
        that contains the result."""
        return None

    def settled(self, call: Call, result: ToolResult, consent: Decided | None) -> None:
        """Called after the receipt, too, is written."""
        return


class Passages(Protocol):
    """Traces each passage of the door: a context in which the call runs, and which receives the result."""

    def passage(
        self, call: Call, table: ToolTable
    ) -> AbstractContextManager[Callable[[ToolResult], None]]: ...


class NoCallLog(CallLog):
    """A call log that records nothing."""


class Audit(Protocol):
    """Stores one row per call; the row is on disk when ``write`` returns. ``prepare`` raises if a row could
    not be written: the door calls it before a body runs, so a call that cannot be recorded never runs."""

    def prepare(self) -> None: ...

    def write(self, row: Mapping[str, Any]) -> None: ...

    def rows(self) -> list[dict[str, Any]]: ...


class MemoryAudit:
    """Audit rows in a list, for private tables and tests."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []

    def prepare(self) -> None:
        """A list can always take a row."""

    def write(self, row: Mapping[str, Any]) -> None:
        self._rows.append(dict(row))

    def rows(self) -> list[dict[str, Any]]:
        return list(self._rows)
