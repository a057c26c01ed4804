"""The commands ``quoth replay`` and ``lift``: a session once more, and a session as a program.

Knows options and how results are printed; what a replay and a lifted program are is for
agent/replay/replay.py and agent/session/lift.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.terminal.output import complain, print_json, print_line
from quoth.tools.errors import UsageError

if TYPE_CHECKING:
    from quoth.agent.replay.replay import Replay
    from quoth.agent.run.conversation import Conversations
    from quoth.tools.history.event import Event


def add_commands(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """``command`` makes the parser of one command."""
    replay = command("replay", "Run a session once more from its transcript and show what is different now.")
    _add_session(replay)
    replay.add_argument(
        "--live-tools", action="store_true", help="make calls that only read again and show what changed"
    )
    lift = command("lift", "Write the successful calls of a session as one Lisp program.")
    _add_session(lift)
    lift.add_argument("--run", metavar="RUN", help="of this run alone, such as r2")
    lift.add_argument("-o", "--output", metavar="FILE", help="where to write it (default: stdout)")


def _add_session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("of", metavar="SESSION", nargs="?", help="its id, or a file that quoth export wrote")
    parser.add_argument("--last", action="store_true", help="the session that a run was last at")


def _session(options: argparse.Namespace) -> tuple[str, list[Event], int]:
    """The session that is named, checked; its events, and how many of them were written elsewhere."""
    from quoth.agent.replay.again import session_in_file, session_in_store
    from quoth.agent.session.index import find_session, last_session
    from quoth.tools.history.transcript import Transcript
    from quoth.tools.storage.database import existing_store

    wanted = options.of or getattr(options, "session", None)
    if wanted is None and not options.last:
        raise UsageError(f"Name a session, or say --last. See: quoth {options.command} --help")
    with existing_store(Path(getattr(options, "workspace", "."))) as store:
        if wanted is not None and Path(wanted).is_file():
            known = [] if store is None else [row[0] for row in Transcript(lambda: store).sessions()]
            if wanted not in known:
                session, events = session_in_file(Path(wanted))
                return session, events, len(events)
        name = last_session(store) if wanted is None else find_session(store, wanted)
        assert store is not None, "a session was found in it"
        return name, session_in_store(store, name), Transcript(lambda: store).imported(name)


# Replay


def replay(options: argparse.Namespace) -> int:
    """What is different on stdout, what was not compared on stderr; 1 when anything is different."""
    import asyncio
    import signal

    from quoth.agent.terminal.output import results_only

    session, events, foreign = _session(options)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio then stops what it has begun
    try:
        with results_only():
            found = asyncio.run(_replayed(options, session, events, foreign))
    finally:
        signal.signal(signal.SIGINT, before)
    if getattr(options, "json", False):
        print_json(found.to_json())
    else:
        for note in found.notes:
            complain(note)
        if found.diff:
            print_line(found.diff)
        print_line(str(found))
    return 0 if found.same and not found.changed else 1


async def _replayed(options: argparse.Namespace, session: str, events: list[Event], foreign: int) -> Replay:
    from contextlib import AsyncExitStack

    from quoth.agent.replay.again import Given, agent_again
    from quoth.agent.replay.replay import replay as replay_session

    notes: list[str] = []
    files = [*getattr(options, "tools_before", ()), *getattr(options, "tools_after", ())]

    def again(given: Given, live: bool = False) -> Conversations:
        own: dict[str, Any] = {name: getattr(options, name, None) for name in ("dialect", "belt", "policy")}
        workspace = getattr(options, "workspace", ".")
        return agent_again(
            given, notes, workspace=workspace, session=session, tools=files or None, live=live, **own
        )

    async with AsyncExitStack() as stack:

        def live(given: Given) -> Conversations:
            agent = again(given, live=True)
            stack.push_async_callback(agent.aclose)
            return agent

        looks = live if options.live_tools else None
        found = await replay_session(session, events, again, looks, foreign=foreign)
    found.notes[:0] = dict.fromkeys(notes)
    return found


# Lift


def lift(options: argparse.Namespace) -> int:
    """The program on stdout, or in a file."""
    from quoth.agent.cli.common import write_new
    from quoth.agent.session.lift import lifted

    session, events, _ = _session(options)
    found = lifted(session, events, options.run)
    if found is None:
        of = session if options.run is None else f"{session}, run {options.run}"
        raise UsageError(f"There is nothing to lift: no call of session {of} went well.")
    if options.output:
        write_new(Path(options.output), found.program)
    if getattr(options, "json", False):
        print_json(found.to_json())
    elif options.output:
        complain(f"{options.output} has {found}. To run it: quoth eval - < {options.output}")
    else:
        print_line(found.program.rstrip("\n"))
    return 0
