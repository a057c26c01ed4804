"""The commands for sessions: ``sessions``, ``log``, ``fork``, ``export``, ``import``, ``rm`` and ``gc``.

Commands that only read do not create a store.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.common import adopt, named_or_latest, open_store, read_text, write_new
from quoth.agent.cli.options import DONE, FAILED, Options, argument, option, switch
from quoth.agent.settings import at_least_one
from quoth.agent.terminal.input import is_inside
from quoth.agent.terminal.output import (
    complain,
    print_colored,
    print_data,
    print_json,
    print_line,
    tell_next,
)
from quoth.tools.errors import StoreError, UsageError
from quoth.tools.text import number_of

if TYPE_CHECKING:
    from quoth.agent.session.html import Facts
    from quoth.tools.history.event import Event
    from quoth.tools.storage.database import Store

ID = "the session, or the beginning of its id"
LATEST = 20  # sessions shown by default
WIDEST_ID = 20  # columns; a longer id is shown whole, and only its own line is wider


class SessionsOptions(Options):
    all: bool = switch("--all", "list all sessions, also those of single calls")
    last: int | None = option(
        "--last", "N", f"list only the last N (default: {LATEST}, or all with --all)", type=at_least_one
    )
    adopt: bool = switch("--adopt", "move the sessions of this subfolder to the project")


class LogOptions(Options):
    of: str | None = argument("ID", ID, nargs="?")
    last: bool = switch("--last", "your latest session (the default)")
    full: bool = switch("--full", "show long texts in full")
    thoughts: bool = switch("--thoughts", "show the model's thoughts too")
    org: bool = switch("--org", "print an Org document", rivals="view")
    hy: bool = switch("--hy", "print the events as Lisp forms, one on a line", rivals="view")
    html: str | None = option(
        "--html",
        "FILE",
        "write an HTML page with durations, verdicts and tokens (default: ID.html)",
        nargs="?",
        const="",
    )
    tags: bool = switch(
        "--tags", "show only response tags, with the result of each or why it was not a call", rivals="view"
    )


class ForkOptions(Options):
    of: str = argument("ID", ID)
    at: str | None = option(
        "--at", "N", "number of the last event to copy, as quoth log shows it (default: all)"
    )


class SessionExportOptions(Options):
    of: str = argument("ID", ID)
    file: str = argument("FILE", "file to write (default: stdout)", nargs="?", default="-")


class SessionImportOptions(Options):
    file: str = argument("FILE", "file that quoth export wrote; - reads stdin")
    name: str | None = option("--as", "ID", "id of the imported session (default: the same as before)")


class RemoveOptions(Options):
    groups = "asking"
    of: Sequence[str] = argument("ID", "a session, or the beginning of its id", nargs="+")


# Showing


def sessions(options: SessionsOptions) -> int:
    """Print the sessions, the latest last, each as soon as it is read."""
    if options.adopt:
        return adopt(options)
    from quoth.agent.session.index import listed, summaries
    from quoth.agent.session.render import summary_line
    from quoth.tools.history.outline import Outline

    faults: dict[str, None] = {}
    with open_store(options, lists=True) as store:
        wanted = options.last or (None if options.all else LATEST)
        rows, count, taken_by = listed(
            store, options.asker, wanted, every=options.all, others=not options.last
        )
        found = summaries(store, rows, faults) if store is not None else iter(())
        if options.json:
            print_json([{**one.to_json(), "latest_for": taken_by.get(one.id, [])} for one in found])
        else:
            width = min(max((len(row.session) for row in rows), default=0), WIDEST_ID)
            for one in found:
                print_line(summary_line(one, width, taken_by.get(one.id, ())))
        some = bool(rows or (store is not None and Outline(lambda: store).sessions(1)))
    for fault in faults:
        complain(f"{fault} It was skipped.")
    if not rows and not options.json:
        more = " To show those of single calls: --all" if some else ""
        complain(f"There is no session{' with a run' if some else ''} in this workspace.{more}")
    if wanted and wanted < count and not options.last:
        complain(f"These are the latest {wanted} of {count} sessions. To show all: --all")
    return DONE


def log(options: LogOptions) -> int:
    """Print a session, or one event of it."""
    from quoth.agent.session.index import find_event
    from quoth.agent.session.org import as_org
    from quoth.agent.session.render import as_text, fault_of, one_event
    from quoth.tools.history.transcript import Transcript

    wanted = options.of or options.session
    if options.of and options.last:
        raise UsageError("quoth log takes an ID or --last, not both.")
    with open_store(options, lists=True) as store:
        session, place = (
            find_event(store, wanted) if wanted else (named_or_latest(options, store, None, "work"), None)
        )
        assert store is not None, "a session was found in it"
        transcript = Transcript(lambda: store)
        every = events = list(transcript.events(session))
        tampered = list(transcript.faults(session))
        facts = _facts(options, store, session) if options.html is not None else None
    if place is not None:
        events = [event for event in events if event.seq == place] or _no_event(session, place, len(events))
    unread = {event.seq: fault for event in events if (fault := fault_of(event))}
    if place in unread:
        raise UsageError(unread[place])
    every = [event for event in every if event.seq not in unread]
    events = [event for event in events if event.seq not in unread]
    if options.tags:
        from quoth.agent.session.stats import tag_lines

        told = [one for one in tag_lines(every) if place is None or one.id == f"{session}.{place}"]
        if options.json:
            print_json([one.to_json() for one in told])
        for one in told if not options.json else ():
            print_line(str(one))
        if not told:
            complain(f"Session {session} has no response tags.")
    elif facts is not None:
        _write_html(options, events, session, facts)
    elif options.json:
        found = [event.to_json() for event in events]
        print_json(found if place is None else found[0])
    elif options.hy:
        for event in events:
            print_line(event.shown)
    elif options.org:
        for line in as_org(events, session, full=options.full):
            print_line(line)
    elif place is not None:
        print_line(one_event(events[0]))
    else:
        print_colored(
            lambda color: as_text(events, full=options.full, color=color, thoughts=options.thoughts)
        )
    for fault in unread.values():
        complain(f"{fault} It was skipped.")
    if tampered:
        more = f" and {len(tampered) - 1} more" if len(tampered) > 1 else ""
        complain(f"Session {session} was changed after it was written. {tampered[0].rstrip('.')}{more}.")
    return 0


def _facts(options: LogOptions, store: Store, session: str) -> Facts:
    """The verdicts and the changes of files for the page of a session."""
    from quoth.agent.session.changes import CallChanges
    from quoth.agent.session.html import Facts
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.history.audit import StoreAudit
    from quoth.tools.history.versions import StoreVersions

    workspace = Workspace(options.folder).of_session(session)
    versions = StoreVersions(lambda: store, workspace.root)
    rows = {row["id"]: row for row in StoreAudit(lambda: store).select(session=session)}
    changes = CallChanges(versions, workspace, session)
    found = {key: changes.of(key) for key in changes.keys}
    return Facts(rows, lambda key: found.get(key, ()))


def _write_html(options: LogOptions, events: Sequence[Event], session: str, facts: Facts) -> None:
    """Write the page to a new file, or to stdout for ``-``."""
    from quoth.agent.session.html import as_html

    file = options.html or f"{session}.html"
    page = "".join(as_html(events, session, facts))
    if file == "-":
        print_data(page.rstrip("\n"))
        return
    write_new(Path(file), page)
    print_json({"session": session, "file": file}) if options.json else print_line(file)


def _no_event(session: str, place: int, count: int) -> Any:
    raise UsageError(
        f"There is no event {session}.{place}; session {session} has {number_of(count, 'event')}."
    )


# Copying, exporting and importing


def fork(options: ForkOptions) -> int:
    """Copy a session, or only its first events, into a new session."""
    from quoth.agent.session.index import find_session, fork_session, place_in

    at = None
    if options.at is not None:
        if not options.at.isdecimal() or place_in(options.at) < 1:
            raise UsageError(f"--at takes the number of an event, 1 or more, not {options.at}.")
        at = place_in(options.at)
    with open_store(options) as store:
        session = find_session(store, options.of)
        assert store is not None, "a session was found in it"
        new, count = fork_session(store, session, at)
        also = _text_to_say(store, new)
    if options.json:
        print_json({"session": new, "from": session, "at": count})
        return 0
    print_line(new)
    complain(f"It has the first {number_of(count, 'event')} of session {session}.")
    tell_next("To continue", options.typed("resume", new, also=also))
    return DONE


def _text_to_say(store: Store, session: str) -> str:
    """The further argument of ``quoth resume`` for this session: a text, unless something waits in it."""
    from quoth.agent.session.index import waiting
    from quoth.tools.history.transcript import Transcript

    return "" if waiting(Transcript(lambda: store), session) else " TEXT"


def export(options: SessionExportOptions) -> int:
    """Print a session as text, or write it to a new file."""
    from importlib.metadata import version

    from quoth.agent.session.index import find_session
    from quoth.tools.history.transcript import Transcript
    from quoth.tools.history.transfer import written

    with open_store(options) as store:
        session = find_session(store, options.of)
        assert store is not None, "a session was found in it"
        transcript = Transcript(lambda: store)
        transcript.verify(session)
        events = list(transcript.events(session))
    lines = written(events, session, len(events), version("quoth"))
    if options.file == "-":
        for line in lines:
            print_line(line)
    else:
        write_new(Path(options.file), "".join(f"{line}\n" for line in lines))
        complain(f"Wrote {number_of(len(events), 'event')} of session {session} to {options.file}.")
    if any(event.shown != event.text for event in events):
        complain(
            "The export leaves out declared secrets, so waiting calls that contain them cannot be run from "
            "it."
        )
    return 0


def import_session(options: SessionImportOptions) -> int:
    """Import a session from exported text, under its own id or another."""
    from quoth.agent.session.index import import_session
    from quoth.tools.history.transfer import A_WORD, is_word, read_written
    from quoth.tools.storage.database import Store
    from quoth.tools.storage.file_lock import not_in_use
    from quoth.tools.storage.paths import store_path

    if is_inside():
        raise UsageError("A program that a tool runs cannot import sessions.")
    name, events = read_written(read_text(options.file))
    session = name if options.name is None else options.name
    if not is_word(session):
        raise UsageError(f"The id of a session is {A_WORD}.")
    if not options.folder.is_dir():
        raise UsageError(f"The workspace {options.folder} is not a folder.")
    store = Store(store_path(options.folder))
    try:
        with not_in_use(store.path, session):
            new = import_session(store, session, events)
        also = _text_to_say(store, session) if new else ""
    finally:
        store.close()
    if options.json:
        print_json({"session": session, "events": len(events), "new": new})
        return 0
    print_line(session)
    complain(f"{'Imported with' if new else 'Already imported, with'} {number_of(len(events), 'event')}.")
    if new:
        tell_next("To continue", options.typed("resume", session, also=also))
    return DONE


def remove(options: RemoveOptions) -> int:
    """Delete sessions from the store after a person confirms it."""
    from quoth.agent.session.index import find_session
    from quoth.agent.session.session import alone
    from quoth.agent.terminal.ask import confirmed
    from quoth.tools.history.transcript import Transcript
    from quoth.tools.storage.file_lock import not_in_use

    if is_inside():
        raise UsageError("A program that a tool runs cannot remove sessions.")
    with open_store(options) as store:
        found = list(dict.fromkeys(find_session(store, wanted) for wanted in options.of))
        assert store is not None, "a session was found in it"
        what = f"session{'s' if len(found) > 1 else ''} {', '.join(found)}"
        sure = options.yes or confirmed(
            f"Remove {what}, and everything that waits there?", no_input=options.no_input
        )
        if not sure:
            complain("Nothing was removed.")
            return FAILED
        with ExitStack() as held:
            for session in found:
                held.enter_context(not_in_use(store.path, session))
                held.enter_context(alone(Path(store.path), session))
            Transcript(lambda: store).remove(*found)
    if options.json:
        print_json({"removed": found})
    else:
        print_line(f"Removed {what}.")
    return 0


DAYS = 30


class GcOptions(Options):
    groups = "asking"
    days: int = option(
        "--days",
        "N",
        f"remove sessions that ended more than N days ago (default: {DAYS})",
        type=at_least_one,
        default=DAYS,
    )
    dry_run: bool = switch("--dry-run", "list the sessions that would be removed; remove none")


def gc(options: GcOptions) -> int:
    """Print the rule and what it would remove; remove that if a person agrees."""
    from quoth.agent.session.index import POLICY, old_sessions, remove_sessions
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
                except StoreError as error:  # SQLite reuses the free pages later
                    complain(f"The store file did not get smaller. {error}")
            locks = sweep(since)
    if options.json:
        names = [row.session for row in old] if options.dry_run else gone
        print_json({"before": before, "sessions": names, "locks": locks, "dry_run": options.dry_run})
    elif options.dry_run:
        complain(f"This would remove {what}.")
    elif not old and not locks:
        complain("There is nothing to remove.")
    else:
        print_line(f"Removed {number_of(len(gone), 'session')} and {number_of(locks, 'lock file')}.")
    return DONE
