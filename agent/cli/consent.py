"""The commands ``quoth pending``, ``approve`` and ``deny``: what waits, and what becomes of it.

Knows options and the broker; how a request looks is for agent/terminal/requests.py. A program that a tool has
started decides nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from quoth.agent.cli import flight as flight_cli
from quoth.agent.cli.common import open_store, place_of, take_over
from quoth.agent.terminal.output import complain, is_terminal, print_json, print_line, shown
from quoth.agent.terminal.person import require_person
from quoth.agent.terminal.requests import Decided, decide, listing, page, question_of
from quoth.tools.errors import UsageError
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.tools.consent.broker import Broker
    from quoth.tools.consent.requests import Decision, Request


def add_commands(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """``command`` makes the parser of one command."""
    pending = command("pending", "List what waits for a person's decision, or show one request.")
    pending.add_argument("id", metavar="ID", nargs="?", help="the request to show in full")
    approve = command("approve", "Approve a request: once, for a while, a kind of calls, or another call.")
    approve.add_argument("id", metavar="ID", help="the request, as quoth pending lists it; or a PLAN.org")
    approve.add_argument("--step", metavar="STEP", help="of a plan, this step or group alone")
    approve.add_argument("--for", dest="time", metavar="TIME", help="as often as it comes within 30m, 2h, 1d")
    approve.add_argument(
        "--scope",
        metavar="RULE",
        nargs="?",
        const="",
        help="every call of its session that an allow rule covers; without RULE one is proposed",
    )
    approve.add_argument("--edit", metavar="FORM", help="make this call of the same tool in its place")
    refuse = command("deny", "Deny a request; the reason is what the caller is told.")
    refuse.add_argument("id", metavar="ID", help="the request, as quoth pending lists it; or a PLAN.org")
    refuse.add_argument("--step", metavar="STEP", help="of a plan, this step or group alone")
    refuse.add_argument("--why", metavar="TEXT", default="", help="the reason")


# Deciding


def pending(options: argparse.Namespace) -> int:
    """The open requests on stdout, the oldest first; or one, whatever became of it."""
    as_json = getattr(options, "json", False)
    with _broker(options) as broker:
        if options.id:
            found = _find(options, broker)
            plan = broker.plan_of(found.id) if broker else ""
            if as_json:
                print_json(found.to_json() | ({"plan": plan} if plan else {}))
            else:
                print_line(page(found, time.time(), plan))
            return 0
        waiting = broker.requests(session=getattr(options, "session", None)) if broker else []
    if as_json:
        print_json([request.to_json() for request in waiting])
    elif waiting:
        print_line(listing(waiting))
    else:
        complain("Nothing waits.")
    return 0


def approve(options: argparse.Namespace) -> int:
    """Record an approval, showing first what is granted beyond the one call."""
    from quoth.agent.terminal.ask import call_of, seconds_of
    from quoth.tools.consent.requests import Decision

    if flight_cli.is_plan(options.id):
        return flight_cli.approve(options)
    _no_step(options)
    if options.edit is not None and (options.scope is not None or options.time is not None):
        raise UsageError("--edit approves one other call; it does not go with --for or --scope.")
    seconds = None if options.time is None else seconds_of(options.time)
    if options.edit is not None:
        return _decide(options, Decision("edit", form=call_of(options.edit)))
    if options.scope is not None:
        return _decide(options, Decision("scope", seconds=seconds, rule=options.scope))
    return _decide(options, Decision("once" if seconds is None else "duration", seconds=seconds))


def deny(options: argparse.Namespace) -> int:
    """Record a refusal."""
    from quoth.tools.consent.requests import Decision

    if flight_cli.is_plan(options.id):
        return flight_cli.deny(options)
    _no_step(options)
    return _decide(options, Decision("deny", why=options.why))


def _no_step(options: argparse.Namespace) -> None:
    if options.step is not None:
        raise UsageError(
            f"--step names a step of a plan, and {options.id} is none; a plan is a file, PLAN.org."
        )


def _decide(options: argparse.Namespace, decision: Decision) -> int:
    import dataclasses

    from quoth.agent.terminal.person import user_name

    require_person()
    decision = dataclasses.replace(decision, by=getattr(options, "user", None) or user_name())
    with _broker(options) as broker:
        asked = _find(options, broker)
        assert broker is not None, "a request was found in it"
        if decision.kind in ("scope", "edit"):  # the tool must be known to check these
            broker = _agent_of(options, asked.session, asked.user).broker
        if decision.kind == "scope":
            decision = broker.preview(asked.id, decision)
            if not _confirmed(options, decision):
                complain("Nothing was granted.")
                return 1
        decided = decide(broker, asked.id, decision)
        _show(options, decided, _is_suspended(options, asked.session))
    return 0


def _show(options: argparse.Namespace, decided: Decided, suspended: bool) -> None:
    if getattr(options, "json", False):
        print_json(decided.request.to_json() | {"granted": decided.decision.rule, "offer": decided.offer})
        return
    print_line(str(decided))
    session = decided.request.session
    go_on = f"To go on: quoth resume {shlex.quote(session)}{place_of(options)}"
    if plan := _flown(options, session):
        go_on = f"To go on: quoth fly {shlex.quote(plan)}{place_of(options)}"
    elif not suspended:
        go_on = f"There is nothing to resume; it counts when the call is made again in session {session}."
    for line in decided.advice(go_on):
        complain(line)


def _find(options: argparse.Namespace, broker: Broker | None) -> Request:
    """The request that is named, of the session that is named, if one is."""
    if broker is None:
        raise UsageError(f"There is no request {options.id}; nothing was ever asked in this workspace.")
    found = broker.find(options.id)
    session = getattr(options, "session", None)
    if session not in (None, found.session):
        raise UsageError(f"Request {found.id} is of session {found.session}, not {session}.")
    return found


def _confirmed(options: argparse.Namespace, decision: Decision) -> bool:
    """Whether the person, who sees the rule now, wants it."""
    question = shown(question_of(decision))
    if getattr(options, "yes", False):
        complain(question.replace("\n", "\n       ") + " Yes.")
        return True
    if getattr(options, "no_input", False) or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError(f"{question} Say so with --yes.")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# Plans


def dry_run(options: argparse.Namespace, program: str) -> int:
    """Show what a program may call; in a session that was named, leave a request for the whole."""
    from quoth.agent.cli.common import _show_result, _with_agent

    async def work(agent: AsyncAgent) -> int:
        result = await agent.eval(program, dry_run=options.dry_run)
        as_json = getattr(options, "json", False)
        if not result.ok:
            return _show_result(result, as_json)
        plan, asks = result.value, bool(result.value["shapes"])
        named = getattr(options, "session", None)
        request = agent.ask_for_plan(program, plan) if asks and named else None
        if as_json:
            print_json(plan | {"request": request})
            return 0
        print_line(visible(plan["text"], lines=True))
        print_line(f"; plan {plan['digest']}")
        for line in _how_to_approve(asks, request, named, place_of(options)):
            complain(line)
        return 0

    return _with_agent(options, work)


def _how_to_approve(asks: bool, request: str | None, session: str | None, place: str) -> list[str]:
    if not asks:
        return ["Nothing in it would be asked."]
    if request is None:
        return ["To approve it as a whole, give the dry run a session: --session NAME"]
    return [
        f"To approve it as a whole: quoth approve {request}{place}",
        f"Then run it in that session: quoth eval FORM --session {shlex.quote(session or '')}{place}",
    ]


def _flown(options: argparse.Namespace, session: str) -> str:
    """The plan that a session flies, or nothing."""
    from quoth.agent.flight.log import flown_in
    from quoth.agent.session.index import looked_at

    with open_store(options) as store:
        return "" if store is None else looked_at(store, lambda found: flown_in(found, session))


def _is_suspended(options: argparse.Namespace, session: str) -> bool:
    from quoth.agent.session.index import unfinished_sessions

    with open_store(options) as store:
        return store is not None and session in [name for name, _ in unfinished_sessions(store)]


# What is looked at


def _agent_of(options: argparse.Namespace, session: str, user: str) -> AsyncAgent:
    """An agent with the tools of a session, to check a decision with."""
    from quoth.agent.cli.common import _agent

    copy = argparse.Namespace(**vars(options))
    copy.user = user
    take_over(copy, session, user)
    copy.no_input, copy.yes = True, False
    return _agent(copy)


@contextlib.contextmanager
def _broker(options: argparse.Namespace) -> Iterator[Broker | None]:
    """The broker of the workspace, which knows no tools; None where nothing was ever asked."""
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.consent.broker import Broker
    from quoth.tools.history.audit import StoreAudit
    from quoth.tools.registry.table import ToolTable

    with open_store(options) as store:
        if store is None:
            yield None
            return
        opened = store
        root = Workspace(getattr(options, "workspace", "."))
        yield Broker(lambda: opened, ToolTable(), root, audit=StoreAudit(lambda: opened))
