"""The commands ``quoth sessions``, ``log``, ``fork``, ``export``, ``import``, ``rm`` and ``resume``.

Knows options, and where the work is done: agent/session/index.py, agent/session/render.py,
tools/history/transfer.py. Looking makes no store where there is none.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.common import how_to_go_on, open_store, place_of, take_over, write_new
from quoth.agent.terminal.output import (
    complain,
    is_terminal,
    may_draw,
    print_drawn,
    print_json,
    print_line,
    shown,
)
from quoth.tools.errors import UsageError
from quoth.tools.text import number_of

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent


def add_commands(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """``command`` makes the parser of one command."""
    from quoth.agent.cli.common import add_limits

    sessions = command("sessions", "List the sessions of this workspace, the latest at the end.")
    sessions.add_argument("--all", action="store_true", help="those of a person's single calls, too")
    log = command("log", "Show what happened in a session, or one event of it: ID.N.")
    log.add_argument("of", metavar="ID", nargs="?", help="the session, or the beginning of its id")
    log.add_argument("--last", action="store_true", help="the latest session (so it is without an ID)")
    log.add_argument("--full", action="store_true", help="fold nothing")
    view = log.add_mutually_exclusive_group()
    view.add_argument("--org", action="store_true", help="as an Org document")
    view.add_argument("--hy", action="store_true", help="as it is kept: one form an event")
    fork = command("fork", "Begin a new session with the first events of another.")
    fork.add_argument("of", metavar="ID", help="the session, or the beginning of its id")
    fork.add_argument("--at", metavar="N", help="the last event to take, as quoth log counts (default: all)")
    export = command("export", "Write a session as a text of forms, without secrets.")
    export.add_argument("of", metavar="ID", help="the session, or the beginning of its id")
    export.add_argument("file", metavar="FILE", nargs="?", help="where to write it (default: stdout)")
    take = command("import", "Take a session from such a text.")
    take.add_argument("file", metavar="FILE", help="what quoth export has written; - reads stdin")
    take.add_argument("--as", dest="name", metavar="ID", help="the id it is to have (default: its own)")
    remove = command("rm", "Remove sessions. The audit keeps what was called.")
    remove.add_argument("of", metavar="ID", nargs="+", help="a session, or the beginning of its id")
    resume = command("resume", "Go on with what waited or was broken off, or with the conversation.")
    resume.add_argument("of", metavar="ID", nargs="?", help="the session (default: the only one that waits)")
    resume.add_argument("text", metavar="TEXT", nargs="*", help="what to say when nothing waits any more")
    resume.add_argument("--last", action="store_true", help="the session that came to wait last")
    add_limits(resume)


# Looking


def sessions(options: argparse.Namespace) -> int:
    """The sessions on stdout, the latest at the end."""
    from quoth.agent.session.index import summaries

    faults: dict[str, None] = {}
    with open_store(options) as store:
        every = summaries(store, faults) if store is not None else []
    for fault in faults:
        complain(f"{fault} It is left out.")
    found = [one for one in every if options.all or one.runs]
    if getattr(options, "json", False):
        print_json([one.to_json() for one in found])
        return 0
    if not found:
        more = " --all shows those of single calls." if every else ""
        complain(f"There is no session{' with a run' if every else ''} in this workspace.{more}")
    width = max((len(one.id) for one in found), default=0)
    for one in found:
        print_line(_line(one, width))
    return 0


def _line(one: Any, width: int) -> str:
    from quoth.agent.session.render import minute, title

    parts = [
        f"{one.id:<{width}}",
        minute(one.last),
        f"{one.status:<11}",
        number_of(one.runs, "run"),
        number_of(one.calls, "call"),
        title(one.task),
    ]
    return "  ".join(parts).rstrip()


def log(options: argparse.Namespace) -> int:
    """A session, or one event of it, on stdout."""
    from quoth.agent.session.index import find_event, last_session
    from quoth.agent.session.render import as_org, as_text, fault_of, one_event
    from quoth.tools.history.transcript import Transcript

    wanted = options.of or getattr(options, "session", None)
    if options.of and options.last:
        raise UsageError("quoth log takes an ID or --last, not both.")
    with open_store(options) as store:
        session, place = find_event(store, wanted) if wanted else (last_session(store), None)
        assert store is not None, "a session was found in it"
        transcript = Transcript(lambda: store)
        events = list(transcript.events(session))
        tampered = list(transcript.faults(session))
    if place is not None:
        events = [event for event in events if event.seq == place] or _no_event(session, place, len(events))
    unread = {event.seq: fault for event in events if (fault := fault_of(event))}
    if place in unread:
        raise UsageError(unread[place])
    events = [event for event in events if event.seq not in unread]
    if getattr(options, "json", False):
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
        color = may_draw(sys.stdout)
        for line in as_text(events, full=options.full, color=color):
            print_drawn(line) if color else print_line(line)
    for fault in unread.values():
        complain(f"{fault} It is left out.")
    if tampered:
        more = f" and {len(tampered) - 1} more" if len(tampered) > 1 else ""
        complain(f"Session {session} is not as it was written. {tampered[0].rstrip('.')}{more}.")
    return 0


def _no_event(session: str, place: int, count: int) -> Any:
    raise UsageError(
        f"There is no event {session}.{place}; session {session} has {number_of(count, 'event')}."
    )


# Taking elsewhere


def fork(options: argparse.Namespace) -> int:
    """A new session that begins as another did."""
    from quoth.agent.session.index import find_session, fork_session, place_in

    as_json = getattr(options, "json", False)
    at = None
    if options.at is not None:
        if not options.at.isdecimal() or place_in(options.at) < 1:
            raise UsageError(f"--at takes the place of an event, a whole number from 1, not {options.at}.")
        at = place_in(options.at)
    with open_store(options) as store:
        session = find_session(store, options.of)
        assert store is not None, "a session was found in it"
        new, count = fork_session(store, session, at)
    if as_json:
        print_json({"session": new, "from": session, "at": count})
        return 0
    print_line(new)
    complain(f"It begins with the first {number_of(count, 'event')} of session {session}.")
    _how_to_go_on(new, options)
    return 0


def _how_to_go_on(session: str, options: argparse.Namespace) -> None:
    from quoth.agent.session.index import waiting
    from quoth.tools.history.transcript import Transcript

    with open_store(options) as store:
        assert store is not None, "the session is in it"
        text = "" if waiting(Transcript(lambda: store), session) else " TEXT"
    complain(f"To go on: quoth resume {shlex.quote(session)}{place_of(options)}{text}")


def export(options: argparse.Namespace) -> int:
    """A session as a text, on stdout or in a new file."""
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
    if options.file in (None, "-"):
        for line in lines:
            print_line(line)
    else:
        write_new(Path(options.file), "".join(f"{line}\n" for line in lines))
        complain(f"Wrote {number_of(len(events), 'event')} of session {session} to {options.file}.")
    if any(event.shown != event.text for event in events):
        complain("Declared secrets are not in it; calls that wait for them cannot be made from it.")
    return 0


def import_session(options: argparse.Namespace) -> int:
    """A session from a text, under its own id or another."""
    from quoth.agent.session.index import take_in
    from quoth.agent.terminal.person import is_inside
    from quoth.tools.history.transfer import A_WORD, is_word, read_written
    from quoth.tools.storage.database import Store
    from quoth.tools.storage.paths import store_path

    if is_inside():
        raise UsageError("A program that a tool runs cannot import sessions.")
    name, events = read_written(_read(options.file))
    session = name if options.name is None else options.name
    if not is_word(session):
        raise UsageError(f"The id of a session is {A_WORD}.")
    workspace = Path(getattr(options, "workspace", "."))
    if not workspace.is_dir():
        raise UsageError(f"The workspace {workspace} is not a folder.")
    store = Store(store_path(workspace))
    try:
        new = take_in(store, session, events)
    finally:
        store.close()
    if getattr(options, "json", False):
        print_json({"session": session, "events": len(events), "new": new})
        return 0
    print_line(session)
    complain(f"{'It has' if new else 'It is there already, with'} {number_of(len(events), 'event')}.")
    if new:
        _how_to_go_on(session, options)
    return 0


def _read(file: str) -> str:
    from quoth.agent.terminal.input import read_stdin

    if file == "-":
        return read_stdin()
    try:
        return Path(file).read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise UsageError(f"There is no file {file}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8 text.") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from None


def remove(options: argparse.Namespace) -> int:
    """Take sessions out of the store, after a person said so."""
    from quoth.agent.session.index import find_session
    from quoth.agent.session.session import alone
    from quoth.agent.terminal.person import is_inside
    from quoth.tools.history.transcript import Transcript

    if is_inside():
        raise UsageError("A program that a tool runs cannot remove sessions.")
    with open_store(options) as store:
        found = list(dict.fromkeys(find_session(store, wanted) for wanted in options.of))
        assert store is not None, "a session was found in it"
        what = f"session{'s' if len(found) > 1 else ''} {', '.join(found)}"
        if not _confirmed(options, f"Remove {what}, and all that waits there?"):
            complain("Nothing was removed.")
            return 1
        for session in found:
            with alone(Path(store.path), session):
                Transcript(lambda: store).remove(session)
    if getattr(options, "json", False):
        print_json({"removed": found})
    else:
        print_line(f"Removed {what}.")
    return 0


def _confirmed(options: argparse.Namespace, question: str) -> bool:
    if getattr(options, "yes", False):
        return True
    if getattr(options, "no_input", False) or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError(f"{shown(question)} Say so with --yes.")
    sys.stderr.write(f"{shown(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# Going on


def resume(options: argparse.Namespace) -> int:
    """Go on with a session; the exit code is the gravest of its calls and runs."""
    from quoth.agent.cli.common import EXIT_OF_RUN, _show_result, _with_agent, limits_of
    from quoth.agent.flight.log import flown_in
    from quoth.agent.reply import Reply
    from quoth.agent.terminal.progress import Progress

    words = list(options.text)
    if options.of is not None and (options.last or getattr(options, "session", options.of) != options.of):
        words.insert(0, options.of)  # the session is named otherwise
        options.of = None
    text = " ".join(words)
    session, user, runs = _waiting_session(options)
    as_json = getattr(options, "json", False)
    take_over(options, session, user)
    codes = [0]

    def show(done: Any) -> None:
        if not isinstance(done, Reply):
            codes.append(_show_result(done, as_json))
            return
        if as_json:
            print_json(done.to_json())
        elif done.status == "done":
            print_line(done.text)
        codes.append(EXIT_OF_RUN[done.status])

    async def work(agent: AsyncAgent) -> int:
        for change in agent.changes():
            complain(change)
        unfinished = agent.unfinished()
        if not text and not agent.resumable():
            if plan := flown_in(agent.transcript, session):
                how = f"quoth fly {shlex.quote(plan)}{place_of(options)}"
                raise UsageError(f"Session {session} is the flight of a plan; to go on with it: {how}")
            if runs:
                again = f"quoth resume {shlex.quote(session)}{place_of(options)}"
                how = f"To go on with its conversation: {again} TEXT"
                raise UsageError(f"Nothing waits in session {session}. {how}")
        if unfinished or not text:
            for done in await agent.resume():
                show(done)
        if text and agent.unfinished():
            complain(f"Session {session} still waits, so this was not said: {text}")
        elif text:
            show(await agent.follow(text))
        how_to_go_on(agent, options)
        return max(codes)

    return _with_agent(options, work, on_event=Progress(), limits=limits_of(options, options.limits))


def _waiting_session(options: argparse.Namespace) -> tuple[str, str, bool]:
    """The session to go on with, its user, and whether it has runs."""
    from quoth.agent.session.index import find_session, last_session, unfinished_sessions, users_of
    from quoth.tools.history.transcript import Transcript

    wanted = options.of or getattr(options, "session", None)
    with open_store(options) as store:
        found = unfinished_sessions(store) if store is not None and not wanted else []
        if not wanted and not found and options.last and store is not None:
            wanted = last_session(store)
        if wanted:
            session = find_session(store, wanted)
            assert store is not None, "a session was found in it"
            users = users_of(Transcript(lambda: store), session)
        elif not found:
            raise UsageError("Nothing waits in this workspace.")
        elif len(found) > 1 and not options.last:
            names = ", ".join(name for name, _ in found)
            raise UsageError(f"Several sessions wait: {names}. Name one, or say --last.")
        else:
            session, users = found[-1][0], [found[-1][1]]
        assert store is not None, "a session was found in it"
        runs = Transcript(lambda: store).last(session, "stimulus") is not None
    return session, _one_user(options, session, users), runs


def _one_user(options: argparse.Namespace, session: str, users: list[str]) -> str:
    """Whose calls to go on with: what was approved for one user is nothing to another."""
    named = getattr(options, "user", None)
    if named is None and len(users) == 1:
        return users[0]
    if named is None:
        raise UsageError(f"In session {session} calls of {', '.join(users)} wait; name one with --user.")
    if named not in users:
        raise UsageError(f"Session {session} is {', '.join(users)}'s, and not to be resumed as {named}.")
    return str(named)


def pick_up(options: argparse.Namespace) -> str:
    """For a REPL in a session that is known: take over what its conversation was begun with, and return the
    sentence that says so; nothing for a new conversation in a new session."""
    from quoth.agent.session.session import Session
    from quoth.agent.terminal.person import user_name
    from quoth.tools.history.transcript import Transcript

    session = getattr(options, "session", None)
    user = getattr(options, "user", None) or user_name()
    said, runs = 0, ""
    with open_store(options) as store:
        if store is not None and session:
            known = Session(Transcript(lambda: store), session, user, Path())
            said, runs = known.said(), known.last_run()
    if not runs:
        return ""
    assert session, "it has runs"
    take_over(options, session, user)
    if said:
        messages = number_of(said, "message")
        return f"Going on with the conversation of session {session}, {messages} so far; ,new begins another."
    again = f"quoth resume {shlex.quote(session)}{place_of(options)} TEXT"
    return f"A new conversation in session {session}; to go on with that of its last run: {again}"
