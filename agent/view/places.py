"""All pages, in the order of the navigation. A new page is a row here."""

from __future__ import annotations

from quoth.agent.view import flights, memory, policy, sessions, stats, waiting
from quoth.agent.view.page import ViewPlace

PLACES = (
    ViewPlace("/view/", waiting.listing, "Waiting"),
    ViewPlace("/view/request/{id}", waiting.request),
    ViewPlace("/view/request/{id}/sure", waiting.ask_again, posts=True),
    ViewPlace("/view/request/{id}/decide", waiting.decide, posts=True),
    *sessions.PLACES,
    *flights.PLACES,
    *memory.PLACES,
    *policy.PLACES,
    *stats.PLACES,
)
