"""The offer of a worker, from its files: the tools, their permitted users, the rules and the gate.

A worker offers only the tools of its files, because the built-in tools are for the machine on which they run.
"""

from __future__ import annotations

import importlib
import itertools
import linecache
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

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
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.policy.project import policy_files, user_policy, workspace_policy
from quoth.tools.registry.code_version import is_local, local_files
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import cache_dir, state_dir

if TYPE_CHECKING:
    from quoth.tools.door.user_gates import GateProgram
    from quoth.tools.shared.opening import Shared


@dataclass(frozen=True)
class Offer:
    """The contents of a worker's files, after running them."""

    table: ToolTable
    policy: RulesPolicy
    gate: Gate | None
    gate_programs: Sequence[GateProgram] = ()


@dataclass(frozen=True)
class Files:
    """The files of a worker. ``allow`` are words such as ``TOOL=USER,…``."""

    tools: Sequence[str]
    root: Path
    rules: PolicyOptions = field(default_factory=PolicyOptions)
    allow: Sequence[str] = ()
    secret: Sequence[Path] = ()  # the files of the key and of the URL

    def paths(self) -> list[Path]:
        """The files that determine the offer."""
        rules = [user_policy(), workspace_policy(self.root)]
        return [*rules, *(Path(path).absolute() for path in (*self.tools, *self._given))]

    @property
    def _given(self) -> list[str]:
        """The given files of rules and of the gate, without those of the user and workspace."""
        return [str(path) for path in (self.rules.file, self.rules.gate) if path]

    def workspace(self) -> Workspace:
        """The folder that the tools may touch. Raises UsageError."""
        if not self.root.is_dir():
            raise UsageError(f"The workspace {self.root} is not a folder.")
        kept = policy_files(self.root, *self._given)
        found = Workspace(self.root, protected=(state_dir(), cache_dir(), *kept), secret=self.secret)
        found.loaded = tuple(Path(path).absolute() for path in self.tools)
        return found

    def offer(self) -> Offer:
        """Run the files. Raises UsageError for files that cannot be used."""
        if not self.tools:
            raise UsageError(
                "Name the files with the tools that the worker offers: quoth worker --tools FILE"
            )
        table = load_tools(self.tools, ToolTable())
        if not len(table):
            raise UsageError(f"{', '.join(self.tools)} defines no tool, so there is nothing to offer.")
        policy = load_policy(self.root, self.rules.file)
        policy.counted, policy.default, policy.careful = True, judged_by_caller, False
        table.permit(permissions_for(policy, table, read_allow(self.allow)))
        programs = self.rules.open_gate_programs(load_config(self.root), lambda: table.secrets)
        return Offer(table, policy, self.rules.open_gate(), programs)


def judged_by_caller(tool: CognitiveTool) -> Verdict:
    """The verdict if no rule of the worker matches: allow, because the caller's rules or a person there have
    allowed the call. ``(careful)`` is the caller's as well, because only the caller sees the session."""
    return Verdict("allow", "the caller has allowed it")


class DeliveryAudit(StoreAudit):
    """The audit of a worker. The rows of call X are X.1, X.2 and so on, because a call may be delivered more
    than once, and its caller may use the same store."""

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
    """A door to the offered tools. Its audit is in the worker's store, and so are its limits unless they are
    ``shared``. Consent and receipts are the caller's."""
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


# Runs people's files again after a change: tool files, their imports, and rules. A reload also runs imported
# modules again, from source, because Python compares a compiled file with its source only by whole seconds.
# Earlier code keeps its modules.


Made = TypeVar("Made")
Seen = tuple[int, int, int]  # the time of the last change, the size, the inode


class Reloader(Generic[Made]):
    """Runs files again after a change. ``make`` runs them, and ``made`` is its last result. Call ``changed``
    from time to time."""

    def __init__(self, make: Callable[[], Made], files: Iterable[Path]) -> None:
        self._make = make
        self._files = list(files)
        self._before = {*sys.modules}
        self._seen = self._look(self._files)
        self._moving: dict[Path, Seen | None] = {}
        self.made = make()
        self._look_again(self._seen)

    def changed(self) -> bool:
        """Whether a file has changed since it was run, but not since the last call of this method: such a
        file may still be in writing."""
        now = self._look(self._seen)
        moving, self._moving = self._moving, now
        return now != self._seen and now == moving

    def reload(self) -> Made:
        """Run the current files. On failure the error is raised, the earlier result stays, and the same files
        no longer count as ``changed``."""
        before = self._look(self._seen)
        try:
            with self._anew():
                self.made = self._make()
        finally:
            self._look_again(before)
        return self.made

    def _look_again(self, before: dict[Path, Seen | None]) -> None:
        """Watch the current files, in their states before they were run."""
        found = {*self._files, *self._imported()}
        self._seen = {path: before.get(path, _look(path)) for path in found}
        self._moving = {}

    def _imported(self) -> Iterator[Path]:
        """The imported local files, and the imports of a file that failed."""
        for module in self._local().values():
            yield Path(str(module.__file__)).absolute()
        for path in self._files:
            yield from local_files(path)

    def _local(self) -> dict[str, ModuleType]:
        """The modules imported by the files or their functions, except installed ones."""
        return {
            name: module
            for name, module in list(sys.modules.items())
            if name not in self._before
            and (file := getattr(module, "__file__", None))
            and is_local(Path(file))
        }

    @contextmanager
    def _anew(self) -> Iterator[None]:
        """In this context local modules are imported again; an error restores the old ones."""
        old = self._local()
        for name in old:
            del sys.modules[name]
        importlib.invalidate_caches()
        linecache.checkcache()
        compiled = sys.dont_write_bytecode, sys.pycache_prefix
        sys.dont_write_bytecode, sys.pycache_prefix = True, os.devnull
        try:
            yield
        except BaseException:
            for name in self._local():
                del sys.modules[name]
            sys.modules.update(old)
            raise
        finally:
            sys.dont_write_bytecode, sys.pycache_prefix = compiled

    @staticmethod
    def _look(paths: Iterable[Path]) -> dict[Path, Seen | None]:
        return {path: _look(path) for path in paths}


def _look(path: Path) -> Seen | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
