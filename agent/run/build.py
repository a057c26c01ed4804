"""The only place where a Run is put together: for the loop, a sub-agent, a step of a flight, or a replay.

Knows runs and how they are recorded; it must not know agents, or who wants the run.
"""

from __future__ import annotations

from dataclasses import replace

from quoth.agent.run.budget import Budget
from quoth.agent.run.recorder import RecordedBackend, RecordedDoor
from quoth.agent.run.run import Run, RunParts, RunState
from quoth.agent.run.spec import RunSpec
from quoth.agent.session.past import Past
from quoth.agent.session.session import RunLog
from quoth.neuro.backends.messages import Image, Messages
from quoth.tools.call.call import Call


def build_run(
    spec: RunSpec, log: RunLog, past: Past, messages: Messages, parts: RunParts, caller: Call | None = None
) -> Run:
    """The run that ``log`` records: ``past`` answers what has happened before, new events are written to
    ``log``. Where ``parts`` have no back end, the run ends where ``past`` ends, and nothing is written.
    ``caller`` is the call that a sub-agent works for. What its model knows of the memory and of the tools is
    that of the conversation in ``messages``."""
    from quoth.agent.run.output import Output  # here: few runs have one

    log.live, images = parts.backend is not None, tuple[Image, ...]()
    if spec.files:
        from quoth.agent.run.output import images_of

        images = images_of(spec.files, parts.pages if log.live else None)
    backend, door = RecordedBackend(parts, past, log), RecordedDoor(parts, past, log)
    talk, known_output = log.session.talk_of(messages), parts.output
    if known_output is None and spec.output is not None:
        known_output = Output.known_by(spec.output)
    run = Run(
        spec=spec,
        log=log,
        past=past,
        parts=parts,
        door=door,
        backend=backend,
        messages=messages,
        context=parts.context,
        budget=parts.budget or Budget.of(parts.limits, kept=1),
        dialect=spec.dialect,
        must_act=spec.must_act,
        caller=caller,
        output=known_output,
        images=images,
        stops=spec.dialect.stops,
        whole=talk.table,
        state=RunState(known=dict(talk.known or {})),
    )
    backend.run = door.run = run
    run.context = replace(
        parts.context,
        services=parts.services(run),
        talk=lambda: log.session.talk(log.run),
        clocks=(*parts.context.clocks, run.budget.clock),
        seconds_left=lambda: run.budget.seconds_left,
        planning=parts.planning or parts.context.planning,
    )
    return run
