"""Prints requests and records decisions about them, for the commands and the REPL. Asks no questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from quoth.agent.terminal.input import require_person
from quoth.agent.terminal.output import columns_of, is_terminal, results, set_in
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.text import exact_time, file_name, one_line
from quoth.tools.visible import mixed, visible

if TYPE_CHECKING:
    from quoth.tools.consent.broker import Broker
    from quoth.tools.consent.decisions import Proposal
    from quoth.tools.consent.requests import Decision, Request
    from quoth.tools.consent.shown import Files

SHOWN_CHARS = 200


# Deciding


@dataclass(frozen=True)
class Decided:
    """The result of a decision: the request, the decision with its defaults, the rule to propose (empty for
    none), and the ids of requests that still wait in the same session."""

    request: Request
    decision: Decision
    offer: str
    waits: tuple[str, ...]

    def __str__(self) -> str:
        """The decision in one line."""
        kind, form = self.decision.kind, _told(self.request.form, 4, 24)
        span = exact_time(self.decision.seconds or 0)
        if kind == "scope":
            return f"Granted in session {self.request.session} for {span}: {visible(self.decision.rule)}"
        if kind == "edit":
            return f"Approved instead of {form}: {_told(str(self.decision.form), 4, 24)}"
        if kind == "answer":
            asked = one_line(self.request.question.text, SHOWN_CHARS) if self.request.question else form
            return f"Answered: {visible(asked)} {visible(one_line(self.decision.answer, SHOWN_CHARS))}"
        if kind == "deny" and self.request.question:
            return f"Not answered: {visible(one_line(self.request.question.text, SHOWN_CHARS))}"
        said = {"once": "Approved once", "duration": f"Approved for {span}", "deny": "Denied"}[kind]
        return f"{said}: {form}"

    def advice(self) -> list[str]:
        """Return lines about the proposed rule and the requests that still wait."""
        lines = []
        if self.offer:
            from quoth.tools.consent.decisions import ENOUGH
            from quoth.tools.policy.project import user_policy
            from quoth.tools.policy.scope import left_open

            lines.append(
                f"You approved calls like this at least {ENOUGH} times. To allow them without a question, "
                "add this "
                f"rule to {user_policy()}:\n  {visible(self.offer)}"
            )
            lines += filter(None, [left_open(self.offer)])
        if self.waits:
            lines.append(f"Still waiting in this session: {', '.join(self.waits)}")
        return lines


def decide(broker: Broker, request: str, decision: Decision, shown: Files | None = None) -> Decided:
    """Record a decision about the request with this id; ``shown`` are the file contents that the person was
    shown (default: those shown last). Raises UsageError if the decision does not fit the request, or if a
    tool started this process."""
    require_person()
    full = broker.preview(request, decision)
    decided = broker.decide(request, full, shown)
    waits = tuple(one.id for one in broker.requests(session=decided.session))
    return Decided(decided, full, broker.offer(request), waits)


def question_of(decision: Decision) -> str:
    """Return the question that confirms a scope, with its rule and the arguments that the rule leaves
    open."""
    from quoth.tools.policy.scope import left_open

    question = f"Allow that in this session for {exact_time(decision.seconds or 0)}?"
    rule = visible(decision.rule)
    return "\n".join(filter(None, [rule, left_open(decision.rule), mixed(decision.rule), question]))


def how_the_owner_decides(request: Request) -> str:
    """Return the sentence, without its period, for a client that may not decide a request."""
    if request.question is not None:
        return f"The owner answers with: quoth answer {request.id}"
    return f"The owner decides with: quoth approve {request.id}, or: quoth deny {request.id}"


# Showing


def pending_text(
    broker: Broker, request: str = "", session: str | None = None, *, color: bool = False
) -> str:
    """Return the waiting requests, or one request in full, each with its changes; empty if none waits. Raises
    UsageError for an unknown request."""
    if request:
        found = broker.find(request)
        return page(found, time.time(), broker.plan_of(found.id), broker.proposal(found.id), color=color)
    return listing(broker.requests(session=session), lambda id: broker.proposal(id, shown=False))


def changes_data(proposal: Proposal | None) -> dict[str, Any]:
    """Return the changes of a call as JSON data; empty if its tool does not describe them."""
    if proposal is None:
        return {}
    from quoth.agent.terminal.question import differences

    changes = [one.to_json() for one in differences(proposal.changes, proposal.hide)]
    trouble = proposal.changes.trouble
    return {"changes": changes, **({"trouble": trouble} if trouble else {})}


def listing(
    requests: Sequence[Request], proposal: Callable[[str], Proposal | None] = lambda request: None
) -> str:
    """Return requests as text, a few lines for each; long forms are shortened with a note. ``proposal``
    returns the changes of a request."""
    return "\n".join(_brief(request, proposal(request.id)) for request in requests)


def _brief(request: Request, proposal: Proposal | None) -> str:
    from quoth.agent.terminal.forms import shortened

    where = _told(f"{_origin(request)}, {request.session}, {request.route}, {when(request.asked)}", 7)
    if request.question is not None:
        from quoth.agent.terminal.question import words_rows

        asked = "\n".join(words_rows(request.question, max(_columns() - 7, 0))).split("\n")
        return "\n       ".join([f"{request.id}  {request.tool} asks a question:", *asked, where])
    summary = [one["summary"] for one in changes_data(proposal).get("changes", ())]
    trouble = [proposal.changes.trouble] if proposal and proposal.changes.trouble else []
    touches = f"; touches {', '.join(map(file_name, request.touches))}" if request.touches else ""
    lines = [
        f"{request.id}  {_told(shortened(request.form, SHOWN_CHARS), 7)}",
        *(_told(one, 7) for one in [*summary, *trouble]),
        _told(f"{request.reason}{touches}", 7, words=True),
        _told(mixed(f"{request.form}{touches}"), 7),
        where,
    ]
    begin, *more = filter(None, lines)
    return "\n".join([begin, *_origins(request, margin=" " * 7), *(f"{' ' * 7}{line}" for line in more)])


def _origins(request: Request, **how: Any) -> list[str]:
    """The origins of the arguments at the time of the request, as lines."""
    from quoth.agent.terminal.question import origin_lines  # imported here: most commands show no request

    return origin_lines(request.origins, request.route, _columns(), **how)


def _command_line(request: Request) -> str:
    from quoth.agent.terminal.forms import command_line, form_of

    return "" if (form := form_of(request.form)) is None else command_line(form)


def _origin(request: Request) -> str:
    return f"{request.user} ({request.channel})" if request.channel else request.user


def _told(text: str, by: int, first: int = 0, *, words: bool = False) -> str:
    """Return the text with visible escapes and indented further rows, so that it cannot imitate other
    requests."""
    return set_in(visible(text, lines=True), " " * by, _columns(), first or by, words=words)


def _columns() -> int:
    """The number of columns of the terminal on stdout; 0 if stdout is not a terminal."""
    return columns_of(results()) if is_terminal(results()) else 0


def page(
    request: Request, now: float, plan: str = "", proposal: Proposal | None = None, *, color: bool = False
) -> str:
    """Return one request in full, with its changes, and with the ``plan`` of its program if it has one."""
    form, below = shown_form(request.form, proposal, color=color)
    if request.question is not None:
        from quoth.agent.terminal.question import words_rows

        form, below = f"{request.tool} asks a question:", words_rows(request.question, _columns())
    rows = facts(request, now, plan)
    lines = [f"{name:<13}{_told(text, 13, words=name == 'because')}" for name, text in rows.items() if text]
    return "\n".join([f"{request.id}  {form}", *below, *_origins(request, color=color), *lines])


def facts(request: Request, now: float, plan: str = "") -> dict[str, str]:
    """The facts of a request beside its form and changes, by name; empty texts are not shown."""
    touched = ", ".join(map(file_name, request.touches))
    return {
        "runs": _command_line(request),
        "because": "" if request.question else request.reason,
        "look out": mixed(f"{request.form} {request.reason} {' '.join(request.touches)} {plan}"),
        "touches": "" if request.question else touched or "no named file",
        "asked by": f"{_origin(request)}, session {request.session}, route {request.route}",
        "asked at": when(request.asked),
        "in answer to": request.message,
        "the plan": plan,
        "inside of": f"call {request.parent}" if request.parent else "",
        "decided": _fate(request, now),
    }


def shown_form(text: str, proposal: Proposal | None, *, color: bool = False) -> tuple[str, list[str]]:
    """Return the form of a request, laid out, and the lines of its changes. Arguments shown in these lines
    are folded in the form."""
    from quoth.agent.terminal.forms import WIDTH, folded, form_of, laid_out, margined
    from quoth.agent.terminal.question import changes_text, columns, covered_by, differences

    form, screen, first = form_of(text), _columns(), 7  # the form follows the request's id
    width = min(screen - first - 1, WIDTH) if screen else WIDTH
    if form is None:
        return margined(text, screen, first), []
    if proposal is None:
        return margined(laid_out(form, width), screen, first), []
    covered = covered_by(proposal.tool, form, proposal.changes)
    different = differences(proposal.changes, proposal.hide)
    below, _ = changes_text(different, proposal.changes, columns(), color=color)
    return margined(laid_out(folded(form, covered, others=False), width), screen, first), below


def _fate(request: Request, now: float) -> str:
    """Return the state of a request in words."""
    over = request.expires <= now
    if request.state == "pending":
        return (
            f"never; it expired at {when(request.expires)}"
            if over
            else f"not yet; open until {when(request.expires)}"
        )
    fate = f"{request.outcome} at {when(request.decided or 0)}"
    fate += f": {request.why}" if request.why else ""
    if request.decision in ("duration", "scope"):
        return f"{fate}; {'ended at' if over else 'lasts until'} {when(request.expires)}"
    if request.decision not in ("once", "edit", "answer"):
        return fate
    if request.state == "used":
        return f"{fate}; used"
    return f"{fate}; {'not used in time' if over else f'usable until {when(request.expires)}'}"


def when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
