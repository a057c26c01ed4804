"""Approved steps of flight plans: who approved what, kept in the store, and what that covers in a flight.

Knows plans, the store and the broker. What counts is a digest of the step and of the tools it names; the word
in the file counts for nothing. An approval answers what policy would ask of the calls that the step's forms
make with arguments that stand in them, once in each attempt, through the approval of a program's plan as a
whole (tools/plans.py). It answers no question of a model's calls, none about a value that is known only while
the plan is flown, and nothing that a rule or a guard denies.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from agent.babel import Var
from agent.plan import Form, Part, Plan
from agent.plan_forms import tool_uses
from tools import plans
from tools.audit import Audit
from tools.consent import Broker, Decision
from tools.context import Call
from tools.redact import redact
from tools.store import Store
from tools.table import ToolTable


@dataclass(frozen=True)
class Approval:
    """What a person said of a step. ``holds`` is False when the step, or a tool in it, has changed since."""

    decision: Literal["approve", "deny"]
    user: str
    at: float
    why: str
    holds: bool


def record(
    store: Store, audit: Audit, plan: Plan, path: str, step: Part, table: ToolTable, decision: Decision
) -> None:
    """Keep what a person decided of a step; the audit is told before it counts."""
    said = "deny" if decision.kind == "deny" else "approve"
    _audit(audit, plan, step, decision)
    with store.transaction() as run:
        run(
            "INSERT INTO plan_steps (plan, step, digest, tools, decision, user, at, why)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                path,
                step.id,
                plan.digest(step),
                tools_digest(plan, step, table),
                said,
                decision.by,
                time.time(),
                decision.why,
            ),
        )


def approval_of(store: Store, plan: Plan, path: str, step: Part, table: ToolTable) -> Approval | None:
    """What was decided of a step last. A refusal holds until somebody approves the step, whatever becomes of
    it meanwhile."""
    found = store.execute(
        "SELECT digest, tools, decision, user, at, why FROM plan_steps WHERE plan = ? AND step = ?"
        " ORDER BY seq DESC LIMIT 1",
        (path, step.id),
    )
    if not found:
        return None
    digest, tools, decision, user, at, why = found[0]
    same = (digest, tools) == (plan.digest(step), tools_digest(plan, step, table))
    return Approval(decision, user, at, why, decision == "deny" or same)


def tools_digest(plan: Plan, step: Part, table: ToolTable) -> str:
    """The versions of the tools that the step's forms name: an approval is of what they do, too."""
    found: dict[str, str] = {}
    for form in step.forms:
        if form.runs:
            names = [var.name for var in variables(plan, form)]
            uses = tool_uses(called(plan, form).text, table, names)
            found |= {use.tool.name: use.tool.version for use in uses}
    return hashlib.sha256(json.dumps(sorted(found.items())).encode()).hexdigest()


def called(plan: Plan, form: Form) -> Form:
    """The block whose text runs: the form itself, or the one that it calls."""
    if not form.call:
        return form
    return plan.library[form.call] if form.call in plan.library else plan.blocks[form.call][1]


def variables(plan: Plan, form: Form) -> list[Var]:
    """The variables of a block; a call's own come in the place of those of the block it calls."""
    return list({var.name: var for var in (*called(plan, form).vars, *form.vars)}.values())


def knows_all(plan: Plan, form: Form) -> bool:
    """Whether all that a block works with stands in the plan: no result of another block."""
    return all(not var.ref or var.ref in plan.data for var in variables(plan, form))


def is_covered(store: Store, call: Call, text: str) -> bool:
    """Whether the approval of a program was given to this run of it already, before it was broken off."""
    with store.transaction() as run:
        return plans.is_approved(run, plans.program_digest(text), call, time.time())


def cover(broker: Broker, call: Call, plan: Mapping[str, Any], by: Approval, why: str) -> None:
    """Approve, for the one run of the program that ``call`` is, those calls of its plan whose arguments stand
    in it."""
    shapes = [shape for shape in plan["shapes"] if all(map(_is_literal, shape["args"].values()))]
    if shapes:
        request = broker.ask_for_plan(call, {**plan, "shapes": shapes})
        broker.decide(request, Decision("once", by.user, why))


def _is_literal(pattern: Mapping[str, Any]) -> bool:
    return "is" in pattern or "sha256" in pattern


def _audit(audit: Audit, plan: Plan, step: Part, decision: Decision) -> None:
    denied = decision.kind == "deny"
    audit.write(
        {
            "id": secrets.token_hex(5),
            "ts": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "session": "",
            "user": decision.by,
            "route": "decision",
            "parent": None,
            "depth": 0,
            "round": 0,
            "place": 0,
            "tool": "fly",
            "digest": plan.digest(step),
            "status": "denied" if denied else "ok",
            "stage": "consent",
            "duration_ms": 0,
            "side_effects": (),
            "policy": "",
            "rule": "",
            "guard": "",
            "gate": "",
            "consent": f"step {'denied' if denied else 'approved'} by {decision.by or 'somebody'}",
            "message": redact(decision.why)[:2000],
            "form": redact(f"{plan.source.name} {step.id}")[:2000],
            "schema_hash": "",
            "repairs": "",
        }
    )
