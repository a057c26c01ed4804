"""Reads the replies of model servers within bounds: the events of a stream, the pieces of native calls, which
gateways repeat, renumber or rename, and the thoughts in separate fields.

Thoughts are not parsed, and arguments only to find their end.
"""

from __future__ import annotations

import codecs
import json
import re
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from quoth.neuro.backends.base import Completion, Usage
from quoth.neuro.backends.messages import NativeCall, sendable, to_json
from quoth.tools.call.redaction import SENT
from quoth.tools.storage.lean_httpx import httpx, inflated

LONGEST = 8_000_000  # bytes of a reply, decompressed
# An event of a stream adds some hundred bytes around a few characters of the reply; only longer events count
# as bytes. This many events contain more words than any reply, and need no more memory.
AROUND = 400
MOST_EVENTS = 150_000
# A server counts tokens and sends pieces: one for each token or for several, and sometimes an empty one.
MULTIPLE = 4
FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")  # the beginnings of an event's lines
LONGEST_FIELD = 6  # in bytes
THOUGHTS = 20_000  # further events without text, because some servers do not count thoughts


class TooLongError(Exception):
    """The reply has more than LONGEST bytes, or its stream more than MOST_EVENTS events."""


@dataclass
class PartialReply:
    """The received part of a reply."""

    pieces: list[str] = field(default_factory=list)
    calls: list[NativeCall] = field(default_factory=list)
    finish: str | None = None
    usage: Usage = field(default_factory=Usage)
    kept: dict[str, Any] | None = None

    @property
    def length(self) -> int:
        """The number of characters of its text and of the arguments of its calls."""
        return sum(map(len, [*self.pieces, *(call["arguments"] for call in self.calls)]))

    def completion(self, turn: int, start: float, note: str, adapted: Mapping[str, Any]) -> Completion:
        """The finished Completion, without the keys that this process has sent. A call without an id gets one
        that contains the number ``turn``; ``start`` is the monotonic time of the request, and ``adapted`` its
        adaptations, which are kept. A refusal has only words, and so has a reply whose calls the server could
        not read."""
        if self.finish in ("refused", "malformed"):
            self.calls, self.kept = [], None
        taken: set[str] = set()
        for place, call in enumerate(self.calls):
            call["name"] = sendable(call["name"])
            if not call["id"] or call["id"] in taken:  # each call needs its own id; some servers send none
                call["id"] = f"call_{turn}_{place}"
            taken.add(call["id"])
        usage = replace(self.usage, seconds=time.monotonic() - start)
        calls = tuple(map(_bare_call, self.calls))
        kept = {**(self.kept or {}), **adapted} if adapted else self.kept
        bare = SENT.data(kept)
        text, finish = SENT.without("".join(self.pieces)), self.finish or "stop"
        return Completion(text, usage, finish, calls, kept if bare == kept else bare, note)


def _bare_call(call: NativeCall) -> NativeCall:
    return {
        "id": SENT.without(call["id"]),
        "name": SENT.without(call["name"]),
        "arguments": SENT.json(call["arguments"]),
    }


@dataclass
class Bound:
    """Detects a stream that continues after its requested maximum of ``limit`` tokens, of which ``words``
    were for the reply itself."""

    words: float
    limit: float
    _texts: int = 0
    _events: int = 0

    def is_passed(self, piece: str) -> bool:
        """Count an event with a piece of text, or with none."""
        self._events += 1
        self._texts += bool(piece)
        return self._texts >= self.words * MULTIPLE or self._events >= self.limit * MULTIPLE + THOUGHTS


class Stream(Protocol):
    """Collects an Answer from the events of a stream. ``done`` is true after the server's last event."""

    done: bool

    def hear(self, data: str) -> str:
        """Add the data of one event. Returns the text in it."""
        ...

    def end(self) -> PartialReply:
        """The whole Answer; its ``finish`` is None when the stream was cut off."""
        ...


