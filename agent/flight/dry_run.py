"""Finds the calls that a plan would run, step by step; runs only read-only calls.

A block that needs a result of another block cannot be followed, so only its tools are named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quoth.agent.flight.approval import approval_of, approves
from quoth.agent.flight.plan_file import PlanFile
from quoth.agent.flight.report import Wanted, chosen_steps
from quoth.agent.plan.check import check
from quoth.agent.plan.check_forms import tool_uses
from quoth.agent.plan.model import Form, Part, Plan
from quoth.agent.plan.reading import called, known_program, knows_all, unknown_refs, variables
from quoth.agent.run.calls import Calls
from quoth.agent.run.subagents import chosen
from quoth.neuro.prompt.dialects import CALL_FORM
from quoth.tools.errors import UsageError

if TYPE_CHECKING:
    from quoth.agent.run.host import SessionHost


async def dry_flight(agent: SessionHost, file: PlanFile, wanted: Wanted) -> list[dict[str, Any]]:
    """Return for each chosen step and each group with an expectation, as JSON data, the calls of its blocks,
    the tools that its model may use and the calls of its expectation. Raises UsageError for a plan with
    faults."""
    plan = file.plan
    if faults := check(plan, agent.table, agent.config.providers):
        raise UsageError("\n".join(str(fault) for fault in faults))
    wished = chosen_steps(plan, wanted)
    steps = []
    for step in plan.order:
        if step.id in wished:
            table = agent.table if step.tools is None else chosen(agent.table, step.tools)
            more = {
                "approved": approves(approval_of(agent.store, plan, str(file.path), step, agent.table)),
                "blocks": [await _block(agent, plan, step, form) for form in step.running],
                "tools": agent.parts.offers.table(table, CALL_FORM, agent.user).shown.names()
                if step.objective
                else None,
            }
            steps.append(await _row(agent, step, more))
    for group in plan.parts:
        ended = group.inside and group.expect and {leaf.id for leaf in plan.leaves(group)}
        if ended and ended & wished:
            steps.append(await _row(agent, group, {"approved": False, "blocks": [], "tools": None}))
    return steps


async def _row(agent: SessionHost, part: Part, more: dict[str, Any]) -> dict[str, Any]:
    looks = await _looks(agent, part)
    return {"id": part.id, "place": str(part.place), **more, "expect": part.expect, "looks": looks}


async def _looks(agent: SessionHost, part: Part) -> str:
    """Return the calls that an expectation would run, each with its verdict; empty if it has none or depends
    on the result of its step."""
    if not part.expect or part.says_result:
        return ""
    result = await Calls(agent).eval(part.expect, route="flight", dry_run=True)
    if not result.ok:
        return f"; {result.message}"
    return str(result.value["text"]) if result.value["steps"] else ""


async def _block(agent: SessionHost, plan: Plan, step: Part, form: Form) -> dict[str, Any]:
    row: dict[str, Any] = {"place": str(form.place), "text": "", "plan": None}
    if not knows_all(plan, form):
        names = [var.name for var in variables(plan, form)]
        uses = dict.fromkeys(use.tool.name for use in tool_uses(called(plan, form).text, agent.table, names))
        refs, may = unknown_refs(plan, form), ", ".join(uses) or "no tool"
        return {**row, "text": f"; it uses the result of {refs}, and may call: {may}"}
    result = await Calls(agent).eval(known_program(plan, form), route="flight", dry_run=True)
    if not result.ok:
        return {**row, "text": f"; {result.message}"}
    return {**row, "text": result.value["text"], "plan": result.value}
