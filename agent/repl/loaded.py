"""The files of a REPL: startup files, files of its tools, and files of ``,load``.

The start evaluates ``init.hy`` of the user, and that of a trusted workspace. A file is loaded completely or
not at all: if it fails, its old tools and names stay. A file that a tool wrote may contain text of a model,
so it is loaded only after a person confirms it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from quoth.agent.client import AsyncAgent
from quoth.tools.errors import UsageError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.loading import load_tools
from quoth.tools.policy.files import Trust, at_home, digest_of, read_bytes, trusted_bytes
from quoth.tools.policy.project import STARTUP_NAME, WORKSPACE_FOLDER
from quoth.tools.registry.table import ToolTable
from quoth.tools.storage.paths import config_dir, is_missing

LONGEST_CALL = 86400.0  # seconds; longer calls are not searched for
SLACK = 0.1  # seconds by which the clock of the file system may differ


@dataclass
class LoadedFile:
    """A loaded file with its text at that time. ``names`` are the names that it gave to the prompt."""

    path: Path
    digest: str
    module: ModuleType | None = None
    names: dict[str, Any] = field(default_factory=dict)


class Loaded(NamedTuple):
    """The result of loading a file: the new table of all tools, and the names of the file's own tools."""

    table: ToolTable
    tools: tuple[str, ...]


class LoadedFiles:
    """``names`` and ``macros`` are those of the person's module; loading adds the file's own to them."""

    def __init__(self, agent: AsyncAgent, names: dict[str, Any], macros: dict[str, Any]) -> None:
        self._agent, self._names, self._macros = agent, names, macros
        self._files: dict[Path, LoadedFile] = {}
        self._told: set[tuple[Path, str]] = set()  # changes already reported
        for module in {tool.module for tool in agent.table}:
            file = getattr(sys.modules.get(module), "__file__", None)
            if file and _is_users(module):
                path = Path(file).resolve()
                self._files[path] = LoadedFile(path, digest_of_file(path), sys.modules[module])

    def __iter__(self) -> Iterator[LoadedFile]:
        return iter(self._files.values())

    def changed(self) -> list[Path]:
        """The files that changed since they were loaded."""
        return [file.path for file in self if digest_of_file(file.path) != file.digest]

    def news(self) -> list[Path]:
        """The files that changed since the last call of this method."""
        now = {(path, digest_of_file(path)) for path in self.changed()}
        new, self._told = now - self._told, now
        return sorted(path for path, _ in new)

    def find(self, name: str) -> Path:
        """The path of a file, relative to the folder where quoth was started. Raises UsageError if it is
        missing."""
        path = Path(name).expanduser().resolve()
        if not path.is_file():
            raise UsageError(f"There is no file {name}.")
        return path

    def writer(self, path: Path) -> str:
        """The call of a tool that wrote a file, or may have written it, in words; empty if no such call is
        known. Calls that the person typed at the prompt do not count."""
        workspace, select = self._agent.workspace, getattr(self._agent.audit, "select", None)
        if select is None:
            return ""
        rows = []
        if workspace.holds(path):
            rows = list(select(effect=json.dumps(f":{workspace.spelling(path)}")[1:]))
        # A program does not report the files that it writes or moves, but it cannot forge their change times.
        changed = path.stat().st_ctime
        begun = datetime.fromtimestamp(changed - LONGEST_CALL, UTC).isoformat(timespec="milliseconds")
        rows += [row for row in select(since=begun) if self._may_write(row["tool"]) and _was_on(row, changed)]
        rows = [row for row in rows if row["route"] != "repl"]
        return f"{rows[-1]['tool']} in session {rows[-1]['session']}" if rows else ""

    def _may_write(self, name: str) -> bool:
        """Whether a tool may write files that its call does not name; quoth's own tools name theirs."""
        table = self._agent.table
        return bool(name) and (
            name not in table
            or (not table.get(name).ships and table.get(name).effects not in ((), ("reads",)))
        )

    def load(self, path: Path) -> Loaded:
        """Load a file in the thread of the forms. The caller gives the new table to the agent. Raises
        UsageError, and then changes nothing."""
        digest, before = digest_of_file(path), self._files.get(path)
        old = before.module if before is not None else None
        kept = old.__name__ if old is not None else ""
        trial = self._agent.table.where(lambda tool: not kept or tool.module != kept).copy()
        known = set(trial)
        try:
            table = load_tools([path], trial)
        except BaseException:
            if old is not None:
                sys.modules[kept] = old
            raise
        module = _module_of(path)
        self._bring(module, before)
        self._files[path] = LoadedFile(path, digest, module, _public(module))
        return Loaded(table, tuple(tool.name for tool in table if tool not in known))

    def _bring(self, module: ModuleType | None, before: LoadedFile | None) -> None:
        """Add the names and macros of a file to the prompt, and remove its former ones."""
        for name, value in (before.names if before is not None else {}).items():
            if self._names.get(name) is value:
                del self._names[name]
        self._names |= _public(module)
        self._macros |= {
            name: macro
            for name, macro in getattr(module, "_hy_macros", {}).items()
            if getattr(macro, "__module__", "") == getattr(module, "__name__", None)
        }


def _module_of(path: Path) -> ModuleType | None:
    """The module of a loaded file, the latest if there are several."""
    for module in reversed(list(sys.modules.values())):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and _is_users(module.__name__) and Path(file).resolve() == path:
            return module
    return None


def _public(module: ModuleType | None) -> dict[str, Any]:
    """The public values that a module defines or imports, by name."""
    return {name: value for name, value in vars(module or ModuleType("")).items() if not name.startswith("_")}


def _is_users(module: str) -> bool:
    """Whether a module is a person's file of tools."""
    return module.startswith("quoth_user_")


def _was_on(row: dict[str, Any], when: float) -> bool:
    """Whether the call of an audit row was running at that time. The duration excludes waiting for a
    person."""
    begun = datetime.fromisoformat(row["ts"]).timestamp()
    took = row["duration_ms"] + row["details"].get("asked_ms", 0)
    return bool(begun - SLACK <= when <= begun + took / 1000 + SLACK)


def digest_of_file(path: Path) -> str:
    """A digest of a file's text; empty if the file cannot be read."""
    try:
        return digest_of(path.read_bytes())
    except OSError:
        return ""


# Startup files


OWN_NAME = f"{WORKSPACE_FOLDER}/{STARTUP_NAME}"
TRUST = Trust(kind=".init")


def user_init() -> Path:
    """The path of the user's startup file."""
    return config_dir() / STARTUP_NAME


def own_init(root: Path) -> bytes | None:
    """The text of a workspace's startup file; None if it has none. Raises UsageError if it cannot be read."""
    path = root / OWN_NAME
    return None if is_missing(path) else read_bytes(path, f"There is no {OWN_NAME} in {root}.")


def startup_files(root: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """The names and texts of the startup files, the user's first, and sentences about skipped files. These
    texts are evaluated even if a file changes meanwhile."""
    found: list[tuple[str, str]] = []
    notes: list[str] = []
    mine = user_init()
    if not is_missing(mine):
        try:
            found.append((at_home(mine), _text(read_bytes(mine, f"There is no file {mine}."), str(mine))))
        except UsageError as error:
            notes.append(str(error))
    try:
        data, told = trusted_bytes(root, root / OWN_NAME, TRUST, "it is not evaluated")
        notes += told
        if data is not None:
            found.append((OWN_NAME, _text(data, OWN_NAME)))
    except UsageError as error:
        notes.append(str(error))
    return found, notes


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8 text.") from None
