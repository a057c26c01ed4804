"""The user's programs that run after a tool has written a file: a formatter, a linter.

A file pattern selects the files. A model wrote these files, and perhaps the programs' configuration, too:
so the programs run inside the boundary, unless the user says otherwise.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError
from quoth.tools.storage.paths import fits

SECONDS = 30.0
NOT_RUN = "it was not run, because {}; :confined False in config.hy runs it anyway"
MOST_OUTPUT = 200_000  # bytes of each program's output that are kept


@dataclass(frozen=True)
class AfterWrite:
    """A program to run after a tool has written a file whose name or path matches ``pattern``. None in its
    argument vector is replaced by the file."""

    pattern: str
    argv: tuple[str | None, ...]
    confined: bool = True

    def fits(self, path: str) -> bool:
        return fits(path if "/" in self.pattern else path.rpartition("/")[2], self.pattern)

    def words(self, path: str) -> list[str]:
        """Its argument vector for a file; a file name is never read as an option."""
        file = f"./{path}" if path.startswith("-") else path
        return [file if word is None else word for word in self.argv]

    def shown(self, path: str) -> str:
        return shlex.join(self.words(path))


async def run_after(
    program: AfterWrite,
    path: str,
    workspace: Workspace,
    may_read: Callable[[str], bool],
    seconds: float = SECONDS,
) -> tuple[int, str, list[str]]:
    """Run it for a file of the workspace; returns its exit code, its output and notes. It does not see files
    that may not be read. Raises ToolError."""
    from quoth.tools.shell.boundary import boundary_kind, why_none  # here: few have such programs
    from quoth.tools.shell.guarded import unread
    from quoth.tools.shell.program import command_for, why_open
    from quoth.tools.shell.running import STDOUT, CapturedOutput, Running
    from quoth.tools.shell.view import INSIDE, Launch

    words, root, kind = program.words(path), workspace.root, boundary_kind()
    if not program.confined:
        command = Launch(tuple(words), {**os.environ, INSIDE: "1"})
    elif kind:
        unseen = await asyncio.to_thread(unread, root, may_read)
        if why := await asyncio.to_thread(why_open, root, kind, unseen):
            raise ToolError(NOT_RUN.format(why))
        command = command_for(words, root, workspace, network=False, more={}, unseen=unseen)
    else:
        raise ToolError(NOT_RUN.format(f"no boundary works here ({why_none().rstrip('.')})"))
    output = CapturedOutput(MOST_OUTPUT)
    try:
        running = await Running.start(
            command.argv,
            cwd=root,
            env=command.env,
            pass_fds=command.pass_fds,
            stderr=STDOUT,
            alone=True,
            kept=not command.ends_all,
            let_go=command.let_go,
        )
        try:
            async with asyncio.timeout(seconds):
                code = await running.communicate(output.add)
        finally:
            await running.put_away()
    except TimeoutError:
        raise ToolError(f"it did not finish within {seconds:g} s, and was stopped") from None
    except (OSError, ValueError) as error:
        raise ToolError(f"it cannot be started: {getattr(error, 'strerror', None) or error}") from None
    finally:
        try:
            said = await asyncio.to_thread(command.finish)
        finally:
            command.close()
    return code, output.text, said


def new_lines(now: str, before: str, path: str, old_path: str) -> list[str]:
    """The lines of an output that were not in the output before, ignoring numbers and the file's name."""
    there = Counter(_likened(before, old_path))
    new = []
    for line, likened in zip(now.splitlines(), _likened(now, path), strict=True):
        there[likened] -= 1
        if there[likened] < 0 and line.strip():
            new.append(line.rstrip())
    return new


def _likened(text: str, path: str) -> Iterator[str]:
    return (
        re.sub(r"(?<![A-Za-z\d_])\d+", "0", line.replace(path, "file")).rstrip() for line in text.splitlines()
    )


def beside(path: str, name: str) -> str:
    """The temporary place for a file's old text, in a folder with the same settings."""
    folder, _, file = path.rpartition("/")
    return "/".join(filter(None, [folder, f"quoth-before-{name}", file]))
