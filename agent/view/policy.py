"""The page of the policy: the rules that apply, and what each has decided lately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from quoth.agent.markup import Child, Html, el, html
from quoth.agent.session.render import minute
from quoth.agent.terminal.pages import layer_contents
from quoth.agent.view.memory import require_owner
from quoth.agent.view.page import ViewPage, ViewPlace, Visit
from quoth.agent.view.sessions import address, table
from quoth.tools.policy.policy import Layer
from quoth.tools.storage.database import Store

LIST = "/view/policy"
LATELY = 2_000  # calls of the audit that are counted
SHOWN = 5  # calls of one rule that are listed
IGNORED = " (ignored: a workspace may only tighten the rules)"
SQL = (
    "SELECT rule, substr(policy, 1, instr(policy || ':', ':') - 1), seq, id, ts, session, event, tool, status"
    " FROM audit WHERE tool != '' ORDER BY seq DESC LIMIT ?"
)


@dataclass
class _Decided:
    """What one rule has decided, by its verdict, and its latest calls."""

    counts: dict[str, int] = field(default_factory=dict)
    latest: list[tuple[str, str, str, int | None, str, str]] = field(default_factory=list)


def policy(visit: Visit) -> ViewPage:
    """The rules of each file, with their latest decisions."""
    require_owner(visit)
    store = visit.desk.store()
    layers, notes = visit.desk.layers()
    decided = _decided(store) if store is not None else {}
    parts: list[Child] = [el("p", note, class_="wait") for note in notes]
    named = {rule.text for layer in layers for rule in layer.orders.rules}
    for layer in layers:
        parts += [el("h2", f"{layer.name} ({layer.kind})"), _layer(layer, decided)]
    parts.append(el("h2", "Without a rule"))
    parts.append(el("p", "The effects of a tool decide: what only reads is allowed, all else is asked."))
    parts.append(_calls(decided.get("", _Decided())))
    gone = {text: one for text, one in decided.items() if text and text not in named}
    if gone:
        parts += [el("h2", "Rules of other files, and earlier ones"), _rules(list(gone.items()), {})]
    lately = el(
        "p",
        f"Counted are the latest {LATELY:,} calls at most. A call: ",
        el("code", "quoth policy explain FORM"),
        class_="quiet",
    )
    return ViewPage("Policy", html(el("h1", "Policy"), lately, parts), live=True)


def _decided(store: Store) -> dict[str, _Decided]:
    found: dict[str, _Decided] = {}
    for rule, verdict, _, id, ts, session, event, tool, status in store.execute(SQL, (LATELY,)):
        one = found.setdefault(str(rule), _Decided())
        one.counts[verdict or "none"] = one.counts.get(verdict or "none", 0) + 1
        if len(one.latest) < SHOWN:
            one.latest.append((id, ts, session, event, tool, status))
    return found


def _layer(layer: Layer, decided: Mapping[str, _Decided]) -> Html:
    contents = el("p", f"{layer_contents(layer)}.")
    rules = [
        (
            rule.text,
            f"{rule.place}{IGNORED if layer.ignores(rule) else ''}",
        )
        for rule in layer.orders.rules
    ]
    limits = [el("li", el("code", one.text), f" {one.place}") for one in layer.orders.limits]
    return html(
        contents,
        _rules([(text, decided.get(text, _Decided())) for text, _ in rules], dict(rules)) if rules else None,
        (el("h3", "Limits"), el("ul", limits)) if limits else None,
    )


def _rules(rules: Sequence[tuple[str, _Decided]], places: Mapping[str, str]) -> Html:
    rows: list[list[Child]] = []
    for text, one in rules:
        head = html(el("code", text), el("br"), el("span", places.get(text, ""), class_="quiet"))
        rows.append([head, _counted(one), _calls(one)])
    return table("Rules and what they decided", ("rule", "decided", "latest calls"), rows)


def _counted(one: _Decided) -> str:
    return ", ".join(f"{count:,} {verdict}" for verdict, count in one.counts.items()) or "nothing lately"


def _calls(one: _Decided) -> Html | None:
    items = []
    for id, ts, session, event, tool, status in one.latest:
        what: Child = el("a", tool, href=address(session, event)) if event is not None else tool
        items.append(el("li", what, f" {status}, {minute(ts)}, call {id}"))
    return el("ul", items, class_="plain") if items else None


PLACES = (ViewPlace(LIST, policy, "Policy"),)
