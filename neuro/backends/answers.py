"""A reply as it comes from a server: its body in one piece, or the events of a stream, and the Answer in it.

Knows no kind of server. What never ends is stopped at a limit, however it is packed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import httpx

from quoth.neuro.backends.base import Completion, Usage
from quoth.neuro.backends.messages import NativeCall
from quoth.tools.storage.inflate import inflated

LONGEST = 8_000_000  # bytes of a reply, decompressed
# Around each few characters of a stream stand some hundred bytes that are no part of the reply; what is
# longer counts. So many events have more words than any model says at once, and hold no more memory.
AROUND = 400
MOST_EVENTS = 150_000


class TooLongError(Exception):
    """The reply is longer than LONGEST."""


@dataclass
class Answer:
    """A reply as far as it has come."""

    pieces: list[str] = field(default_factory=list)
    calls: list[NativeCall] = field(default_factory=list)
    finish: str | None = None
    usage: Usage = field(default_factory=Usage)
    kept: dict[str, Any] | None = None

    @property
    def length(self) -> int:
        """Of its text and of what its calls are given."""
        return sum(map(len, [*self.pieces, *(call["arguments"] for call in self.calls)]))

    def completion(self, turn: int, start: float) -> Completion:
        """The same as a Completion; ``turn`` tells its calls from those of other replies."""
        taken: set[str] = set()
        for place, call in enumerate(self.calls):
            if not call["id"] or call["id"] in taken:  # each needs one of its own; not every server gives it
                call["id"] = f"call_{turn}_{place}"
            taken.add(call["id"])
        usage = replace(self.usage, seconds=time.monotonic() - start)
        return Completion(
            "".join(self.pieces), usage, self.finish or "stop", tuple(self.calls), kept=self.kept
        )


class Stream(Protocol):
    """Puts an Answer together from the events of a stream. ``done`` says that the server has ended it."""

    done: bool

    def hear(self, data: str) -> str:
        """Take the data of one event; the text that is new."""
        ...

    def end(self) -> Answer:
        """All that came; its ``finish`` is None when it did not come to an end."""
        ...


async def whole_of(response: httpx.Response) -> bytes:
    """All of a reply that is not too long."""
    pieces, length = [], 0
    async with aclosing(_inflated(response)) as inflated:
        async for piece in inflated:
            pieces.append(piece)
            if (length := length + len(piece)) > LONGEST:
                raise TooLongError
    return b"".join(pieces)


async def events_of(response: httpx.Response) -> AsyncGenerator[str]:
    """The data of each event of a stream, as long as there is no end of neither one nor all of them."""
    rest, data = bytearray(), list[bytes]()
    since = counted = events = 0
    async with aclosing(_inflated(response)) as inflated:
        async for piece in inflated:
            rest += piece
            if (since := since + len(piece)) > LONGEST:
                raise TooLongError
            if b"\n" not in piece and b"\r" not in piece:
                continue
            lines = bytes(rest).splitlines(keepends=True)
            # A line feed may follow the return that a piece ends with.
            rest = bytearray(b"" if lines[-1].endswith(b"\n") else lines.pop())
            for line in map(bytes.strip, lines):
                if line.startswith(b"data:"):
                    data.append(line[5:].lstrip())
                elif not line and data:
                    event = b"\n".join(data).decode(errors="replace")
                    since, events, counted = 0, events + 1, counted + max(0, len(event) - AROUND)
                    if counted > LONGEST or events > MOST_EVENTS:
                        raise TooLongError
                    data.clear()
                    yield event


def _inflated(response: httpx.Response) -> AsyncGenerator[bytes]:
    return inflated(response.aiter_raw(), response.headers.get("content-encoding", ""))
