"""``quoth fly``: a plan at once, or with ``--watch`` and ``--due`` the plans of a folder at their times.

agent/flight/timetable.py decides what is due. Plans are flown one after another, as ``quoth fly`` does
without a terminal: a call that asks waits as a request, and the flight continues when it is decided.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from quoth.agent.cli import flight
from quoth.agent.cli.common import open_store
from quoth.agent.cli.flight import FlyOptions, fly_as_begun, refuse_together
from quoth.agent.cli.options import DONE, FAILED, INTERRUPTED, as_user
from quoth.agent.cli.remind import now, pausing
from quoth.agent.flight.plan_file import PlanFile
from quoth.agent.flight.timetable import Timetable, plans_in, schedule_of
from quoth.agent.terminal.output import complain, print_line
from quoth.tools.errors import QuothError, UsageError
from quoth.tools.installing import own_program
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

LOOK_SECONDS = 1.0  # between two looks at the folder
NEVER = datetime.max.replace(tzinfo=UTC)
EXAMPLE = "SCHEDULED: <2030-12-02 Mon 09:00 ++1w>"


def fly(options: FlyOptions) -> int:
    """Fly a plan now, or the plans of a folder at their times."""
    refuse_together(options)
    timed = options.watch or options.due or options.service
    return _fly_in_time(options) if timed else flight.fly(options)


def _fly_in_time(options: FlyOptions) -> int:
    """Fly what is due, once or until Ctrl-C. The exit code of ``--due`` is 1 if a plan could not be flown."""
    plans = list(plans_in(Path(options.plan)))
    folder = Path(options.plan).resolve()
    if options.service:
        print_line(SERVICE[options.service](_command(options, folder), options.folder.resolve()))
        return DONE
    own = replace(options, no_input=True)
    with contextlib.closing(Store(store_path(options.folder))) as store:
        watcher = _Watcher(own, store, folder)
        watcher.tell(plans)
        watcher.look()
        while options.watch:
            with pausing() as pause:
                pause(LOOK_SECONDS)
            watcher.look()
    return FAILED if watcher.failed else DONE


class _Watcher:
    """The plans of a folder. Each is looked at when its file changed, or its next time has come."""

    def __init__(self, options: FlyOptions, store: Store, folder: Path) -> None:
        self._options, self._folder = options, folder
        self._timetable = Timetable(store, self._fly, complain, now)
        self._next: dict[Path, datetime] = {}
        self._seen: dict[Path, tuple[int, int]] = {}
        self._said: dict[Path, str] = {}
        self.failed = False

    def tell(self, plans: list[Path]) -> None:
        """Print when each plan is due."""
        found = False
        for path in plans:
            with contextlib.suppress(UsageError):  # printed when its turn comes
                schedule = schedule_of(path, path.read_bytes())
                for note in schedule.notes() if schedule else ():
                    found = True
                    complain(note)
        if not found:
            complain(f"No plan here has a time. Write one below its first headline, such as {EXAMPLE}.")

    def look(self) -> None:
        for path in plans_in(self._folder) if self._folder.exists() else ():
            try:
                found = path.stat()
            except OSError:
                continue
            version = found.st_mtime_ns, found.st_size
            if version == self._seen.get(path) and self._next.get(path, NEVER) > now():
                continue
            self._seen[path] = version
            try:
                self._next[path] = self._timetable.turn(path) or NEVER
                self._said.pop(path, None)
            except QuothError as error:
                self.failed = True
                self._next[path] = now() + timedelta(seconds=30)
                if self._said.get(path) != str(error):
                    self._said[path] = str(error)
                    complain(str(error))

    def _fly(self, path: Path, session: str) -> None:
        given = Path(self._options.plan)
        plan = given / path.name if given.is_dir() else given
        if plan.resolve() != path:  # it is a link in the folder to another one
            plan = path
        own = replace(self._options, plan=str(plan), session=session)
        complain(f"Flying {path.name} in session {session}.")
        with open_store(own) as store:  # the flight closes it
            code = fly_as_begun(own, PlanFile(own.plan), store)
        self.failed = self.failed or code == FAILED
        if code == INTERRUPTED:
            raise KeyboardInterrupt


# Services


def _command(options: FlyOptions, folder: Path) -> list[str]:
    """The words that start this again, with absolute paths."""
    words = [*own_program(), "fly", "--watch", str(folder), "--workspace", str(options.folder.resolve())]
    files = [("--tools", options.tools), ("--policy", [options.policy] if options.policy else [])]
    given = [word for flag, paths in files for path in paths for word in (flag, str(Path(path).resolve()))]
    model = ["--model", options.model] if options.model else []
    return [*words, *given, *model, *as_user(options.user)]


def _systemd(words: list[str], home: Path) -> str:
    def quoted(word: str) -> str:
        for one, other in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
            word = word.replace(one, other)
        return f'"{word}"'

    return f"""\
# ~/.config/systemd/user/quoth.service; then: systemctl --user enable --now quoth
[Unit]
Description=quoth flies plans at their times

[Service]
ExecStart={" ".join(map(quoted, words))}
WorkingDirectory={str(home).replace("%", "%%")}
Restart=on-failure

[Install]
WantedBy=default.target"""


def _launchd(words: list[str], home: Path) -> str:
    import plistlib

    about = {
        "Label": "quoth.fly",
        "ProgramArguments": words,
        "WorkingDirectory": str(home),
        "KeepAlive": True,
    }
    return plistlib.dumps(about, sort_keys=False).decode().rstrip()


def _cron(words: list[str], home: Path) -> str:
    once = ["--due" if word == "--watch" else word for word in words]
    return f"* * * * * {shlex.join(once)}".replace("%", "\\%")


SERVICE: dict[str, Callable[[list[str], Path], str]] = {
    "systemd": _systemd,
    "launchd": _launchd,
    "cron": _cron,
}
