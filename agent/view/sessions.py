"""The pages of sessions: the list with its search, the timeline of one, and the undo of its writes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import islice
from urllib.parse import quote, urlencode

from quoth.agent.markup import Child, Html, el, html
from quoth.agent.session.changes import CallChanges
from quoth.agent.session.html import Facts, anchor, drawn_difference, pairs, timeline
from quoth.agent.session.index import Summary, place_in, read_leniently, summaries, users_of
from quoth.agent.session.render import minute
from quoth.agent.session.undo import MOST, Left, UndoPlan, done_text
from quoth.agent.session.window import EVENTS, SessionPart, window
from quoth.agent.view.page import Made, ViewPage, ViewPlace, Visit, confirmation
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.history.event import Event
from quoth.tools.history.outline import END, Outline
from quoth.tools.history.versions import StoreVersions
from quoth.tools.memory.passages import catch_up
from quoth.tools.memory.search import said_by
from quoth.tools.storage.database import Store
from quoth.tools.storage.file_lock import not_in_use
from quoth.tools.text import number_of, short

LIST = "/view/sessions"
ROWS = 25
HITS = 30
INDEX_SECONDS = 1.0  # in which a search may index what is new
TASK_CHARS = 120
COLORS = {"done": "ok", "calls": "ok", "running": "wait", "pending": "wait"}


def address(session: str, seq: int | None = None) -> str:
    """The page of a session; of one event, if given."""
    path = f"{LIST}/{quote(session, safe='')}"
    return path if seq is None else f"{path}?at={seq}#{anchor(seq)}"


def table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[Child]]) -> Html:
    """A table; the first cell of a row is its head. On a narrow screen its rows are blocks, whose cells have
    the names of their columns; the roles keep it a table for readers of the screen."""
    head = el("tr", [el("th", one, scope="col", role="columnheader") for one in heads], role="row")
    shown = el(
        "table",
        el("caption", caption),
        el("thead", head, role="rowgroup"),
        el("tbody", [_table_row(heads, row) for row in rows], role="rowgroup"),
        role="table",
    )
    return el("div", shown, class_="wide", tabindex=0, role="region", aria_label=caption)


def _table_row(heads: Sequence[str], row: Sequence[Child]) -> Html:
    cells = [el("td", one, role="cell", data_head=name) for name, one in zip(heads[1:], row[1:], strict=True)]
    return el("tr", el("th", row[0], scope="row", role="rowheader"), cells, role="row")


def store_of(visit: Visit) -> Store:
    """The store of the workspace. Raises UsageError if there is none."""
    if (store := visit.desk.store()) is None:
        raise UsageError("Nothing was recorded in this workspace yet.")
    return store


def require_own(visit: Visit, session: str) -> Store:
    """The store, if the session in it was opened only by users of this visitor. Raises UsageError, with the
    same sentence for a session of another user as for none."""
    store = store_of(visit)
    if not is_own(visit, store, session):
        raise UsageError(
            f"There is no session {short(session, 80)} of {visit.visitor.name} in this workspace."
        )
    return store


def is_own(visit: Visit, store: Store, session: str) -> bool:
    users = read_leniently(store, lambda transcript: users_of(transcript, session))
    return bool(users) and {*users} <= {*visit.users}


# The list


def sessions(visit: Visit) -> ViewPage:
    """The latest sessions, or what was found in them."""
    query = visit.query.get("q", "").strip()
    every = visit.query.get("all") == "1"
    form = el(
        "form",
        el("label", "Search in tasks and replies", for_="q"),
        el("input", id="q", name="q", type="search", value=query, maxlength=200),
        el("p", el("button", "Search", type="submit")),
        method="get",
        action=LIST,
        role="search",
    )
    body = _found(visit, query) if query else _listed(visit, every)
    return ViewPage("Sessions", html(el("h1", "Sessions"), form, body), live=not query)


def _listed(visit: Visit, every: bool) -> Html:
    store = visit.desk.store()
    if store is None:
        return el("p", "Nothing was recorded in this workspace yet.")
    last, _, name = visit.query.get("before", "").partition(" ")
    places = list(
        islice(
            Outline(lambda: store).of_users(visit.users, every=every, below=(last, name) if name else END),
            ROWS + 1,
        )
    )
    found = [
        one
        for one in _summaries(store, [name for _, name in places[:ROWS]])
        if {*one.users} <= {*visit.users}
    ]
    if not found:
        return el("p", "There is no session of yours here.", _all_link(every))
    more = None
    if len(places) > ROWS:
        words = {"before": " ".join(places[ROWS - 1])} | ({"all": "1"} if every else {})
        more = el("p", el("a", "Older sessions", href=f"{LIST}?{urlencode(words)}"))
    heads = ("session", "last", "status", "runs", "calls", "task")
    return html(
        table("Sessions, the latest first", heads, [_row(one) for one in found]),
        more,
        el("p", _all_link(every)),
    )


def _all_link(every: bool) -> Html:
    if every:
        return el("a", "Leave out sessions of single calls", href=LIST)
    return el("a", "Show sessions of single calls, too", href=f"{LIST}?all=1")


def _summaries(store: Store, names: Sequence[str]) -> list[Summary]:
    return list(summaries(store, Outline(lambda: store).rows(names)))


def _row(one: Summary) -> list[Child]:
    waits = el("span", f" {one.waits} waiting", class_="wait") if one.waits else ""
    return [
        el("a", one.id, href=address(one.id)),
        el("time", minute(one.last), datetime=one.last),
        html(el("b", one.status, class_=COLORS.get(one.status, "bad")), waits),
        f"{one.runs:,}",
        f"{one.calls:,}",
        short(one.task, TASK_CHARS),
    ]


def _found(visit: Visit, query: str) -> Html:
    """The sessions whose id begins with the words, and the turns in which they are said."""
    store = visit.desk.store()
    if store is None:
        return el("p", "Nothing was recorded in this workspace yet.")
    begun = Outline(lambda: store).of_users(visit.users, every=True, begins=query)
    named = [name for _, name in islice(begun, HITS) if is_own(visit, store, name)]
    trouble, whole = None, True
    try:
        whole = catch_up(store, INDEX_SECONDS)
        hits = said_by(store, visit.users, query, HITS)
    except ToolError as error:
        hits, trouble = [], el("p", str(error), role="alert")
    known: dict[str, bool] = {}
    shown = []
    for hit in hits:
        session, _, seq = hit.label.rpartition(".")
        if session not in known:
            known[session] = is_own(visit, store, session)
        if known[session]:
            link = el("a", hit.label, href=address(session, place_in(seq)))
            shown.append(
                el("li", link, " ", el("span", minute(hit.at), class_="quiet"), el("p", short(hit.text, 400)))
            )
    listed = [el("li", el("a", name, href=address(name))) for name in named]
    if not whole:
        trouble = el("p", "Not all is indexed yet. Search again to find more.", role="status", class_="wait")
    if not shown and not listed:
        return trouble or el("p", f"Nothing was found for: {query}", role="status")
    return html(
        trouble,
        (el("h2", "Sessions of this name"), el("ul", listed)) if listed else None,
        (el("h2", "Found in tasks and replies"), el("ol", shown, class_="plain")) if shown else None,
    )


# One session


def session(visit: Visit) -> ViewPage:
    """The timeline of a session."""
    name = visit.params["session"]
    store = require_own(visit, name)
    at = visit.query.get("at", "")
    part = window(store, name, place_in(at) if at.isdecimal() else None)
    one = next(iter(_summaries(store, [name])))
    workspace = Workspace(visit.desk.folder).of_session(name)
    changes = CallChanges(StoreVersions(lambda: store, workspace.root), workspace, name)

    def undo(call: Event) -> str:
        return f"{address(name)}/undo?to={call.seq}" if visit.visitor.decides else ""

    facts = Facts(part.rows, changes.of, undo, part.large, part.before)
    return ViewPage(
        f"Session {name}",
        html(
            el("h1", f"Session {name}"),
            _head(one),
            el("p", el("a", "Undo all its writes", href=f"{address(name)}/undo"))
            if changes.keys and visit.visitor.decides
            else None,
            [el("p", f"{fault} It was skipped.", class_="bad") for fault in part.faults],
            _pager(name, part),
            list(timeline(part.events, facts)),
            _pager(name, part),
        ),
        live=part.last == part.count,
    )


def _head(one: Summary) -> Html:
    told: dict[str, Child] = {
        "status": el("b", one.status, class_=COLORS.get(one.status, "bad")),
        "begun": minute(one.first),
        "last": minute(one.last),
        "of": ", ".join(one.users),
    }
    if one.model:
        told["model"] = one.model
    told |= {"runs": f"{one.runs:,}", "calls": f"{one.calls:,}", "events": f"{one.events:,}"}
    if one.waits:
        told["waiting"] = el("a", f"{one.waits} unfinished", href="/view/")
    return pairs(told)


def _pager(name: str, part: SessionPart) -> Html | None:
    if part.count <= EVENTS:
        return None
    links: list[Child] = [f"Events {part.first:,} to {part.last:,} of {part.count:,}. "]
    if part.first > 1:
        links += [el("a", "First", href=f"{address(name)}?at=1"), " "]
        links += [el("a", "Earlier", href=f"{address(name)}?at={part.first - 1}"), " "]
    if part.last < part.count:
        links += [el("a", "Later", href=f"{address(name)}?at={part.last + 1}"), " "]
        links += [el("a", "Latest", href=address(name))]
    return el("nav", el("p", links), aria_label="Parts of this session")


# Undo


def undo(visit: Visit) -> Made:
    """What an undo would change; once this was confirmed, its result."""
    name = visit.params["session"]
    require_own(visit, name)
    asked = visit.form or visit.query
    to, redo = asked.get("to", ""), asked.get("redo") == "1"
    with visit.desk.undoing(name, visit.visitor.name) as way:
        since = way.event_of(to) if to else 0
        plan = way.plan_redo() if redo else way.plan(since)
        if plan.empty:
            raise UsageError(way.nothing(plan, since))
        if not plan.files:
            return ViewPage(
                "Undo", html(el("h1", "Nothing can be undone"), _shown(plan), _back(name)), status=409
            )
        seen = _digest(plan)
        if visit.form and visit.form.get("seen") == seen:
            with not_in_use(store_of(visit).path, name):
                done = way.do(plan)
            return ViewPage(
                "Done",
                html(
                    el("h1", "Done"),
                    el("p", done_text(way, plan, done), role="status"),
                    [el("p", said) for said in done.said],
                    [_left(one) for one in done.failed],
                    None if plan.redo else el("p", el("a", "Redo", href=f"{address(name)}/undo?redo=1")),
                    _back(name),
                ),
            )
    word = f"{'Redo the changes of' if redo else 'Put back'} {number_of(len(plan.files), 'file')}"
    anew = (
        el("p", "The files have changed since this was shown. Look again:", role="alert")
        if visit.form
        else None
    )
    fields = {"seen": seen} | ({"to": to} if to else {}) | ({"redo": "1"} if redo else {})
    title = f"{'Redo' if redo else 'Undo'} in session {name}"
    return confirmation(
        visit, title, html(anew, _shown(plan)), f"{address(name)}/undo", word, address(name), **fields
    )


def _digest(plan: UndoPlan) -> str:
    """A digest of all that a plan would write."""
    said = [plan.to_json(), [[one.path, *map(_content, (one.now, one.then))] for one in plan.files]]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _content(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _shown(plan: UndoPlan) -> Html:
    files = [
        html(drawn_difference(one.difference), el("p", one.note) if one.note else None) for one in plan.files
    ]
    left = [_left(one) for one in plan.left]
    uncovered = [el("li", str(one)) for one in plan.uncovered[:MOST]]
    if len(plan.uncovered) > MOST:
        uncovered.append(el("li", number_of(len(plan.uncovered) - MOST, "more call")))
    return html(
        (el("h2", "These files would change"), files) if files else None,
        (el("h2", "These stay as they are"), left) if left else None,
        (el("h2", "Not covered"), el("ul", uncovered)) if uncovered else None,
    )


def _left(one: Left) -> Html:
    more = (
        html(el("p", "Putting it back would change:"), drawn_difference(one.difference))
        if one.difference
        else None
    )
    return el("div", el("p", f"{one.path}: {one.why}"), more)


def _back(name: str) -> Html:
    return el("p", el("a", f"Session {name}", href=address(name)))


PLACES = (
    ViewPlace(LIST, sessions, "Sessions"),
    ViewPlace(f"{LIST}/{{session}}", session),
    ViewPlace(f"{LIST}/{{session}}/undo", undo, decides=True),
    ViewPlace(f"{LIST}/{{session}}/undo", undo, posts=True),
)
