"""Makes of a conversation the history that any server takes, whatever models and servers did in it.

Each call has an id of its own and exactly one result, directly behind it; no two messages of one role meet;
no message is blank; the names and arguments of calls are what providers allow. Knows neither JSON of a server
nor how a conversation is stored. The same messages give the same history, in one piece or in several.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from quoth.neuro.backends.messages import Message, NativeCall, to_json

PARTING = "OK."  # the assistant's turn between a message that was sent and the next of the same role
BLANK = "[empty]"  # for a message without words, which some servers refuse
UNANSWERED = "There is no result: the call was not completed."
LATE = "The result of a call made earlier:"
UNREADABLE = "unreadable_arguments"
UNNAMED = "unnamed"

# Which ids of calls a server takes. Others are replaced by nine letters and digits, which each of them takes.
ANY_ID = re.compile(r"[!-~]{1,40}")
WORD_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")  # Anthropic's
SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")  # Mistral's
# The names of tools that all providers take; Gemini's begin with a letter or an underscore.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Roles:
    """The roles that a server takes: whether ``system`` is one; with ``strict`` the assistant has to say
    something between a result and the next message of the user."""

    system: bool = True
    strict: bool = False


ALL_ROLES = Roles()


class History:
    """The history for one server, which grows with each request. ``put`` says a message as the server takes
    it: a call in words, a result in another role."""

    def __init__(
        self,
        ids: re.Pattern[str] = ANY_ID,
        roles: Roles = ALL_ROLES,
        put: Callable[[Message], Message] = lambda message: message,
    ) -> None:
        self._ids, self._roles, self._put = ids, roles, put
        self._used: set[str] = set()
        self._open: list[tuple[str, str]] = []  # the calls without a result: their own id, and that sent
        self._late: list[str] = []  # results without a call
        self._last = ""  # the role of the latest message
        self._opening = ""  # what a server without a system role is told in the first message of the user

    def grow(self, new: Iterable[Message]) -> Iterator[Message]:
        """What the server is sent of the messages that are new since the last request."""
        return map(_worded, _joined(self._ordered(new)))

    def _ordered(self, new: Iterable[Message]) -> Iterator[Message]:
        """The messages with the one result of each call directly behind it, in roles that there are."""
        for message in new:
            if message.get("parted"):
                yield from self._closed()
                if self._last in ("user", "tool"):
                    yield from self._said(Message(role="assistant", content=PARTING))
            if "call_id" not in message:
                yield from self._closed()
                yield from self._said(self._identified(message))
            elif sent := self._answered(message["call_id"]):
                yield from self._said({**message, "call_id": sent})
            else:
                self._late.append(_paragraphs(LATE, message["content"]))
        yield from self._closed()
        if self._opening:  # no task yet
            yield from self._said(Message(role="user", content=""))

    def _said(self, message: Message) -> Iterator[Message]:
        """The message as the server takes it, behind what has to come before it."""
        message = self._put(message)
        if message["role"] == "system":
            if self._last not in ("", "system"):  # only the first messages may be
                message = {**message, "role": "user"}
            elif not self._roles.system:
                self._opening = _paragraphs(self._opening, message["content"])
                return
        if self._opening:
            opening, self._opening = self._opening, ""
            yield Message(role="user", content=opening)
        if self._roles.strict and (self._last, message["role"]) == ("tool", "user"):
            yield Message(role="assistant", content=PARTING)
        self._last = message["role"]
        yield message

    def _answered(self, id: str) -> str:
        """The id that the server knows of a call without a result, which has one now; empty if there is
        none."""
        for place, (own, sent) in enumerate(self._open):
            if own == id:
                del self._open[place]
                return sent
        return ""

    def _closed(self) -> Iterator[Message]:
        """What has to be said before anything but a result."""
        (open, self._open), (late, self._late) = (self._open, []), (self._late, [])
        for _, sent in open:
            yield from self._said(Message(role="tool", content=UNANSWERED, call_id=sent))
        for content in late:
            yield from self._said(Message(role="user", content=content))

    def _identified(self, message: Message) -> Message:
        """The message with ids of its calls that no call before has."""
        if not message.get("calls"):
            return message
        calls = [
            NativeCall(id=self._id(call["id"]), name=call["name"], arguments=call["arguments"])
            for call in message["calls"]
        ]
        self._open = [(old["id"], new["id"]) for old, new in zip(message["calls"], calls, strict=True)]
        return {**message, "calls": calls}

    def _id(self, id: str) -> str:
        sent, tries = id, 0
        while sent in self._used or not self._ids.fullmatch(sent):
            sent = hashlib.sha256(f"{id}{tries or ''}".encode()).hexdigest()[:9]
            tries += 1
        self._used.add(sent)
        return sent


def _joined(messages: Iterable[Message]) -> Iterator[Message]:
    """Neighbours of one role as one message; calls and their results stay alone."""
    last: Message | None = None
    for message in messages:
        if last is None:
            last = message
        elif last["role"] == message["role"] and not (_is_whole(last) or _is_whole(message)):
            images = [*last.get("images", ()), *message.get("images", ())]
            last = {**last, "content": _paragraphs(last["content"], message["content"])}
            if images:
                last["images"] = images
        else:
            yield last
            last = message
    if last is not None:
        yield last


def _is_whole(message: Message) -> bool:
    return any(message.get(name) for name in ("calls", "call_id", "kept"))


def _worded(message: Message) -> Message:
    says = message["content"].strip() or message.get("images") or message.get("calls")
    return message if says else {**message, "content": BLANK}


def _paragraphs(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))


# The calls themselves


def accepted_call(call: NativeCall) -> NativeCall:
    """The call with a name and arguments that any provider takes; one that is sound is the very same."""
    name, arguments = accepted_name(call["name"]), accepted_arguments(call["arguments"])
    return NativeCall(id=call["id"], name=name, arguments=arguments)


def accepted_name(name: str) -> str:
    """The name of a tool without a template's marks behind it, and with no other characters than are
    allowed."""
    if NAME.fullmatch(name):
        return name
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", name.partition("<|")[0] or name).strip("_")
    return (name if NAME.match(name) else f"_{name}" if name else UNNAMED)[:64]


def accepted_arguments(arguments: str) -> str:
    """The arguments as they are where they are a JSON object; else an object that says so."""
    found = _read(arguments)
    if isinstance(found, str):  # written twice
        found = _read(found)
    elif isinstance(found, dict) and "\\ud" not in arguments.lower():
        return arguments
    if found is None and arguments.strip() in ("", "null"):
        found = {}
    return to_json(found if isinstance(found, dict) else {UNREADABLE: arguments}).decode()


def as_object(arguments: str) -> dict[str, Any]:
    """The arguments as a JSON object."""
    found: dict[str, Any] = json.loads(accepted_arguments(arguments))
    return found


def _read(text: str) -> Any:
    """The value of a JSON text; None where it is not JSON, or has numbers that JSON lacks."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def with_calls(blocks: Sequence[Any], kind: str, calls: Sequence[Any]) -> Iterator[Any]:
    """A provider's own blocks of a reply, unchanged but for those of a ``kind`` that say something else than
    the ``calls``, in order. Calls without a block come last."""
    rest = iter(calls)
    for block in blocks:
        if not (isinstance(block, dict) and block.get("type") == kind):
            yield block
        elif (call := next(rest, None)) is not None:
            yield block if call.items() <= block.items() else call
    yield from rest
