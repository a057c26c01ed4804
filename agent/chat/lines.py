"""The lines of a gateway: JSON objects in and out, and one sentence for each mistake in them.

The fields of a line name its user and its chat; its text is never interpreted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from quoth.tools.errors import QuothError, no_such
from quoth.tools.text import excerpt

LONGEST = 1_000_000  # maximum bytes of a line
MARK_CHARS = 200
KEYS = ("id", "user", "chat", "text", "approve", "deny", "why", "answer")
SHAPE = '{"id": 1, "user": "ann", "chat": "7", "text": "…"}'
_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
_SEPARATORS = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "\x85\u2028\u2029"})

Id = int | str
Kind = Literal["reply", "followup", "asked", "error"]


class LineError(QuothError):
    """A refused line, with its ``id`` and ``chat`` if it has them."""

    def __init__(self, sentence: str, id: Id | None = None, chat: str | None = None) -> None:
        super().__init__(sentence)
        self.id = id
        self.chat = chat


@dataclass(frozen=True)
class ChatMessage:
    """A message of ``user`` in a chat. The client chooses the id, which is unique in the chat."""

    id: Id
    user: str
    chat: str
    text: str


@dataclass(frozen=True)
class Choice:
    """A decision of ``user`` about a request of a chat, or an answer to a question there."""

    id: Id | None
    user: str
    chat: str
    request: str
    approved: bool
    why: str = ""
    answer: str | None = None


@dataclass(frozen=True)
class Outgoing:
    """A line for the clients of a chat. ``id`` is the id of its message, ``calls`` are its calls, and
    ``request`` is the request to decide or the question to answer."""

    id: Id | None
    chat: str | None
    kind: Kind
    text: str
    calls: tuple[Mapping[str, Any], ...] = ()
    request: Mapping[str, Any] = field(default_factory=dict)

    def to_line(self) -> bytes:
        """The line with its line end, in UTF-8. U+2028 is escaped, because some readers break lines there."""
        data = {
            "id": self.id,
            "chat": self.chat,
            "kind": self.kind,
            "text": self.text,
            "calls": [dict(call) for call in self.calls],
            **({"request": dict(self.request)} if self.request else {}),
        }
        text = json.dumps(data, ensure_ascii=False).translate(_SEPARATORS)
        return text.encode("utf-8", "replace") + b"\n"


class Splitter:
    """Splits incoming bytes into lines. Of an overlong line it keeps only enough to detect that."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The complete lines after adding ``data``, without line ends and blank lines."""
        *whole, rest = data.split(b"\n")
        lines = []
        for piece in whole:
            lines.append(bytes(self._rest + piece)[: LONGEST + 1])
            self._rest.clear()
        self._rest += rest[: max(0, LONGEST + 1 - len(self._rest))]
        return [line for line in lines if line.strip()]

    def end(self) -> list[bytes]:
        """The last line, if the input ended without a line end."""
        return self.feed(b"\n")


def read_line(line: bytes) -> ChatMessage | Choice:
    """Parse a line. Raises LineError."""
    said = _object(line)
    id = said.get("id")
    known_id = id if _is_id(id) else None
    chat = said.get("chat")
    known_chat = chat if isinstance(chat, str) and _encodable(chat) else None
    try:
        return _read(said)
    except LineError as error:
        raise LineError(str(error), known_id, known_chat) from None


def _object(line: bytes) -> dict[str, Any]:
    if len(line) > LONGEST:
        raise LineError(f"The line is longer than {LONGEST:,} bytes.")
    try:
        said = json.loads(line.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise LineError(f"The line is not UTF-8 text (byte {error.start + 1}).") from None
    except json.JSONDecodeError as error:
        what = error.msg[:1].lower() + error.msg[1:]
        raise LineError(f"The line is not JSON: {what}, at character {error.pos + 1}.") from None
    except RecursionError:
        raise LineError("The line cannot be read: it is nested too deeply.") from None
    except ValueError:
        raise LineError("The line cannot be read: it contains a number with too many digits.") from None
    if not isinstance(said, dict):
        raise LineError(f"A line must be an object, {SHAPE}, not {_kind(said)}.")
    return said


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without duplicate keys. Raises LineError for one, because readers differ on which value
    counts."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise LineError(f"The key {excerpt(twice)} is given twice in one object.")
    return made


def _no_number(word: str) -> Any:
    raise LineError(f"The line is not JSON: {word} is not a JSON number.")


def _read(said: dict[str, Any]) -> ChatMessage | Choice:
    for name in said:
        if name not in KEYS:
            raise LineError(no_such("key", name or "without a name", KEYS, "The keys are"))
    acts = [name for name in ("text", "approve", "deny", "answer") if name in said]
    if "answer" in said and "text" in said:
        acts.remove("text")
    if len(acts) != 1:
        if acts:
            raise LineError(f"A line must have only one of {' and '.join(acts)}.")
        raise LineError("The line has no text.")
    (act,) = acts
    if "why" in said and act != "deny":
        raise LineError("why is allowed only with deny.")
    chat, user = _mark(said, "chat"), _mark(said, "user")
    if "id" in said and not _is_id(said["id"]):
        raise LineError(f"id must be a whole number or a short text, {_no_id(said['id'])}.")
    if act == "text":
        if "id" not in said:
            raise LineError(
                "The line has no id. Give one, by which the gateway recognises a repeated message."
            )
        text = _text(said, "text")
        if not text.strip():
            raise LineError("The text is empty.")
        return ChatMessage(said["id"], user, chat, text)
    if act == "answer":
        if "text" not in said:
            raise LineError("An answer needs a text.")
        return Choice(said.get("id"), user, chat, _mark(said, act), False, answer=_text(said, "text"))
    why = _text(said, "why") if "why" in said else ""
    return Choice(said.get("id"), user, chat, _mark(said, act), act == "approve", why)


def _mark(said: dict[str, Any], name: str) -> str:
    """A name or an id: short, without control characters."""
    if name not in said:
        raise LineError(f"The line has no {name}.")
    value = said[name]
    if isinstance(value, int) and not isinstance(value, bool):
        raise LineError(f'{name} must be a text, "{excerpt(str(value))}", not a number.')
    text = _text(said, name)
    if not text.strip():
        raise LineError(f"{name} is empty.")
    if (bad := _bad(text)) != "":
        raise LineError(f"{name} must be a short text, {bad}.")
    return text


def _text(said: dict[str, Any], name: str) -> str:
    value = said[name]
    if not isinstance(value, str):
        raise LineError(f"{name} is a text, not {_kind(value)}.")
    if "\0" in value:
        raise LineError(f"{name} contains a NUL character.")
    if not _encodable(value):
        raise LineError(f"{name} contains an invalid character (an unpaired surrogate).")
    return value


def _bad(text: str) -> str:
    """The fault of a short text; empty if it has none."""
    if len(text) > MARK_CHARS:
        return f"not one of {len(text)} characters"
    return "" if text.isprintable() else "without control characters"  # includes unpaired surrogates


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return value != "" and _bad(value) == ""
    return type(value) is int and abs(value) < 10**MARK_CHARS


def _no_id(value: object) -> str:
    if isinstance(value, str):
        return _bad(value) or "not an empty one"
    return f"not {excerpt(json.dumps(value)) if isinstance(value, int | float) else _kind(value)}"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: object) -> str:
    return _NAMES.get(type(value), "a number")
