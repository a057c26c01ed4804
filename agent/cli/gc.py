"""The command ``quoth gc``: removes what has ended long ago, after a person has confirmed it.

Knows options and output; the policy and the work are in agent/session/cleanup.py, and in file_lock.py.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from quoth.agent.cli.common import open_store
from quoth.agent.cli.options import DONE, FAILED, Commands, Options, option, switch
from quoth.agent.settings import at_least_one
from quoth.agent.terminal.input import is_inside
from quoth.agent.terminal.output import complain, print_json, print_line
from quoth.tools.errors import StoreError, UsageError
from quoth.tools.text import number_of

DAYS = 30


@dataclass(init=False, repr=False, eq=False)
class GcOptions(Options):
    groups = "asking"
    days: int = option(
        "--days", "N", f"sessions that ended so long ago (default: {DAYS})", type=at_least_one, default=DAYS
    )
    dry_run: bool = switch("--dry-run", "only say what would be removed")


def add(commands: Commands) -> None:
    about = "Remove sessions that ended long ago, once you have said so. The audit stays."
    commands.add("gc", about, GcOptions, gc)


def gc(options: GcOptions) -> int:
    """Say the policy and what it would remove; remove that if a person agrees."""
    from quoth.agent.session.cleanup import POLICY, old_sessions, remove_sessions
    from quoth.agent.session.render import minute
    from quoth.agent.terminal.ask import confirmed
    from quoth.tools.storage.file_lock import sweep

    if is_inside():
        raise UsageError("A program that a tool runs cannot remove sessions.")
    since = time.time() - min(options.days * 86_400, int(time.time()))  # nothing is from before 1970
    before = datetime.fromtimestamp(since, UTC).isoformat(timespec="milliseconds")
    with open_store(options, lists=True) as store:
        old = [] if store is None else old_sessions(store, before)
        locks = sweep(since, dry=True)
        if not options.json:
            complain(POLICY.format(minute(before)))
        what = f"{number_of(len(old), 'session')} and {number_of(locks, 'lock file')}"
        gone: list[str] = []
        if options.dry_run:
            for row in old if not options.json else ():
                print_line(f"{row.session}  {minute(row.last)}  {number_of(row.events, 'event')}")
        elif old or locks:
            if not (options.yes or confirmed(f"Remove {what}?", no_input=options.no_input)):
                complain("Nothing was removed.")
                return FAILED
            if store is not None and old:
                gone = remove_sessions(store, [row.session for row in old], before)
                try:
                    store.compact()
                except StoreError as error:  # its room is used again in time
                    complain(f"The file of the store is as large as before. {error}")
            locks = sweep(since)
    if options.json:
        names = [row.session for row in old] if options.dry_run else gone
        print_json({"before": before, "sessions": names, "locks": locks, "dry_run": options.dry_run})
    elif options.dry_run:
        complain(f"It would remove {what}.")
    elif not old and not locks:
        complain("There is nothing to remove.")
    else:
        print_line(f"Removed {number_of(len(gone), 'session')} and {number_of(locks, 'lock file')}.")
    return DONE
