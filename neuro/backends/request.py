"""One request to a model server: what is asked, and its body.

Knows neither servers nor connections; http.py sends it.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from quoth.neuro.backends.base import RequestOptions
from quoth.neuro.backends.messages import PIECE, Messages

REPLY_TOKENS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@dataclass
class Request:
    """One request. ``options`` are dropped when the server does not know them; ``parts`` are fields of the
    body that are JSON already, in pieces."""

    options: dict[str, Any]
    parts: dict[str, list[bytes]]
    has_tools: bool
    on_text: Callable[[str], None] | None
    messages: Messages
    wants: RequestOptions
    seconds: float  # that the reply may take, with all its tries
    sent: Mapping[str, Any] = field(default_factory=dict)  # the options that its last try had
    shortened: bool = False  # whether fewer tokens are asked for than were at first
    queues: bool = False  # whether it waits for a place among the requests to its server
    shown: bool = False  # whether on_text was told something: from then on nothing is tried again
    start: float = field(default_factory=time.monotonic)

    @property
    def limit(self) -> float:
        """The most tokens that the reply may have."""
        return next((self.sent[name] for name in REPLY_TOKENS if name in self.sent), math.inf)

    @property
    def left(self) -> float:
        """The seconds that are left of it."""
        return self.start + self.seconds - time.monotonic()


class Payload:
    """The body of a request in pieces, so that a long conversation is sent without copying it. It can be sent
    again."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.length = sum(map(len, pieces))
        # Each piece is a write of its own, which costs more than to copy a short one.
        self._pieces = pieces if self.length > PIECE else [b"".join(pieces)]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
