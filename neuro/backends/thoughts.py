"""The thoughts that a server sends beside a reply and wants back with it, as its provider's row says.

Knows the fields of a chat message; it must not know how a request is written, and reads no thought.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from quoth.neuro.backends.providers import PROVIDERS
from quoth.tools.storage.lean_httpx import httpx

TEXTS = ("reasoning_content", "reasoning")  # the fields for thoughts in words, as servers spell them
DETAILS = "reasoning_details"
# The names under which sessions have kept thoughts since before these had owners.
OLD_NAMES = {"openai-responses": "responses"}
_GROWING = {"reasoning.text": "text", "reasoning.summary": "summary"}  # details that come in pieces


def owner_of(name: str, url: httpx.URL) -> str:
    """Whose thoughts a model's are: its provider's, or its maker's at a gateway for many; with the host of
    the server where that is not the provider's own."""
    found = re.match(r"([\w-]+)(:.*(?=/))?", name)
    kind, whole = (found[1], found[0]) if found else (name, name)
    row = PROVIDERS.get(kind)
    if row is not None and row.url and httpx.URL(row.url).host == url.host:
        return OLD_NAMES.get(whole, whole)
    return f"{whole}@{url.host}"


def reasoning_in(kept: Mapping[str, Any] | None) -> str:
    """The words of the thoughts that came beside a reply, whoever's they are; empty where they are sealed."""
    pieces: list[Any] = []
    for owned in (kept or {}).values():
        parts = [owned, *owned.get(DETAILS, ())] if isinstance(owned, Mapping) else owned
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, Mapping):
                pieces += [part.get(name) for name in (*TEXTS, "thinking")]
                pieces += [part.get(name) for kind, name in _GROWING.items() if part.get("type") == kind]
    return "\n\n".join(piece for piece in pieces if isinstance(piece, str) and piece)


class Thoughts:
    """Collects the thoughts of one reply, from the whole message or from its pieces. ``field`` is the one
    that goes back: DETAILS, or one of TEXTS for whichever of them comes; empty for none."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._texts: dict[str, list[str]] = {}
        self._details: list[Any] = []

    def add(self, message: Any) -> None:
        """Take the thoughts of a message, or of a piece of one."""
        if not isinstance(message, dict) or not self._field:
            return
        if self._field == DETAILS:
            details = message.get(DETAILS)
            for detail in details if isinstance(details, list) else ():
                self._add_detail(detail)
            return
        for name in TEXTS:
            if isinstance(text := message.get(name), str) and text:
                self._texts.setdefault(name, []).append(text)

    def _add_detail(self, detail: Any) -> None:
        last = self._details[-1] if self._details else None
        grows = _GROWING.get(str(detail.get("type"))) if isinstance(detail, dict) else None
        if not grows or not isinstance(last, dict) or _place(last) != _place(detail):
            self._details.append(detail)
            return
        text = f"{last.get(grows) or ''}{detail.get(grows) or ''}"
        told = {name: value for name, value in detail.items() if value is not None}
        self._details[-1] = {**last, **told, grows: text}

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that go back with the reply; empty where there are none."""
        if self._details:
            return {DETAILS: self._details}
        return {name: "".join(texts) for name, texts in list(self._texts.items())[:1]}


def _place(detail: dict[str, Any]) -> Any:
    return detail.get("type"), detail.get("index")
