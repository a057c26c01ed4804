"""Programs of the user's that run after a tool has written a file: a formatter, a linter.

A file pattern says after which files. What they run on is a model's, and so may be what they are configured
by: they run inside the boundary, unless the user says otherwise. It must not know calls or doors.
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
NOT_RUN = "it was not run, as {}; :confined False in config.hy runs it all the same"
MOST_OUTPUT = 200_000  # bytes that are kept of each


@dataclass(frozen=True)
class AfterWrite:
    """A program to run after a file whose name, or whose path, fits ``pattern`` was written; None stands for
    the file in its argument vector."""

    pattern: str
    argv: tuple[str | None, ...]
    confined: bool = True

    def fits(self, path: str) -> bool:
        return fits(path if "/" in self.pattern else path.rpartition("/")[2], self.pattern)

    def words(self, path: str) -> list[str]:
        """Its argument vector for a file; no name of a file is an option."""
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
    """Run it for a file of the workspace; its exit code, what it wrote and what is to be said of it. It does
    not see what may not be read. Raises ToolError."""
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
        raise ToolError(NOT_RUN.format(f"nothing confines programs here ({why_none().rstrip('.')})"))
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
        raise ToolError(f"it did not finish within {seconds:g} s, and was ended") from None
    except (OSError, ValueError) as error:
        raise ToolError(f"it cannot be started: {getattr(error, 'strerror', None) or error}") from None
    finally:
        try:
            said = await asyncio.to_thread(command.finish)
        finally:
            command.close()
    return code, output.text, said


def new_lines(now: str, before: str, path: str, old_path: str) -> list[str]:
    """The lines of an output that were not there before, whatever numbers are in them, and whatever the file
    was called."""
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
    """Where the text that a file had before is put for a moment, below the same settings of its folder."""
    folder, _, file = path.rpartition("/")
    return "/".join(filter(None, [folder, f"quoth-before-{name}", file]))
