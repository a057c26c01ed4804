"""Which sessions of a store nobody needs any more, and their removal: the policy of ``quoth gc``.

Knows transcripts and locks; it must not know who is asked, nor how it is printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from quoth.agent.session.index import read_leniently, unfinished_sessions, waiting
from quoth.agent.session.session import alone
from quoth.tools.errors import BusyError
from quoth.tools.history.outline import Row
from quoth.tools.history.transcript import Transcript
from quoth.tools.storage.database import Store
from quoth.tools.storage.in_use import not_in_use

POLICY: Final = (
    "Removed are sessions that have ended, with nothing in them that waits, was broken off or is flown, and"
    " without an event since {}: their transcripts, receipts, long texts, suspended programs and what files"
    " held before; and lock files as old. The audit stays."
)
BATCH: Final = 200  # sessions that are removed in one transaction


def old_sessions(store: Store, before: str) -> list[Row]:
    """The finished sessions whose last event is older than a time (UTC, ISO 8601), the latest last."""
    transcript = Transcript(lambda: store)
    kept = {name for name, _ in unfinished_sessions(store)} | transcript.outline.awaited()
    return [row for row in transcript.outline.sessions() if row.last < before and row.session not in kept]


def _is_old(store: Store, session: str, before: str) -> bool:
    """Whether a session still has only old events, and nothing in it waits."""
    ((last,),) = store.execute("SELECT max(at) FROM events WHERE session = ?", (session,))
    return bool(last) and last < before and not read_leniently(store, partial(waiting, session=session))


def remove_sessions(store: Store, names: Sequence[str], before: str) -> list[str]:
    """Remove sessions, and what was left of others; returns those that are gone. One that is in use
    now, or was gone on with since, stays."""
    transcript = Transcript(lambda: store)
    gone: list[str] = []
    for start in range(0, len(names), BATCH):
        with ExitStack() as stack:
            mine: list[str] = []
            for name in names[start : start + BATCH]:
                try:
                    stack.enter_context(not_in_use(store.path, name, 0.0))
                    stack.enter_context(alone(Path(store.path), name))
                except BusyError:
                    continue
                mine.append(name)
            with store.transaction():
                kept = transcript.outline.awaited()
                mine = [one for one in mine if one not in kept and _is_old(store, one, before)]
                transcript.remove(*mine)
            gone += mine
    return gone
