"""The conversation: provider-neutral messages, serialised once for each kind of server.

It only grows: no message is serialised twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NotRequired, Self, TypedDict, overload


class NativeCall(TypedDict):
    """A call as the provider sent it; ``arguments`` is JSON text, unchanged and perhaps invalid."""

    id: str
    name: str
    arguments: str


class Image(dict[str, str]):
    """An image of a message. Its ``name``, ``media`` type and storage ``id`` are recorded; ``data`` is the
    content to send, in base64."""

    data = ""


class Message(TypedDict):
    """One message; ``role`` is ``system``, ``user``, ``assistant`` or ``tool``.

    ``calls`` are the native calls of an assistant message, ``call_id`` is the id of the call that a tool
    message answers, and ``kept`` maps a provider to data that must be sent back unchanged. ``parted``: the
    message before it was already sent and had no reply, so it cannot be extended.
    """

    role: str
    content: str
    calls: NotRequired[list[NativeCall]]
    call_id: NotRequired[str]
    images: NotRequired[list[Image]]
    kept: NotRequired[dict[str, Any]]
    parted: NotRequired[bool]


# The format of messages for one kind of server. Each conversation creates its own writer, which takes the
# messages since the last request and returns them as items of JSON.
Writer = Callable[[Sequence[Message]], Iterable[Any]]
Wire = Callable[[], Writer]


# The name of the adaptations to a server in the ``kept`` of a reply; no owner of thoughts has this name.
ADAPTED = "(adapted)"

# Bytes after which a written piece is final; a request copies at most this much.
PIECE = 65536


class _Written:
    """The JSON array for one wire so far: its final pieces, and the growing one."""

    def __init__(self, wire: Wire) -> None:
        self.count = 0  # number of messages
        self.write = wire()
        self._pieces: list[bytes] = []
        self._last = bytearray(b"[")
        self._empty = True

    def add(self, items: Iterable[bytes]) -> None:
        for item in items:
            if not self._empty:
                self._last += b","
            self._last += item
            self._empty = False
            if len(self._last) >= PIECE:
                self._pieces.append(bytes(self._last))
                self._last.clear()

    def pieces(self) -> list[bytes]:
        return [*self._pieces, bytes(self._last) + b"]"]

    def __len__(self) -> int:
        return sum(map(len, self._pieces)) + len(self._last)


class SentBytes(Sequence[bytes]):
    """The JSON of all requests, stored as lengths: each is a prefix of the conversation's JSON."""

    def __init__(self) -> None:
        self._requests: list[tuple[_Written, int]] = []

    def add(self, messages: Messages) -> None:
        written = messages.so_far(as_kept)
        self._requests.append((written, len(written)))

    def __len__(self) -> int:
        return len(self._requests)

    @overload
    def __getitem__(self, place: int) -> bytes: ...
    @overload
    def __getitem__(self, place: slice) -> list[bytes]: ...
    def __getitem__(self, place: int | slice) -> bytes | list[bytes]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        written, length = self._requests[place]
        return b"".join(written.pieces())[:length] + b"]"


