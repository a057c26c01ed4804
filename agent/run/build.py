"""The only place where a Run is put together: for the loop, a sub-agent, a step of a flight, or a replay.

Knows runs and how they are recorded; it must not know agents, or who wants the run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from quoth.agent.events import Listener
from quoth.agent.run.budget import Budget
from quoth.agent.run.output import Output
from quoth.agent.run.purse import NO_FUNDS, Funds
from quoth.agent.run.recorded_door import RecordedDoor
from quoth.agent.run.recorder import RecordedBackend, facts_of
from quoth.agent.run.run import AfterTags, Run, RunLimits
from quoth.agent.session.past import Differs, Past
from quoth.agent.session.run_log import RunLog
from quoth.neuro.backends.base import Backend, RequestOptions, Usage
from quoth.neuro.backends.messages import Image, Messages
from quoth.neuro.prompt.dialects import CALL_FORM, Dialect
from quoth.tools.call.call import Call, Route
from quoth.tools.call.context import ToolContext
from quoth.tools.call.services import MemoryStore, Services
from quoth.tools.door.door import Door
from quoth.tools.history.long_results import Texts
from quoth.tools.registry.table import ToolTable

if TYPE_CHECKING:
    from quoth.agent.trace.tracer import Tracer


def build_run(
    log: RunLog,
    past: Past,
    task: str,
    *,
    door: Door,
    backend: Callable[[], Backend] | None,
    context: ToolContext,
    services: Callable[[Run], Services],
    messages: Messages,
    limits: RunLimits,
    pages: Texts,
    data: str = "",
    images: tuple[Image, ...] = (),
    output: Output | None = None,
    turn: str = "",
    speaker: str = "",
    route: Route = "reply",
    after_tags: AfterTags = "continue",
    must_act: bool = False,
    may_force: bool = False,
    instructions: str = "",
    surroundings: str = "",
    options: RequestOptions | None = None,
    dialect: Dialect = CALL_FORM,
    search: bool = False,
    listener: Listener | None = None,
    caller: Call | None = None,
    spent: Callable[[Usage], None] | None = None,
    differs: Differs | None = None,
    note: str = "",
    memory: MemoryStore | None = None,
    shows: Callable[[str], bool] = lambda label: True,
    known: dict[str, Any] | None = None,
    renew: Callable[[], Awaitable[ToolTable]] | None = None,
    offers: Callable[[ToolTable], ToolTable] = lambda table: table,
    whole: ToolTable | None = None,
    budget: Budget | None = None,
    funds: Funds = NO_FUNDS,
) -> Run:
    """The run that ``log`` records: ``past`` answers what has happened before, new events are written to
    ``log``. Without ``backend`` the run ends where ``past`` ends, and nothing is written. ``door`` has the
    tools of the run, ``services`` gives what its calls may use, and ``caller`` is the call that a sub-agent
    works for; ``speaker`` is the user of the calls, where that is not the user of the session. The model is
    shown what is new in ``memory``, of the blocks that ``shows`` allows, beside those that it has ``known``;
    and what is new in the tools that ``renew`` gives, as far as ``offers`` does not hide them, since it was
    told of the ``whole`` table. For the other parameters see Run and RecordedBackend."""
    live = backend is not None
    recorded = RecordedBackend(backend, past, log, differs=differs, note=note)
    recorded_door = RecordedDoor(door, past, log, live=live, differs=differs)
    run = Run(
        task=task,
        session=log.session.id,
        door=recorded_door,
        context=context,
        backend=recorded,
        messages=messages,
        user=speaker or log.session.user,
        depth=0 if caller is None else caller.depth + 1,
        parent=None if caller is None else caller.id,
        data=data,
        images=images,
        output=output,
        spent=spent,
        route=route if caller is None else "agent",
        after_tags=after_tags,
        must_act=must_act,
        may_force=may_force,
        instructions=instructions,
        surroundings=surroundings,
        options=options,
        dialect=dialect,
        search=search,
        limits=limits,
        listener=listener,
        name=log.run,
        turn=turn,
        past=past,
        log=log if live else None,
        pages=pages,
        memory=memory if live else None,
        shows=shows,
        known={} if known is None else known,
        renew=renew if live else None,
        offers=offers,
        whole=whole,
        tracer=cast("Tracer | None", door.tracer) if live else None,
        given=budget,
        funds=funds,
    )
    recorded.run = recorded_door.run = run
    run.context = replace(
        context,
        services=services(run),
        talk=lambda: log.session.talk(log.run),
        clocks=(*context.clocks, run.budget.clock),
        seconds_left=lambda: run.budget.seconds_left,
    )
    return run


def stimulus(
    said: Mapping[str, Any],
    backend: Backend,
    limits: Mapping[str, Any],
    dialect: Dialect,
    search: bool,
    must_act: bool,
) -> dict[str, Any]:
    """The data of a run's first event: the task and its user (``said``), the model, and how it calls
    tools."""
    return {
        **said,
        **facts_of(backend),
        "dialect": dialect.name,
        "in-text": not dialect.native,
        "search": search,
        "must-act": must_act,
        "limits": limits,
    }
