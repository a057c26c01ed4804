"""The accepted messages of a gateway, in the store of the workspace: each is answered exactly once.

A message is ``accepted`` until its reply is sent, then ``answered``; it is ``asked`` while its calls wait for
a person. Lines without a client are kept with their message until a client connects. When a message is
finished, its text is deleted; its id is kept for KEPT_SECONDS, to recognise a repeated message."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from quoth.agent.chat.lines import ChatMessage, Id
from quoth.tools.storage.database import Store

KEPT_SECONDS = 180 * 86400.0

State = Literal["accepted", "asked", "answered"]


@dataclass
class Accepted:
    """An accepted message. ``told`` names its sent lines: reply, follow-ups and requests. ``decided`` are its
    requests decided since. ``at`` is the time of arrival, in seconds since 1970."""

    seq: int
    message: ChatMessage
    state: State = "accepted"
    told: set[str] = field(default_factory=set)
    at: float = 0
    decided: set[str] = field(default_factory=set)

    @property
    def turn(self) -> str:
        """The key of its run in the transcript of its chat. Includes the time, because an imported transcript
        has its own sequence numbers."""
        return f"m{self.seq}-{self.at * 1000:.0f}"


class Inbox:
    """The accepted messages of a workspace. ``clock`` returns seconds since 1970."""

    def __init__(self, store: Callable[[], Store], clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    def has(self, message: ChatMessage) -> bool:
        """Whether this chat already received a message with this id."""
        found = self._store().execute(
            "SELECT 1 FROM inbox WHERE chat = ? AND id = ?", (message.chat, _key(message.id))
        )
        return bool(found)

    def accept(self, message: ChatMessage) -> Accepted:
        """Store a new message; it is on disk when this returns."""
        at = self._clock()
        ((seq,),) = self._store().execute(
            "INSERT INTO inbox (chat, id, user, text, state, at) VALUES (?, ?, ?, ?, 'accepted', ?)"
            " RETURNING seq",
            (message.chat, _key(message.id), message.user, message.text, at),
        )
        return Accepted(int(seq), message, at=at)

    def unfinished(self) -> list[Accepted]:
        """The unanswered messages, and those with waiting calls, in order of arrival. Deletes messages that
        were finished longer than KEPT_SECONDS ago."""
        with self._store().transaction() as run:
            run("DELETE FROM inbox WHERE at < ? AND state != 'accepted'", (self._clock() - KEPT_SECONDS,))
            rows = run(
                "SELECT seq, chat, id, user, text, state, told, at FROM inbox WHERE state != 'answered'"
                " ORDER BY seq"
            )
        return [
            Accepted(seq, ChatMessage(json.loads(id), user, chat, text), state, set(json.loads(told)), at)
            for seq, chat, id, user, text, state, told, at in rows
        ]

    def save(self, one: Accepted, kept: bytes = b"") -> None:
        """Record the new state of a message, and an undelivered line of it."""
        done = one.state == "answered"
        self._store().execute(
            "UPDATE inbox SET state = ?, text = ?, told = ?, lines = lines || ? WHERE seq = ?",
            (
                one.state,
                "" if done else one.message.text,
                "[]" if done else json.dumps(sorted(one.told)),
                kept.decode(),
                one.seq,
            ),
        )

    def kept(self, chat: str | None = None) -> list[tuple[int, str]]:
        """The undelivered lines of a chat, or of all chats, each with the number of its message."""
        rows = self._store().execute(
            "SELECT seq, lines FROM inbox WHERE lines != '' AND chat = coalesce(?, chat) ORDER BY seq",
            (chat,),
        )
        return [(int(seq), str(lines)) for seq, lines in rows]

    def handed_over(self, seq: int, lines: str) -> None:
        """Delete the first lines of a message after delivery; more may have been added meanwhile."""
        sql = "UPDATE inbox SET lines = substr(lines, ?) WHERE seq = ? AND substr(lines, 1, ?) = ?"
        self._store().execute(sql, (len(lines) + 1, seq, len(lines), lines))


def _key(id: Id) -> str:
    """An id as JSON, so that the number 1 and the text "1" differ."""
    return json.dumps(id)
