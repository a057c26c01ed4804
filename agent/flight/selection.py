"""Chooses the steps of a plan that a user asked for.

Knows the plan as data and the request; it must not know what has been flown.
"""

from __future__ import annotations

from quoth.agent.flight.report import Wanted
from quoth.agent.plan.model import PHASES, Part, Plan
from quoth.tools.errors import UsageError, did_you_mean


def chosen_steps(plan: Plan, wanted: Wanted) -> frozenset[str]:
    """Return the ids of the steps to fly. Raises UsageError for a name that is not in the plan."""
    if wanted.only and (wanted.start or wanted.until):
        raise UsageError("--only names one step; it does not go with --from or --until.")
    if wanted.only:
        return frozenset(step.id for step in plan.leaves(plan.find(wanted.only)))
    order = [step.id for step in plan.order]
    if wanted.until:
        ends = [step.id for part in _phase(plan, wanted.until) for step in plan.leaves(part)]
        needed = set(ends).union(*(plan.earlier(plan.by_id[name]) for name in ends))
        order = [name for name in order if name in needed]
    if wanted.start:
        first = [step.id for step in plan.leaves(plan.find(wanted.start))]
        places = [place for place, name in enumerate(order) if name in first]
        if not places:
            raise UsageError(f"{wanted.start} comes after {wanted.until}.")
        order = order[places[0] :]
    return frozenset(order)


def _phase(plan: Plan, name: str) -> list[Part]:
    """The parts of a phase, or the part of that id or title."""
    word = name.strip().capitalize()
    if word in PHASES:
        if found := [part for part in plan.parts if part.phase == word and part.is_step]:
            return found
        raise UsageError(f"There is no step of the phase {word} in {plan.source.name}.")
    known = {part.id for part in plan.parts}
    if name in known:
        return [plan.by_id[name]]
    hint = did_you_mean(name, [*PHASES, *known]) or f" The phases are {', '.join(PHASES)}."
    raise UsageError(f"There is no phase {name}.{hint}")