class Body:
    """The body of a reply, decompressed. Raises TooLongError."""

    def __init__(self, response: httpx.Response) -> None:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        self._kind = response.headers.get("content-type", "")
        self._rest = inflated(response.stream, response.headers.get("content-encoding", ""))
        self._begin = b""

    async def is_stream(self) -> bool:
        """Whether it is a stream of events, by its first bytes, because some gateways send a wrong content
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
    """The data of each server-sent event. Raises TooLongError if one event, or their total, is too long."""
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
            # After a piece that ends with a return, the next may begin with a line feed.
            rest = bytearray(b"" if lines[-1].endswith(b"\n") else lines.pop())
            if not events and lines:
                lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)  # a stream may begin with a byte order mark
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
    if data and bytes(rest) in (b"", b"\r"):  # the last event; some gateways omit the empty line after it
        yield b"\n".join(data).decode(errors="replace")


_MARKS = re.compile(r"\\.|[\"{}\[\]]|\\\Z", re.DOTALL)
_LEGACY = "function_call"  # the single call of a reply in the old format
_decode = json.JSONDecoder().raw_decode


class _Nesting:
    """Whether the JSON value in the pieces is complete; reads each character once."""

    def __init__(self) -> None:
        self._depth, self._quoted, self._begun, self._cut = 0, False, False, ""

    @property
    def whole(self) -> bool:
        return self._begun and not self._quoted and self._depth <= 0

    def feed(self, piece: str) -> None:
        self._begun = self._begun or bool(piece.strip())
        piece, self._cut = self._cut + piece, ""
        for found in _MARKS.finditer(piece):
            mark = found[0]
            if mark == '"':
                self._quoted = not self._quoted
            elif mark == "\\":  # the escaped character is in the next piece
                self._cut = mark
            elif not self._quoted and len(mark) == 1:
                self._depth += 1 if mark in "{[" else -1


@dataclass(eq=False)
class _Call:
    """The received part of a call."""

    id: str
    index: Any
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    signed: Any = None  # Gemini's signature, for the thoughts before it
    nesting: _Nesting = field(default_factory=_Nesting)

    def grow(self, name: str, arguments: str) -> None:
        if self.name and name.startswith(self.name):  # repeated, or repeated with further letters
            self.name = name
        else:
            self.name += name
        if arguments:
            self.pieces.append(arguments)
            self.nesting.feed(arguments)

    def continues_with(self, piece: _Piece) -> bool:
        """Whether a piece with a name at the same index, or with the same id, belongs to this call."""
        if piece.id and self.id and piece.id != self.id:
            begins = not self.pieces and is_object(piece.arguments)
            return piece.name == self.name and not self.nesting.whole and not begins
        if not self.nesting.whole:  # its name may arrive in pieces, before the arguments
            named = piece.name == self.name or (not self.pieces and piece.index is not None)
            return named or (not self.pieces and bool(piece.id) and piece.id == self.id)
        if piece.name != self.name or (piece.index != self.index and piece.arguments):
            return False
        known = bool(piece.id) and piece.id == self.id
        return known or not piece.arguments or piece.arguments in self.pieces or self.pieces == ["{}"]


@dataclass(frozen=True)
class _Piece:
    index: Any
    id: str
    name: str
    arguments: str
    signed: Any

    @classmethod
    def of(cls, given: Any) -> _Piece | None:
        function = given.get("function") if isinstance(given, dict) else None
        if not isinstance(function, dict):
            return None
        arguments = function.get("arguments")
        if not isinstance(arguments, str):  # the object itself, not its text
            arguments = "" if arguments is None else to_json(arguments).decode()
        return cls(
            given.get("index"),
            str(given.get("id") or ""),
            str(function.get("name") or ""),
            arguments,
            given.get("extra_content"),
        )


class CallPieces:
    """Collects tool calls: whole ones, or pieces of them."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._at: dict[Any, _Call] = {}
        self._ids: dict[str, _Call] = {}

    def add(self, message: Any, *, whole: bool = False) -> None:
        """Add the calls of a message; with ``whole`` False, the pieces in a part of a message."""
        if not isinstance(message, dict):
            return
        given = message.get("tool_calls")
        given = given if isinstance(given, list) else []
        if not given and (not self._calls or _LEGACY in self._at):  # some servers send both
            given = [{"index": _LEGACY, "function": message.get(_LEGACY)}]
        begun: set[_Call] = set()  # calls begun in this list, which names each once
        for piece in filter(None, map(_Piece.of, given)):
            call = None if whole else self._call_of(piece)
            if call is None or (call in begun and piece.name):
                call = _Call(piece.id, piece.index)
                self._calls.append(call)
                self._at[piece.index] = call
            if piece.name:
                begun.add(call)
            call.id = call.id or piece.id
            self._ids.setdefault(piece.id, call)
            call.signed = piece.signed or call.signed
            call.grow(piece.name, piece.arguments)

    def _call_of(self, piece: _Piece) -> _Call | None:
        """The call that a piece continues; None if it begins another."""
        known = (self._ids.get(piece.id) if piece.id else None) or self._at.get(piece.index)
        if piece.name:
            return known if known is not None and known.continues_with(piece) else None
        if known is not None or not self._calls:
            return known
        last = self._calls[-1]
        return None if piece.id and last.nesting.whole else last

    @property
    def _real(self) -> list[_Call]:
        """The calls that have a name or arguments."""
        return [call for call in self._calls if call.name.strip() or "".join(call.pieces).strip()]

    @property
    def signed(self) -> list[Any]:
        """The signatures of all calls, if any has one."""
        signed = [call.signed for call in self._real]
        return signed if any(signed) else []

    def made(self) -> list[NativeCall]:
        return [NativeCall(id=call.id, name=call.name, arguments=joined(call.pieces)) for call in self._real]


