"""Which session a conversation is: clients of chat completions send it whole each time, and no id of ours.

A row names the session in which a key had this conversation, and how many events it had then. Conversations
are compared by a digest over roles and texts. Rows of a key are found by that key alone.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from quoth.agent.serve.openai_shape import TalkMessage
from quoth.tools.history.outline import Outline
from quoth.tools.storage.database import Store

BEGUN, ENDED, STOPPED = 0, 1, 2  # STOPPED: its client left before the end


class KnownTalk(NamedTuple):
    """The session of a conversation, with its number of events after it. ``latest``: the session has not
    continued otherwise."""

    session: str
    events: int
    state: int  # of the answer to its last message: BEGUN, ENDED or STOPPED
    latest: bool

    @property
    def ended(self) -> bool:
        return self.state == ENDED


def digests_of(model: str, messages: Iterable[TalkMessage]) -> list[str]:
    """The digests of a conversation with a model after each of its messages, and before the first."""
    found = hashlib.sha256(f"{model}\0".encode())
    digests = [found.hexdigest()]
    for one in messages:
        found.update(f"{one.role}\0{one.matched}\0".encode())
        digests.append(found.hexdigest())
    return digests


def digest_of(model: str, messages: Iterable[TalkMessage]) -> str:
    """The digest of a conversation with a model."""
    return digests_of(model, messages)[-1]


class TalkIndex:
    """The conversations of all keys."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    def find(self, key: str, digest: str) -> KnownTalk | None:
        """The session of a conversation; None for an unknown one, or one whose session was removed."""
        rows = self._store().execute(
            "SELECT session, events, ended, (SELECT max(events) FROM served AS other"
            " WHERE other.session = served.session) FROM served WHERE key = ? AND history = ?",
            (key, digest),
        )
        if not rows or not Outline(self._store).is_there(str(rows[0][0])):
            return None
        session, events, state, last = rows[0]
        return KnownTalk(str(session), int(events), int(state), events == last)

    def is_of(self, key: str, session: str) -> bool:
        """Whether the key began a session."""
        sql = "SELECT 1 FROM served WHERE key = ? AND session = ? LIMIT 1"
        return bool(self._store().execute(sql, (key, session)))

    def keep(self, key: str, session: str, id: str, text: str) -> None:
        """Keep a response among the long texts of its session and key; it is on disk with the next synced
        write."""
        with self._store().transaction(synced=False) as run:
            run("INSERT OR REPLACE INTO texts VALUES (?, ?, ?, ?, ?)", (session, key, id, time.time(), text))

    def kept(self, key: str, session: str, id: str) -> str | None:
        sql = "SELECT text FROM texts WHERE session = ? AND user = ? AND id = ?"
        rows = self._store().execute(sql, (session, key, id))
        return str(rows[0][0]) if rows else None

    def forget(self, key: str, session: str, id: str, digest: str) -> None:
        """Forget a response, and that a conversation continues after it. The session stays."""
        with self._store().transaction() as run:
            run("DELETE FROM texts WHERE session = ? AND user = ? AND id = ?", (session, key, id))
            run("DELETE FROM served WHERE key = ? AND history = ?", (key, digest))

    def save(self, key: str, session: str, states: Mapping[str, int]) -> None:
        """Record that conversations are what a session contains now; ``states`` by their digests. It is on
        disk with the next synced write, such as the session's own, or after ``on_disk`` of the store."""
        rows = Outline(self._store).rows([session])
        events = rows[0].events if rows else 0
        with self._store().transaction(synced=False) as run:
            for digest, state in states.items():
                run(
                    "INSERT OR REPLACE INTO served VALUES (?, ?, ?, ?, ?, ?)",
                    (key, digest, session, events, state, time.time()),
                )
