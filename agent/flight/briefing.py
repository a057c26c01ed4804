"""Writes the prompt for a step's model: the task, the plan, earlier results and the last failure."""

from __future__ import annotations

from collections.abc import Callable

from quoth.agent.flight.plan_file import StepStatus
from quoth.agent.flight.status import StepAttempt, result_of
from quoth.agent.plan.model import Part, Plan
from quoth.agent.terminal.forms import Aside, shortened, show_value

SHARE = 2  # all earlier results together may take SHARE times the room of one result, each of them half of it


def task_of(step: Part, again: bool = False) -> str:
    """Return the task of a step's model. ``again`` means that the expectation was false after an earlier
    answer. The task says so, because small models read the task again after each result."""
    task = f"{step.title}\n\n{step.prose}" if step.title else step.prose
    if not again:
        return task
    where = " (result is your answer)" if step.says_result else ""
    why = f"An earlier attempt failed, because this was not true afterwards{where}: {step.expect}"
    return f"{task}\n\n{why}\nDo every part of the task, so that it becomes true."


def briefing(
    plan: Plan,
    step: Part,
    found: Callable[[Part], StepAttempt | None],
    failed: StepStatus | None,
    answer: str | None,
    room: int,
    aside: Aside,
) -> str:
    """Return the text that the model reads besides its task. ``found`` returns the attempt with the result of
    a step, ``failed`` is the last failed attempt at this step, ``answer`` its answer if it gave one, and
    ``room`` the limit for one result, in characters."""
    parts = [f"This is one step of the plan {plan.title or plan.source.name}."]
    if step.phase:
        parts.append(f"Its phase: {step.phase}.")
    parts += [f"{note.title}:\n{note.prose}" for note in plan.notes(step)]
    results, earlier, left = [], plan.earlier(step), SHARE * room
    for one in plan.order:
        made = found(one) if one.id in earlier else None
        if made is not None and left > 0:
            text = shortened(show_value(result_of(one, made)), min(room // 2, left), aside)
            left -= len(text)
            results.append(f"{one.id}: {text}")
    if results:
        parts.append("Results of earlier steps:\n" + "\n".join(results))
    if failed is not None:
        parts.append(f"An earlier attempt failed: {failed.text}")
        if answer:
            parts.append(f"The answer of that attempt was:\n{shortened(answer, room // 2, aside)}")
    return "\n\n".join(parts)
