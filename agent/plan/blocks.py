"""Resolves what the code blocks of a plan refer to: other blocks, variables, libraries.

Knows the plan as data; it must not know how a plan is flown.
"""

from __future__ import annotations

from quoth.agent.plan.model import Form, Plan
from quoth.tools.org.babel import Var


def called(plan: Plan, form: Form) -> Form:
    """Return the block whose text runs: ``form`` itself, or the named block that it calls."""
    block = plan.block(form.call) if form.call else form
    assert block is not None, "a plan is checked before it is looked at so"
    return block


def variables(plan: Plan, form: Form) -> list[Var]:
    """Return the variables of a block. Those of a call override those of the block it calls."""
    return list({var.name: var for var in (*called(plan, form).vars, *form.vars)}.values())


def knows_all(plan: Plan, form: Form) -> bool:
    """Whether every variable of a block has a value in the plan, so that none is another block's result."""
    return all(not var.ref or var.ref in plan.data for var in variables(plan, form))


def unknown_refs(plan: Plan, form: Form) -> str:
    """Return the names of the results a block needs that exist only in flight, joined by commas."""
    return ", ".join(dict.fromkeys(v.ref for v in variables(plan, form) if v.ref and v.ref not in plan.data))


def known_program(plan: Plan, form: Form) -> str:
    """Return the program of a block for which ``knows_all`` is true."""
    given = variables(plan, form)
    values = {var.name: plan.data[var.ref].value if var.ref else var.value for var in given}
    return form.program(values, called(plan, form).text)


def libraries(plan: Plan, form: Form) -> dict[str, Form]:
    """Return, by name, the blocks outside all steps that a block's variables refer to, transitively."""
    found: dict[str, Form] = {}
    pending = [var.ref for var in variables(plan, form)]
    while pending:
        name = pending.pop(0)
        if name in plan.library and name not in found:
            found[name] = plan.library[name]
            pending += [var.ref for var in plan.library[name].vars]
    return found
