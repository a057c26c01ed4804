"""The command ``quoth fly``, and approving or denying the steps of a plan.

Knows options and how things are printed; what a flight does is in agent/flight/engine.py.
"""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from quoth.agent.terminal.output import complain, print_json, print_line
from quoth.agent.terminal.person import require_person
from quoth.tools.errors import UsageError
from quoth.tools.text import number_of

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.agent.flight.plan_file import PlanFile
    from quoth.agent.flight.report import FlightReport, Wanted
    from quoth.agent.plan.model import Part

EXIT_OF_FLIGHT = {"done": 0, "failed": 1, "pending": 3, "interrupted": 130}
PLANS = (".org", ".md", ".markdown")
TEXT_CHARS = 300
UNBEGUN = ("", "PLAN", "APPROVED", "DENIED")  # the words of steps that are shown what was decided


def add_commands(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """``command`` makes the parser of one command."""
    fly = command("fly", "Run a flight plan, an Org file, step by step, and write into it what came of it.")
    fly.add_argument("plan", metavar="PLAN.org", help="the plan; Markdown is read too, and not written to")
    fly.add_argument("--check", action="store_true", help="only say what is wrong with it; run nothing")
    fly.add_argument("--dry-run", action="store_true", help="only show what each step may call")
    where: dict[str, Any] = {"type": _name}
    fly.add_argument("--from", dest="start", metavar="STEP", help="begin at this step, anew", **where)
    fly.add_argument("--only", metavar="STEP", help="run this step or group alone, anew", **where)
    fly.add_argument("--until", metavar="PHASE", help="stop after this phase or step", **where)
    fly.add_argument("--parallel", action="store_true", help="run steps without order between them at once")
    fly.add_argument("--again", action="store_true", help="fly all of it anew")


def _name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("the name of a step is needed")
    return text


def is_plan(argument: str) -> bool:
    """Whether what is to be approved is a plan and no request."""
    return argument.endswith(PLANS) or "/" in argument


# Flying


def fly(options: argparse.Namespace) -> int:
    """Fly a plan, or only look at it."""
    _refuse_together(options)
    if options.check:
        return check(options)
    if options.dry_run:
        return dry_run(options)
    import asyncio

    from quoth.agent.cli.common import _with_agent
    from quoth.agent.flight.progress import AskedAside, stderr_look

    _go_on(options, options.plan, whole=True)
    look = stderr_look()
    how = f"To go on: quoth fly {shlex.quote(options.plan)}{_as_given(options)}"

    async def work(agent: AsyncAgent) -> int:
        for change in agent.changes():
            complain(change)
        try:
            report = await agent.fly(options.plan, **vars(_wanted(options)))
        except asyncio.CancelledError:
            complain(how)
            raise
        finally:
            look("landed", None)
        _show(options, agent, report)
        if report.status == "interrupted":
            complain(how)
        return EXIT_OF_FLIGHT[report.status]

    return _with_agent(options, work, on_event=look, asked=lambda person: AskedAside(person, look))


def _refuse_together(options: argparse.Namespace) -> None:
    """Raise UsageError for options of which one would say nothing."""
    looks = [word for word, given in (("--check", options.check), ("--dry-run", options.dry_run)) if given]
    flies = [word for word, given in (("--parallel", options.parallel), ("--again", options.again)) if given]
    if len(looks) > 1:
        raise UsageError("--check and --dry-run are two ways to look at a plan; take one of them.")
    if looks and flies:
        raise UsageError(f"{looks[0]} flies nothing, and {flies[0]} says how to fly; leave one out.")


def _wanted(options: argparse.Namespace) -> Wanted:
    from quoth.agent.flight.report import Wanted

    names = (options.start or "", options.only or "", options.until or "")
    return Wanted(*names, options.parallel, options.again)


def _show(options: argparse.Namespace, agent: AsyncAgent, report: FlightReport) -> None:
    from quoth.agent.terminal.text import shortened

    if getattr(options, "json", False):
        print_json(report.to_json())
    else:
        for step in report.steps:
            text = shortened(step.text, TEXT_CHARS).replace("\n", "\n    ")
            print_line(f"{step.word:<8}{step.id}{': ' if text else ''}{text}")
        print_line(str(report))
    for note in report.notes:
        complain(note)
    if report.status == "pending":
        from quoth.agent.cli.common import place_of

        place = place_of(options)
        for request in agent.broker.requests(session=report.session):
            complain(
                f"To decide: quoth approve {request.id}{place}, or: quoth deny {request.id}{place} --why TEXT"
            )
        complain(f"Then go on with: quoth fly {shlex.quote(report.plan)}{place}")


def _go_on(options: argparse.Namespace, path: str, *, whole: bool) -> None:
    """Where a flight of this plan has not ended, take over what it was begun with, as ``quoth resume`` does
    with a session; or, but for the ``whole``, its tools and policy."""
    from quoth.agent.cli.common import open_store, take_over
    from quoth.agent.flight.log import flights, read_flight
    from quoth.agent.flight.plan_file import PlanFile
    from quoth.agent.session.session import Session
    from quoth.agent.terminal.person import user_name
    from quoth.tools.history.transcript import Transcript

    user = getattr(options, "user", None) or user_name()
    with open_store(options) as store:
        if store is None or getattr(options, "again", False):
            return
        transcript = Transcript(lambda: store)
        named = getattr(options, "session", None) or ""
        real = PlanFile(path).path
        begun = next(flights(store, transcript, str(real), user, named), None)
        if begun is None:
            return
        log = read_flight(Session(transcript, begun.session, user, real), begun)
        if log.status == "done":
            return
    before = dict(vars(options))
    take_over(options, begun.session, user)
    if not whole:
        for name in vars(options).keys() - before.keys() - {"tools_after", "policy"}:
            delattr(options, name)
        vars(options).update(before)


def _as_given(options: argparse.Namespace) -> str:
    """The options that the next command needs, too."""
    from quoth.agent.cli.common import place_of

    given = [*getattr(options, "tools_before", ()), *getattr(options, "tools_after", ())]
    words = [f" --tools {shlex.quote(file)}" for file in given]
    if policy := getattr(options, "policy", None):
        words.append(f" --policy {shlex.quote(policy)}")
    return place_of(options) + "".join(words)


# Looking


def _file(options: argparse.Namespace, path: str) -> tuple[PlanFile, Any]:
    """The plan and the tools it is to be checked with."""
    from quoth.agent.cli.common import _table
    from quoth.agent.flight.plan_file import PlanFile

    return PlanFile(path), _table(options)


def check(options: argparse.Namespace) -> int:
    """Say what is wrong with a plan; the exit code is 2 if anything is."""
    _go_on(options, options.plan, whole=False)
    from quoth.agent.plan.check import check as faults_of

    file, table = _file(options, options.plan)
    faults = faults_of(file.plan, table)
    chosen = "" if faults else _how_many(options, file)
    if getattr(options, "json", False):
        print_json([fault.to_json() for fault in faults])
    else:
        for fault in faults:
            print_line(str(fault))
        if not faults:
            said = f"{options.plan}: {number_of(len(file.plan.steps), 'step')}, nothing is wrong"
            print_line(f"{said}{chosen}.")
    return 2 if faults else 0


def _how_many(options: argparse.Namespace, file: PlanFile) -> str:
    """How many steps are asked for by name. Raises UsageError for a name that is not there."""
    if not (options.start or options.only or options.until):
        return ""
    from quoth.agent.flight.selection import chosen_steps

    number = len(chosen_steps(file.plan, _wanted(options)))
    return f"; {number} of them would be flown"


def dry_run(options: argparse.Namespace) -> int:
    """Show, step by step, which calls its forms would make, each with its verdict."""
    _go_on(options, options.plan, whole=False)
    from quoth.agent.cli.common import _with_agent
    from quoth.agent.flight.dry_run import dry_flight

    async def work(agent: AsyncAgent) -> int:
        steps = await dry_flight(agent, options.plan, _wanted(options))
        if getattr(options, "json", False):
            print_json(steps)
        else:
            print_line("\n".join(_dry_lines(steps)))
        return 0

    return _with_agent(options, work)


def _dry_lines(steps: list[dict[str, Any]]) -> list[str]:
    lines: list[str] = []
    for step in steps:
        lines.append(f"{step['place']}: {step['id']}{'  ; approved' if step['approved'] else ''}")
        for block in step["blocks"]:
            lines += [f"  {line}" for line in block["text"].split("\n")]
        if step["tools"] is not None:
            lines.append(f"  ; a model may use: {', '.join(step['tools']) or 'no tool'}")
        if step["expect"]:
            lines.append(f"  ; must be true: {step['expect']}")
            lines += [f"  {line}" for line in step["looks"].split("\n") if line]
    return lines


# Deciding


def approve(options: argparse.Namespace) -> int:
    """Approve the steps of a plan as they are now, and say what that is."""
    for name, what in (("time", "--for"), ("scope", "--scope"), ("edit", "--edit")):
        if getattr(options, name, None) is not None:
            raise UsageError(f"{what} is for a request; a plan is approved step by step, as it is.")
    return _decide(options, "once", "")


def deny(options: argparse.Namespace) -> int:
    """Deny the steps of a plan: they are not flown until somebody approves them."""
    return _decide(options, "deny", options.why)


def _decide(options: argparse.Namespace, kind: Any, why: str) -> int:
    """Record a decision about the steps, show it in the file, and say what it covers."""
    from quoth.agent.cli.common import _with_agent
    from quoth.agent.flight.approval import coverage, record
    from quoth.agent.flight.approval_view import coverage_data, page
    from quoth.agent.flight.plan_file import FileEdit, PlanFile
    from quoth.agent.plan.check import check as faults_of
    from quoth.tools.call.workspace import flying
    from quoth.tools.consent.requests import Decision
    from quoth.tools.storage.file_lock import is_held

    require_person()
    _go_on(options, options.id, whole=False)
    file = PlanFile(options.id)

    async def work(agent: AsyncAgent) -> int:
        plan, by = file.plan, agent.user
        if faults := faults_of(plan, agent.table):
            raise UsageError("\n".join(str(fault) for fault in faults))
        named = getattr(options, "step", None)
        steps = plan.leaves(plan.find(named)) if named else list(plan.steps)
        covered = [] if kind == "deny" else [await coverage(agent, plan, step) for step in steps]
        decision = Decision(kind, by, why)
        for step, seen in zip_longest(steps, covered):
            record(agent.store, agent.audit, plan, str(file.path), step, agent.table, decision, seen)
        word = "DENIED" if kind == "deny" else "APPROVED"
        log = [_line(word, by, why)] if kind == "deny" else []
        notes = file.put([FileEdit(step.id, word, plan.digest(step), log, over=UNBEGUN) for step in steps])
        if getattr(options, "json", False):
            told = [_said(file, step, word.lower(), by, why) for step in steps]
            for one, more in zip(told, covered, strict=False):
                one |= coverage_data(more)
            print_json(told)
        else:
            for step, more in zip_longest(steps, covered):
                print_line(page(plan, step, word, more))
        for note in [*notes, *file.notes]:
            complain(note)
        if is_held(flying(file.path)):
            complain(f"{file.shown} is being flown; this counts for what has not begun yet.")
        if kind != "deny":
            complain("That holds for each flight, until a step or a tool in it is changed.")
            complain(f"To fly it: quoth fly {shlex.quote(options.id)}{_as_given(options)}")
        return 0

    return _with_agent(options, work)


def _line(word: str, by: str, why: str) -> str:
    at = datetime.fromtimestamp(time.time(), UTC).astimezone().strftime("%Y-%m-%d %a %H:%M")
    return " ".join(f"{word} [{at}] by {by}{': ' + why if why else ''}".split())


def _said(file: PlanFile, step: Part, decision: str, by: str, why: str) -> dict[str, Any]:
    from quoth.agent.flight.approval_view import as_data

    return {
        "id": step.id,
        "plan": str(file.path),
        "place": str(step.place),
        "decision": decision,
        "digest": file.plan.digest(step),
        "user": by,
        "why": why,
    } | as_data(file.plan, step)
