"""Runs the user's programs for written files after the body of a call has ended: a formatter changes the file
as a part of that call; of a linter's messages only the new ones are reported.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence

from quoth.tools.call.keeping import kept_by
from quoth.tools.door.state import CallState, Parts
from quoth.tools.errors import ToolError
from quoth.tools.policy.policy import Walk
from quoth.tools.registry.table import cognitive_tools
from quoth.tools.shell.after import SECONDS, AfterWrite, beside, new_lines, run_after
from quoth.tools.text import number_of, short
from quoth.tools.visible import visible

MOST_LINES, LINE = 40, 300  # lines of one program, and characters of each line
MOST_FILES = 20  # of one call
MOST_BYTES = 5_000_000  # of one file


async def after_writes(door: Parts, state: CallState) -> None:
    """Run the programs for each file that the call has written; messages for the model go to the notes."""
    for path, before in [*state.files.items()][:MOST_FILES]:
        programs = [one for one in door.after if one.fits(path)]
        if programs:
            try:
                await _AfterFile(state, path, before, _may_read(door, state)).run(programs)
            except ToolError as error:
                state.notes.append(f"After {path} was written: {str(error).rstrip('.')}.")


def _may_read(door: Parts, state: CallState) -> Callable[[str], bool]:
    """Whether the rules allow programs to read a file; independent of what this call may write."""
    shell, reader = (cognitive_tools.get(name) for name in ("shell", "read-file"))
    context = state.context
    walk = Walk(door.policy, shell, state.call, {}, context.workspace, reader, origins=context.origins)
    return walk.may_read


class _AfterFile:
    def __init__(
        self, state: CallState, path: str, before: bytes | None, may_read: Callable[[str], bool]
    ) -> None:
        self._state, self._path, self._before, self._may_read = state, path, before, may_read
        self._workspace = state.context.workspace.on_disk()  # the programs know no buffers

    async def run(self, programs: Sequence[AfterWrite]) -> None:
        state, path = self._state, self._path
        faults: dict[AfterWrite, str] = {}
        text = self._read()
        for program in programs:
            state.context.effect(f"ran:{program.argv[0]}")
            try:
                code, said = await self._run(program, path)
            except ToolError as error:
                state.notes.append(f"After the write: {program.shown(path)}: {error}.")
                continue
            if code:
                faults[program] = said if said.strip() else f"It ended with {code}, without output."
            if (now := self._read()) != text:
                self._adopt(text)
                text = now
                state.notes.append(f"{path} was changed after the write by: {program.shown(path)}")
        if faults:
            await self._tell(programs, faults)

    async def _run(self, program: AfterWrite, path: str) -> tuple[int, str]:
        seconds = max(0.0, min(SECONDS, self._state.context.seconds_left()))
        code, said, notes = await run_after(program, path, self._workspace, self._may_read, seconds)
        self._state.notes += [f"After the write: {program.shown(path)}: {note}" for note in notes]
        return code, said

    def _read(self) -> bytes:
        with self._workspace.open_read(self._path) as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ToolError(f"it is larger than {MOST_BYTES:,} bytes, so no program was run")
        return data

    def _adopt(self, written: bytes) -> None:
        """Count a program's change of the file as written by the call, and as known to its caller."""
        context = self._state.context
        reader = f"{context.session} {context.user} {context.agent_id}"
        with kept_by(context.keep):
            self._workspace.adopted(self._path, written, reader)

    async def _tell(self, programs: Sequence[AfterWrite], faults: dict[AfterWrite, str]) -> None:
        old_path = beside(self._path, self._state.call.id)
        old = await self._faults_before(programs, old_path) if self._before is not None else {}
        for program, said in faults.items():
            new = new_lines(said, old.get(program, ""), self._path, old_path)
            if new:
                lines = [f"| {short(visible(line), LINE)}" for line in new[:MOST_LINES]]
                if (more := len(new) - MOST_LINES) > 0:
                    lines.append(f"… and {number_of(more, 'more line')}")
                told = "\n".join(lines)
                self._state.notes.append(f"New after the write, by {program.shown(self._path)}:\n{told}")

    async def _faults_before(self, programs: Sequence[AfterWrite], path: str) -> dict[AfterWrite, str]:
        """The programs' output for the text before the call."""
        found: dict[AfterWrite, str] = {}
        with self._old_text(path):
            for program in programs:
                with contextlib.suppress(ToolError):
                    found[program] = (await self._run(program, path))[1]
        return found

    @contextlib.contextmanager
    def _old_text(self, path: str) -> Iterator[None]:
        assert self._before is not None
        with kept_by(None):  # these writes need no undo
            self._workspace.write(path, self._before)
        try:
            yield
        finally:
            shutil.rmtree((self._workspace.root / path).parent, ignore_errors=True)
