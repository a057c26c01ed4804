"""Long texts that a model saw only in part: stored by session under a short id, and read in pages.

An id depends only on its text, so that a replayed run gets the same ids; only the text's own session and user
can read it.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable

from quoth.tools.errors import StoreError, ToolError, did_you_mean
from quoth.tools.lisp.printer import print_string
from quoth.tools.storage.database import Store

KEPT_SECONDS = 30 * 86400.0
ID_CHARS = 8


class OnlyNames:
    """Gives texts their ids without storing them, for a replayed run."""

    def keep(self, text: str, *, synced: bool = True) -> str:
        return id_of(text)


class StorePages:
    """The long texts of one session and user in a store. A page has at most ``chars`` characters."""

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

    def keep(self, text: str, *, synced: bool = True) -> str:
        """Store a text, synced to disk, and return its id; empty on a full disk: then the model receives no
        id. Without ``synced`` it is on disk with the next synced write."""
        text = text.encode("utf-8", "replace").decode()
        id = id_of(text)
        try:
            with self._store().transaction(synced=synced) as run:
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

    def text(self, id: str) -> str:
        """A whole text. Raises ToolError."""
        name = id.strip().lower()
        sql = "SELECT text FROM texts WHERE session = ? AND user = ? AND id = ?"
        found = self._store().execute(sql, (*self._whose, name))
        if not found:
            ids = self._store().execute("SELECT id FROM texts WHERE session = ? AND user = ?", self._whose)
            hint = did_you_mean(name, [known for (known,) in ids])
            raise ToolError(
                f"This session has no stored text {print_string(id)}."
                + (hint or " A shortened result contains the id of its full text: copy that id.")
            )
        return str(found[0][0])

    def page(self, id: str, start: int = 1) -> tuple[str, str]:
        """The part of a text from its character ``start`` (from 1), and a sentence with its range and the
        call that shows the next part. Raises ToolError."""
        name, text = id.strip().lower(), self.text(id)
        if start > max(len(text), 1):
            raise ToolError(f"The text {print_string(name)} has only {len(text):,} characters.")
        part = text[start - 1 : start - 1 + self._chars]
        end = start - 1 + len(part)
        if end < len(text) and (line := part.rfind("\n") + 1) > len(part) // 2:
            part, end = part[:line], start - 1 + line  # whole lines, if they are not too long
        where = f"Characters {start:,} to {end:,} of {len(text):,}"
        if end == len(text):
            return part, f"{where}: the end."
        return part, f"{where}; {more_form(name, end + 1)} shows the next part."


def id_of(text: str) -> str:
    """The id of a text, derived from its digest; easy to type."""
    digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
    return base64.b32encode(digest).decode()[:ID_CHARS].lower()


def more_form(id: str, start: int = 1) -> str:
    """The call that shows a text from character ``start`` on."""
    return f'(more :id "{id}" :start {start})' if start > 1 else f'(more :id "{id}")'


Texts = OnlyNames | StorePages  # stores texts that a model is not shown in full
