"""The command ``quoth remind``: prints each due reminder of memory.org once, and can wait for later ones.

It prints a reminder first and marks it afterwards. If the process is killed in between, the reminder is
printed twice, which is better than never.
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

LOOK_SECONDS = 1.0  # between two checks of the file
RETRY_SECONDS = 30  # before a failed reminder is sent again


class UndeliveredError(ToolError):
    """A channel did not accept a reminder, so the reminder is not marked."""


class RemindOptions(Options):
    """Options of ``quoth remind``."""

    groups = "--channel"
    file: str | None = argument("FILE", "an Org file in the workspace (default: memory.org)", nargs="?")
    to: str | None = option("--to", "NAME", "send reminders to this channel too (see --channel)")
    watch: bool = switch("--watch", "keep running and print each reminder when it is due, until Ctrl-C")


def remind(options: RemindOptions) -> int:
    """Print the due reminders; the exit code is 1 if a headline cannot be read."""
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
    """The path of the file in the workspace; it was typed relative to the current folder."""
    from quoth.tools.policy.project import below

    inner = "" if options.workspace is not None else below(options.folder)
    return str(Path(inner, options.file)) if inner and options.file else options.file


def _sender(options: RemindOptions) -> Callable[[str], None] | None:
    """A function that sends a text to the channel of ``--to``, or None. Raises UsageError for an unknown
    channel."""
    if options.to is None:
        return None
    import asyncio

    from quoth.agent.run.channels import VARIABLE, HostRouter, channels_of

    channels, name = channels_of(options.channels, os.environ.get(VARIABLE, "")), options.to
    if name not in channels:
        known = f"The channels are {', '.join(channels)}." if channels else "Define it: --channel NAME=WHERE"
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
    """The reminders of one file; ``told`` counts the delivered ones. Raises ToolError for a path outside the
    workspace."""

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
        self._unmarked: set[tuple[str, When | None]] = (
            set()
        )  # delivered but not yet marked: name and time of each
        self.told = 0

    def deliver(self) -> TaskFile:
        """Deliver and mark all due reminders; return the file as read. A second process waits for the first
        and finds the reminders marked. Raises ToolError."""
        from quoth.tools.storage.file_lock import hold

        file = read_tasks(self._workspace, self._path)
        self._complain(*file.faults)
        if not self._due(file):
            return file
        with hold(f"reminders of {self.real}", "Another quoth remind is printing these reminders now.", 10):
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
        """Mark the delivered reminders in the present file, unless their time changed meanwhile.
        This process does not repeat a reminder that it cannot mark."""

        def change(file: TaskFile) -> tuple[Org, None]:
            told = [task for task in file.undelivered() if (task.name, task.due) in self._unmarked]
            return file.deliver(told), None

        if self._unmarked:
            change_tasks(self._workspace, change, self._path, complain)
            self._unmarked.clear()

    def _complain(self, *faults: str) -> None:
        """Report the faults of the file, but not the same ones twice in a row."""
        if faults != self._complained:
            for fault in faults:
                complain(fault)
        self._complained = faults

    def watch(self) -> None:
        """Deliver reminders as they become due, until a signal. Reads the file when it changed or a reminder
        is due; reports a file that cannot be read, and tries again later."""
        seen: Any = None
        coming: list[datetime] = []
        with pausing() as pause:
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
        """A value that changes whenever the file does."""
        try:
            found = self.real.stat()
        except OSError:
            return "none"
        return found.st_mtime_ns, found.st_size, found.st_ino


@contextmanager
def pausing() -> Iterator[Any]:
    """Context in which SIGINT and SIGTERM end a pause at once, but let other work finish first; a second
    signal interrupts that too. Yields the function that pauses."""
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
    if asked:  # since the last pause
        raise KeyboardInterrupt
