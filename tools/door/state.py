"""Data that the stages of the door share: its parts, supplied by the host (the tool table and an
implementation of each port), and the state of one call, with its outcome.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, MISSING, field, fields
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
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.policy.limits import EffectsPolicy
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools

if TYPE_CHECKING:
    from quoth.tools.door.user_gates import GateProgram
    from quoth.tools.history.versions import StoreVersions
    from quoth.tools.shell.after import AfterWrite


@dataclass(frozen=True)
class Outcome:
    """How a call ended: a status, a value if it is ok, a message for the caller. ``note`` replaces the
    message in the audit. ``room_at`` is when a limited call is possible again (ISO 8601, UTC), if known."""

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
    notes: list[str] = field(default_factory=list)  # by the host, only for the model
    files: dict[str, bytes | None] = field(default_factory=dict)  # written files, with their old content
    verdicts: dict[Voice, Decided] = field(default_factory=dict)
    permitted: set[str] = field(default_factory=set)  # permissions that a person has granted to the body
    answers: dict[str, str] = field(default_factory=dict)  # a person's answers to the body, by question
    refused: bool = False  # by a person
    begun: bool = False  # before, in a process that was killed or that ended while the body waited
    inside: Sequence[Pending] = ()  # earlier requests of its body
    acted: bool = False  # it has sent or written something, perhaps without a recorded effect
    effects_of_calls: int = 0  # how many of its effects come from inner calls
    bound: dict[str, str] = field(default_factory=dict)  # digests that its approval requires, by path
    ended: Outcome | None = None  # by a question of its body, even if the body hides that
    request: str = ""  # the id of the first request that it, or a call it has made, waits for
    waits: bool = False  # its body has ended at its own question
    clock: PausableClock = field(default_factory=PausableClock)  # stopped by questions about inner calls
    made: Counter[str] = field(default_factory=Counter)  # inner calls of the body, by digest
    broken: str = ""  # why the record of an inner call failed: then this call ends, too
    started: float = field(default_factory=time.monotonic)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def must_not_begin_again(self, why: str) -> bool:
        """Whether the body of a call that is pending, for this reason, may have acted, so that it would act
        twice if the resumed call starts it again. Its inner calls are answered by their receipts; a worker
        has a record of its own actions."""
        effects = len(self.context.side_effects)
        if self.known_tool.remote:
            return asks_fact(why)
        if self.waits:
            return self.acted or effects > 0 or not self.known_tool.may_begin_again
        return not self.known_tool.ships and (self.acted or effects > self.effects_of_calls)

    @property
    def known_tool(self) -> CognitiveTool:
        assert self.tool is not None, "look-up must come first"
        return self.tool


MAX_DEPTH = 10  # of calls inside calls


async def _on_disk(session: str) -> None:
    """Return at once, because every write is already on disk."""


@dataclass(eq=False, repr=False)
class Parts:
    """The parts that the stages use. A form cannot reach any of them. None means the strict default."""

    table: ToolTable = cognitive_tools
    _: KW_ONLY
    policy: Policy = field(default_factory=EffectsPolicy)
    limits: Limits = field(default_factory=NoLimits)
    gate: Gate | None = None
    gate_programs: Sequence[GateProgram] = ()  # the user's gates that judge every call
    after: Sequence[AfterWrite] = ()  # the user's programs that run after a file was written
    consent: Consent = field(default_factory=NobodyToAsk)
    audit: Audit = field(default_factory=MemoryAudit)
    receipts: Receipts = field(default_factory=NoReceipts)
    log: CallLog = field(default_factory=NoCallLog)
    versions: StoreVersions | None = None  # None: files that a call writes cannot be restored
    # Writes within this context are committed together or not at all.
    together: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    on_disk: Callable[[str], Awaitable[None]] = _on_disk  # awaits until they are on disk
    max_depth: int = MAX_DEPTH  # of calls inside calls
    client: str = ""  # the name of the program that a person uses, such as an editor; empty for quoth itself
    tracer: Passages | None = None  # None: no tracing, without cost
    inner: Callable[[Call, ToolResult | None], None] | None = None  # called before and after each inner call

    def __post_init__(self) -> None:
        for one in fields(self):
            if getattr(self, one.name) is None and one.default_factory is not MISSING:
                setattr(self, one.name, one.default_factory())
