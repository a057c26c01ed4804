"""The command ``quoth remind``: tells what is due in memory.org, each once, and may stay for what comes due.

Knows the file's tasks and how they are printed; it calls no tool and needs no store. A reminder is told first
and marked then: who is killed in between is told it again, which is better than never.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.options import DONE, FAILED, Options, argument, option, switch
from quoth.agent.terminal.output import complain, print_json, print_line
from quoth.tools.errors import ToolError, UsageError, did_you_mean
from quoth.tools.memory.org_tasks import FILE, OrgTask, TaskFile, change_tasks, read_tasks

if TYPE_CHECKING:
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.memory.due_times import When
    from quoth.tools.org.document import Org

LOOK_SECONDS = 1.0  # between two looks at the file
RETRY_SECONDS = 30  # after which what could not be told is tried again


class UndeliveredError(ToolError):
    """A channel did not take a reminder, which therefore is not marked."""


class RemindOptions(Options):
    """Options of ``quoth remind``."""

    groups = "--channel"
    file: str | None = argument("FILE", "an Org file in the workspace (default: memory.org)", nargs="?")
    to: str | None = option("--to", "NAME", "send reminders to this channel too (see --channel)")
    watch: bool = switch("--watch", "keep running and print each reminder when it is due, until Ctrl-C")


def remind(options: RemindOptions) -> int:
    """Tell what is due; the exit code is 1 if a headline cannot be read."""
    from quoth.tools.call.workspace import Workspace

    try:
        reminders = Reminders(
            Workspace(options.folder), _file(options) or FILE, options.json, _sender(options)
        )
        if options.file and not reminders.real.exists():
            raise UsageError(f"There is no file {options.file}.")
        if options.watch:
            reminders.watch()
        file = reminders.deliver()
    except UndeliveredError as error:
        complain(str(error))
        return FAILED
    except ToolError as error:
        raise UsageError(str(error)) from None
    if not reminders.told:
        coming = file.undelivered()
        first = f" Next: {file.words_of(coming[0], now())}." if coming else ""
        complain(f"Nothing is due.{first}")
    return FAILED if file.faults else DONE


def _file(options: RemindOptions) -> str | None:
    """The path of the file, which is typed as it is from the current folder, if the workspace was found."""
    from quoth.tools.policy.project import below

    inner = "" if options.workspace is not None else below(options.folder)
    return str(Path(inner, options.file)) if inner and options.file else options.file


def _sender(options: RemindOptions) -> Callable[[str], None] | None:
    """What sends a text to the channel of ``--to``, or None. Raises UsageError for an unknown one."""
    if options.to is None:
        return None
    import asyncio

    from quoth.agent.run.channels import VARIABLE, HostRouter, channels_of

    channels, name = channels_of(options.channels, os.environ.get(VARIABLE, "")), options.to
    if name not in channels:
        known = f"The channels are {', '.join(channels)}." if channels else "Name it: --channel NAME=WHERE."
        raise UsageError(f"There is no channel {name}.{did_you_mean(name, channels)} {known}")
    router = HostRouter(print_line, channels, "quoth remind")

    def send(text: str) -> None:
        try:
            asyncio.run(router.send_message(text, to=name))
        except ToolError as error:
            raise UndeliveredError(str(error)) from None

    return send


def now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)


class Reminders:
    """The reminders of one file; ``told`` counts those that were delivered. Raises ToolError for a path that
    leads out of the workspace."""

    def __init__(
        self,
        workspace: Workspace,
        path: str,
        as_json: bool = False,
        send: Callable[[str], None] | None = None,
    ) -> None:
        self._workspace, self._path = workspace, path
        self._as_json, self._send = as_json, send
        self.real = workspace.resolve(path)
        self._complained: tuple[str, ...] = ()
        self._unmarked: set[tuple[str, When | None]] = set()  # what was told, by its name and time
        self.told = 0

    def deliver(self) -> TaskFile:
        """Tell all that is due and mark it; return the file as it was read. Of two processes one waits for
        the other and finds it marked. Raises ToolError."""
        from quoth.tools.storage.file_lock import hold

        file = read_tasks(self._workspace, self._path)
        self._complain(*file.faults)
        if not self._due(file):
            return file
        with hold(f"reminders of {self.real}", "Another quoth remind is telling them just now.", 10):
            file = read_tasks(self._workspace, self._path)
            try:
                for task in self._due(file):
                    if (mark := (task.name, task.due)) not in self._unmarked:
                        self._tell(file, task)
                        self._unmarked.add(mark)
                        self.told += 1
            finally:
                self._mark()
        return file

    def _due(self, file: TaskFile) -> list[OrgTask]:
        at = now()
        return [task for task in file.undelivered() if file.is_due(task, at)]

    def _tell(self, file: TaskFile, task: OrgTask) -> None:
        at = now()
        if self._send is not None:
            self._send(file.words_of(task, at))
        if self._as_json:
            print_json({**file.shown(task, at), "file": file.name})
        else:
            print_line(file.words_of(task, at))

    def _mark(self) -> None:
        """Mark what was told in the file as it is by now; who was moved to another time meanwhile is not
        marked. What cannot be marked is not told again by this process."""

        def change(file: TaskFile) -> tuple[Org, None]:
            told = [task for task in file.undelivered() if (task.name, task.due) in self._unmarked]
            return file.deliver(told), None

        if self._unmarked:
            change_tasks(self._workspace, change, self._path, complain)
            self._unmarked.clear()

    def _complain(self, *faults: str) -> None:
        """Say what is wrong with the file, once for as long as it is."""
        if faults != self._complained:
            for fault in faults:
                complain(fault)
        self._complained = faults

    def watch(self) -> None:
        """Tell what is due and what comes due, until a signal ends it. The file is read when it has changed
        or something is due; a file that cannot be read is complained of, and looked at again."""
        seen: Any = None
        coming: list[datetime] = []
        with _signals() as pause:
            while True:
                version = self._version()
                if version != seen or (coming and coming[0] <= now()):
                    try:
                        self.deliver()
                        coming, seen = self._coming(), version
                    except (ToolError, UsageError) as error:
                        self._complain(str(error))
                        coming, seen = [now() + timedelta(seconds=RETRY_SECONDS)], version
                wait = (coming[0] - now()).total_seconds() if coming else LOOK_SECONDS
                pause(min(max(wait, 0.01), LOOK_SECONDS))

    def _coming(self) -> list[datetime]:
        from quoth.tools.memory.due_times import instant_of

        file = read_tasks(self._workspace, self._path)
        return [instant_of(task.due, file.zone) for task in file.undelivered() if task.due]

    def _version(self) -> Any:
        """What differs when the file was changed."""
        try:
            found = self.real.stat()
        except OSError:
            return "none"
        return found.st_mtime_ns, found.st_size, found.st_ino


@contextmanager
def _signals() -> Iterator[Any]:
    """Within it, SIGINT and SIGTERM end a pause at once and wait for the end of anything else; yields the
    function that pauses. A second signal ends anything."""
    waiting = asked = False

    def heard(*_: object) -> None:
        nonlocal asked
        if waiting or asked:
            raise KeyboardInterrupt
        asked = True

    def pause(seconds: float) -> None:
        nonlocal waiting
        waiting = True
        try:
            if asked:
                raise KeyboardInterrupt
            time.sleep(seconds)
        finally:
            waiting = False

    before = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield pause
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
