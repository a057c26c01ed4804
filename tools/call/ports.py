"""The door's ports: policy, limits, gate, consent, audit, receipts and call log, each as a protocol, most of
them with a null object.

It knows no store and no door.
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
    """Judges a validated call before its guard runs. ``args`` are the body's, defaults included."""

    def judge(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext
    ) -> Verdict: ...

    def judge_unknown(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext, depends: str
    ) -> Verdict:
        """Judge a previewed call some of whose ``args`` are UNKNOWN. The verdict is one that holds for
        every value of theirs, or else an ask whose reason begins with ``depends``, a text that names them."""
        ...


class PersonAnswer(NamedTuple):
    """What a person said to a question, and a sentence for the audit that names the person."""

    text: str
    by: str = ""


# Questions about what has happened. Only a person who is asked that very question answers one.
BEGUN_BEFORE = "it was begun before, and how that ended is not known"
LOST_REQUEST = "Redis lost the request, and whether a worker had begun it is not known"
QUOTED = "these words stand in"


def asks_fact(reason: str) -> bool:
    """Whether a question is about what has happened: a permission, given before or for more, is no answer."""
    return BEGUN_BEFORE in reason or LOST_REQUEST in reason


class Refusal(NamedTuple):
    """The call is over a limit; ``reason`` says which one, and when calls are possible again, which is also
    ``room_at``, in seconds since 1970 (None: unknown, or never)."""

    reason: str
    room_at: float | None = None


class Reservation:
    """The slot of one call within its limits; this base class is for a call without limits.

    The door calls ``commit`` when the body begins: the call is then counted, whatever its result. ``release``
    frees the slot, and does nothing after ``commit``. ``left`` tells the model how many calls are left.
    """

    left: str = ""

    def commit(self) -> None:
        """Count the call for good."""

    def release(self) -> None:
        """Free the slot without counting the call."""


class Limits(Protocol):
    """Counts calls: reserves a slot for a call, or refuses it."""

    def reserve(self, tool: CognitiveTool, call: Call) -> Reservation | Refusal: ...

    def left(self, tool: CognitiveTool, call: Call) -> Sequence[RemainingQuota]:
        """What each limit leaves for calls like this one; it reserves nothing."""
        ...


class Gate(Protocol):
    """An external reviewer for tools with ``:gate`` (seed 000). It may return a Verdict to ask a person; a
    plain function in place of the method runs in a thread. ``check`` may take some of these alone, by name,
    or the tool and the context."""

    async def check(
        self, tool: CognitiveTool, call: Call, context: ToolContext
    ) -> GateDecision | Verdict: ...


class Consent(Protocol):
    """Asks a person to approve a call. ``None``, or a Verdict that asks, leaves the call pending. The one
    that stores its requests is tools/consent/broker.py."""

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | EditedCall | None: ...

    async def answer(self, tool: CognitiveTool, call: Call, question: Question) -> PersonAnswer | Verdict:
        """The person's answer to a question of the body. A Verdict that asks leaves the call pending."""
        return deny("nobody can be asked here")

    def begins(self, tool: CognitiveTool, call: Call) -> None:
        """Called when the program of ``call`` starts."""
        return

    def asked_inside(self, tool: CognitiveTool, call: Call) -> Sequence[Pending]:
        """What the body of this very call asked before, in its order: the permissions that are open, or
        decided and not used, and the questions that are open."""
        return ()

    def bound(self, call: Call) -> Mapping[str, str]:
        """The files that the approval of ``call`` is bound to: by path, the digest of what each must hold
        when the call changes it (tools/consent/shown.py)."""
        return {}

    def wrote(self, call: Call, path: str, digest: str) -> None:
        """Called before ``call`` changes a file, with the digest of what it will hold."""
        return

    def waits(self, call: Call, instead: CallForm | None = None) -> None:
        """Called when an approved call, or the call ``instead`` that replaced it, is pending on a further
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
    """Consent where there is nobody to ask and no store for requests: every request is denied at once."""

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | EditedCall | None:
        return deny(f"a person's approval is needed ({reason}), and nobody can be asked here")


class Receipt(NamedTuple):
    """The result of an earlier call, and the id of that call."""

    call: str
    status: Status
    value: Any
    message: str
    follow_up: str | None = None


class Logged(NamedTuple):
    """Where the call log holds the result of a call: the event's sequence number and digest. ``plain`` says
    that nothing had to be hidden in it, nor in the event of the call."""

    event: int
    digest: str
    plain: bool


class Receipts(Protocol):
    """Finds the receipt that answers a call, if there is one, and stores the results of calls. ``decided``
    says that a person denied the call, ``asked`` that a person approved it."""

    def find(self, tool: CognitiveTool, call: Call) -> Receipt | None: ...

    def begins(self, tool: CognitiveTool, call: Call, *, logged: bool = False) -> None:
        """Called before the body of the call starts. ``logged`` says that the call log tells of it."""
        return

    def begun(self, tool: CognitiveTool, call: Call) -> bool:
        """Whether a body of this very call has started and left no result."""
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
        """Store the result of the call, or where the call log holds it. ``again``: its body waits, and must
        not begin again before a person has said that it may."""
        return


class NoReceipts(Receipts):
    """Receipts without a store: no call is ever answered by one."""

    def find(self, tool: CognitiveTool, call: Call) -> Receipt | None:
        return None

    def begun(self, tool: CognitiveTool, call: Call) -> bool:
        return False


class CallLog(Protocol):
    """Records every call that passes the door. ``consent`` is a person's verdict, if one was asked."""

    def begins(self, tool: CognitiveTool, call: Call, consent: Decided | None) -> bool:
        """Called before the body starts; whether the call is written now."""
        return False

    def ends(
        self,
        tool: CognitiveTool | None,
        call: Call,
        result: ToolResult,
        consent: Decided | None,
        row: Mapping[str, Any],
    ) -> Logged | None:
        """Called with the result and its audit row, before anybody sees them; where it is written."""
        return None

    def settled(self, call: Call, result: ToolResult, consent: Decided | None) -> None:
        """Called when the receipt is written, too."""
        return


class Passages(Protocol):
    """Traces each passage of the door: within it the call is made, and it is told the result."""

    def passage(
        self, call: Call, table: ToolTable
    ) -> AbstractContextManager[Callable[[ToolResult], None]]: ...


class NoCallLog(CallLog):
    """A call log that records nothing."""


class Audit(Protocol):
    """Stores one row per call; the row is on disk when ``write`` returns. ``prepare`` raises when no row
    could be written: the door calls it before a body runs, so that no call runs that cannot be recorded."""

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
