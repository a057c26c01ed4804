"""The command ``quoth fly``, and the decisions of ``quoth approve`` and ``deny`` about steps of a plan.

The flight itself is in agent/flight/engine.py.
"""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.common import messages_of, open_store, tools_of, with_agent
from quoth.agent.cli.options import (
    DONE,
    EXIT_OF_RUN,
    FAILED,
    USAGE,
    AgentOptions,
    Options,
    OptionsT,
    argument,
    as_user,
    option,
    switch,
    take_over,
)
from quoth.agent.terminal.input import require_person
from quoth.agent.terminal.output import (
    FIRST_TASK,
    complain,
    is_terminal,
    print_json,
    print_line,
    results,
    tell_next,
)
from quoth.tools.errors import StoreError, UsageError
from quoth.tools.text import number_of, short

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.agent.flight.approval import Coverage
    from quoth.agent.flight.plan_file import PlanFile
    from quoth.agent.flight.report import FlightReport, Wanted
    from quoth.agent.plan.model import Part
    from quoth.agent.terminal.question import FileDifference
    from quoth.tools.storage.database import Store

PLANS = (".org", ".md", ".markdown")
SERVICES = ("systemd", "launchd", "cron")
READ_CHARS = 300
UNBEGUN = ("", "PLAN", "APPROVED", "DENIED")  # the words that a decision replaces in a step


def _name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("expected the name of a step")
    return text


class FlyOptions(AgentOptions):
    plan: str = argument("PLAN.org", "the plan, an Org file; a Markdown file is only read")
    check: bool = switch("--check", "report mistakes in the plan; run nothing")
    dry_run: bool = switch("--dry-run", "show what each step may call; run nothing that changes anything")
    start: str = option("--from", "STEP", "begin at this step, even if it is done", default="", type=_name)
    only: str = option(
        "--only", "STEP", "run only this step or group, even if it is done", default="", type=_name
    )
    until: str = option("--until", "PHASE", "stop after this phase or step", default="", type=_name)
    parallel: bool = switch("--parallel", "run independent steps at the same time")
    again: bool = switch("--again", "run all steps again, including finished ones")
    watch: bool = switch(
        "--watch", "PLAN.org or a folder: fly each plan when its SCHEDULED time comes, until Ctrl-C"
    )
    due: bool = switch("--due", "PLAN.org or a folder: fly the plans whose time has come, then end")
    service: str = option(
        "--service",
        "KIND",
        "with --watch: print a service of systemd or launchd, or a line for cron, and do nothing else",
        default="",
        choices=SERVICES,
    )
    copy: bool = switch("--copy", "fly a copy in a new folder; the file itself is not changed")


def is_plan(argument: str) -> bool:
    """Whether an argument of ``quoth approve`` or ``deny`` is a plan rather than a request."""
    return argument.endswith(PLANS) or "/" in argument


# Flying


def fly(options: FlyOptions) -> int:
    """Fly a plan; or check it, or list its calls."""
    from quoth.agent.flight.plan_file import PlanFile

    if options.copy:
        options = replace(options, plan=_copied(options.plan))
    file = PlanFile(options.plan)
    with open_store(options) as store:
        if options.check or options.dry_run:  # only look; start no flight
            own = _as_looked_at(options, _as_begun(options, store, file))
            return _check(own, file) if options.check else _dry_run(own, file, store)
        return fly_as_begun(options, file, store)


def fly_as_begun(options: FlyOptions, file: PlanFile, store: Store | None) -> int:
    """Fly a plan with the options of its unfinished flight, if there is one."""
    return _fly(options if options.again else _as_begun(options, store, file), file, store)


