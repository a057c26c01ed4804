"""The command ``quoth test``: adds recorded sessions as cases, and runs cases with models."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from quoth.agent.cli.common import open_store, settings_of, tools_of, with_agent, write_new
from quoth.agent.cli.options import DONE, FAILED, INTERRUPTED, Actions, Options, argument, option, switch
from quoth.agent.cli.undo import PastOptions, past_session
from quoth.agent.evaluation.case import (
    FOLDER,
    MODES,
    Mode,
    case_text,
    find_cases,
    read_case,
    record_baseline,
)
from quoth.agent.settings import at_least_one, dollars
from quoth.agent.terminal.output import complain, print_json, print_line, print_table, tell_next
from quoth.tools.errors import ToolError, UsageError

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.agent.evaluation.suite import CaseRow, Suite
    from quoth.agent.run.host import SessionHost
    from quoth.neuro.backends.base import Backend


class CaseOptions(PastOptions):
    expect: Sequence[str] = option(
        "--expect",
        "FORM",
        "a form that must be true: result is the last answer, called lists the tools; may be repeated",
        action="append",
        default=(),
    )
    expect_file: Sequence[str] = option(
        "--expect-file",
        "PATH",
        "expect that this file ends with the text that it has now; may be repeated",
        action="append",
        default=(),
    )
    name: str | None = option("--name", "NAME", "name of the case (default: the first words of the task)")
    mode: Mode = option(
        "--mode", "MODE", "how tools run: live, recorded or dry (default: live)", "live", choices=MODES
    )


def add(options: CaseOptions) -> int:
    """Write a case. Raises UsageError if it exists, or if an EXPECT form has a fault."""
    from quoth.agent.evaluation.attempt import faults
    from quoth.agent.evaluation.recording import case_of, files_before
    from quoth.agent.terminal.input import read_file
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.history.versions import StoreVersions

    if not (options.expect or options.expect_file):
        raise UsageError("Say what must be true: --expect '(in \"12\" result)', or --expect-file PATH")
    if options.name is not None and not re.fullmatch(r"\w[\w.-]*", options.name):
        raise UsageError(f"The name of a case has letters, digits, - and _ only, not {options.name}.")
    session, events, _ = past_session(options, "test add")
    with open_store(options) as store:
        kept = store and files_before(StoreVersions(lambda: store, options.folder), session)
    before, notes = kept or ({}, [])
    workspace, after = Workspace(options.folder), {}
    for name in options.expect_file:
        try:
            path = workspace.resolve(name)
        except ToolError as error:
            raise UsageError(str(error)) from None
        after[workspace.shown(path)] = read_file(path) if path.exists() else None
    case, more = case_of(options.name or "", session, events, options.expect, options.mode, before, after)
    if fault := next(faults(case, case.mode, tools_of(options)), ""):
        raise UsageError(fault)
    path = options.folder / FOLDER / f"{case.name}.org"
    path.parent.mkdir(exist_ok=True)
    write_new(path, case_text(case))
    if options.json:
        print_json({"case": case.name, "file": str(path), "session": session, "notes": [*notes, *more]})
        return DONE
    for note in (*notes, *more):
        complain(note)
    print_line(str(path))
    tell_next("To run it", options.typed("test", "run", case.name, "--times", "5"))
    return DONE


MODEL = "--dialect --base-url --instructions --temperature --timeout --api-key --max-reply-tokens --belt"


class TestOptions(Options):
    __test__ = False  # it is not for pytest
    groups = f"agent tools policy limits {MODEL}"
    names: Sequence[str] = argument(
        "CASE", "name of a case, or a path to its file (default: all)", nargs="*", default=()
    )
    models: Sequence[str] = option(
        "--model",
        "SPEC",
        "the model; may be repeated to compare models (default: see quoth models)",
        action="append",
        default=(),
    )
    times: int = option("--times", "N", "run each case N times (default: 1)", type=at_least_one, default=1)
    mode: Mode | None = option(
        "--mode", "MODE", "how tools run, instead of as the case says: live, recorded or dry", choices=MODES
    )
    baseline: bool = switch("--baseline", "record the scores in the cases, to compare later runs with them")
    confidence: str = option(
        "--confidence", "PERCENT", "how sure a regression must be, 50 to 99.9 (default: 95)", default="95"
    )
    budget: float | None = option(
        "--budget", "USD", "maximum cost of all runs together; needs quoth[prices]", type=dollars
    )


def run(options: TestOptions) -> int:
    """Run cases and print the table. The exit code is 1 for a failure or a regression."""
    if options.yes:
        raise UsageError("quoth test approves nothing: allow the calls by a rule, in a file for --policy.")
    percent = float(options.confidence) if re.fullmatch(r"\d{2}(\.\d+)?", options.confidence) else 0.0
    if percent < 50:
        raise UsageError(f"--confidence is a percentage from 50 to 99.9, not {options.confidence}.")
    paths = find_cases(options.folder, options.names)
    specs = list(dict.fromkeys([*([options.model] if options.model else []), *options.models]))

    async def work(agent: AsyncAgent) -> int:
        async with AsyncExitStack() as stack:
            suite = await _suite(options, paths, specs, agent.host, stack)
        return _show(options, suite, paths, percent / 100)

    # The agent of the first model; it also says which files are copied.
    return with_agent(replace(options, model=specs[0] if specs else None, no_input=True), work)


async def _suite(
    options: TestOptions,
    paths: Sequence[Path],
    specs: Sequence[str],
    first: SessionHost,
    stack: AsyncExitStack,
) -> Suite:
    """Run the cases until all are done, the budget is used up, or Ctrl-C."""
    from quoth.agent.evaluation.attempt import Original, faults
    from quoth.agent.evaluation.suite import Suite

    chosen = [(case, options.mode or case.mode) for case in map(read_case, paths)]
    if fault := next((one for case, mode in chosen for one in faults(case, mode, first.table)), ""):
        raise UsageError(fault)
    remote = any(mode == "live" for _, mode in chosen)
    hosts = {specs[0] if specs else first.models.backend().name: first}
    for spec in specs[1:]:
        hosts[spec] = await stack.enter_async_context(_agent(options, spec, options.folder, remote))
    for host in hosts.values():
        host.dialect()  # report an unusable model before any run

    def make(model: str, place: Path) -> SessionHost:
        scripted = model.startswith("scripted:")  # it begins again in each run; others are opened once
        host = _agent(options, model if scripted else hosts[model].models.backend(), place, remote)
        host.parts = replace(host.parts, funds=first.parts.funds)  # the day of the user pays for it
        return host

    def tell(row: CaseRow) -> None:
        last, place = row.attempts[-1], len(row.attempts)
        where = f"{row.case.name}, {row.model}, run {place} of {options.times}"
        complain(f"{where}: {last.ended}, {last.seconds:.1f} s")

    suite = Suite(make, options.times, options.budget, (lambda row: None) if options.json else tell)
    await suite.run(chosen, list(hosts), await asyncio.to_thread(Original.of, first))
    return suite


def _agent(options: TestOptions, model: str | Backend, place: Path, remote: bool) -> SessionHost:
    """An agent in a folder, which asks no person and has a memory of its own."""
    from quoth.agent.run.host import open_host

    settings = settings_of(replace(options, model=None))
    opened = {} if isinstance(model, str) else {"timeout": None, "api_key": None, "base_url": None}
    tools = settings.tools if remote else replace(settings.tools, remote=None, local=())
    return open_host(
        workspace=place,
        model=replace(settings.model, model=model, **opened),
        tools=tools,
        policy=settings.policy,
        services=replace(settings.services, memory_url=None),
        limits=settings.limits,
        user=options.user,
    )


def _show(options: TestOptions, suite: Suite, paths: Sequence[Path], confidence: float) -> int:
    """Print the table and record the baselines; return the exit code."""
    from quoth.agent.evaluation.suite import HEAD

    rows = [row for row in suite.rows if row.attempts]
    bad = any(row.judged(confidence).bad for row in suite.rows)
    if options.json:
        told = [row.to_json(confidence) for row in rows]
        print_json({"rows": told, "confidence": confidence, "bad": bad, "stopped": suite.stopped})
    elif rows:
        print_table([HEAD, *(row.cells(confidence) for row in rows)])
        said = [one for row in rows for one in row.sentences(confidence)]
        for text in (*said, *suite.comparisons(confidence)):
            print_line(text)
    if suite.stopped:
        complain(suite.stopped)
    for path in paths if options.baseline and not suite.stopped else ():
        for row in rows:
            if row.case.name == path.stem and row.score.runs:
                record_baseline(path, row.key, row.score, date.today().isoformat())
        complain(f"The baseline is recorded in {path}.")
    return INTERRUPTED if suite.interrupted else FAILED if bad else DONE


ACTIONS: Actions = {
    "add": (add, "Write a recorded session as a case into evaluations/."),
    "run": (run, "Run cases with models, and compare with their baselines."),
}
