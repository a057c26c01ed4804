"""Reading a server's reply, whole or streamed, and the Answer that is collected from it.

Knows no particular provider. A reply that is too long is cut off at a limit, also when it is compressed.
"""

from __future__ import annotations

import codecs
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from quoth.neuro.backends.base import Completion, Usage
from quoth.neuro.backends.messages import NativeCall, sendable
from quoth.tools.call.redaction import SENT
from quoth.tools.storage.inflate import inflated
from quoth.tools.storage.lean_httpx import httpx

LONGEST = 8_000_000  # bytes of a reply, decompressed
# Around each few characters of a stream stand some hundred bytes that are no part of the reply; what is
# longer counts. So many events have more words than any model says at once, and hold no more memory.
AROUND = 400
MOST_EVENTS = 150_000
# A server counts tokens and sends pieces: one for a token, or for several, and now and then an empty one.
MULTIPLE = 4
FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")  # with which a line of an event begins
LONGEST_FIELD = 6  # bytes of them
THOUGHTS = 20_000  # events without text beyond that: not every server counts thoughts


class TooLongError(Exception):
    """The reply has more than LONGEST bytes, or its stream more than MOST_EVENTS events."""


@dataclass
class Answer:
    """What has been received of a reply so far."""

    pieces: list[str] = field(default_factory=list)
    calls: list[NativeCall] = field(default_factory=list)
    finish: str | None = None
    usage: Usage = field(default_factory=Usage)
    kept: dict[str, Any] | None = None

    @property
    def length(self) -> int:
        """The number of characters of its text and of the arguments of its calls."""
        return sum(map(len, [*self.pieces, *(call["arguments"] for call in self.calls)]))

    def completion(self, turn: int, start: float) -> Completion:
        """The finished Completion. A call without an id of its own gets one with the number ``turn`` in it;
        ``start`` is the monotonic time of the request. A refusal has words alone, and so has
        a reply whose calls the server could not read."""
        if self.finish in ("refused", "malformed"):
            self.calls, self.kept = [], None
        taken: set[str] = set()
        for place, call in enumerate(self.calls):
            call["name"] = sendable(call["name"])
            if not call["id"] or call["id"] in taken:  # each needs one of its own; not every server gives it
                call["id"] = f"call_{turn}_{place}"
            taken.add(call["id"])
        usage = replace(self.usage, seconds=time.monotonic() - start)
        return Completion(
            "".join(self.pieces), usage, self.finish or "stop", tuple(self.calls), kept=self.kept
        )


def without_keys(answer: Completion) -> Completion:
    """A reply without the keys that this process has sent."""
    calls = tuple(_bare_call(call) for call in answer.calls)
    kept = SENT.data(answer.kept)
    kept = answer.kept if kept == answer.kept else kept
    return replace(answer, text=SENT.without(answer.text), calls=calls, kept=kept)


def _bare_call(call: NativeCall) -> NativeCall:
    return {
        "id": SENT.without(call["id"]),
        "name": SENT.without(call["name"]),
        "arguments": SENT.json(call["arguments"]),
    }


@dataclass
class Bound:
    """Whether a stream continues although its server was told to end after ``limit`` tokens, of which
    ``words`` were for the reply itself."""

    words: float
    limit: float
    _texts: int = 0
    _events: int = 0

    def is_passed(self, piece: str) -> bool:
        """Count an event that added a piece of text, or none."""
        self._events += 1
        self._texts += bool(piece)
        return self._texts >= self.words * MULTIPLE or self._events >= self.limit * MULTIPLE + THOUGHTS


class Stream(Protocol):
    """Collects an Answer from the events of a stream. ``done`` is true after the server's last event."""

    done: bool

    def hear(self, data: str) -> str:
        """Take the data of one event and return the text that it adds."""
        ...

    def end(self) -> Answer:
        """The whole Answer; its ``finish`` is None when the stream was cut off."""
        ...


class Body:
    """The body of a reply, decompressed. Raises TooLongError where it is too long."""

    def __init__(self, response: httpx.Response) -> None:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        self._kind = response.headers.get("content-type", "")
        self._rest = inflated(response.stream, response.headers.get("content-encoding", ""))
        self._begin = b""

    async def is_stream(self) -> bool:
        """Whether it is a stream of events, by its first bytes; not every gateway sends the right content
        type."""
        async for piece in self._rest:
            self._begin += piece
            found = self._begin.removeprefix(codecs.BOM_UTF8).lstrip()
            if len(self._begin) > LONGEST:
                raise TooLongError
            if len(found) >= LONGEST_FIELD or b"\n" in found or found[:1] in (b"{", b"["):
                return found.startswith(FIELDS) or (found[:1] not in (b"{", b"[") and self._is_declared)
        return self._is_declared

    @property
    def _is_declared(self) -> bool:
        return "text/event-stream" in self._kind

    async def pieces(self) -> AsyncGenerator[bytes]:
        async with aclosing(self._rest) as rest:
            if self._begin:
                yield self._begin
            async for piece in rest:
                yield piece


async def whole_of(response: httpx.Response | Body) -> bytes:
    """The body of a reply. Raises TooLongError."""
    body = response if isinstance(response, Body) else Body(response)
    pieces, length = [], 0
    async with aclosing(body.pieces()) as inflated:
        async for piece in inflated:
            pieces.append(piece)
            if (length := length + len(piece)) > LONGEST:
                raise TooLongError
    return b"".join(pieces)


async def events_of(body: Body) -> AsyncGenerator[str]:
    """The data of each server-sent event. Raises TooLongError when one, or all together, are too long."""
    rest, data = bytearray(), list[bytes]()
    since = counted = events = 0
    async with aclosing(body.pieces()) as inflated:
        async for piece in inflated:
            rest += piece
            if (since := since + len(piece)) > LONGEST:
                raise TooLongError
            if b"\n" not in piece and b"\r" not in piece:
                continue
            lines = bytes(rest).splitlines(keepends=True)
            # A line feed may follow the return that a piece ends with.
            rest = bytearray(b"" if lines[-1].endswith(b"\n") else lines.pop())
            if not events and lines:
                lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)  # a stream may begin with one
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
    if rest == b"\r" and data:  # the end of the last event, where lines end with returns alone
        yield b"\n".join(data).decode(errors="replace")
