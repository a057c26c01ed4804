"""What a workspace has used: its calls, denials, tokens and cost by day, and its calls by tool.

Knows the store's audit and transcripts; the caller asks price lists, and prints.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from quoth.agent.session.index import Readable
from quoth.neuro.backends.base import Usage
from quoth.tools.storage.database import Store

Price = Callable[[str, Usage], float | None]  # of a model, "openai:gpt-5", in US dollars; None: unknown


@dataclass
class Amounts:
    """What was used on a day (UTC) or by a tool. ``asked`` are calls that had to wait for a person;
    ``unpriced`` are tokens that cost something nobody knows."""

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
    """The amounts by day, ``2026-11-22``, and by tool; those of a tool have no tokens."""

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
        """The tools, those with the most calls first."""
        return sorted(self.tools.items(), key=lambda one: (-one[1].calls, one[0]))


def stats(store: Store, since: str, price: Price) -> Stats:
    """The amounts since a time (UTC, ISO 8601; empty for all). What a session has from another, by import or
    fork, is counted there alone."""
    found = Stats()
    sql = (
        "SELECT substr(ts, 1, 10), tool, status, count(*), sum(duration_ms) FROM audit"
        " WHERE tool != '' AND ts >= ? GROUP BY 1, 2, 3"
    )
    for day, tool, status, calls, ms in store.execute(sql, (since,)):
        for amounts in (found.days[day], found.tools[tool]):
            amounts.count(status, calls, ms)
    transcript = Readable(lambda: store)
    for session, _, _, last in transcript.sessions():
        if last >= since:
            _count_replies(found, transcript, session, since, price)
    return found


def _count_replies(found: Stats, transcript: Readable, session: str, since: str, price: Price) -> None:
    forked = [one.seq for one in transcript.events(session, kind="session") if one.said.get("from")]
    foreign = max(transcript.imported(session), *forked, 0)  # so many events stood elsewhere before
    models = {one.run: str(one.said.get("model", "")) for one in transcript.events(session, kind="stimulus")}
    for event in transcript.events(session, kind="reply"):
        usage = event.said.get("usage")
        if event.seq > foreign and event.at >= since and usage:
            used = Usage(**usage)
            found.days[event.at[:10]].pay(used, price(models.get(event.run, ""), used))
