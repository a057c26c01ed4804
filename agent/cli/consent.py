"""The commands ``quoth pending``, ``approve``, ``deny`` and ``answer``: decide waiting calls.

flight.py decides steps of plans."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quoth.agent.cli import flight
from quoth.agent.cli.common import agent_of, open_store, policy_options, text_of, tools_of
from quoth.agent.cli.options import (
    DONE,
    FAILED,
    SHARED,
    AgentOptions,
    Options,
    argument,
    as_user,
    option,
    switch,
    take_over,
)
from quoth.agent.terminal.input import can_be_asked, require_person
from quoth.agent.terminal.output import (
    complain,
    is_terminal,
    may_draw,
    print_colored,
    print_drawn,
    print_json,
    print_line,
    tell_next,
)
from quoth.agent.terminal.requests import changes_data, decide, pending_text, question_of, shown_form
from quoth.tools.errors import QuothError, UsageError

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.tools.call.question import Question
    from quoth.tools.consent.broker import Broker
    from quoth.tools.consent.requests import Decision, Request
    from quoth.tools.registry.table import ToolTable
    from quoth.tools.storage.database import Store

ID = "id of the request, as quoth pending lists it, or a PLAN.org"
STEP = "with a PLAN.org: only this step or group"


class PendingOptions(Options):
    groups = f"tools --session {SHARED}"
    id: str | None = argument("ID", "id of a request to show in full (default: list all)", nargs="?")


class ApproveOptions(AgentOptions):
    id: str = argument("ID", ID)
    step: str | None = option("--step", "STEP", STEP)
    time: str | None = option(
        "--for", "TIME", "approve the same call each time it is asked for in the next 30m, 2h, 1d"
    )
    scope: str | None = option(
        "--scope",
        "RULE",
        "approve every call of the session that this rule allows (default: a rule that quoth proposes)",
        nargs="?",
        const="",
    )
    edit: str | None = option("--edit", "FORM", "run this call of the same tool instead")
    resume: bool = switch("--resume", "then continue the session or the plan of the request")


class DenyOptions(AgentOptions):
    id: str = argument("ID", ID)
    step: str | None = option("--step", "STEP", STEP)
    why: str = option("--why", "TEXT", "reason, which the model reads", default="")


def pending(options: PendingOptions) -> int:
    """Print the open requests, oldest first, or one request, open or decided, each with the changes of its
    call."""
    from quoth.tools.consent.rows import UNBELIEVED

    with opened(options, lists=True) as (store, broker):
        if options.id:
            found = find(options, options.id, broker)
            assert broker is not None, "it has found one"
            _take_tools(options, store, broker, found)
            plan = broker.plan_of(found.id)
            if options.json:
                more = changes_data(broker.proposal(found.id))
                print_json(found.to_json() | ({"plan": plan} if plan else {}) | more)
            else:
                print_colored(lambda color: [pending_text(broker, found.id, color=color)])
            return DONE
        waiting = broker.requests(session=options.session) if broker else []
        for id in broker.altered if broker else ():
            complain(f"Request {id} was skipped: it {UNBELIEVED}.")
        if waiting and broker is not None:
            broker.use(tools_of(options))
            if options.json:
                proposals = [broker.proposal(one.id, shown=False) for one in waiting]
                rows = zip(waiting, proposals, strict=True)
                print_json([one.to_json() | changes_data(proposal) for one, proposal in rows])
            else:
                print_line(pending_text(broker, session=options.session))
        elif options.json:
            print_json([])
        else:
            complain("No requests are waiting.")
    return DONE


def _take_tools(options: Options, store: Store | None, broker: Broker, asked: Request) -> None:
    """Give the broker the known tools of the session that asked for a call."""
    try:
        broker.use(tools_of_session(options, store, asked))
    except QuothError as error:
        complain(f"Its changes are not known: {error}")


def tools_of_session(options: Options, store: Store | None, asked: Request) -> ToolTable:
    """The known tools of the session that asked for a call. Raises QuothError."""
    own = options
    with contextlib.suppress(UsageError):  # in an imported session, a person must choose the tools first
        own = take_over(replace(options, user=asked.user), store, asked.session, asked.user)
    return tools_of(own)


def agent_of_session(options: Options, store: Store | None, asked: Request, /, **more: Any) -> AsyncAgent:
    """An agent of the session that asked for a call, which can check scopes and edits. Raises QuothError."""
    own = take_over(replace(options, user=asked.user), store, asked.session, asked.user)
    return agent_of(replace(own, no_input=True, yes=False), **more)


def approve(options: ApproveOptions) -> int:
    """Record an approval of a request or plan, after showing a scope and asking for confirmation."""
    from quoth.agent.terminal.ask import call_of, seconds_of
    from quoth.tools.consent.requests import Decision

    if flight.is_plan(options.id):
        for value, what in ((options.time, "--for"), (options.scope, "--scope"), (options.edit, "--edit")):
            if value is not None:
                raise UsageError(
                    f"{what} applies to requests, not to plans. Approve steps of a plan with --step."
                )
        code = flight.decide_plan(options, options.id, options.step, "once", resumes=options.resume)
        return _fly_on(options, options.id, options.user) if options.resume and code == DONE else code
    _no_step(options.id, options.step)
    if options.edit is not None and (options.scope is not None or options.time is not None):
        raise UsageError("--edit approves one other call; leave out --for and --scope.")
    seconds = None if options.time is None else seconds_of(options.time)
    decision = Decision("once" if seconds is None else "duration", seconds=seconds)
    if options.edit is not None:
        decision = Decision("edit", form=call_of(options.edit))
    elif options.scope is not None:
        decision = Decision("scope", seconds=seconds, rule=options.scope)
    return decide_request(options, options.id, decision, resumes=options.resume)


def _go_on(options: Options, asked: Request, plan: str) -> int:
    """Continue the session of a decided request as quoth resume does, or as quoth fly if it is the flight of
    ``plan``."""
    from quoth.agent.cli.run import ResumeOptions, resume

    if plan:
        return _fly_on(options, plan, asked.user)
    given = {name: value for name, value in vars(options).items() if name in vars(Options())}
    return resume(ResumeOptions(**given | {"of": asked.session, "session": None, "user": asked.user}))


def _fly_on(options: Options, plan: str, user: str | None) -> int:
    given = {name: value for name, value in vars(options).items() if name in vars(Options())}
    return flight.fly(flight.FlyOptions(**given | {"plan": plan, "session": None, "user": user}))


def deny(options: DenyOptions) -> int:
    """Record a denial of a request or plan."""
    from quoth.tools.consent.requests import Decision

    if flight.is_plan(options.id):
        return flight.decide_plan(options, options.id, options.step, "deny", options.why)
    _no_step(options.id, options.step)
    return decide_request(options, options.id, Decision("deny", why=options.why))


def _no_step(id: str, step: str | None) -> None:
    if step is not None:
        raise UsageError(f"--step names a step of a plan, but {id} is not a plan. Give a file: PLAN.org")


def require_no_agent() -> None:
    """Raise UsageError if another agent has started this command: it would decide its own request."""
    from quoth.agent.guard.formats import FORMATS  # here: few requests are of other agents

    for agent in FORMATS.values():
        if agent.mark in os.environ:
            raise UsageError(f"A command of {agent.title} cannot decide what {agent.title} may do.")


def decide_request(options: Options, id: str, decision: Decision, *, resumes: bool = False) -> int:
    """Record a decision and print it; with ``resumes``, stdout is kept for the results of the resumed
    session."""
    from quoth.agent.flight.plan_file import flown_in
    from quoth.agent.session.index import read_leniently
    from quoth.agent.terminal.ask import confirmed
    from quoth.agent.terminal.question import CHANGED
    from quoth.tools.consent.decisions import ChangeDiffersError

    require_person()
    decision = replace(decision, by=options.asker)
    below: list[str] = []
    with opened(options) as (store, broker):
        asked = find(options, id, broker)
        assert store is not None, "a request was found in it"
        assert broker is not None, "it belongs to the store"
        if asked.route == "guard":
            require_no_agent()
        if decision.kind in ("once", "duration"):  # compare its changes with the shown ones
            _take_tools(options, store, broker, asked)
        if decision.kind in ("once", "duration") and not options.json and is_terminal(sys.stdout):
            proposal = broker.proposal(asked.id, shown=False)
            _, below = shown_form(asked.form, proposal, color=may_draw(sys.stdout))
        if decision.kind in ("scope", "edit"):  # checking these needs the tool
            broker = agent_of_session(options, store, asked, store=store).broker
        if decision.kind == "scope":
            decision = broker.preview(asked.id, decision)
            question = question_of(decision)
            if options.yes:
                complain(question.replace("\n", "\n       ") + " Yes.")
            elif not confirmed(question, no_input=options.no_input):
                complain("No permission was granted.")
                return FAILED
        try:
            decided = decide(broker, asked.id, decision)
        except ChangeDiffersError:
            complain(f"{CHANGED} nothing was decided.")
            shown = broker
            if options.json:
                print_json(asked.to_json() | changes_data(shown.proposal(asked.id)))
            else:
                print_colored(lambda color: [pending_text(shown, asked.id, color=color)])
            return FAILED
        if resumes:
            complain(str(decided))
        elif options.json:
            print_json(decided.request.to_json() | {"granted": decided.decision.rule, "offer": decided.offer})
            return DONE
        else:
            print_line(str(decided))
        for line in below:
            print_drawn(line)
        for line in decided.advice():
            complain(line)
        plan = read_leniently(store, lambda found: flown_in(found, asked.session))
        if not resumes:
            _tell_next(options, store, asked, plan)
    return _go_on(options, asked, plan) if resumes else DONE


def _tell_next(options: Options, store: Store, asked: Request, plan: str) -> None:
    """Print how to continue the session of a decided request, or the flight of ``plan``."""
    session = asked.session
    if command := continuing(options, store, asked, plan):
        tell_next("To continue", command)
    elif options.shares:
        complain(
            f"The decision applies where session {session} is stored. To continue there: quoth resume "
            f"{session}"
        )
    else:
        complain(
            f"There is nothing to resume. The decision applies where the question is on a screen, "
            f"or when session {session} repeats the call."
        )


def continuing(options: Options, store: Store, asked: Request, plan: str) -> str:
    """The command that continues the session of a decided request, or the flight of ``plan``; empty for
    none."""
    from quoth.agent.session.index import read_leniently, waiting

    if plan:  # each user has a flight of their own
        return options.typed("fly", plan, *as_user(asked.user))
    if read_leniently(store, lambda found: waiting(found, asked.session)):
        return options.typed("resume", asked.session)
    return ""


def find(options: Options, id: str, broker: Broker | None) -> Request:
    """The named request, which must belong to the session given with --session, if any. Raises UsageError."""
    if broker is None:
        raise UsageError(f"There is no request {id}; nothing was ever asked in this workspace.")
    found = broker.find(id)
    if options.session not in (None, found.session):
        raise UsageError(f"Request {found.id} belongs to session {found.session}, not {options.session}.")
    return found


@contextlib.contextmanager
def opened(options: Options, *, lists: bool = False) -> Iterator[tuple[Store | None, Broker | None]]:
    """The store of the workspace and its broker, without tools; None if nothing was ever asked.
    Shared requests need the store too, to record the decisions of this machine."""
    from quoth.agent.run.options import ModelOptions, ToolOptions, workspace_of
    from quoth.tools.consent.broker import Broker
    from quoth.tools.history.audit import StoreAudit
    from quoth.tools.registry.table import ToolTable
    from quoth.tools.storage.database import Store
    from quoth.tools.storage.paths import store_path

    policies = policy_options(options)
    shared = policies.open_shared()
    with open_store(options, lists=lists) as found, contextlib.ExitStack() as ending:
        store = found
        if shared is not None:
            ending.callback(shared.close)
            store = store or ending.enter_context(contextlib.closing(Store(store_path(options.folder))))
        if store is None:
            yield None, None
            return
        own = store
        rows = shared.requests(lambda: own) if shared else None
        root = workspace_of(options.folder, policies, ToolOptions(), ModelOptions())
        audit = StoreAudit(lambda: own)
        yield own, Broker(lambda: own, ToolTable(), root, audit=audit, rows=rows)


class AnswerOptions(AgentOptions):
    id: str = argument("ID", "id of the question, as quoth pending lists it")
    text: Sequence[str] = argument(
        "TEXT",
        "the answer, or the number of a choice; - reads it from stdin (default: you are asked)",
        nargs="*",
        default=(),
    )
    resume: bool = switch("--resume", "then continue the session or the plan of the request")


def answer(options: AnswerOptions) -> int:
    """Record an answer. Without one, ask the question if a person is at the terminal."""
    from quoth.tools.consent.requests import Decision

    require_person()
    said = text_of(options.text[0]) if len(options.text) == 1 else " ".join(options.text)
    if not options.text:
        with opened(options) as (_, broker):
            said = _asked(options, find(options, options.id, broker).question)
    return decide_request(options, options.id, Decision("answer", answer=said), resumes=options.resume)


def _asked(options: AnswerOptions, question: Question | None) -> str:
    """The person's answer; empty if the request is not a question. Raises UsageError."""
    if question is None:
        return ""
    if not can_be_asked(options.no_input):
        raise UsageError(f"An answer is needed: {options.typed('answer', options.id, also=' TEXT')}")
    import asyncio

    from quoth.agent.terminal.ask import AskTerminal

    said = asyncio.run(AskTerminal().words(question))
    if said is None:
        raise UsageError("No answer was given; the question still waits.")
    return said.answer