def _fly(options: FlyOptions, file: PlanFile, store: Store | None) -> int:
    import asyncio

    from quoth.agent.flight.engine import fly as fly_plan
    from quoth.agent.flight.progress import AskWhilePaused, flight_display

    look = flight_display()
    again = options.typed("fly", options.plan, also=_as_given(options))

    async def work(agent: AsyncAgent) -> int:
        def deliver(text: str) -> None:
            with look.paused():
                print_line(text)

        sent = messages_of(agent, options.json)
        if not options.json:
            agent.deliver = deliver
        for change in agent.host.changes():
            complain(change)
        try:
            report = await fly_plan(agent.host, file, _wanted(options), agent.host.named)
        except asyncio.CancelledError:
            tell_next("To continue", again)
            raise
        except StoreError as error:  # the flight stopped; its record has the results so far
            if options.json:
                print_json({"status": "error", "message": str(error)})
            complain(str(error))
            tell_next("To continue", again)
            return FAILED
        finally:
            look.stop()
        _show(options, agent, report, sent, look.spoken if is_terminal(results()) else ())
        if report.status == "interrupted":
            tell_next("To continue", again)
        elif options.copy:
            _tell_first_steps(options)
        return EXIT_OF_RUN[report.status]

    return with_agent(
        options,
        work,
        on_event=look,
        store=store,
        channel="flight",
        asked=lambda person: AskWhilePaused(person, look),
    )


def refuse_together(options: FlyOptions) -> None:
    """Raise UsageError for options that exclude each other."""
    looks = [word for word, given in (("--check", options.check), ("--dry-run", options.dry_run)) if given]
    given = {
        "--parallel": options.parallel,
        "--again": options.again,
        "--copy": options.copy,
        "--watch": options.watch,
        "--due": options.due,
    }
    flies = [word for word, is_given in given.items() if is_given]
    if len(looks) > 1:
        raise UsageError("Use either --check or --dry-run, not both.")
    if looks and flies:
        raise UsageError(
            f"{looks[0]} runs nothing, so {flies[0]} has no effect with it; leave one of them out."
        )
    parts: dict[str, object] = {"--from": options.start, "--only": options.only, "--until": options.until}
    parts |= {"--again": options.again, "--copy": options.copy, "--session": options.session}
    if (options.watch or options.due) and (other := [word for word, one in parts.items() if one]):
        raise UsageError(f"{other[0]} is for one flight; leave it out, or {_timed(options)}.")
    if options.watch and options.due:
        raise UsageError("Use either --watch or --due, not both.")
    if options.service and not options.watch:
        raise UsageError("--service prints how --watch is started for you; give --watch too.")


def _timed(options: FlyOptions) -> str:
    return "--watch" if options.watch else "--due"


def _copied(plan: str) -> str:
    """Copy the plan into a new folder, print where it is, and return its path. Raises UsageError."""
    import tempfile
    from pathlib import Path

    from quoth.agent.flight.plan_file import PlanFile

    file = PlanFile(plan)
    try:
        copy = Path(tempfile.mkdtemp(prefix="quoth-")) / file.path.name
        copy.write_bytes(file.data)
    except OSError as error:
        raise UsageError(f"{plan} cannot be copied: {error.strerror}.") from None
    complain(f"{plan} is left unchanged; quoth flies this copy: {copy}")
    return str(copy)


def _tell_first_steps(options: FlyOptions) -> None:
    """After flying a copy, which is most people's first flight, print where it is and the next commands."""
    from quoth.tools.installing import own_command

    quoth = own_command()
    task = shlex.quote(FIRST_TASK)
    complain(f"The copy with its results: {options.plan}")
    tell_next("To get the examples", f"{quoth} new example")
    tell_next("Then, to give a task in words", f"{quoth} run {task} --workspace shop")
    tell_next("To start the REPL", f"{quoth} --workspace shop")


def _wanted(options: FlyOptions) -> Wanted:
    from quoth.agent.flight.report import Wanted

    return Wanted(options.start, options.only, options.until, options.parallel, options.again)


def _show(
    options: FlyOptions, agent: AsyncAgent, report: FlightReport, sent: list[str], spoken: Collection[str]
) -> None:
    if options.json:
        print_json(report.to_json() | ({"messages": sent} if sent else {}))
    else:
        print_line(report.page(spoken))
    for note in report.notes:
        complain(note)
    if report.status == "pending":
        waiting = agent.broker.requests(session=report.session)
        again = options.typed("fly", report.plan, *as_user(options.user))
        tell_next("Then continue with", again, requests=waiting, typed=options.typed)


