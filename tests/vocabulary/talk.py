"""Conversations as events of a transcript, and what a search finds in them.

Knows transcripts and the search; it must not know models or runs.
"""

from __future__ import annotations

from typing import Any

from quoth.tools.call.service_types import SearchOptions, SearchScope
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
