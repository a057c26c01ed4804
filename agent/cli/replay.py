"""The commands ``quoth replay`` and ``lift``: replay a session, or turn it into a program.

Knows options and how results are printed; the work is in agent/replay/replay.py and agent/session/lift.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quoth.agent.cli.common import named_or_latest, open_store, remote_options, tools_of, write_new
from quoth.agent.cli.options import Commands, Options, argument, option, switch
from quoth.agent.terminal.output import complain, print_json, print_line
from quoth.tools.errors import UsageError

if TYPE_CHECKING:
    from quoth.agent.replay.replay import Replay
    from quoth.agent.run.host import SessionHost
    from quoth.tools.history.event import Event


@dataclass(init=False, repr=False, eq=False)
class PastOptions(Options):
    """Options that name a recorded session."""

    groups = "model tools policy redis memory"
    of: str | None = argument("SESSION", "its id, or a file that quoth export wrote", nargs="?")
    last: bool = switch("--last", "your latest session with a run, a flight, a form or a call")


@dataclass(init=False, repr=False, eq=False)
class ReplayOptions(PastOptions):
    live_tools: bool = switch("--live-tools", "make calls that only read again and show what changed")


@dataclass(init=False, repr=False, eq=False)
class LiftOptions(PastOptions):
    run: str | None = option("--run", "RUN", "of this run alone, such as r2")
    output: str | None = option("-o --output", "FILE", "where to write it (default: stdout)")


def add(commands: Commands) -> None:
    about = "Run a session once more from its transcript and show what is different now."
    commands.add("replay", about, ReplayOptions, replay)
    about = "Write the successful calls of a session as one Lisp program."
    commands.add("lift", about, LiftOptions, lift)


def _session(options: PastOptions, command: str) -> tuple[str, list[Event], int]:
    """Return the id of the named session, its checked events, and how many of them were imported."""
    from quoth.agent.replay.again import session_in_file, session_in_store
    from quoth.tools.history.transcript import Transcript

    wanted = options.of or options.session
    if wanted is None and not options.last:
        raise UsageError(f"Name a session, or say --last. See: quoth {command} --help")
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
    """Print the differences on stdout, and on stderr what was not compared; exit code 1 for a difference."""
    import asyncio
    import signal

    from quoth.agent.terminal.output import results_only

    session, events, foreign = _session(options, "replay")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio then stops what it has begun
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

    from quoth.agent.replay.again import Opening, rebuilt_agent
    from quoth.agent.replay.replay import replay as replay_session
    from quoth.agent.run.host_services import HostServices

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
    """Print the program made from a session's calls, or write it into a new file."""
    from quoth.agent.session.lift import lifted

    session, events, _ = _session(options, "lift")
    words = {tool.name: {one.name for one in tool.params if one.choices} for tool in tools_of(options)}
    found = lifted(session, events, options.run, words)
    if found is None:
        of = session if options.run is None else f"{session}, run {options.run}"
        raise UsageError(f"There is nothing to lift: no call of session {of} went well.")
    if options.output:
        write_new(Path(options.output), found.program)
    if options.json:
        print_json(found.to_json())
    elif options.output:
        complain(f"{options.output} has {found}. To run it: quoth eval - < {options.output}")
    else:
        print_line(found.program.rstrip("\n"))
    return 0
