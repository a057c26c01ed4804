"""The parts of a door, supplied by the host: the tool table, and an implementation of each port.

It knows the ports and their null objects; it must not know the stages.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

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
    Versions,
)
from quoth.tools.policy.effects import EffectsPolicy
from quoth.tools.registry.table import ToolTable, cognitive_tools

if TYPE_CHECKING:
    from quoth.tools.door.gate_program import GateProgram
    from quoth.tools.shell.after import AfterWrite

MAX_DEPTH = 10  # of calls inside calls


async def _on_disk(session: str) -> None:
    """What is written down is on disk at once."""


class Parts:
    """The parts that the stages use. A form cannot reach any of them."""

    def __init__(
        self,
        table: ToolTable = cognitive_tools,
        *,
        policy: Policy | None = None,
        limits: Limits | None = None,
        gate: Gate | None = None,
        gate_programs: Sequence[GateProgram] = (),
        after: Sequence[AfterWrite] = (),
        consent: Consent | None = None,
        audit: Audit | None = None,
        receipts: Receipts | None = None,
        log: CallLog | None = None,
        versions: Versions | None = None,
        together: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext,
        on_disk: Callable[[str], Awaitable[None]] = _on_disk,
        max_depth: int = MAX_DEPTH,
        tracer: Passages | None = None,
    ) -> None:
        self.table = table
        self.policy = policy or EffectsPolicy()
        self.limits = limits or NoLimits()
        self.gate = gate
        self.gate_programs = gate_programs  # gates of the user's that judge every call
        self.after = after  # programs of the user's that run after a file was written
        self.consent = consent or NobodyToAsk()
        self.audit = audit or MemoryAudit()
        self.receipts = receipts or NoReceipts()
        self.log = log or NoCallLog()
        self.versions = versions  # None: what a call writes cannot be put back
        self.together = together  # what is written down within it is written at once, or none of it,
        self.on_disk = on_disk  # and is on disk when this has been awaited, with the session
        self.max_depth = max_depth
        self.tracer = tracer  # None: nothing is traced, and it costs nothing
