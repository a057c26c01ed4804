"""The answers to commands that several front ends have, such as ``,model`` in the REPL and ``/model`` in an
editor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from quoth.agent.run.calls import explained
from quoth.agent.run.host import SessionHost
from quoth.agent.run.runs import Runs
from quoth.agent.session.undo import Undo, UndoPlan, left_lines, uncovered_lines
from quoth.agent.terminal.pages import rules_page
from quoth.agent.terminal.requests import pending_text
from quoth.tools.call.call import Route
from quoth.tools.text import number_of


async def model_answer(runs: Runs, spec: str) -> str:
    """Use the model ``spec``, if one is given, and name the present one. Raises UsageError."""
    if spec:
        await runs.use_model(spec)
    else:
        await runs.host.models.open()
    dialect = runs.host.dialect()
    return f"{runs.host.models.backend().name}, calls as {dialect.name}"


def policy_answer(host: SessionHost, form: str, route: Route) -> str:
    """How the rules judge a call of ``form``, or the rules with those of this session. Raises UsageError."""
    if form:
        return explained(host, form, route)
    granted = host.broker.granted(host.session, host.user)
    return rules_page(host.policy, [one.rule_line for one in granted])


def pending_answer(host: SessionHost, request: str) -> str:
    """The requests of the session, or one of them in full. Raises UsageError."""
    return pending_text(host.broker, request, host.session) or "No requests are waiting."


def undo_answer(way: Undo, plan: UndoPlan) -> tuple[Callable[[bool], Iterator[str]], Sequence[str]]:
    """Carry out an undo or a redo. Returns its lines, with or without color, and notes."""
    done = way.do(plan) if plan.files else None

    def lines(color: bool) -> Iterator[str]:
        if done is not None and done.files:
            yield f"{'Written again' if plan.redo else 'Put back'}: {number_of(len(done.files), 'file')}"
            yield from (f"  {one.difference.head}" for one in plan.files if one.path in done.files)
        yield from left_lines((*plan.left, *(done.failed if done else ())), color=color)
        yield from uncovered_lines(plan)

    return lines, done.said if done else ()
