"""What a worker offers, put together from its files: the tools, who may call them, the rules and the gate.

Knows files and options; it must not know Redis or how calls come. A worker has the tools of its files and no
others: what ships with quoth is for the machine on which it runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.config.loading import load_config
from quoth.agent.run.options import PolicyOptions
from quoth.tools.call.call import Verdict
from quoth.tools.call.ports import Gate, Passages
from quoth.tools.call.workspace import Workspace
from quoth.tools.door.door import Door
from quoth.tools.errors import UsageError
from quoth.tools.history.audit import StoreAudit
from quoth.tools.loading import load_tools
from quoth.tools.policy.files import load_policy
from quoth.tools.policy.limits import StoreLimits
from quoth.tools.policy.offer import permissions_for, read_allow
from quoth.tools.policy.places import policy_files, user_policy, workspace_policy
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import cache_dir, state_dir

if TYPE_CHECKING:
    from quoth.tools.door.user_gates import GateProgram
    from quoth.tools.shared.opening import Shared


@dataclass(frozen=True)
class Offer:
    """What the files of a worker hold, once they were run."""

    table: ToolTable
    policy: RulesPolicy
    gate: Gate | None
    gate_programs: Sequence[GateProgram] = ()


@dataclass(frozen=True)
class Files:
    """The files of a worker. ``allow`` are words such as ``TOOL=USER,…``."""

    tools: Sequence[str]
    root: Path
    policy: str | None = None
    gate: str | None = None
    allow: Sequence[str] = ()
    secret: Sequence[Path] = ()  # the key, and where the URL stands
    gate_command: str | None = None

    def paths(self) -> list[Path]:
        """The files that decide what is offered."""
        given = [path for path in (self.policy, self.gate) if path]
        rules = [user_policy(), workspace_policy(self.root)]
        return [*rules, *(Path(path).absolute() for path in (*self.tools, *given))]

    def workspace(self) -> Workspace:
        """The folder that the tools may touch. Raises UsageError."""
        if not self.root.is_dir():
            raise UsageError(f"The workspace {self.root} is not a folder.")
        kept = policy_files(self.root, self.policy, self.gate)
        found = Workspace(self.root, protected=(state_dir(), cache_dir(), *kept), secret=self.secret)
        found.loaded = tuple(Path(path).absolute() for path in self.tools)
        return found

    def offer(self) -> Offer:
        """Run the files. Raises UsageError for what cannot be used."""
        if not self.tools:
            raise UsageError("A worker offers the tools of its files: quoth worker --tools FILE …")
        table = load_tools(self.tools, ToolTable())
        if not len(table):
            raise UsageError(f"There is no tool in {', '.join(self.tools)}, so there is nothing to offer.")
        policy = load_policy(self.root, self.policy)
        policy.counted, policy.default, policy.careful = True, judged_by_caller, False
        table.permit(permissions_for(policy, table, read_allow(self.allow)))
        given = PolicyOptions(gate=self.gate, gate_command=self.gate_command)
        programs = given.open_gate_programs(load_config(self.root), lambda: table.secrets)
        return Offer(table, policy, given.open_gate(), programs)


def judged_by_caller(tool: CognitiveTool) -> Verdict:
    """The verdict where no rule of the worker decides: the caller's rules, or a person there, have allowed
    what the tool does, and need not be asked twice. ``(careful)``, too, is theirs: they see the session."""
    return Verdict("allow", "the caller has allowed it")


class DeliveryAudit(StoreAudit):
    """The audit of a worker. A call may be delivered more than once, and its caller may have the same store:
    the rows of call X are X.1, X.2 and so on."""

    def __init__(self, store: Callable[[], Store]) -> None:
        super().__init__(store)
        self._opened = store

    def write(self, row: Mapping[str, Any]) -> None:
        with self._opened().transaction() as run:
            numbers = (f"{row['id']}.{number}" for number in itertools.count(1))
            free = next(one for one in numbers if not run("SELECT 1 FROM audit WHERE id = ?", (one,)))
            super().write({**row, "id": free})


def door_of(
    offer: Offer,
    store: Callable[[], Store],
    shared: Shared | None = None,
    tracer: Passages | None = None,
) -> Door:
    """A door to what is offered, whose limits and audit are kept in the worker's own store; the limits where
    they are ``shared``, if they are. Consent and receipts are those of the callers."""
    counted = [limit.counts for limit in offer.policy.limits]
    return Door(
        offer.table,
        policy=offer.policy,
        gate=offer.gate,
        gate_programs=offer.gate_programs,
        audit=DeliveryAudit(store),
        limits=StoreLimits(store, counted) if shared is None else shared.limits(counted),
        tracer=tracer,
    )
