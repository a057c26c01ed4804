"""The pages of what waits: the list, one request in full, the page that asks once more, and the decision.

A form carries the digest of the shown request. If the request would be shown otherwise now, it is shown
again, and nothing is decided; otherwise the decision is bound to exactly these contents of files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import get_args

from quoth.agent.markup import Child, Html, el, html
from quoth.agent.terminal.ask import call_of, seconds_of
from quoth.agent.terminal.forms import folded, form_of, laid_out, shortened
from quoth.agent.terminal.question import (
    CHANGED,
    SIGN,
    DiffLine,
    FileDifference,
    covered_by,
    differences,
    origin_lines,
)
from quoth.agent.terminal.requests import SHOWN_CHARS, facts, question_of, when
from quoth.agent.view.frame import HOME
from quoth.agent.view.page import Made, Redirection, ViewPage, Visit, confirmation
from quoth.agent.view.sessions import address, is_own
from quoth.tools.call.ports import asks_fact
from quoth.tools.call.redaction import SECRET
from quoth.tools.consent.decisions import ChangeDiffersError, Proposal
from quoth.tools.consent.requests import Decision, Kind, Request
from quoth.tools.consent.shown import Files, to_text
from quoth.tools.errors import UsageError
from quoth.tools.lisp.forms import canonical
from quoth.tools.text import exact_time, number_of

OPEN_LINES = 400  # a longer difference is folded
KINDS: dict[str, Kind] = {name: name for name in get_args(Kind)}
CLASSES = {"+": "plus", "-": "minus", "@": "at", "!": "at", " ": None}


# Showing


@dataclass(frozen=True)
class Shown:
    """A request as a visitor sees it: its body, the digest of all that is in it, and the file contents that
    an approval is bound to."""

    asked: Request
    plan: str
    body: Html
    digest: str
    files: Files | None


def listing(visit: Visit) -> ViewPage:
    """What waits for a person, the oldest first."""
    broker = visit.desk.broker()
    found = [one for one in broker.requests() if one.user in visit.users] if broker else []
    title = f"{number_of(len(found), 'request')} {'waits' if len(found) == 1 else 'wait'}"
    if not found:
        title = "Nothing waits"
    cards = [el("li", _card(one), class_="card") for one in found]
    body = el("section", el("h1", title), el("ol", cards, class_="plain") if cards else _nothing())
    return ViewPage(title, body, live=True)


def _nothing() -> Html:
    return el("p", "A call that your rules do not allow appears here, with what it would change.")


def _card(asked: Request) -> Html:
    to = f"/view/request/{asked.id}"
    if asked.question is not None:
        what = html(
            el("p", f"{asked.tool} asks a question:"), el("pre", shortened(asked.question.text, SHOWN_CHARS))
        )
    else:
        what = html(el("pre", shortened(asked.form, SHOWN_CHARS)), el("p", f"because {asked.reason}"))
    where = f"{asked.user}, session {asked.session}, since {when(asked.asked)}"
    return html(el("h2", el("a", f"Request {asked.id}", href=to)), what, el("p", where, class_="quiet"))


def request(visit: Visit) -> ViewPage:
    """One request in full, and the forms to decide it."""
    return _page(visit, _shown(visit))


def _page(visit: Visit, shown: Shown, notice: str = "", status: int = 200) -> ViewPage:
    asked = shown.asked
    title = f"Request {asked.id}"
    parts: list[Child] = [
        el("h1", title),
        el("p", notice, role="alert", class_="bad") if notice else None,
        shown.body,
    ]
    if asked.state == "pending" and asked.expires > time.time():
        parts += [_forms(visit, shown)]
    elif command := visit.desk.resuming(asked):
        parts += [el("p", "To continue: ", el("code", command))]
    store = visit.desk.store()
    if store is not None and is_own(visit, store, asked.session):
        parts += [el("p", el("a", "Its session", href=address(asked.session)))]
    parts += [el("p", el("a", "What else waits", href=HOME))]
    # The answer to a form cannot be fetched again.
    return ViewPage(title, el("section", parts), live=not visit.form, status=status)


def _find(visit: Visit) -> Request:
    """The request of a path. That of another user is as unknown as one that never was."""
    broker, id = visit.desk.broker(), visit.params["id"]
    with contextlib.suppress(UsageError):
        if broker is not None and (found := broker.find(id)).id == id and found.user in visit.users:
            return found
    raise UsageError(f"There is no request {id} for {visit.visitor.name}.")


def _shown(visit: Visit) -> Shown:
    asked = _find(visit)
    broker, trouble = visit.desk.looking(asked, decides=bool(visit.form))
    proposal = broker.proposal(asked.id, shown=False)  # the digest of the form is compared, not the last look
    plan = broker.plan_of(asked.id)
    changed = differences(proposal.changes, proposal.hide) if proposal else []
    trouble = trouble or (proposal.changes.trouble if proposal else "")
    rows = facts(asked, time.time(), plan)
    body = html(
        _what(asked, proposal),
        [_difference(one) for one in changed],
        el("p", trouble, class_="mark") if trouble else None,
        _origins(asked),
        el("dl", [(el("dt", name), el("dd", text)) for name, text in rows.items() if text]),
    )
    question = asked.question.to_data() if asked.question else {}
    seen: list[object] = [asked.form, asked.reason, asked.state, question, plan, trouble]
    seen += [[one.to_json() for one in changed], to_text(proposal.files) if proposal else ""]
    digest = hashlib.sha256(json.dumps(seen).encode("utf-8", "surrogatepass")).hexdigest()
    return Shown(asked, plan, body, digest, proposal.files if proposal else None)


def _what(asked: Request, proposal: Proposal | None) -> Html:
    """The question of a tool, or the form; arguments that the differences show are folded in it."""
    if asked.question is not None:
        choices = [el("li", one) for one in asked.question.choices]
        head = el("p", f"{asked.tool} asks a question. An answer is only words, and allows nothing.")
        return html(head, el("pre", asked.question.text), el("ol", choices) if choices else None)
    if (form := form_of(asked.form)) is None:
        return el("pre", asked.form)
    if proposal is None:
        return el("pre", laid_out(form))
    brief = folded(form, covered_by(proposal.tool, form, proposal.changes), others=False)
    whole = el("details", el("summary", "The whole call"), el("pre", laid_out(form)), id="whole")
    return html(el("pre", laid_out(brief)), whole if brief != form else None)


def _difference(one: FileDifference) -> Html:
    lines = el("pre", map(_line, one.lines), class_="diff") if one.lines else None
    if len(one.lines) > OPEN_LINES:
        head = f"{one.head}: {number_of(len(one.lines), 'line')}"
        return el("details", el("summary", head), lines, id=f"diff-{one.path}")
    return html(el("h2", one.head), lines)


def _line(line: DiffLine) -> Html:
    sign = "" if line.kind in "@!" else f"{line.kind} "
    return el("span", f"{sign}{line.text}", class_=CLASSES[line.kind])


def _origins(asked: Request) -> Html | None:
    lines = origin_lines(asked.origins, asked.route)
    if not lines:
        return None
    items = [el("li", one, class_="mark" if one.startswith(SIGN) else None) for one in lines]
    return html(el("h2", "Where its arguments come from"), el("ul", items, class_="plain"))


def _forms(visit: Visit, shown: Shown) -> Html:
    """What a visitor can do; each form leads to the page that asks once more."""
    asked = shown.asked
    if not visit.visitor.decides:
        return el("p", f"The key {visit.visitor.name} may look, not decide.")
    sure = f"/view/request/{asked.id}/sure"

    def form(kind: Kind, word: str, *fields: Child, main: bool = False) -> Html:
        button = el("p", el("button", word, type="submit", class_="main" if main else None))
        return visit.post(sure, *fields, button, kind=kind, shown=shown.digest)

    deny = form("deny", "Deny …", el("label", "Why not (the model reads it)", for_="why"), _input("why"))
    if asked.question is not None:
        return html(el("h2", "Answer"), form("answer", "Answer …", _answer_field(asked), main=True), deny)
    parts = [el("h2", "Decide"), form("once", "Approve once …", main=True)]
    if not shown.plan and not asks_fact(asked.reason):
        rule = el("textarea", asked.rule, id="rule", name="rule", rows=3, spellcheck="false", class_="form")
        label = el("label", "Or approve in this session what a rule allows", for_="rule")
        parts.append(form("scope", "Approve this scope …", label, rule))
    if not shown.plan:
        parts.append(el("details", el("summary", "Other approvals"), *_others(asked, form), id="others"))
    return html(parts, deny)


def _others(asked: Request, form: Callable[..., Html]) -> Iterator[Html]:
    if not asks_fact(asked.reason):
        label = el("label", "Approve the same call each time it is asked for in the next", for_="time")
        time = el("input", type="text", id="time", name="time", value="1h", autocomplete="off")
        yield form("duration", "Approve for a time …", label, time)
    # The placeholder of a secret would be an argument of the edited call.
    text = "" if SECRET in asked.form else asked.form
    label = el("label", "Run this call of the same tool instead", for_="call")
    call = el("textarea", text, id="call", name="call", rows=3, spellcheck="false", class_="form")
    yield form("edit", "Approve this call instead …", label, call)


def _input(name: str) -> Html:
    return el("input", type="text", id=name, name=name, autocomplete="off")


def _answer_field(asked: Request) -> Html:
    assert asked.question is not None, "it is a question"
    if asked.question.choices and asked.question.only:
        rows = [
            el("label", el("input", type="radio", name="answer", value=one, required=True), f" {one}")
            for one in asked.question.choices  # by its words: the number of one may be the words of another
        ]
        return el("fieldset", el("legend", "Your answer"), rows)
    told = (
        f"Your answer, {asked.question.range} or your own words" if asked.question.choices else "Your answer"
    )
    box = el("textarea", id="answer", name="answer", rows=3, required=True)
    return html(el("label", told, for_="answer"), box)


# Deciding


def ask_again(visit: Visit) -> Made:
    """Show exactly what a form would decide, and ask once more."""
    shown = _shown(visit)
    if (stale := _stale(visit, shown)) is not None:
        return stale
    decision, instead = visit.desk.preview(shown.asked, _decision(visit.form, visit.visitor.name))
    return _confirmation(visit, shown, decision, instead)


def _confirmation(
    visit: Visit, shown: Shown, decision: Decision, instead: Proposal | None, notice: str = ""
) -> ViewPage:
    title, word = _words(shown.asked, decision)
    to, back = f"/view/request/{shown.asked.id}/decide", f"/view/request/{shown.asked.id}"
    fields = {"kind": decision.kind, "shown": shown.digest} | _fields(decision)
    told = [el("p", notice, role="alert", class_="bad") if notice else None, *_told(decision)]
    if instead is not None:
        fields["edited"] = _digest_of(decision, instead)
        told += map(_difference, differences(instead.changes, instead.hide))
        told.append(el("p", instead.changes.trouble, class_="mark") if instead.changes.trouble else None)
        told.append(el("h2", "Instead of"))
    page = confirmation(visit, title, [*told, shown.body], to, word, back, **fields)
    return replace(page, status=409) if notice else page


def _digest_of(decision: Decision, instead: Proposal) -> str:
    """A digest of an edited call and its changes."""
    changed = [one.to_json() for one in differences(instead.changes, instead.hide)]
    seen = [canonical(decision.form) if decision.form else "", changed, to_text(instead.files)]
    return hashlib.sha256(json.dumps(seen).encode("utf-8", "surrogatepass")).hexdigest()


def _words(asked: Request, decision: Decision) -> tuple[str, str]:
    """The question of the page that asks once more, and the word of its button."""
    named = f"request {asked.id}"
    return {
        "once": (f"Approve {named} once?", "Yes, approve once"),
        "duration": (
            f"Approve {named} for {exact_time(decision.seconds or 0)}?",
            "Yes, approve for this time",
        ),
        "scope": (f"Approve the scope of {named}?", "Yes, approve this scope"),
        "edit": (f"Approve another call instead of {named}?", "Yes, approve this call instead"),
        "deny": (f"Deny {named}?", "Yes, deny"),
        "answer": (f"Answer {named}?", "Yes, answer"),
    }[decision.kind]


def _told(decision: Decision) -> Iterator[Html]:
    if decision.kind == "scope":
        yield el("pre", question_of(decision))
    elif decision.form is not None:
        yield el("pre", laid_out(decision.form))
    elif decision.kind == "answer":
        yield html(el("p", "Your answer:"), el("pre", decision.answer))
    elif decision.kind == "deny":
        yield (
            html(el("p", "Your reason:"), el("pre", decision.why))
            if decision.why
            else el("p", "Without a reason.")
        )


def _fields(decision: Decision) -> dict[str, str]:
    """The decision as fields of a form."""
    seconds = "" if decision.seconds is None else f"{decision.seconds:g}"
    said = {"rule": decision.rule, "why": decision.why, "answer": decision.answer, "seconds": seconds}
    said["call"] = canonical(decision.form) if decision.form else ""
    return {name: value for name, value in said.items() if value}


def _decision(form: Mapping[str, str], by: str) -> Decision:
    """The decision that a form says. Raises UsageError."""
    if (kind := KINDS.get(form.get("kind", ""))) is None:
        raise UsageError("The form does not say what to decide. Go back and choose.")
    seconds = None
    try:
        if kind in ("scope", "duration") and "seconds" in form:
            seconds = float(form["seconds"])
        elif kind == "duration":
            seconds = seconds_of(form.get("time", ""))
    except ValueError:
        raise UsageError("The time of an approval is a number of seconds.") from None

    def words(name: str, of: Kind) -> str:
        return form.get(name, "").replace("\r\n", "\n").strip() if kind == of else ""

    rule, why, answer = words("rule", "scope"), words("why", "deny"), words("answer", "answer")
    call = call_of(words("call", "edit")) if kind == "edit" else None
    return Decision(kind, by=by, seconds=seconds, rule=rule, why=why, answer=answer, form=call)


def _stale(visit: Visit, shown: Shown) -> ViewPage | None:
    """The request as it is now, if it is not what the visitor was shown."""
    if visit.form.get("shown") == shown.digest:
        return None
    asked = shown.asked
    open_still = asked.state == "pending" and asked.expires > time.time()
    over = "It expired; nothing was" if asked.state == "pending" else "It was decided before; nothing was"
    notice = f"{CHANGED} nothing was decided." if open_still else f"{over} changed."
    return _page(visit, shown, notice, 409)


def decide(visit: Visit) -> Made:
    """Record the confirmed decision."""
    shown = _shown(visit)
    if (stale := _stale(visit, shown)) is not None:
        return stale
    decision, files = _decision(visit.form, visit.visitor.name), shown.files
    if decision.kind == "edit":
        decision, instead = visit.desk.preview(shown.asked, decision)
        if instead is None or visit.form.get("edited") != _digest_of(decision, instead):
            return _confirmation(visit, shown, decision, instead, f"{CHANGED} nothing was decided.")
        files = instead.files
    try:
        visit.desk.decide(shown.asked, decision, files)
    except ChangeDiffersError:
        return _page(visit, _shown(visit), f"{CHANGED} nothing was decided.", 409)
    return Redirection(f"/view/request/{shown.asked.id}")
