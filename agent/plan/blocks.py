"""What the blocks of a plan name: other blocks, variables, libraries.

Knows the plan as data; it must not know how one is flown.
"""

from __future__ import annotations

from quoth.agent.plan.model import Form, Plan
from quoth.tools.org.babel import Var


def called(plan: Plan, form: Form) -> Form:
    """The block whose text runs: the form itself, or the one that it calls."""
    block = plan.block(form.call) if form.call else form
    assert block is not None, "a plan is checked before it is looked at so"
    return block


def variables(plan: Plan, form: Form) -> list[Var]:
    """The variables of a block; a call's own come in the place of those of the block it calls."""
    return list({var.name: var for var in (*called(plan, form).vars, *form.vars)}.values())


def knows_all(plan: Plan, form: Form) -> bool:
    """Whether all that a block works with stands in the plan: no result of another block."""
    return all(not var.ref or var.ref in plan.data for var in variables(plan, form))


def unknown_refs(plan: Plan, form: Form) -> str:
    """The names of what a block works with that is known only when the plan is flown."""
    return ", ".join(dict.fromkeys(v.ref for v in variables(plan, form) if v.ref and v.ref not in plan.data))


def known_program(plan: Plan, form: Form) -> str:
    """The program of a block all of whose values stand in the plan."""
    given = variables(plan, form)
    values = {var.name: plan.data[var.ref].value if var.ref else var.value for var in given}
    return form.program(values, called(plan, form).text)


def libraries(plan: Plan, form: Form) -> dict[str, Form]:
    """The blocks outside of all steps that give a block its values, and those that give them theirs."""
    found: dict[str, Form] = {}
    pending = [var.ref for var in variables(plan, form)]
    while pending:
        name = pending.pop(0)
        if name in plan.library and name not in found:
            found[name] = plan.library[name]
            pending += [var.ref for var in plan.library[name].vars]
    return found
