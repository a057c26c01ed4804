"""What a worker offers, put together from its files: the tools, who may call them, the rules and the gate.

Knows files and options; it must not know Redis or how calls come. A worker has the tools of its files and no
others: what ships with quoth is for the machine on which it runs.
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
    rules: PolicyOptions = field(default_factory=PolicyOptions)
    allow: Sequence[str] = ()
    secret: Sequence[Path] = ()  # the key, and where the URL stands

    def paths(self) -> list[Path]:
        """The files that decide what is offered."""
        rules = [user_policy(), workspace_policy(self.root)]
        return [*rules, *(Path(path).absolute() for path in (*self.tools, *self._given))]

    @property
    def _given(self) -> list[str]:
        """The files of rules and of the reviewer that are given beside those of the user and workspace."""
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
        """Run the files. Raises UsageError for what cannot be used."""
        if not self.tools:
            raise UsageError("A worker offers the tools of its files: quoth worker --tools FILE …")
        table = load_tools(self.tools, ToolTable())
        if not len(table):
            raise UsageError(f"There is no tool in {', '.join(self.tools)}, so there is nothing to offer.")
        policy = load_policy(self.root, self.rules.file)
        policy.counted, policy.default, policy.careful = True, judged_by_caller, False
        table.permit(permissions_for(policy, table, read_allow(self.allow)))
        programs = self.rules.open_gate_programs(load_config(self.root), lambda: table.secrets)
        return Offer(table, policy, self.rules.open_gate(), programs)


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


# Runs people's files again after they changed: tool files, what these import, and rules. A reload runs the
# code that is in the files then: also a module that a file imports is run again, and from its source, since
# Python compares a compiled file with its source by whole seconds alone. Earlier code keeps its modules.


Made = TypeVar("Made")
Seen = tuple[int, int, int]  # when a file was changed, its size, which file it is


class Reloader(Generic[Made]):
    """``make`` runs the files, and what it made last is ``made``. ``changed`` is asked now and then."""

    def __init__(self, make: Callable[[], Made], files: Iterable[Path]) -> None:
        self._make = make
        self._files = list(files)
        self._before = {*sys.modules}
        self._seen = self._look(self._files)
        self._moving: dict[Path, Seen | None] = {}
        self.made = make()
        self._look_again(self._seen)

    def changed(self) -> bool:
        """Whether a file has changed since it was run, and not since this was asked last: what is still
        being written is left alone."""
        now = self._look(self._seen)
        moving, self._moving = self._moving, now
        return now != self._seen and now == moving

    def reload(self) -> Made:
        """Run the files as they are now. What fails leaves all as it was, and the error is raised; the same
        files are not ``changed`` then."""
        before = self._look(self._seen)
        try:
            with self._anew():
                self.made = self._make()
        finally:
            self._look_again(before)
        return self.made

    def _look_again(self, before: dict[Path, Seen | None]) -> None:
        """Watch the files that matter now, as they were before they were run."""
        found = {*self._files, *self._imported()}
        self._seen = {path: before.get(path, _look(path)) for path in found}
        self._moving = {}

    def _imported(self) -> Iterator[Path]:
        """The local files that were imported, and those that a file which failed wants to import."""
        for module in self._local().values():
            yield Path(str(module.__file__)).absolute()
        for path in self._files:
            yield from local_files(path)

    def _local(self) -> dict[str, ModuleType]:
        """The modules that are not installed, and were imported for the files or by their functions."""
        return {
            name: module
            for name, module in list(sys.modules.items())
            if name not in self._before
            and (file := getattr(module, "__file__", None))
            and is_local(Path(file))
        }

    @contextmanager
    def _anew(self) -> Iterator[None]:
        """Within it local modules are imported again; an error brings the old ones back."""
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
