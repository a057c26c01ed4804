"""The page of the usage by day: charts drawn on the server, each with its numbers in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from quoth.agent.markup import Child, Html, el, html
from quoth.agent.run.budget import price_of
from quoth.agent.session.stats import Amounts, Stats, stats
from quoth.agent.view.memory import require_owner
from quoth.agent.view.page import ViewPage, ViewPlace, Visit
from quoth.agent.view.sessions import table
from quoth.tools.text import money, number_of, short

LIST = "/view/stats"
DAYS = 30
TOOLS = 20
WIDTH, HEIGHT, GAP = 600, 90, 3  # of a chart, in its own units
CHARTS: Final[Mapping[str, Callable[[Amounts], float]]] = {
    "calls": lambda one: one.calls,
    "denied": lambda one: one.denied,
    "tokens": lambda one: one.input_tokens + one.output_tokens,
    "cost": lambda one: one.cost,
}


def usage(visit: Visit) -> ViewPage:
    """The calls, denials, tokens and cost of the last days."""
    require_owner(visit)
    now = datetime.now(UTC)
    names = [(now - timedelta(days=ago)).date().isoformat() for ago in reversed(range(DAYS))]
    store = visit.desk.store()
    found = stats(store, f"{names[0]}T00:00:00.000", price_of) if store is not None else Stats()
    days = {name: found.days.get(name, Amounts()) for name in names}
    charts = [el("figure", el("figcaption", name.capitalize()), chart(name, days)) for name in CHARTS]
    heads = ("day (UTC)", "calls", "denied", "asked", "tokens in", "tokens out", "cost")
    rows = [_row(name, one) for name, one in reversed(days.items()) if one != Amounts()]
    none = el("p", f"Nothing was called in the last {DAYS} days.")
    body = (
        [el("div", charts, class_="charts"), table("By day, the latest first", heads, rows)] if rows else none
    )
    unpriced = sum(one.unpriced for one in days.values())
    note = (
        el("p", f"{number_of(unpriced, 'token')} have no known price.", class_="quiet") if unpriced else None
    )
    return ViewPage("Usage", html(el("h1", f"Usage of the last {DAYS} days"), body, note, _tools(found)))


def chart(name: str, days: Mapping[str, Amounts]) -> Html:
    """A bar for each day. Its title and its table say the same in words."""
    of = CHARTS[name]
    values = {day: of(one) for day, one in days.items()}
    most, total = max(values.values(), default=0), sum(values.values())
    step = WIDTH / max(len(values), 1)
    said = (
        f"{name.capitalize()} by day: {_number(name, total)} in all, at most {_number(name, most)} on a day"
    )
    bars = [
        _bar(
            round(at * step, 1),
            round(step - GAP, 1),
            round(HEIGHT * value / most, 1),
            f"{day}: {_number(name, value)}",
        )
        for at, (day, value) in enumerate(values.items())
        if value
    ]
    base = el("line", x1=0, y1=HEIGHT, x2=WIDTH, y2=HEIGHT, class_="base")
    box = f"0 0 {WIDTH} {HEIGHT + 2}"
    return el(
        "svg", el("title", said), base, bars, viewBox=box, role="img", aria_label=said, class_=f"chart {name}"
    )


def _bar(x: float, width: float, height: float, said: str) -> Html:
    tall = max(height, 1)
    return el("rect", el("title", said), x=x, y=HEIGHT - tall, width=width, height=tall)


def _number(name: str, value: float) -> str:
    return money(value) if name == "cost" else f"{value:,.0f}"


def _row(day: str, one: Amounts) -> list[Child]:
    numbers = (one.calls, one.denied, one.asked, one.input_tokens, one.output_tokens)
    return [el("time", day, datetime=day), *(f"{number:,}" for number in numbers), money(one.cost)]


def _tools(found: Stats) -> Html | None:
    rows: list[list[Child]] = [
        [
            el("code", short(name, 60)),
            *(f"{number:,}" for number in (one.calls, one.denied, one.failed)),
            f"{round(one.ms / one.calls) if one.calls else 0:,}",
        ]
        for name, one in found.most()[:TOOLS]
    ]
    heads = ("tool", "calls", "denied", "failed", "ms a call")
    return html(el("h2", "By tool"), table("Tools, the most called first", heads, rows)) if rows else None


PLACES = (ViewPlace(LIST, usage, "Usage"),)
