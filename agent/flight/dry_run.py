"""What a plan would call, step by step, with nothing done but reading.

Knows plans and the dry run of programs; a block that works with a result which is not known yet cannot be
gone through, so of that one only the tools are named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quoth.agent.flight.approval import approval_of
from quoth.agent.flight.engine import chosen_steps
from quoth.agent.flight.plan_file import PlanFile
from quoth.agent.flight.report import Wanted
from quoth.agent.plan.blocks import called, knows_all, variables
from quoth.agent.plan.check import check
from quoth.agent.plan.check_forms import tool_uses
from quoth.agent.plan.model import Form, Part, Plan
from quoth.agent.run.subagents import chosen
from quoth.tools.errors import UsageError

if TYPE_CHECKING:
    from quoth.agent.run.host import Host


async def dry_flight(agent: Host, file: PlanFile, wanted: Wanted) -> list[dict[str, Any]]:
    """For each step that is wanted the calls of its blocks, or the tools that a model may use, and those of
    expectations, also of groups. Raises UsageError."""
    plan = file.plan
    if faults := check(plan, agent.table):
        raise UsageError("\n".join(str(fault) for fault in faults))
    wished = chosen_steps(plan, wanted)
    steps = []
    for step in plan.order:
        if step.id not in wished:
            continue
        approval = approval_of(agent.store, plan, str(file.path), step, agent.table)
        approved = approval is not None and approval.holds and approval.decision == "approve"
        shown = agent.table if step.tools is None else chosen(agent.table, step.tools)
        steps.append(
            {
                "id": step.id,
                "place": str(step.place),
                "approved": approved,
                "blocks": [await _block(agent, plan, step, form) for form in step.running],
                "tools": [tool.name for tool in shown if tool.shown] if step.objective else None,
                "expect": step.expect,
                "looks": await _looks(agent, step),
            }
        )
    groups = [part for part in plan.parts if part.inside and part.expect]
    for group in groups:
        if wished.intersection(leaf.id for leaf in plan.leaves(group)):
            looks = await _looks(agent, group)
            row = {"id": group.id, "place": str(group.place), "approved": False, "blocks": [], "tools": None}
            steps.append({**row, "expect": group.expect, "looks": looks})
    return steps


async def _looks(agent: Host, part: Part) -> str:
    """The calls that an expectation would make, each with its verdict; nothing for one that makes none, or
    that works with what its step will have come to."""
    if not part.expect or part.says_result:
        return ""
    result = await agent.eval(part.expect, route="flight", dry_run=True)
    if not result.ok:
        return f"; {result.message}"
    return str(result.value["text"]) if result.value["steps"] else ""


async def _block(agent: Host, plan: Plan, step: Part, form: Form) -> dict[str, Any]:
    given = variables(plan, form)
    text = called(plan, form).text
    if not knows_all(plan, form):
        uses = dict.fromkeys(use.tool.name for use in tool_uses(text, agent.table, [v.name for v in given]))
        refs = ", ".join(var.ref for var in given if var.ref and var.ref not in plan.data)
        said = f"; it works with what {refs} will have come to, and may call: {', '.join(uses) or 'no tool'}"
        return {"place": str(form.place), "text": said, "plan": None}
    values = {var.name: plan.data[var.ref].value if var.ref else var.value for var in given}
    result = await agent.eval(form.program(values, text), route="flight", dry_run=True)
    if not result.ok:
        return {"place": str(form.place), "text": f"; {result.message}", "plan": None}
    return {"place": str(form.place), "text": result.value["text"], "plan": result.value}
