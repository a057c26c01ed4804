"""Takes the keys that quoth sends out of what a server sends back: streamed words, a reply, its calls.

Knows texts and completions; it must not know servers. A key may come in pieces: the end of a stream that may
be the beginning of a key is held back until it is known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from quoth.neuro.backends.base import Completion
from quoth.neuro.backends.messages import NativeCall
from quoth.tools.call.redaction import HARMLESS, SECRET, map_texts
from quoth.tools.storage.lean_httpx import httpx

SHORTEST = 8  # characters: a shorter key would be found in ordinary words


def keys_of(key: str | None, url: httpx.URL, auth: tuple[str, str] | None) -> list[str]:
    """The texts by which quoth shows a server who it is, the longest first."""
    queried = [value for name, value in url.params.multi_items() if name.lower() not in HARMLESS]
    found = {(key or "").strip(), auth[1] if auth else "", *queried} - {""}
    return sorted(found, key=len, reverse=True)


class Echoes:
    """The keys of one server, as they may come back from it."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = [secret for secret in secrets if len(secret) >= SHORTEST]

    def without(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, SECRET)
        return text

    def completion(self, answer: Completion) -> Completion:
        if not self._secrets:
            return answer
        calls = tuple(self._call(call) for call in answer.calls)
        kept = None if answer.kept is None else map_texts(answer.kept, self.without)
        kept = answer.kept if kept == answer.kept else kept
        return replace(answer, text=self.without(answer.text), calls=calls, kept=kept)

    def _call(self, call: NativeCall) -> NativeCall:
        return {
            "id": self.without(call["id"]),
            "name": self.without(call["name"]),
            "arguments": self._arguments(self.without(call["arguments"])),
        }

    def _arguments(self, text: str) -> str:
        """JSON text, whose letters may be escapes."""
        if "\\" not in text:
            return text
        try:
            data: Any = json.loads(text)
        except (ValueError, RecursionError):
            return text
        bare = map_texts(data, self.without)
        return text if bare == data else json.dumps(bare, ensure_ascii=False)

    def stream(self, on_text: Callable[[str], None]) -> tuple[Callable[[str], None], Callable[[], None]]:
        """A listener that passes words on without keys, and what passes on the rest at the end."""
        held = ""

        def hear(piece: str) -> None:
            nonlocal held
            text = self.without(held + piece)
            held = self._begun(text)
            if passed := text[: len(text) - len(held)]:
                on_text(passed)

        def end() -> None:
            nonlocal held
            if held:
                on_text(held)
            held = ""

        return (hear, end) if self._secrets else (on_text, end)

    def _begun(self, text: str) -> str:
        """The longest end of a text with which a key may begin."""
        ends = (
            secret[:size]
            for secret in self._secrets
            for size in range(min(len(secret) - 1, len(text)), 0, -1)
            if text.endswith(secret[:size])
        )
        return max(ends, key=len, default="")
