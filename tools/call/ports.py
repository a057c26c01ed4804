"""What the door needs of its host: policy, limits, gate, consent, audit, receipts, call log, each as a
protocol with a null object.

Knows no store and no door.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from quoth.tools.call.call import Call, Decided, EditedCall, GateDecision, ToolResult, Verdict, deny
from quoth.tools.call.context import ToolContext
from quoth.tools.call.preview import RemainingQuota
from quoth.tools.errors import Status
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import CognitiveTool


class Policy(Protocol):
    """Judges a validated call before its guard runs. ``args`` are the body's, defaults included."""

    def judge(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext
    ) -> Verdict: ...

    def judge_unknown(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext, depends: str
    ) -> Verdict:
        """Judge a call that is only looked at, some of whose ``args`` are UNKNOWN: what holds for every value
        of theirs, or else an ask whose reason begins with ``depends``, which names them."""
        ...


BEGUN_BEFORE = "it was begun before, and how that ended is not known"
QUOTED = "these words stand in"


@dataclass(frozen=True)
class Refusal:
    """The call is over a limit; ``reason`` says which, and when there is room again."""

    reason: str


class Reservation:
    """The place kept for one call within its limits; this one keeps none, for a call that nothing limits.

    ``commit`` when the body begins: the call has counted from then on, whatever the body does. ``release``
    gives the place back, and does nothing after ``commit``. ``left`` tells the model what it has left.
    """

    left: str = ""

    def commit(self) -> None:
        """Count the call for good."""

    def release(self) -> None:
        """Do not count it."""


class Limits(Protocol):
    """Counts calls: keeps a place for this one, or refuses it."""

    def reserve(self, tool: CognitiveTool, call: Call) -> Reservation | Refusal: ...

    def left(self, tool: CognitiveTool, call: Call) -> Sequence[RemainingQuota]:
        """What each limit leaves for calls like this one; nothing is taken."""
        ...


class Gate(Protocol):
    """An outside reviewer of the calls of tools with ``:gate`` (seed 000); a Verdict may ask a person too."""

    async def check(
        self, tool: CognitiveTool, call: Call, context: ToolContext
    ) -> GateDecision | Verdict: ...


class Consent(Protocol):
    """Whoever can say yes for the person. ``None``, and a Verdict that asks, mean not now: the call stays
    pending. tools/consent/broker.py is the one that remembers."""

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | EditedCall | None: ...

    def begins(self, tool: CognitiveTool, call: Call) -> None:
        """The program of ``call`` begins to run."""
        return

    def waits(self, call: Call, instead: CallForm | None = None) -> None:
        """The call was allowed, or ``instead`` was to be made in its place, and that has come to wait for
        another decision."""
        return


class NoLimits:
    """Stands where no counter is. A tool that declares a limit is refused: an unkept promise fails closed."""

    def reserve(self, tool: CognitiveTool, call: Call) -> Reservation | Refusal:
        if tool.cooldown or tool.daily_limit:
            return Refusal("its :cooldown or :daily-limit cannot be counted here, so it is not run")
        return Reservation()

    def left(self, tool: CognitiveTool, call: Call) -> Sequence[RemainingQuota]:
        return ()


class NobodyToAsk(Consent):
    """Consent where nobody is and nothing keeps the question: it is refused at once, for nobody would ever
    answer it."""

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | EditedCall | None:
        return deny(f"a person's approval is needed ({reason}), and nobody can be asked here")


@dataclass(frozen=True)
class Receipt:
    """The result of an earlier call, and which call that was."""

    call: str
    status: Status
    value: Any
    message: str


class Receipts(Protocol):
    """Finds the receipt that answers a call, if there is one, and keeps what came of a call. ``decided`` says
    that a person refused it, ``asked`` that one was asked."""

    def find(self, tool: CognitiveTool, call: Call) -> Receipt | None: ...

    def begins(self, tool: CognitiveTool, call: Call) -> None:
        """The body of the call is about to begin."""
        return

    def begun(self, tool: CognitiveTool, call: Call) -> bool:
        """Whether a body of this very call has begun, and how it ended is not known."""
        ...

    def keep(
        self, tool: CognitiveTool, call: Call, result: ToolResult, *, decided: bool, asked: bool = False
    ) -> None:
        """The call has its result."""
        return


class NoReceipts(Receipts):
    """Stands where nothing is kept: every call is made."""

    def find(self, tool: CognitiveTool, call: Call) -> Receipt | None:
        return None

    def begun(self, tool: CognitiveTool, call: Call) -> bool:
        return False


class CallLog(Protocol):
    """Told of every call that passes the door. ``consent`` is what a person said of it, if one was asked."""

    def begins(self, tool: CognitiveTool, call: Call, consent: Decided | None) -> None:
        """The body is about to begin."""
        return

    def ends(
        self, tool: CognitiveTool | None, call: Call, result: ToolResult, consent: Decided | None
    ) -> None:
        """The call has its result, which nobody has seen yet."""
        return


class NoCallLog(CallLog):
    """Stands where nothing is written down."""


class Audit(Protocol):
    """Takes one row a call. What ``write`` returns from is on disk. ``prepare`` raises when no row could be
    written: the door asks before a body runs, so that nothing is done that cannot be recorded."""

    def prepare(self) -> None: ...

    def write(self, row: Mapping[str, Any]) -> None: ...

    def rows(self) -> list[dict[str, Any]]: ...


class MemoryAudit:
    """Rows in a list, for private tables and tests."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []

    def prepare(self) -> None:
        """A list always takes a row."""

    def write(self, row: Mapping[str, Any]) -> None:
        self._rows.append(dict(row))

    def rows(self) -> list[dict[str, Any]]:
        return list(self._rows)
