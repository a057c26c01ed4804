"""The usage of a workspace: its calls, denials, tokens and cost by day, and its calls by tool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from quoth.neuro.backends.base import Usage
from quoth.tools.history.event import Event, TranscriptError, one_field
from quoth.tools.history.outline import MARKED
from quoth.tools.history.transcript import Transcript
from quoth.tools.storage.database import Store

PAGE: Final = 500
CALLS: Final = (  # SQLite compares the time of a row only on the first day
    "SELECT substr(ts, 1, 10) AS day, tool, status, count(*), sum(duration_ms)"
    " FROM audit INDEXED BY audit_day WHERE day >= substr(?1, 1, 10)"
    " AND (day > substr(?1, 1, 10) OR ts >= ?1) AND tool != ''"
    " GROUP BY day, tool, status"
)
REPLIES: Final = (  # uses only the index to find the rows
    "SELECT e.session, e.run, e.seq, e.at, coalesce(shown, form)"  # noqa: S608
    f" FROM (SELECT session, run, seq FROM {MARKED} WHERE (session, run, seq) > (?, ?, ?)"
    " AND kind IN ('reply', 'intent') AND at >= ? ORDER BY session, run, seq LIMIT ?) AS found"
    " CROSS JOIN events AS e ON e.session = found.session AND e.seq = found.seq ORDER BY 1, 2, 3"
)
Price = Callable[[str, Usage], float | None]  # cost of a model's usage in US dollars; None: unknown


@dataclass
class Amounts:
    """The usage on a day (UTC) or by a tool. ``asked``: calls that waited for a person; ``unpriced``: tokens
    of unknown cost."""

    calls: int = 0
    denied: int = 0
    failed: int = 0
    asked: int = 0
    ms: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    unpriced: int = 0
    cost: float = 0.0

    def count(self, status: str, calls: int, ms: int) -> None:
        if status == "pending":
            self.asked += calls
            return
        self.calls += calls
        self.ms += ms
        self.denied += calls if status == "denied" else 0
        self.failed += calls if status not in ("ok", "denied") else 0

    def pay(self, usage: Usage, cost: float | None) -> None:
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.cost += cost or 0.0
        self.unpriced += usage.tokens if cost is None else 0


@dataclass
class Stats:
    """The amounts by day, ``2026-11-22``, and by tool; the amounts of a tool have no tokens."""

    days: dict[str, Amounts] = field(default_factory=lambda: defaultdict(Amounts))
    tools: dict[str, Amounts] = field(default_factory=lambda: defaultdict(Amounts))

    def to_json(self) -> dict[str, list[dict[str, Any]]]:
        tools = ("calls", "denied", "failed", "asked", "ms")
        return {
            "days": [{"day": day, **vars(one)} for day, one in sorted(self.days.items())],
            "tools": [
                {"name": name, **{key: getattr(one, key) for key in tools}} for name, one in self.most()
            ],
        }

    def most(self) -> list[tuple[str, Amounts]]:
        """The tools, sorted by their number of calls, the largest first."""
        return sorted(self.tools.items(), key=lambda one: (-one[1].calls, one[0]))


def stats(store: Store, since: str, price: Price) -> Stats:
    """The amounts since a time (UTC, ISO 8601; empty for all). Events that a session has from another, by
    import or fork, count only there."""
    found = Stats()
    for day, tool, status, calls, ms in store.execute(CALLS, (since,)):
        for amounts in (found.days[day], found.tools[tool]):
            amounts.count(status, calls, ms)
    _count_replies(found, store, since, price)
    return found


def _count_replies(found: Stats, store: Store, since: str, price: Price) -> None:
    transcript = Transcript(lambda: store)
    last, elsewhere, model = ("", "", 0), 0, ""
    while page := store.execute(REPLIES, (*last, since, PAGE)):
        for session, run, seq, at, text in page:
            if session != last[0]:
                elsewhere = _written_elsewhere(transcript, session)
            if (session, run) != last[:2]:
                begun = transcript.last(session, "stimulus", run=run)
                model = str(_said(begun.shown, "model") or "") if begun else ""
            last = session, run, seq
            if seq > elsewhere and (usage := _said(text, "usage")):
                used = Usage(**usage)
                found.days[at[:10]].pay(used, price(model, used))


def _written_elsewhere(transcript: Transcript, session: str) -> int:
    """The number of events that a session has from another, by import or fork."""
    opened = transcript.events(session, kind="session")
    forked = [one.seq for one in opened if ":from" in one.shown and _said(one.shown, "from")]
    return max(transcript.imported(session), *forked, 0)


def _said(text: str, field: str) -> Any:
    """A field of an event; None if it is missing or the event cannot be read."""
    try:
        return one_field(text, field)
    except TranscriptError:
        return None


# The results of the response tags of a session: the status of each call, or why a line was not a call.


@dataclass(frozen=True)
class TagLine:
    """One line of a reply. ``status`` is the status of its call, or ``passed`` if it was not a call; ``why``
    is the reason."""

    id: str  # the id of the reply
    run: str
    line: int
    text: str
    status: str
    why: str = ""
    call: str = ""

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return f"{self.run}, line {self.line}: {self.text}\n  {self.status}{why}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def tag_lines(events: Sequence[Event]) -> Iterator[TagLine]:
    """The tag lines of all replies, in order. A call that has not run yet has the status ``waiting``."""
    calls = {(event.parent, _place(event.key)): event for event in events if event.kind == "call"}
    results = {event.key: event for event in events if event.kind == "receipt"}
    for event in events:
        if event.kind != "tags":
            continue
        reply = f"{event.session}.{event.parent}"
        for line, text, what in event.said["lines"]:
            if isinstance(what, str):
                yield TagLine(reply, event.run, line, text, "passed", what)
                continue
            call = calls.get((event.parent, what))
            result = results.get(call.key) if call else None
            why = str(result.said.get("message", "")) if result and result.status != "ok" else ""
            status = result.status if result else "waiting"
            yield TagLine(reply, event.run, line, text, status, why, call.id if call else "")


def _place(key: str) -> int:
    """The place of a loop's call in its turn, the end of its key; -1 for any other call."""
    place = key.rpartition(".")[2]
    return int(place) if place.isdecimal() else -1
