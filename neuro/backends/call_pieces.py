"""Joins the pieces of streamed tool calls, also where a gateway repeats, renumbers or renames them.

Knows the shape of OpenAI's ``tool_calls``; it knows no tool, and reads arguments only to see where they end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from quoth.neuro.backends.messages import NativeCall, to_json

_MARKS = re.compile(r"\\.|[\"{}\[\]]|\\\Z", re.DOTALL)
_LEGACY = "function_call"  # the one call of a reply, before there were several
_decode = json.JSONDecoder().raw_decode


class _Nesting:
    """Whether the JSON value of which the pieces were fed is complete; each character is looked at once."""

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
    """The part of a call that was received so far."""

    id: str
    index: Any
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    signed: Any = None  # by Gemini, for the thoughts that led to it
    nesting: _Nesting = field(default_factory=_Nesting)

    def grow(self, name: str, arguments: str) -> None:
        if self.name and name.startswith(self.name):  # repeated, or sent again with its next letters
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
        if not self.nesting.whole:  # its name may come in pieces, before the arguments
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


class Calls:
    """Collects tool calls: whole ones, or pieces of them."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._at: dict[Any, _Call] = {}
        self._ids: dict[str, _Call] = {}

    def add(self, message: Any, *, whole: bool = False) -> None:
        """Take the calls of a message, or with ``whole`` False the pieces in a part of one."""
        if not isinstance(message, dict):
            return
        given = message.get("tool_calls")
        given = given if isinstance(given, list) else []
        if not given and (not self._calls or _LEGACY in self._at):  # some servers send both
            given = [{"index": _LEGACY, "function": message.get(_LEGACY)}]
        begun: set[_Call] = set()  # by this list, which names each call once
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
        """Those that have a name or arguments."""
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
    """The arguments in their pieces. Some gateways send ``{}`` before or behind them, or all of them again;
    where more than one reading is left, the text stays as it came."""
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
        return grown[-1]  # each piece repeats those before it
    return text
