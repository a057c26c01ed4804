"""The commands about the past of one session: ``quoth undo``, ``diff``, ``replay`` and ``lift``."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from quoth.agent.cli.common import (
    agent_of,
    named_or_latest,
    open_store,
    remote_options,
    tools_of,
    with_agent,
    write_new,
)
from quoth.agent.cli.options import DONE, FAILED, REMOTE, Options, OptionsT, argument, option, switch
from quoth.agent.replay.again import Opening, rebuilt_agent, session_in_file, session_in_store
from quoth.agent.session.session import Session, alone
from quoth.agent.session.undo import Undo, UndoPlan, changed_lines, done_text, left_lines, plan_lines
from quoth.agent.terminal.input import is_inside
from quoth.agent.terminal.output import complain, print_colored, print_json, print_line, results_only
from quoth.tools.errors import UsageError
from quoth.tools.history.transcript import Transcript
from quoth.tools.storage.paths import store_path

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from quoth.agent.client import AsyncAgent
    from quoth.agent.replay.replay import Replay
    from quoth.agent.run.host import SessionHost
    from quoth.tools.history.event import Event
    from quoth.tools.storage.database import Store

ID = "the session, or the beginning of its id (default: your latest session that wrote a file)"


class UndoOptions(Options):
    groups = "policy asking"
    of: str | None = argument("SESSION", ID, nargs="?")
    to: str | None = option(
        "--to",
        "CALL",
        "undo this call and all later ones: its number in quoth log, 12 or ID.12 (default: all)",
    )
    redo: bool = switch("--redo", "reverse the last undo")
    dry_run: bool = switch("--dry-run", "show how each file would change; change nothing")


class DiffOptions(Options):
    of: str | None = argument("SESSION", ID, nargs="?")


def undo(options: UndoOptions) -> int:
    """Show the planned changes, ask, and make them. The exit code is 1 if a file was left unchanged."""
    if is_inside():
        raise UsageError("A program that a tool runs cannot undo anything.")
    if options.redo and options.to:
        raise UsageError("--redo reverses the whole last undo; leave out --to.")

    async def work(way: Undo) -> int:
        since = way.event_of(options.to) if options.to else 0
        plan = way.plan_redo() if options.redo else way.plan(since)
        if plan.empty:
            raise UsageError(way.nothing(plan, since))
        if options.dry_run or not plan.files:
            if options.json:
                print_json({**plan.to_json(), "dry_run": True})
            else:
                print_colored(lambda color: plan_lines(plan, color=color))
            return FAILED if plan.left else DONE
        return await _do(options, way, plan)

    return _with_undo(options, work)


async def _do(options: UndoOptions, way: Undo, plan: UndoPlan) -> int:
    from quoth.agent.terminal.ask import confirm
    from quoth.tools.storage.file_lock import not_in_use
    from quoth.tools.text import number_of

    if not options.json:
        print_colored(lambda color: plan_lines(plan, color=color))
    files = number_of(len(plan.files), "file")
    of = f"{files} of session {plan.session}"  # say which, because the latest is the default
    question = f"Redo the changes of {of}?" if plan.redo else f"Put back {of}?"
    if not (options.yes or await confirm(question, no_input=options.no_input)):
        complain("Nothing was changed.")
        return FAILED
    with not_in_use(store_path(options.folder), plan.session):
        done = way.do(plan)
    if options.json:
        put = [one.to_json() for one in plan.files if one.path in done.files]
        left = [one.to_json() for one in (*plan.left, *done.failed)]
        print_json({**plan.to_json(), "act": done.act, "files": put, "left": left, "dry_run": False})
    else:
        print_colored(lambda color: left_lines(done.failed, color=color))
        for said in done.said:
            complain(said)
        complain(done_text(way, plan, done))
    return FAILED if plan.left or done.failed else DONE


def diff(options: DiffOptions) -> int:
    """Print the changes of files by a session. A read-only store is enough."""
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.history.versions import StoreVersions

    with open_store(options, lists=True) as store:
        session, store = _files_of(options, store)
        workspace = Workspace(options.folder).of_session(session)
        versions = StoreVersions(lambda: store, workspace.root)
        found, left = Undo(versions, workspace, Transcript(lambda: store), session, options.asker).changed()
    if options.json:
        print_json([*(one.to_json() for one in found), *(one.to_json() for one in left)])
        return DONE
    print_colored(lambda color: changed_lines(found, left, color=color))
    if not found and not left:
        complain(f"Session {session} did not change any file.")
    return DONE


def _files_of(options: UndoOptions | DiffOptions, store: Store | None) -> tuple[str, Store]:
    """The wanted session and its store. Raises UsageError."""
    wanted = options.of or options.session
    session = named_or_latest(options, store, wanted, "writes")
    assert store is not None, "a session was found in it"
    return session, store


def _with_undo(options: UndoOptions, work: Callable[[Undo], Awaitable[int]]) -> int:
    """Run ``work`` on the Undo of a session while no other process drives the session."""
    with open_store(options, lists=True) as store:
        session, store = _files_of(options, store)
        own = _with_rules(replace(options, session=session), store)

        async def go(agent: AsyncAgent) -> int:
            with undo_alone(agent, options, session) as way:
                return await work(way)

        return with_agent(own, go, store=store)


@contextmanager
def undo_alone(agent: AsyncAgent, options: Options, session: str) -> Iterator[Undo]:
    """The undo of the agent's session. Within it no other process drives the session."""
    from quoth.agent.run.runs import undo_of

    with alone(store_path(options.folder), session):
        yield replace(undo_of(agent.host), typed=options.typed)


