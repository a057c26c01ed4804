"""The commands ``quoth undo`` and ``quoth diff``.

Knows options and output; the work is in agent/session/undo.py.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from quoth.agent.cli.common import named_or_latest, open_store, with_agent
from quoth.agent.cli.options import DONE, FAILED, Commands, Options, argument, option, switch
from quoth.agent.terminal.input import is_inside
from quoth.agent.terminal.output import complain, may_draw, print_drawn, print_json, print_line
from quoth.tools.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from quoth.agent.client import AsyncAgent
    from quoth.agent.session.undo import Undo
    from quoth.agent.session.undo_plan import UndoPlan
    from quoth.tools.storage.database import Store

ID = "the session, or the beginning of its id (default: your latest that has written a file)"


@dataclass(init=False, repr=False, eq=False)
class UndoOptions(Options):
    groups = "asking"
    of: str | None = argument("SESSION", ID, nargs="?")
    to: str | None = option(
        "--to", "CALL", "the first call to take back, as quoth log counts: 12 or ID.12 (default: all)"
    )
    redo: bool = switch("--redo", "take the last undo back")
    dry_run: bool = switch("--dry-run", "only say what would become of which file")


@dataclass(init=False, repr=False, eq=False)
class DiffOptions(Options):
    of: str | None = argument("SESSION", ID, nargs="?")


def add(commands: Commands) -> None:
    about = "Put the files back that a session has written, as they were before."
    commands.add("undo", about, UndoOptions, undo)
    commands.add("diff", "Show what a session has changed in files.", DiffOptions, diff)


def undo(options: UndoOptions) -> int:
    """Show what would be put back, ask, and do it. Exit code 1 if a file was left as it is."""
    if is_inside():
        raise UsageError("A program that a tool runs cannot undo anything.")
    if options.redo and options.to:
        raise UsageError("--redo takes the last undo back, as a whole; --to is for an undo.")

    async def work(way: Undo) -> int:
        since = way.event_of(options.to) if options.to else 0
        plan = way.plan_redo() if options.redo else way.plan(since)
        if plan.empty:
            raise UsageError(way.nothing(plan, since))
        if options.dry_run or not plan.files:
            if options.json:
                print_json({**plan.to_json(), "dry_run": True})
            else:
                _show_plan(plan)
            return FAILED if plan.left else DONE
        return await _do(options, way, plan)

    return _with_undo(options, work)


async def _do(options: UndoOptions, way: Undo, plan: UndoPlan) -> int:
    from quoth.agent.session.undo_page import done_text, left_lines
    from quoth.agent.terminal.ask import confirm
    from quoth.tools.storage.in_use import not_in_use
    from quoth.tools.storage.paths import store_path
    from quoth.tools.text import number_of

    if not options.json:
        _show_plan(plan)
    files = number_of(len(plan.files), "file")
    of = f"{files} of session {plan.session}"  # it may be the latest, which nobody has named
    question = f"Take the undo of {of} back?" if plan.redo else f"Put back {of}?"
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
        _draw(left_lines(done.failed, color=may_draw(sys.stdout)))
        for said in done.said:
            complain(said)
        complain(done_text(plan, done, options.typed("undo", plan.session, "--redo")))
    return FAILED if plan.left or done.failed else DONE


def diff(options: DiffOptions) -> int:
    """Print what a session has changed. A store that cannot be written will do."""
    from quoth.agent.session.undo import Undo
    from quoth.agent.session.undo_page import changed_lines
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.history.transcript import Transcript
    from quoth.tools.history.versions import StoreVersions

    with open_store(options, lists=True) as store:
        session, store = _session(options, store)
        workspace = Workspace(options.folder)
        versions = StoreVersions(lambda: store, workspace.root)
        found, left = Undo(versions, workspace, Transcript(lambda: store), session, options.asker).changed()
    if options.json:
        print_json([*(one.to_json() for one in found), *(one.to_json() for one in left)])
        return DONE
    color = may_draw(sys.stdout)
    _draw(changed_lines(found, left, color=color))
    if not found and not left:
        complain(f"Session {session} has changed no file.")
    return DONE


def _show_plan(plan: UndoPlan) -> None:
    from quoth.agent.session.undo_page import plan_lines

    _draw(plan_lines(plan, color=may_draw(sys.stdout)))


def _draw(lines: Iterable[str]) -> None:
    """Print lines that may have colours, where these can be seen."""
    for line in lines:
        print_drawn(line) if may_draw(sys.stdout) else print_line(line)


def _session(options: UndoOptions | DiffOptions, store: Store | None) -> tuple[str, Store]:
    """The session that is meant, and its store. Raises UsageError."""
    wanted = options.of or options.session
    session = named_or_latest(options, store, wanted, "writes")
    assert store is not None, "a session was found in it"
    return session, store


def _with_undo(options: UndoOptions, work: Callable[[Undo], Awaitable[int]]) -> int:
    """Do something with the way back of a session, while nobody drives it."""
    from quoth.agent.session.session import alone
    from quoth.tools.storage.paths import store_path

    with open_store(options, lists=True) as store:
        session, store = _session(options, store)
        own = _with_rules(replace(options, session=session), store)

        async def go(agent: AsyncAgent) -> int:
            from quoth.agent.run.undo import undo_of

            with alone(store_path(options.folder), session):
                return await work(undo_of(agent.host))

        return with_agent(own, go, store=store)


def _with_rules(options: UndoOptions, store: Store) -> UndoOptions:
    """The options with the rules that the session was given, if they were chosen here. Where their file has
    gone, the agent refuses them, as it does for ``quoth resume``."""
    from quoth.agent.session.session import Session
    from quoth.tools.history.transcript import Transcript

    session = Session(Transcript(lambda: store), str(options.session), options.asker, Path())
    file = "" if session.foreign() else session.given().get("policy")
    if options.policy is None and file:
        return replace(options, policy=file)
    return options
