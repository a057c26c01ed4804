"""What is near when a file tool finds nothing: other names, other case, single words of what was sought.

Knows a call's context, whose rules say which files may be named and read; it must not know the tools. It
looks at a bounded number of files, and only where the call itself was allowed to look.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path, PurePosixPath

from quoth.tools.call.context import ToolContext
from quoth.tools.errors import ToolError
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.text import count

MOST_FILES = 2_000
MOST_BYTES = 1_000_000  # of a file
SECONDS = 3.0
MOST_NAMED = 3
SHORTEST = 3  # letters of a word that tells anything


def near_search(ctx: ToolContext, pattern: str, path: str, glob: str) -> str:
    """A sentence on what a search for ``pattern`` that found nothing might have meant; empty if nothing is
    near."""
    import regex

    from quoth.tools.safe_regex import compiled

    as_given, any_case = compiled(pattern), compiled(f"(?i){pattern}")
    words = _words(pattern)
    deadline = time.monotonic() + SECONDS
    given: list[str] = []
    other_case: list[str] = []
    holding: list[tuple[int, str, str]] = []
    named: list[str] = []
    with contextlib.suppress(TimeoutError, regex.error):
        for shown, text in _texts(ctx, path, deadline):
            lines = text.splitlines()
            many = [0, 0]
            for line in lines:
                for place, one in enumerate((as_given, any_case)):
                    left = deadline - time.monotonic()
                    many[place] += bool(left > 0 and one.search(line[:10_000], timeout=left))
            if many[0]:
                given.append(f"{count(many[0], 'line')} in {shown}")
            elif many[1]:
                other_case.append(f"{count(many[1], 'line')} in {shown}")
            low = text.lower()
            if found := [word for word in words if word in low]:
                holding.append((-len(found), shown, " and ".join(found)))
            if any(word in shown.lower() for word in words):
                named.append(shown)
    nothing = "Nothing" if glob == "*" else f"Nothing in files named {glob}"
    if given:
        return f"{nothing}; {_few(given)}."
    if other_case:
        return f"{nothing} so written; in other case {_few(other_case)}."
    if named:
        return f"{nothing}; but see {_few(named)}."
    if holding:
        best = sorted(holding)
        return f"{nothing}; but {_few(f'{found} in {shown}' for _, shown, found in best)}."
    return ""


def near_list(ctx: ToolContext, path: str, pattern: str) -> str:
    """A sentence on the files that are there where none fits a glob."""
    found = [shown for shown in _shown(ctx, path) if ctx.may_list(shown)]
    if not found:
        return ""
    wanted = _words(pattern)
    best = [shown for shown in found if any(word in shown.lower() for word in wanted)]
    return f"No file fits {pattern}; {count(len(found), 'file')} there: {_few(best or found)}."


def near_file(ctx: ToolContext, path: str) -> str:
    """Where there is a file of this name in another folder, or with another ending; empty for none."""
    wanted = PurePosixPath(path)
    with contextlib.suppress(ToolError):
        files = [shown for shown in _shown(ctx, ".") if ctx.may_list(shown)]
        for same in (
            [one for one in files if PurePosixPath(one).name.lower() == wanted.name.lower()],
            [one for one in files if PurePosixPath(one).stem.lower() == wanted.stem.lower()],
        ):
            if same:
                return f" There is {_few(same)}."
    return ""


def _shown(ctx: ToolContext, path: str) -> Iterator[str]:
    files: Iterable[Path] = ctx.workspace.walk(path)
    return (ctx.workspace.spelling(file) for file in islice(files, MOST_FILES))


def _texts(ctx: ToolContext, path: str, deadline: float) -> Iterator[tuple[str, str]]:
    """The files that may be read, and their texts. Raises TimeoutError after the deadline."""
    for shown in _shown(ctx, path):
        if time.monotonic() > deadline:
            raise TimeoutError
        if not ctx.may_read(shown):
            continue
        try:
            with ctx.workspace.open_read(WorkspacePath(shown)) as stream:
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
