"""Folders and files that the host has opened for reading: the first manager of data sources.

Nothing is written, and nothing outside the opened folders can be reached: symbolic links in paths are
resolved first."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from quoth.tools.call.context import running_context
from quoth.tools.call.service_types import Source
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError, ToolFailure, UsageError, did_you_mean
from quoth.tools.storage.paths import state_dir
from quoth.tools.text import file_name

MAX_BYTES = 5_000_000  # maximum size of a file to read
MAX_FILES = 2000  # maximum number of files listed for a folder
FORM = "NAME=PATH, such as manual=docs/manual"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def sources_of(words: Sequence[str]) -> dict[str, str]:
    """Sources as given on the command line, each ``NAME=PATH``. Raises UsageError."""
    found: dict[str, str] = {}
    for word in words:
        name, mark, path = word.partition("=")
        if not mark:
            raise UsageError(f"--source must be {FORM}, not {word!r}.")
        if name in found:
            raise UsageError(f"--source {name} is given twice.")
        found[name] = path
    FolderSources(found)
    return {name: str(Path(path).expanduser().resolve()) for name, path in found.items()}


class FolderSources:
    """A SourceManager over folders and files by name. Raises UsageError for any other path."""

    def __init__(self, paths: Mapping[str, str | Path]) -> None:
        self.paths = {name: _opened(name, path) for name, path in paths.items()}

    async def list_sources(self) -> Sequence[Source]:
        return [
            Source(name, f"{'Folder' if path.is_dir() else 'File'} {path.name}")
            for name, path in self.paths.items()
        ]

    async def read_source(self, name: str) -> str:
        source, _, inner = name.partition("/")
        if source not in self.paths:
            known = list(self.paths)
            hint = f"{did_you_mean(source, known)} The sources are {', '.join(known)}."
            raise ToolError(f"Unknown source {source}.{hint}")
        path = self.paths[source]
        if path.is_file():
            if inner:
                raise ToolError(f"The source {source} is a single file. Read it as {source}.")
            return _text(Workspace(path.parent), path.name, name)
        root = Workspace(path)
        real = root.locate(inner or ".")
        if not root.holds(real):
            raise ToolError(f"{name} is outside the source {source}.")
        if real.is_dir():
            return _listing(root, root.shown(real), source)
        return _text(root, root.shown(real), name)


def _opened(name: str, path: str | Path) -> Path:
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise UsageError(f"The name of a source must be letters, digits, dots and hyphens, not {name!r}.")
    if not str(path):
        raise UsageError(f"The source {name} has no path. Write {FORM}.")
    try:
        real = Path(path).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it leads nowhere"
        raise UsageError(f"The source {name} cannot be opened: {path}: {why}.") from None
    if not (real.is_dir() or real.is_file()):
        raise UsageError(f"The source {name} is neither a folder nor a regular file: {path}.")
    return real


def _text(root: Workspace, path: str, name: str) -> str:
    """The text of a file. Raises ToolError with the reason if it cannot be read."""
    real = root.locate(path)
    if not may_read(real):
        raise ToolFailure("denied", f"The rules forbid reading {name}.")
    with root.open_read(path) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ToolError(f"{name} is larger than {MAX_BYTES:,} bytes.")
    if b"\0" in data:
        raise ToolError(f"{name} is a binary file of {len(data):,} bytes.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"{name} is not UTF-8 text ({len(data):,} bytes).") from None


def _listing(root: Workspace, folder: str, source: str) -> str:
    """The readable files below a folder, as names in the source."""
    files = (f"{source}/{file_name(root.shown(file))}" for file in root.walk(folder) if may_read(file))
    found = list(itertools.islice(files, MAX_FILES + 1))
    if len(found) > MAX_FILES:
        found[MAX_FILES] = f"[There are more than {MAX_FILES:,} files. Name a subfolder.]"
    return "\n".join(found)


def may_read(real: Path) -> bool:
    """Whether the rules of the running call allow reading a file. quoth's own files are never readable."""
    own = Path(os.path.realpath(state_dir()))
    if own in (real, *real.parents):
        return False
    around = running_context()
    return around is None or around.may_read(around.workspace.spelling(real))
