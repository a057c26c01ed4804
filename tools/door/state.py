"""The state of one call while it passes the door, and its outcome.

It knows calls and verdicts as data; it must not know the stages.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from quoth.tools.call.call import Call, Decided, ToolResult, Voice
from quoth.tools.call.context import ToolContext
from quoth.tools.call.deadline import PausableClock
from quoth.tools.call.ports import Reservation
from quoth.tools.errors import Status
from quoth.tools.registry.table import CognitiveTool


@dataclass(frozen=True)
class Outcome:
    """How a call ended: a status, a value if it is ok, a message for the caller. ``note`` replaces the
    message in the audit. ``room_at`` is when a limited call may be made again (ISO 8601, UTC), if known."""

    status: Status
    value: Any = None
    message: str = ""
    note: str = ""
    room_at: str = ""


class Begun(Protocol):
    """The body of a call that was begun before the call's turn (tools/door/early.py)."""

    async def fits(self, state: CallState) -> bool: ...

    async def value(self, state: CallState) -> Any: ...

    async def drop(self) -> None: ...


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
    begun: bool = False  # before, in a process that was killed
    clock: PausableClock = field(default_factory=PausableClock)  # stopped by questions about inner calls
    made: Counter[str] = field(default_factory=Counter)  # the calls the body has made, by digest
    early: Begun | None = None  # its body, as long as nobody has taken it
    started: float = field(default_factory=time.monotonic)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def known_tool(self) -> CognitiveTool:
        assert self.tool is not None, "look-up comes first"
        return self.tool
