"""Near matches if a file tool finds nothing: other names, other case, single words of the pattern.

It examines a bounded number of files, and files beyond the call's own only if no rule asked about the call.
The rules also decide which files may be named and read.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath

from quoth.tools.call.context import ToolContext
from quoth.tools.errors import ToolError
from quoth.tools.lisp.printer import print_string
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.text import count, file_name

MOST_FILES = 2_000
MOST_BYTES = 1_000_000  # of a file
SECONDS = 3.0
MOST_NAMED = 3
LINE = 10_000  # characters of a line
READER = "read-file"
SHORTEST = 3  # letters; shorter words match almost everywhere


@dataclass
class _Nearest:
    """The near matches of a search in the files examined so far; only the best kind is reported."""

    given: list[tuple[str, str]] = field(default_factory=list)  # a file, and the text about it
    other_case: list[tuple[str, str]] = field(default_factory=list)
    named: list[tuple[str, str]] = field(default_factory=list)
    holding: list[tuple[int, str, str]] = field(default_factory=list)

    def told(self) -> tuple[str, list[tuple[str, str]]]:
        if self.given:
            return "; ", self.given
        if self.other_case:
            return " in exactly this case; in other case ", self.other_case
        if self.named:
            return "; but there is ", self.named
        return "; but ", [(shown, text) for _, shown, text in sorted(self.holding)]


def near_search(ctx: ToolContext, pattern: str, path: str, glob: str) -> str:
    """A sentence with near matches of a search for ``pattern`` that found nothing; empty for none."""
    import regex

    from quoth.tools.safe_regex import compiled

    as_given, any_case = compiled(pattern), compiled(f"(?i){pattern}")
    words, deadline, found = _words(pattern), time.monotonic() + SECONDS, _Nearest()
    with contextlib.suppress(TimeoutError, regex.error):
        for shown, text in _texts(ctx, path, deadline):
            exact = alike = 0
            for line in text.splitlines():
                exact += bool(as_given.search(line[:LINE], timeout=_left(deadline)))
                alike += bool(any_case.search(line[:LINE], timeout=_left(deadline)))
            if exact:
                found.given.append((shown, f"{count(exact, 'line')} in {file_name(shown)}"))
            elif alike:
                found.other_case.append((shown, f"{count(alike, 'line')} in {file_name(shown)}"))
            if held := [word for word in words if word in text.lower()]:
                found.holding.append((-len(held), shown, f"{' and '.join(held)} in {file_name(shown)}"))
            if any(word in shown.lower() for word in words):
                found.named.append((shown, file_name(shown)))
    how, near = found.told()
    if not near:
        return ""
    where = "" if glob == "*" else f" in files named {glob}"
    where += "" if path == "." else f" in {file_name(path)}"
    return f"Nothing{where}{how}{_few(text for _, text in near)}.{_read(ctx, near[0][0])}"


def _left(deadline: float) -> float:
    if (left := deadline - time.monotonic()) <= 0:
        raise TimeoutError
    return left


def _read(ctx: ToolContext, path: str) -> str:
    """The call that shows the nearest file: a small model needs it spelt out."""
    return f" To read it: ({READER} :path {print_string(path)})" if READER in ctx.tool_names else ""


def near_list(ctx: ToolContext, path: str, pattern: str) -> str:
    """A sentence with the files that exist if none matches a glob."""
    found = [shown for shown in _shown(ctx, path) if ctx.may_list(shown)]
    if not found:
        return ""
    wanted = _words(pattern)
    best = [shown for shown in found if any(word in shown.lower() for word in wanted)]
    near = _few(map(file_name, best or found))
    return f"No file matches {pattern}; {count(len(found), 'file')} there: {near}."


def near_file(ctx: ToolContext, path: str) -> str:
    """A sentence with files of this name in another folder, or with another ending; empty for none."""
    wanted = PurePosixPath(path)
    folder, _, inner = path.partition("/")
    with contextlib.suppress(ToolError):
        files = [shown for shown in _beside(ctx) if ctx.may_look(shown)]
        if folder == ctx.workspace.home.name and inner in files:  # models include its name in paths
            return f" It is {file_name(inner)}: {file_name(folder)} is this folder itself.{_read(ctx, inner)}"
        for same in (
            [one for one in files if PurePosixPath(one).name.lower() == wanted.name.lower()],
            [one for one in files if PurePosixPath(one).stem.lower() == wanted.stem.lower()],
        ):
            if same:
                return f" There is {_few(map(file_name, same))}.{_read(ctx, same[0])}"
    return ""


def _shown(ctx: ToolContext, path: str) -> Iterator[str]:
    files: Iterable[Path] = ctx.workspace.walk(path)
    return (ctx.workspace.spelling(file) for file in islice(files, MOST_FILES))


def _beside(ctx: ToolContext) -> Iterator[str]:
    """The files of the workspace that may be named without being asked for: no hidden files, as in the list
    that a model is shown (agent/run/surroundings.py)."""
    return (shown for shown in _shown(ctx, ".") if not any(part.startswith(".") for part in shown.split("/")))


def _texts(ctx: ToolContext, path: str, deadline: float) -> Iterator[tuple[str, str]]:
    """The readable files and their texts: first the files that the call asked for, then others. Raises
    TimeoutError after the deadline."""
    asked, disk = dict.fromkeys(_shown(ctx, path)), ctx.workspace.on_disk()
    beside = (shown for shown in _beside(ctx) if shown not in asked and ctx.may_look(shown))
    for shown in (*(one for one in asked if ctx.may_read(one)), *beside):
        _left(deadline)
        try:
            with disk.open_read(WorkspacePath(shown)) as stream:
                data = stream.read(MOST_BYTES)
        except ToolError:
            continue
        if b"\0" not in data[:8192]:
            yield shown, data.decode("utf-8", "replace")


def _words(pattern: str) -> list[str]:
    """The words of a pattern in small letters, each once."""
    found = re.findall(r"[^\W_]+", re.sub(r"\\.", " ", pattern).lower())
    return list(dict.fromkeys(word for word in found if len(word) >= SHORTEST))


def _few(items: Iterable[str]) -> str:
    listed = list(items)
    more = len(listed) - MOST_NAMED
    return ", ".join(listed[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