def _as_begun(options: OptionsT, store: Store | None, file: PlanFile) -> OptionsT:
    """Add the options of the unfinished flight of this plan, if there is one, as ``quoth resume`` does for a
    session."""
    from quoth.agent.flight.plan_file import flights, read_flight
    from quoth.agent.session.session import Session
    from quoth.tools.history.transcript import Transcript

    if store is None:
        return options
    transcript, user, path = Transcript(lambda: store), options.asker, file.path
    begun = next(flights(store, transcript, str(path), user, options.session or ""), None)
    if begun is None or read_flight(Session(transcript, begun.session, user, path), begun).status == "done":
        return options
    return take_over(options, store, begun.session, user)


def _as_looked_at(options: OptionsT, begun: Options) -> OptionsT:
    """The options with the tools and rules of the begun flight."""
    kept = {name: vars(begun)[name] for name in ("tools", "policy", "gate", "gate_command")}
    return replace(options, **kept)


def _as_given(options: Options) -> str:
    """The options to repeat in the next command."""
    words = [f" --tools {shlex.quote(file)}" for file in options.tools]
    words += [f" --without {shlex.quote(name)}" for name in options.without]
    given = {"--policy": options.policy, "--gate": options.gate, "--gate-command": options.gate_command}
    given["--review"] = options.review
    for flag, file in given.items():
        words += [f" {flag} {shlex.quote(file)}"] if file else []
    return "".join(words)


# Looking


def _check(options: FlyOptions, file: PlanFile) -> int:
    """Print the faults of a plan; the exit code is 2 if it has any."""
    from quoth.agent.config.loading import load_config
    from quoth.agent.plan.check import check

    faults = check(file.plan, tools_of(options), load_config(options.folder).providers)
    chosen = "" if faults else _how_many(options, file)
    if options.json:
        print_json([fault.to_json() for fault in faults])
    else:
        for fault in faults:
            print_line(str(fault))
        if not faults:
            said = f"{options.plan}: {number_of(len(file.plan.steps), 'step')}, no faults"
            print_line(f"{said}{chosen}.")
            for note in (*_readings(options, file), *_times(file)):
                complain(note)
            if file.advice:
                complain(file.advice)
    return USAGE if faults else DONE


def _readings(options: FlyOptions, file: PlanFile) -> Iterator[str]:
    """How blocks of lisp are read, where that differs from their text; they may be written in another
    Lisp."""
    from quoth.agent.plan.check_forms import reading_of

    table = tools_of(options)
    for form in (*file.plan.library.values(), *(form for part in file.plan.parts for form in part.forms)):
        if form.language == "lisp" and form.runs and not form.call and (read := reading_of(form.text, table)):
            yield f"{form.place}: this block of lisp is read as Hy: {short(read, READ_CHARS)}"


def _times(file: PlanFile) -> Iterator[str]:
    """When the plan is due, if it has a time."""
    from quoth.agent.flight.timetable import schedule_of

    if file.is_org and (schedule := schedule_of(file.path, file.data)):
        yield from schedule.notes()


def _how_many(options: FlyOptions, file: PlanFile) -> str:
    """How many steps the options select, as a phrase. Raises UsageError for an unknown name."""
    if not (options.start or options.only or options.until):
        return ""
    from quoth.agent.flight.report import chosen_steps

    number = len(chosen_steps(file.plan, _wanted(options)))
    return f"; {number} of them would run"


def _dry_run(options: FlyOptions, file: PlanFile, store: Store | None) -> int:
    """Print the calls that the forms of each step would run, each with its verdict."""
    from quoth.agent.flight.dry_run import dry_flight

    async def work(agent: AsyncAgent) -> int:
        steps = await dry_flight(agent.host, file, _wanted(options))
        if options.json:
            print_json(steps)
        else:
            print_line("\n".join(_dry_lines(steps)))
        return DONE

    return with_agent(options, work, store=store)


def _dry_lines(steps: list[dict[str, Any]]) -> list[str]:
    lines: list[str] = []
    for step in steps:
        lines.append(f"{step['place']}: {step['id']}{'  ; approved' if step['approved'] else ''}")
        for block in step["blocks"]:
            lines += [f"  {line}" for line in block["text"].split("\n")]
        if step["tools"] is not None:
            lines.append(f"  ; a model may use: {', '.join(step['tools']) or 'no tool'}")
        if step["expect"]:
            lines.append(f"  ; expects: {step['expect']}")
            lines += [f"  {line}" for line in step["looks"].split("\n") if line]
    return lines