def is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def joined(pieces: Sequence[str]) -> str:
    """The arguments joined from their pieces. Some gateways send ``{}`` before or after them, or repeat them.
    If several readings are possible, the text is not changed."""
    text = "".join(pieces)
    if is_object(text):
        return text
    place, found = 0, dict[str, Any]()
    while place < len(text):
        try:
            value, end = _decode(text, place)
        except (ValueError, RecursionError):
            break
        if value != {} and value not in found.values():
            found[text[place:end]] = value
        if not isinstance(value, dict) or len(found) > 1:
            return text
        place = end + len(text[end:]) - len(text[end:].lstrip())
    else:
        return next(iter(found), "{}" if place else "")
    grown = [piece for piece in pieces if piece]
    if is_object(grown[-1]) and all(map(str.startswith, grown[1:], grown)):
        return grown[-1]  # each piece repeats the earlier ones
    return text


TEXTS = ("reasoning_content", "reasoning")  # the fields for thoughts in words
DETAILS = "reasoning_details"
_GROWING = {"reasoning.text": "text", "reasoning.summary": "summary"}  # details that arrive in pieces


def reasoning_in(kept: Mapping[str, Any] | None) -> str:
    """The words of the thoughts of a reply, from any provider; empty if they are sealed."""
    pieces: list[Any] = []
    for owned in (kept or {}).values():
        parts = [owned, *owned.get(DETAILS, ())] if isinstance(owned, Mapping) else owned
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, Mapping):
                pieces += [part.get(name) for name in (*TEXTS, "thinking")]
                pieces += [part.get(name) for kind, name in _GROWING.items() if part.get("type") == kind]
    return "\n\n".join(piece for piece in pieces if isinstance(piece, str) and piece)


class Thoughts:
    """Collects the thoughts of one reply, from the whole message or from its pieces. ``field`` is the field
    that is sent back: DETAILS, or one of TEXTS, which stands for any of them; empty for none."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._texts: dict[str, list[str]] = {}
        self._details: list[Any] = []

    def add(self, message: Any) -> None:
        """Add the thoughts of a message, or of a piece of one."""
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
        """The fields that are sent back with the reply; empty if there are none."""
        if self._details:
            return {DETAILS: self._details}
        return {name: "".join(texts) for name, texts in list(self._texts.items())[:1]}


def _place(detail: dict[str, Any]) -> Any:
    return detail.get("type"), detail.get("index")
