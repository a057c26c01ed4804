"""Checkpoints: the state of a run at an event of its session, so that resuming it need not read all earlier
events. The events remain the record: a checkpoint is ignored unless that event exists unchanged.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from quoth.tools.storage.database import Store

FORMAT = 1  # of a checkpoint's content; checkpoints of another format are ignored


class Checkpoints:
    """The checkpoints of one run, in order. Each contains the changes since the one before."""

    def __init__(self, store: Callable[[], Store], session: str, run: str) -> None:
        self._store = store
        self._which = (session, run)

    def add(self, said: Mapping[str, Any], before: int) -> int:
        """Write a checkpoint for all events of the session so far, continuing the checkpoint at event
        ``before``; returns the last event, 0 if it is not known. It is on disk with the next write. Raises
        StoreError."""
        store = self._store()
        with store.transaction(synced=False, what="The transcript could not be written") as execute:
            if (last := store.known.get(("event", self._which[0]))) is None:
                return 0
            execute(
                "DELETE FROM checkpoints WHERE session = ? AND run = ? AND seq > ?", (*self._which, before)
            )
            data = zlib.compress(json.dumps(said, separators=(",", ":")).encode(), 1)
            execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?)", (*self._which, *last, FORMAT, data))
        return int(last[0])

    def places(self) -> list[int]:
        """The events with a valid checkpoint, up to the first invalid one."""
        rows = self._store().execute(
            "SELECT c.seq, c.format = ? AND e.digest IS c.digest FROM checkpoints AS c LEFT JOIN events AS e"
            " ON e.session = c.session AND e.seq = c.seq WHERE c.session = ? AND c.run = ? ORDER BY c.seq",
            (FORMAT, *self._which),
        )
        good = next((place for place, (_, trusted) in enumerate(rows) if not trusted), len(rows))
        return [int(seq) for seq, _ in rows[:good]]

    def read(self, until: int) -> list[dict[str, Any]]:
        """The contents of the checkpoints up to this event; empty if one of them cannot be read."""
        rows = self._store().execute(
            "SELECT data FROM checkpoints WHERE session = ? AND run = ? AND seq <= ? ORDER BY seq",
            (*self._which, until),
        )
        try:
            return [json.loads(zlib.decompress(data)) for (data,) in rows]
        except (zlib.error, ValueError):
            return []

    def times(self, until: int) -> dict[str, str]:
        """When calls of the run ended, by key, for calls that ended before this event."""
        rows = self._store().execute(
            "SELECT key, at FROM events INDEXED BY events_run"
            " WHERE session = ? AND run = ? AND seq <= ? AND kind = 'receipt' ORDER BY seq",
            (*self._which, until),
        )
        return {str(key): str(at) for key, at in rows}
