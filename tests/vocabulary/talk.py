"""Conversations as events of a transcript, what a search finds in them, and a model of meanings.

Knows transcripts and the search; it must not know models or runs.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from typing import Any

from quoth.tools.call.service_types import SearchOptions, SearchScope
from quoth.tools.errors import ToolError
from quoth.tools.history.transcript import Transcript
from quoth.tools.storage.database import Store

NOW = 1_773_144_000.0  # 2026-03-10 12:00 UTC


def conversation(
    store: Store,
    session: str,
    *texts: str,
    user: str = "ann",
    run: str = "r1",
    transcript: Transcript | None = None,
) -> Transcript:
    """What a user and a model said in turn, as one run of a session."""
    transcript = transcript or Transcript(lambda: store, lambda: NOW)
    for place, text in enumerate(texts):
        if place % 2:
            transcript.add(session, "reply", {"text": text}, run=run)
        else:
            said = {"text": text, "user": user, "model": "openai:gpt"}
            transcript.add(session, "stimulus", said, run=run)
    return transcript


async def found(memory: Any, query: str, scope: SearchScope = "agent", **options: Any) -> list[str]:
    """The texts that a search finds, the best first."""
    return [hit.text for hit in await memory.search(query, scope, SearchOptions(**options))]


async def labels(memory: Any, query: str, scope: SearchScope = "agent", **options: Any) -> list[str]:
    """The labels of what a search finds, the best first."""
    return [hit.label for hit in await memory.search(query, scope, SearchOptions(**options))]


class Concepts:
    """An embedding model that knows the meaning of a few words: each has a direction of its own. ``broken``
    makes it fail; ``asked`` are the texts it was given."""

    def __init__(self, name: str = "concepts-1", directions: int = 8, **words: int) -> None:
        self.name, self.dimensions, self._words = name, directions, words
        self.asked: list[str] = []
        self.broken = ""

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        if self.broken:
            raise ToolError(self.broken)
        self.asked += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> bytes:
        parts = [0.01] * self.dimensions
        for word in re.findall(r"\w+", text.lower()):
            parts[self._words.get(word, 0)] += 1.0 if word in self._words else 0.0
        length = math.sqrt(sum(part * part for part in parts))
        return array("f", [part / length for part in parts]).tobytes()
