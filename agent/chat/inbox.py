"""The messages that a gateway has accepted, in the store of the workspace: none is lost, and none is answered
twice.

Knows the store; it must not know sockets or agents. A message is ``accepted`` until its reply has gone out,
then ``answered``; or ``asked`` while calls of it wait for a person. Lines that nobody was there to take are
kept with their message until somebody is. When a message is done with, its text is deleted; its id stays for
KEPT_SECONDS, so that it is known if it comes again.
"""

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
    """A message on its way. ``told`` names what has gone out of it: reply, follow-ups and requests;
    ``decided`` are the requests that were decided since. ``at`` is when it came, in seconds since 1970."""

    seq: int
    message: ChatMessage
    state: State = "accepted"
    told: set[str] = field(default_factory=set)
    at: float = 0
    decided: set[str] = field(default_factory=set)

    @property
    def turn(self) -> str:
        """The mark by which its run is known in the transcript of its chat, which may have been imported from
        another workspace with numbers of its own."""
        return f"m{self.seq}-{self.at * 1000:.0f}"


class Inbox:
    """The accepted messages of a workspace. ``clock`` gives seconds since 1970."""

    def __init__(self, store: Callable[[], Store], clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    def has(self, message: ChatMessage) -> bool:
        """Whether a message with this id came before in this chat."""
        found = self._store().execute(
            "SELECT 1 FROM inbox WHERE chat = ? AND id = ?", (message.chat, _key(message.id))
        )
        return bool(found)

    def accept(self, message: ChatMessage) -> Accepted:
        """Store a new message. When this returns, it is on disk."""
        at = self._clock()
        ((seq,),) = self._store().execute(
            "INSERT INTO inbox (chat, id, user, text, state, at) VALUES (?, ?, ?, ?, 'accepted', ?)"
            " RETURNING seq",
            (message.chat, _key(message.id), message.user, message.text, at),
        )
        return Accepted(int(seq), message, at=at)

    def unfinished(self) -> list[Accepted]:
        """What is not answered yet, and what has calls that wait, in the order in which it came. Messages
        that are long done with are forgotten."""
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
        """Record what has become of a message, and a line of it that nobody took."""
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
        """The lines of a chat, or of all, that nobody took, with the number of their message."""
        rows = self._store().execute(
            "SELECT seq, lines FROM inbox WHERE lines != '' AND chat = coalesce(?, chat) ORDER BY seq",
            (chat,),
        )
        return [(int(seq), str(lines)) for seq, lines in rows]

    def handed_over(self, seq: int, lines: str) -> None:
        """Forget the first lines of a message, which somebody has now; more may have come meanwhile."""
        sql = "UPDATE inbox SET lines = substr(lines, ?) WHERE seq = ? AND substr(lines, 1, ?) = ?"
        self._store().execute(sql, (len(lines) + 1, seq, len(lines), lines))


def _key(id: Id) -> str:
    """An id as JSON: the number 1 and the text "1" are two."""
    return json.dumps(id)