# Deciding


def decide_plan(
    options: Options, path: str, named: str | None, kind: Any, why: str = "", *, resumes: bool = False
) -> int:
    """Record a decision about the steps of a plan, or of the part ``named``, in their present form. Write it
    into the file and print the covered calls. ``kind`` is that of a Decision: "once" or "deny". With
    ``resumes``, the flight continues at once, so print to stderr; stdout is for its results."""
    from quoth.agent.flight.approval import coverage, coverage_data, page, record
    from quoth.agent.flight.plan_file import FileEdit, PlanFile
    from quoth.agent.plan.check import check as faults_of
    from quoth.tools.call.workspace import flight_lock
    from quoth.tools.consent.requests import Decision
    from quoth.tools.storage.file_lock import is_held

    require_person()
    file = PlanFile(path)

    async def work(agent: AsyncAgent) -> int:
        plan, by = file.plan, agent.user
        if faults := faults_of(plan, agent.table, agent.config.providers):
            raise UsageError("\n".join(str(fault) for fault in faults))
        steps = plan.leaves(plan.find(named)) if named else list(plan.steps)
        covered = [] if kind == "deny" else [await coverage(agent.host, plan, step) for step in steps]
        changes = [_changes(agent, one) for one in covered]
        decision = Decision(kind, by, why)
        for step, seen in zip_longest(steps, covered):
            at, room = str(file.path), agent.workspace
            record(agent.store, agent.audit, plan, at, step, agent.table, decision, seen, room)
        word = "DENIED" if kind == "deny" else "APPROVED"
        log = [_line(word, by, why)] if kind == "deny" else []
        notes = file.write([FileEdit(step.id, word, plan.digest(step), log, over=UNBEGUN) for step in steps])
        if options.json and not resumes:
            told = [_said(file, step, word.lower(), by, why) for step in steps]
            for one, more, different in zip(told, covered, changes, strict=False):
                one |= coverage_data(more) | {"changes": [change.to_json() for change in different]}
            print_json(told)
        else:
            for step, more, different in zip_longest(steps, covered, changes):
                (complain if resumes else print_line)(page(plan, step, word, more, different or ()))
        for note in [*notes, *file.notes]:
            complain(note)
        if is_held(flight_lock(file.path)):
            complain(f"A flight of {file.shown} is running; this applies to steps that have not started.")
        if kind != "deny" and not resumes:
            complain("This applies to every flight until a step, a tool in it or a file it replaces changes.")
            tell_next("To fly it", own.typed("fly", path, also=_as_given(own)))
        return DONE

    with open_store(options) as store:
        begun = _as_begun(options, store, file)
        own = _as_looked_at(options, begun)
        return with_agent(own, work, store=store)


def _changes(agent: AsyncAgent, covered: Coverage) -> list[FileDifference]:
    """The changes that the covered calls would make to the present files."""
    from quoth.agent.terminal.question import differences
    from quoth.tools.call.call import new_call
    from quoth.tools.call.redaction import Redactor

    found = []
    for one in covered.calls:
        tool = agent.table.get(one.call.tool)
        changes = agent.broker.changes_of(tool, new_call(one.call, user=agent.user, session=agent.session))
        found += differences(changes, Redactor(one.call, tool.params, by_looks=False))
    return found


def _line(word: str, by: str, why: str) -> str:
    at = datetime.fromtimestamp(time.time(), UTC).astimezone().strftime("%Y-%m-%d %a %H:%M")
    return " ".join(f"{word} [{at}] by {by}{': ' + why if why else ''}".split())


def _said(file: PlanFile, step: Part, decision: str, by: str, why: str) -> dict[str, Any]:
    from quoth.agent.flight.approval import as_data

    return {
        "id": step.id,
        "plan": str(file.path),
        "place": str(step.place),
        "decision": decision,
        "digest": file.plan.digest(step),
        "user": by,
        "why": why,
    } | as_data(file.plan, step)
