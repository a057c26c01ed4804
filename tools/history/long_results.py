"""Texts that were too long to be shown whole: kept by a session under a short id, and read page by page.

Knows the store and texts; it must not know calls, models or the loop. An id is made from its text alone, so
that a run that is told again comes to the same ids; a text is found by its own session and user only.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable
from typing import Protocol

from quoth.tools.errors import StoreError, ToolError, did_you_mean
from quoth.tools.lisp.printer import print_string
from quoth.tools.storage.database import Store

KEPT_SECONDS = 30 * 86400.0
ID_CHARS = 8


class Texts(Protocol):
    """Keeps what a model is not shown whole."""

    def keep(self, text: str) -> str:
        """The id of the text; empty when it cannot be kept."""
        ...


class OnlyNames:
    """Names texts and keeps none: for a run that is only told again."""

    def keep(self, text: str) -> str:
        return id_of(text)


class StorePages:
    """The texts of one session and user in the store of a workspace. A page has ``chars`` characters."""

    def __init__(
        self,
        store: Callable[[], Store],
        session: str,
        user: str,
        chars: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._whose = (session, user)
        self._chars = max(chars, 1)
        self._clock = clock
        self._pruned = False

    def keep(self, text: str) -> str:
        """Keep a text, synced before this returns. Returns its id, or nothing on a full disk: then the model
        is not told that there is more to see."""
        text = text.encode("utf-8", "replace").decode()
        id = id_of(text)
        try:
            with self._store().transaction() as run:
                if not self._pruned:
                    run("DELETE FROM texts WHERE at < ?", (self._clock() - KEPT_SECONDS,))
                run(
                    "INSERT INTO texts (session, user, id, at, text) VALUES (?, ?, ?, ?, ?)"
                    " ON CONFLICT DO UPDATE SET at = excluded.at",
                    (*self._whose, id, self._clock(), text),
                )
        except StoreError:
            return ""
        self._pruned = True
        return id

    def page(self, id: str, start: int = 1) -> tuple[str, str]:
        """The part of a text from its character ``start`` on, counted from 1, and what to say of it: which
        part it is, and the call for the next. Raises ToolError."""
        name = id.strip().lower()
        sql = "SELECT text FROM texts WHERE session = ? AND user = ? AND id = ?"
        found = self._store().execute(sql, (*self._whose, name))
        if not found:
            ids = self._store().execute("SELECT id FROM texts WHERE session = ? AND user = ?", self._whose)
            hint = did_you_mean(name, [known for (known,) in ids])
            raise ToolError(
                f"This session keeps no text {print_string(id)}."
                + (hint or " An id stands where a result was left out: copy it from there.")
            )
        ((text,),) = found
        if start > max(len(text), 1):
            raise ToolError(f"The text {print_string(name)} has only {len(text):,} characters.")
        part = text[start - 1 : start - 1 + self._chars]
        end = start - 1 + len(part)
        if end < len(text) and (line := part.rfind("\n") + 1) > len(part) // 2:
            part, end = part[:line], start - 1 + line  # whole lines, where they are not too long
        where = f"Characters {start:,} to {end:,} of {len(text):,}"
        if end == len(text):
            return part, f"{where}: the end."
        return part, f"{where}; {more_form(name, end + 1)} shows the next part."


def id_of(text: str) -> str:
    """A short name for a text, the same for the same text; only what is easily typed."""
    digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
    return base64.b32encode(digest).decode()[:ID_CHARS].lower()


def more_form(id: str, start: int = 1) -> str:
    """The call that shows a text from there on."""
    return f'(more :id "{id}" :start {start})' if start > 1 else f'(more :id "{id}")'
