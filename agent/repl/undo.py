"""The REPL's ,undo, ,redo and ,diff: the last message taken back, and what was written in files.

Knows a conversation and the way back of its session; it must not know how files are kept.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from quoth.agent.run.runs import undo_of
from quoth.agent.session.session import alone
from quoth.agent.session.undo import changed_lines, left_lines, uncovered_lines
from quoth.agent.terminal.output import may_draw
from quoth.tools.errors import UsageError
from quoth.tools.storage.in_use import not_in_use
from quoth.tools.text import number_of, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quoth.agent.client import AsyncAgent
    from quoth.agent.repl.interpreter import Interpreter
    from quoth.agent.session.undo import Undo, UndoPlan

WAYS = ("", "files", "message")


def undo(repl: Interpreter, rest: str) -> None:
    """Take back the last message and the files that were written since, or one of both."""
    if rest not in WAYS:
        raise UsageError(f"It is ,undo, ,undo files or ,undo message; not ,undo {rest}.")
    with _to_itself(repl.agent):
        _undo(repl, rest)


def _undo(repl: Interpreter, rest: str) -> None:
    told = None if rest == "files" else repl.agent.runs.last_message()
    way = undo_of(repl.agent.host)
    since = told.seq if told is not None else 0 if rest == "message" else way.last_group()
    if told is None and not since:
        if rest == "files":
            raise UsageError(way.nothing(way.plan()))
        repl.agent.runs.take_back()  # says that there is none
    if told is not None:
        repl.tell(f"Taken back: {one_line(repl.agent.runs.take_back(), 60)}")
    if rest == "message":
        repl.complain("The next message goes on from before it. What its calls have done stays done.")
        return
    plan = way.plan(since)
    _do(repl, way, plan)
    if told is not None:
        stays = " What its calls have done beside writing files stays done." if plan.uncovered else ""
        repl.complain(f"The next message goes on from before it.{stays}")
    elif plan.empty:
        raise UsageError(way.nothing(plan, since))


def redo(repl: Interpreter) -> None:
    """Write the files again that the last undo has put back. A message that was taken back stays so."""
    way = undo_of(repl.agent.host)
    with _to_itself(repl.agent):
        _do(repl, way, way.plan_redo())


@contextlib.contextmanager
def _to_itself(agent: AsyncAgent) -> Iterator[None]:
    """Within this context nobody else drives the session or writes to it. It is taken before the message is:
    a refusal changes nothing. Raises BusyError."""
    store = agent.store.path
    with not_in_use(store, agent.session), alone(Path(store), agent.session):
        yield


def _do(repl: Interpreter, way: Undo, plan: UndoPlan) -> None:
    done = way.do(plan) if plan.files else None
    color = may_draw(sys.stdout)
    if done is not None and done.files:
        again = "Written again" if plan.redo else "Put back"
        _draw(repl, [f"{again}: {number_of(len(done.files), 'file')}"], color)
        _draw(repl, [f"  {one.difference.head}" for one in plan.files if one.path in done.files], color)
    _draw(repl, left_lines((*plan.left, *(done.failed if done else ())), color=color), color)
    _draw(repl, uncovered_lines(plan), color)
    for said in done.said if done else ():
        repl.complain(said)


def diff(repl: Interpreter, rest: str) -> None:
    """Show what a session has changed."""
    from quoth.agent.session.index import find_session

    session = find_session(repl.agent.store, rest) if rest else repl.agent.session
    found, left = undo_of(repl.agent.host, session).changed()
    color = may_draw(sys.stdout)
    _draw(repl, changed_lines(found, left, color=color), color)
    if not found and not left:
        repl.complain(f"Session {session} has changed no file.")


def _draw(repl: Interpreter, lines: Iterable[str], color: bool) -> None:
    if text := "\n".join(lines):
        repl.tell_drawn(text) if color else repl.tell(text)