def agent_for_undo(options: Options, store: Store | None, session: str) -> AsyncAgent:
    """An agent with the rules of a session, which asks no question."""
    assert store is not None, "a session was found in it"
    own = replace(options, session=session, no_input=True, yes=False)
    return agent_of(_with_rules(own, store))


def _with_rules(options: OptionsT, store: Store) -> OptionsT:
    """The options with the policy file of the session, if it was chosen on this machine. The agent refuses a
    missing file, as for ``quoth resume``."""
    session = Session(Transcript(lambda: store), str(options.session), options.asker, Path())
    file = "" if session.foreign() else session.given().get("policy")
    if options.policy is None and file:
        return replace(options, policy=file)
    return options


class PastOptions(Options):
    """Options that name a recorded session."""

    groups = f"tools --session {REMOTE}"
    of: str | None = argument("SESSION", "id of a session, or a file that quoth export wrote", nargs="?")
    last: bool = switch("--last", "your latest session with a run, a flight, a form or a call")


class ReplayOptions(PastOptions):
    groups = f"--dialect --belt --tools --without --session policy memory {REMOTE}"
    live_tools: bool = switch(
        "--live-tools", "run calls that only read again, and show which results changed"
    )


class LiftOptions(PastOptions):
    run: str | None = option("--run", "RUN", "only this run, such as r2 (default: all)")
    output: str | None = option("-o --output", "FILE", "file to write (default: stdout)")


def past_session(options: PastOptions, command: str) -> tuple[str, list[Event], int]:
    """Return the id of the session, its verified events, and the number of imported ones."""
    wanted = options.of or options.session
    if wanted is None and not options.last:
        raise UsageError(f"Give a session, or --last. See: quoth {command} --help")
    with open_store(options, lists=True) as store:
        if wanted is not None and Path(wanted).is_file():
            known = [] if store is None else [row[0] for row in Transcript(lambda: store).sessions()]
            if wanted not in known:
                session, events = session_in_file(Path(wanted))
                return session, events, len(events)
        name = named_or_latest(options, store, wanted, "work")
        assert store is not None, "a session was found in it"
        return name, session_in_store(store, name), Transcript(lambda: store).imported(name)


# Replay


def replay(options: ReplayOptions) -> int:
    """Print the differences to stdout, and skipped comparisons to stderr; the exit code is 1 for a
    difference."""
    import asyncio
    import signal

    session, events, foreign = past_session(options, "replay")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio then cancels its tasks
    try:
        with results_only():
            found = asyncio.run(_replayed(options, session, events, foreign))
    finally:
        signal.signal(signal.SIGINT, before)
    if options.json:
        print_json(found.to_json())
    else:
        for note in found.notes:
            complain(note)
        if found.diff:
            print_line(found.diff)
        print_line(str(found))
    return 0 if found.same and not found.changed else 1


async def _replayed(options: ReplayOptions, session: str, events: list[Event], foreign: int) -> Replay:
    from contextlib import AsyncExitStack

    from quoth.agent.replay.replay import replay as replay_session
    from quoth.agent.run.channels import HostServices

    notes: list[str] = []
    remote = remote_options(options)

    def again(given: Opening, live: bool = False) -> SessionHost:
        own = HostServices(memory_url=options.memory_url if live else None)
        return rebuilt_agent(
            given,
            notes,
            workspace=options.folder,
            session=session,
            chosen=vars(options),
            live=live,
            services=own,
            remote=remote,
        )

    async with AsyncExitStack() as stack:

        def live(given: Opening) -> SessionHost:
            agent = again(given, live=True)
            stack.push_async_callback(agent.aclose)
            return agent

        looks = live if options.live_tools else None
        found = await replay_session(session, events, again, looks, foreign=foreign)
    found.notes[:0] = dict.fromkeys(notes)
    return found


# Lift


def lift(options: LiftOptions) -> int:
    """Print the calls of a session as a program, or write it to a new file."""
    from quoth.agent.session.lift import lifted

    session, events, _ = past_session(options, "lift")
    words = {tool.name: {one.name for one in tool.params if one.choices} for tool in tools_of(options)}
    found = lifted(session, events, options.run, words)
    if found is None:
        of = session if options.run is None else f"{session}, run {options.run}"
        raise UsageError(f"There is nothing to extract: no call of session {of} succeeded.")
    if options.output:
        write_new(Path(options.output), found.program)
    if options.json:
        print_json(found.to_json())
    elif options.output:
        complain(f"{options.output} contains {found}. To run it: quoth eval - < {options.output}")
    else:
        print_line(found.program.rstrip("\n"))
    return 0