class Messages:
    """An append-only conversation: neutral messages, each serialised once for every kind of server.

    The bytes of request n are a prefix of those of request n+1, so providers' prompt caches hit and the past
    is never serialised again (law "the prompt is a prefix"). ``before`` is the number of messages that
    compaction has removed or replaced. ``sent`` is the number of messages that a model may have seen: they
    and their bytes never change."""

    def __init__(self, before: int = 0) -> None:
        self.before = before
        self.sent = 0
        self._messages: list[Message] = []
        self.system = ""  # the text of all system messages
        self._written: dict[Wire, _Written] = {}

    @classmethod
    def of(cls, messages: Iterable[Message], before: int = 0) -> Self:
        """A conversation with the messages of another one."""
        made = cls(before)
        made._messages.extend(messages)
        said = (one["content"] for one in made._messages if one["role"] == "system")
        made.system = "\n\n".join(filter(None, said))
        return made

    def append(
        self,
        role: str,
        content: str,
        call_id: str = "",
        images: Iterable[Image] = (),
        *,
        calls: Iterable[NativeCall] = (),
        kept: Mapping[str, Any] | None = None,
    ) -> None:
        message: Message = {"role": role, "content": sendable(content)}
        if role != "assistant" and self._follows_sent():
            message["parted"] = True
        self._append(message, call_id, images, calls, kept)

    def _follows_sent(self) -> bool:
        """Whether the last message was sent and had no reply."""
        if not 0 < len(self._messages) == self.sent:
            return False
        last = self._messages[-1]
        return last["role"] in ("user", "tool") or "calls" in last

    def _append(
        self,
        message: Message,
        call_id: str,
        images: Iterable[Image],
        calls: Iterable[NativeCall],
        kept: Mapping[str, Any] | None,
    ) -> None:
        if call_id:
            message["call_id"] = call_id
        if shown := list(images):
            message["images"] = shown
        if native := [
            NativeCall(id=call["id"], name=sendable(call["name"]), arguments=sendable(call["arguments"]))
            for call in calls
        ]:
            message["calls"] = native
        if kept:
            message["kept"] = dict(kept)
        self._messages.append(message)
        if message["role"] == "system":
            self.system = "\n\n".join(filter(None, [self.system, message["content"]]))

    def add(self, message: Message) -> None:
        """Append a whole message unchanged, for example from another conversation."""
        plain: Message = {"role": message["role"], "content": sendable(message["content"])}
        if message.get("parted"):
            plain["parted"] = True
        self._append(
            plain,
            message.get("call_id", ""),
            message.get("images", ()),
            message.get("calls", ()),
            message.get("kept"),
        )

    def end_with(self, start: int, messages: Iterable[Message]) -> None:
        """Replace all messages from ``start`` on, to restore a recorded conversation. Raises ValueError if
        one of them has been serialised for a server."""
        if any(written.count > start for written in self._written.values()):
            raise ValueError("a sent message cannot be changed")
        shown = {image["id"]: image for one in self._messages for image in one.get("images", ())}
        self._messages[start:] = list(messages)
        for one in self._messages[start:]:
            if "images" in one:  # a recorded image has no data
                one["images"] = [shown.get(image["id"], Image(image)) for image in one["images"]]

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def last_reply(self) -> Message | None:
        """The latest message of the assistant."""
        places = range(len(self._messages) - 1, -1, -1)
        return next((one for place in places if (one := self._messages[place])["role"] == "assistant"), None)

    def since(self, start: int) -> list[Message]:
        """The messages from ``start`` on; earlier ones are not read."""
        return self._messages[start:]

    @property
    def turn(self) -> int:
        """A number that no later request of this conversation has, even after compaction."""
        return self.before + len(self._messages)

    def __getitem__(self, index: int) -> Message:
        return self._messages[index]

    def pieces(self, wire: Wire) -> list[bytes]:
        """The JSON array that ``wire`` makes of the messages, in pieces.

        ``wire`` gets only the messages that are new since the last request; earlier pieces are neither
        serialised nor copied again.
        """
        return self.so_far(wire).pieces()

    def so_far(self, wire: Wire) -> _Written:
        """The growing JSON array for ``wire``, up to date; the next request extends the same object."""
        written = self._written.get(wire)
        if written is None:
            written = self._written[wire] = _Written(wire)
        if written.count < len(self._messages):
            written.add(to_json(item) for item in written.write(self._messages[written.count :]))
            self.sent = written.count = len(self._messages)
        return written

    def written(self, wire: Wire) -> bytes:
        """The JSON array for ``wire`` in one piece."""
        return b"".join(self.pieces(wire))

    def as_json(self) -> bytes:
        """The JSON array of the neutral messages."""
        return self.written(as_kept)


def as_kept() -> Writer:
    return list


def to_json(value: Any) -> bytes:
    """Compact JSON for a server."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def sendable(text: str) -> str:
    """The text without unpaired surrogates, which cannot be sent. A model may stop in the middle of a
    character."""
    return text.encode("utf-8", "replace").decode("utf-8")
