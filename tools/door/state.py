"""What the stages of the door share: its parts, supplied by the host (the tool table and an implementation of
each port), and the state of one call, with its outcome.

It must not know the stages.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from quoth.tools.call.call import Call, Decided, ToolResult, Voice
from quoth.tools.call.context import PausableClock, ToolContext
from quoth.tools.call.ports import (
    Audit,
    CallLog,
    Consent,
    Gate,
    Limits,
    MemoryAudit,
    NobodyToAsk,
    NoCallLog,
    NoLimits,
    NoReceipts,
    Passages,
    Policy,
    Receipts,
    Reservation,
    asks_fact,
)
from quoth.tools.errors import Pending, Status
from quoth.tools.policy.limits import EffectsPolicy
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools

if TYPE_CHECKING:
    from quoth.tools.door.user_gates import GateProgram
    from quoth.tools.history.versions import StoreVersions
    from quoth.tools.shell.after import AfterWrite


@dataclass(frozen=True)
class Outcome:
    """How a call ended: a status, a value if it is ok, a message for the caller. ``note`` replaces the
    message in the audit. ``room_at`` is when a limited call may be made again (ISO 8601, UTC), if known."""

    status: Status
    value: Any = None
    message: str = ""
    note: str = ""
    room_at: str = ""


@dataclass(eq=False, repr=False)
class CallState:
    """The state of one call while it passes the stages."""

    call: Call
    context: ToolContext
    dispatch: Callable[[Call, ToolContext], Awaitable[ToolResult]]  # through the whole door
    tool: CognitiveTool | None = None
    args: dict[str, Any] = field(default_factory=dict)
    reservation: Reservation = field(default_factory=Reservation)
    questions: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # by the body
    notes: list[str] = field(default_factory=list)  # by the host, for the model only
    files: dict[str, bytes | None] = field(default_factory=dict)  # written, and what they held before
    verdicts: dict[Voice, Decided] = field(default_factory=dict)
    permitted: set[str] = field(default_factory=set)  # what a person has allowed the body
    answers: dict[str, str] = field(default_factory=dict)  # what a person has told the body, by question
    refused: bool = False  # by a person
    begun: bool = False  # before, in a process that was killed or that ended while the body waited
    inside: Sequence[Pending] = ()  # what its body asked before
    acted: bool = False  # it has sent or written something, which no effect need tell
    effects_of_calls: int = 0  # how many of its effects are those of calls that it has made
    bound: dict[str, str] = field(default_factory=dict)  # what its files must hold, by its approval
    ended: Outcome | None = None  # by a question of its body, even if the body hides that
    request: str = ""  # the id of the first request that it, or a call it has made, waits for
    waits: bool = False  # its body has ended at a question of its own
    clock: PausableClock = field(default_factory=PausableClock)  # stopped by questions about inner calls
    made: Counter[str] = field(default_factory=Counter)  # the calls the body has made, by digest
    broken: str = ""  # why the record of an inner call failed: then this call is broken off, too
    started: float = field(default_factory=time.monotonic)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def must_not_begin_again(self, why: str) -> bool:
        """Whether the body of a call that is pending, for this reason, may have done what it would do again
        when the call is resumed and it begins from its start. The calls that it has made are answered by
        their receipts; of what runs elsewhere, the worker has a record."""
        effects = len(self.context.side_effects)
        if self.known_tool.remote:
            return asks_fact(why)
        if self.waits:
            return self.acted or effects > 0 or not self.known_tool.may_begin_again
        return not self.known_tool.ships and (self.acted or effects > self.effects_of_calls)

    @property
    def known_tool(self) -> CognitiveTool:
        assert self.tool is not None, "look-up comes first"
        return self.tool


MAX_DEPTH = 10  # of calls inside calls


async def _on_disk(session: str) -> None:
    """What is written down is on disk at once."""


@dataclass(eq=False, repr=False)
class Parts:
    """The parts that the stages use. A form cannot reach any of them. None stands for the careful default."""

    table: ToolTable = cognitive_tools
    _: KW_ONLY
    policy: Policy = field(default_factory=EffectsPolicy)
    limits: Limits = field(default_factory=NoLimits)
    gate: Gate | None = None
    gate_programs: Sequence[GateProgram] = ()  # gates of the user's that judge every call
    after: Sequence[AfterWrite] = ()  # programs of the user's that run after a file was written
    consent: Consent = field(default_factory=NobodyToAsk)
    audit: Audit = field(default_factory=MemoryAudit)
    receipts: Receipts = field(default_factory=NoReceipts)
    log: CallLog = field(default_factory=NoCallLog)
    versions: StoreVersions | None = None  # None: what a call writes cannot be put back
    # What is written down within it is written at once, or none of it,
    together: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    on_disk: Callable[[str], Awaitable[None]] = _on_disk  # and is on disk when this has been awaited
    max_depth: int = MAX_DEPTH  # of calls inside calls
    tracer: Passages | None = None  # None: nothing is traced, and it costs nothing
    inner: Callable[[Call, ToolResult | None], None] | None = None  # hears of calls that bodies make, twice

    def __post_init__(self) -> None:
        for one in fields(self):
            if getattr(self, one.name) is None and one.default_factory is not MISSING:
                setattr(self, one.name, one.default_factory())
