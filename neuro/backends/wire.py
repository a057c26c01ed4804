"""Turns a conversation with any models and servers into a history that every server accepts, and writes it in
the format of each kind of server: plain text, OpenAI's chat and Responses, Anthropic's messages.

Each call has a unique id and exactly one result, directly after it; no two neighbouring messages have the
same role; no message is blank; the names and arguments of calls are allowed by all providers. The same
messages give the same history, in one piece or in several. For servers without native calls, a call is
written as a form."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from quoth.neuro.backends.messages import Image, Message, NativeCall, Wire, Writer, to_json
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import from_json

PARTING = "OK."  # the assistant's turn between a message that was sent and the next of the same role
BLANK = "[empty]"  # for a message without words, which some servers refuse
UNANSWERED = "There is no result: the call was not completed."
LATE = "The result of a call made earlier:"
UNREADABLE = "unreadable_arguments"
UNNAMED = "unnamed"

# The ids of calls that a server accepts. Others are replaced by nine letters and digits, which all accept.
ANY_ID = re.compile(r"[!-~]{1,40}")
WORD_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")  # Anthropic's
SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")  # Mistral's
# The names of tools that all providers accept; Gemini's begin with a letter or an underscore.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Roles:
    """The roles that a server accepts. ``system``: it has a system role. ``strict``: there must be an
    assistant message between a result and the next message of the user."""

    system: bool = True
    strict: bool = False


ALL_ROLES = Roles()


class History:
    """The history for one server, which grows with each request. ``put`` converts a message for the server: a
    call into words, a result into another role."""

    def __init__(
        self,
        ids: re.Pattern[str] = ANY_ID,
        roles: Roles = ALL_ROLES,
        put: Callable[[Message], Message] = lambda message: message,
    ) -> None:
        self._ids, self._roles, self._put = ids, roles, put
        self._used: set[str] = set()
        self._open: list[tuple[str, str]] = []  # calls without a result: their id, and the sent id
        self._late: list[str] = []  # results without a call
        self._last = ""  # the role of the latest message
        self._opening = ""  # text for the first user message, if the server has no system role

    def grow(self, new: Iterable[Message]) -> Iterator[Message]:
        """The messages for the server from the ``new`` messages since the last request."""
        return map(_worded, _joined(self._ordered(new)))

    def _ordered(self, new: Iterable[Message]) -> Iterator[Message]:
        """The messages with the single result of each call directly after it, in roles of the server."""
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
        """The message for the server, after the messages that must precede it."""
        message = self._put(message)
        if message["role"] == "system":
            if self._last not in ("", "system"):  # only the first messages may have that role
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
        """The sent id of an open call, which is then closed; empty if no open call has the id."""
        for place, (own, sent) in enumerate(self._open):
            if own == id:
                del self._open[place]
                return sent
        return ""

    def _closed(self) -> Iterator[Message]:
        """The messages that must precede any message except a result."""
        (open, self._open), (late, self._late) = (self._open, []), (self._late, [])
        for _, sent in open:
            yield from self._said(Message(role="tool", content=UNANSWERED, call_id=sent))
        for content in late:
            yield from self._said(Message(role="user", content=content))

    def _identified(self, message: Message) -> Message:
        """The message with unique ids of its calls."""
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
    """Neighbouring messages of one role as one message; calls and results stay separate."""
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
    """The call with a name and arguments that every provider accepts; a valid call is returned unchanged."""
    name, arguments = accepted_name(call["name"]), accepted_arguments(call["arguments"])
    return NativeCall(id=call["id"], name=name, arguments=arguments)


def accepted_name(name: str) -> str:
    """The name of a tool without the marks of a template after it, and with only allowed characters."""
    if NAME.fullmatch(name):
        return name
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", name.partition("<|")[0] or name).strip("_")
    return (name if NAME.match(name) else f"_{name}" if name else UNNAMED)[:64]


def accepted_arguments(arguments: str) -> str:
    """The arguments, if they are a JSON object; otherwise an object that contains them as text."""
    found = _read(arguments)
    if isinstance(found, str):  # encoded twice
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
    """The value of a JSON text; None if it is not JSON or contains NaN or Infinity."""
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
    """A provider's own blocks of a reply, unchanged except blocks of this ``kind`` that differ from the
    ``calls``, in order. Calls without a block come last."""
    rest = iter(calls)
    for block in blocks:
        if not (isinstance(block, dict) and block.get("type") == kind):
            yield block
        elif (call := next(rest, None)) is not None:
            yield block if call.items() <= block.items() else call
    yield from rest


# The history for each kind of server

Item = dict[str, Any]


@dataclass(frozen=True)
class Text:
    """For models that take only text: native calls become call forms, and the results of a turn one tool
    message.
    ``as_user``: one user message instead, because OpenAI refuses tool messages without call ids."""

    as_user: bool = False
    roles: Roles = ALL_ROLES

    def __call__(self) -> Writer:
        history = History(roles=self.roles, put=_words_of_user if self.as_user else _words)
        return lambda new: (_plain(message, CHAT) for message in history.grow(new))


text = Text()
text_as_user = Text(as_user=True)


@dataclass(frozen=True)
class Chat:
    """OpenAI's chat completions: tool calls and tool messages keep their ids. ``ids``: the pattern of ids
    that the server accepts. ``owner``: thoughts of this owner are sent back. ``thinks``: each message with
    calls has that field, empty without thoughts. ``signs``: each call has a signature."""

    owner: str = ""
    ids: re.Pattern[str] = ANY_ID
    thinks: str = ""
    signs: bool = False
    roles: Roles = ALL_ROLES

    def __call__(self) -> Writer:
        history = History(self.ids, self.roles, _of_user)
        return lambda new: map(self._item, history.grow(new))

    def _item(self, message: Message) -> Item:
        if "call_id" in message:
            return {"role": "tool", "tool_call_id": message["call_id"], "content": message["content"]}
        item, thoughts = _plain(message, CHAT), kept_for(self.owner, message)
        if calls := message.get("calls"):
            item["content"] = message["content"] or None
            item["tool_calls"] = [_chat_call(accepted_call(call)) for call in calls]
            if self.thinks:
                item[self.thinks] = ""
            if self.signs:
                _sign(item["tool_calls"], thoughts)
        return item | thoughts if isinstance(thoughts, dict) else item


openai = Chat()


def _chat_call(call: NativeCall) -> Item:
    said = {"name": call["name"], "arguments": call["arguments"]}
    return {"id": call["id"], "type": "function", "function": said}


def _sign(calls: list[Item], signatures: Any) -> None:
    """Add Gemini's signatures; it refuses calls after its thoughts without them. The first call of another
    model gets Gemini's placeholder."""
    for call, signed in zip(calls, signatures or [UNSIGNED], strict=False):
        call |= {"extra_content": signed} if signed else {}


# The placeholder from Google's documentation for calls of another model.
UNSIGNED = {"google": {"thought_signature": "skip_thought_signature_validator"}}


@dataclass(frozen=True)
class Responses:
    """OpenAI's Responses: each call and result is an item; a reply of ``owner`` with thoughts is sent back
    unchanged."""

    owner: str = ""

    def __call__(self) -> Writer:
        history = History(put=_of_user)
        return lambda new: (item for message in history.grow(new) for item in self._items(message))

    def _items(self, message: Message) -> Iterable[Item]:
        if "call_id" in message:
            return [
                {"type": "function_call_output", "call_id": message["call_id"], "output": message["content"]}
            ]
        calls = [_response_call(accepted_call(call)) for call in message.get("calls", ())]
        if kept := kept_for(self.owner, message):
            items = [item for item in with_calls(kept, "function_call", calls) if not _says_nothing(item)]
            ends = bool(items) and items[-1].get("type") != "reasoning"  # a reply must not end with a thought
            return items if ends else [*items, *_said_in_responses("assistant", BLANK)]
        said = _said_in_responses(message["role"], _with_images(message["content"], message, RESPONSES))
        return [*said, *calls]


responses = Responses()


def responses_text() -> Writer:
    """Responses as text, for requests without tools."""
    history = History(put=_words_of_user)
    return lambda new: (
        item
        for message in history.grow(new)
        for item in _said_in_responses(message["role"], _with_images(message["content"], message, RESPONSES))
    )


def _says_nothing(item: Item) -> bool:
    content = item.get("content") if item.get("type") == "message" else None
    parts = content if isinstance(content, list) else []
    return bool(parts) and not any(str(part.get("text", part)).strip() for part in parts)


def _response_call(call: NativeCall) -> Item:
    return {
        "type": "function_call",
        "call_id": call["id"],
        "name": call["name"],
        "arguments": call["arguments"],
    }


def _said_in_responses(role: str, content: str | list[Item]) -> Iterator[Item]:
    if isinstance(content, str) and not content.strip():
        return
    if role == "assistant":  # llama.cpp accepts the text of a reply only in this form
        said = {"type": "output_text", "text": content}
        yield {"type": "message", "role": role, "content": [said]}
    else:
        yield {"role": role, "content": content}


@dataclass(frozen=True)
class Anthropic:
    """Anthropic's messages: the results of one turn, and the user's text with them, become one user message.

    System messages are left out: they are a field of the request."""

    owner: str = ""

    def __call__(self) -> Writer:
        history = History(WORD_ID, put=_of_user)
        return lambda new: self._write(history.grow(_without_system(new)))

    def _write(self, messages: Iterable[Message]) -> Iterator[Item]:
        user: list[Item] = []
        for message in messages:
            if message["role"] != "assistant":
                user += _said_by_user(message)
                continue
            if user:
                yield {"role": "user", "content": user}
                user = []
            yield {"role": "assistant", "content": self._blocks(message)}
        if user:
            yield {"role": "user", "content": user}

    def _blocks(self, message: Message) -> list[Item]:
        uses = [_use(accepted_call(call)) for call in message.get("calls", ())]
        if not (kept := kept_for(self.owner, message)):
            return [*_text(message), *uses]
        blocks = list(with_calls(kept, "tool_use", uses))
        ends = blocks and blocks[-1].get("type") in ("thinking", "redacted_thinking")
        return (
            [*blocks, {"type": "text", "text": BLANK}] if ends else blocks
        )  # a reply must not end with a thought


anthropic = Anthropic()


def anthropic_text() -> Writer:
    """Anthropic's messages as text, for requests without tools, in which Anthropic refuses tool blocks."""
    history = History(put=_words_of_user)
    return lambda new: (_plain(message, ANTHROPIC) for message in history.grow(_without_system(new)))


def _without_system(new: Sequence[Message]) -> Iterator[Message]:
    return (message for message in new if message["role"] != "system")


def kept_for(owner: str, message: Message) -> Any:
    """The kept data of this owner in a message; None if there is none."""
    kept = message.get("kept")
    return kept.get(owner) if kept else None


# Conversions of a message


def _of_user(message: Message) -> Message:
    """The message; results of calls in text become user messages, for servers whose tool messages need
    ids."""
    return {**message, "role": "user"} if message["role"] == "tool" and "call_id" not in message else message


def _words(message: Message) -> Message:
    """The message in words only."""
    if "calls" not in message and "call_id" not in message and "kept" not in message:
        return message
    said = Message(role=message["role"], content=_with_forms(message))
    if images := message.get("images"):
        said["images"] = images
    return said


def _words_of_user(message: Message) -> Message:
    return _of_user(_words(message))


def _plain(message: Message, parts: Parts) -> Item:
    return {"role": message["role"], "content": _with_images(message["content"], message, parts)}


def _chat_image(image: Image) -> Item:
    return {"type": "image_url", "image_url": {"url": _url(image)}}


def _responses_image(image: Image) -> Item:
    return {"type": "input_image", "image_url": _url(image)}


def _anthropic_image(image: Image) -> Item:
    return {"type": "image", "source": {"type": "base64", "media_type": image["media"], "data": image.data}}


def _url(image: Image) -> str:
    return f"data:{image['media']};base64,{image.data}"


# The type of a text part next to images, and the function that writes an image.
Parts = tuple[str, Callable[[Image], Item]]
CHAT: Parts = ("text", _chat_image)
RESPONSES: Parts = ("input_text", _responses_image)
ANTHROPIC: Parts = ("text", _anthropic_image)


def _with_images(text: str, message: Message, parts: Parts) -> str | list[Item]:
    """The text; with images, a list of parts that begins with it."""
    kind, write = parts
    images = [
        write(one) if one.data else {"type": kind, "text": f"(The image {one['name']} is kept no longer.)"}
        for one in message.get("images", ())
    ]
    return [{"type": kind, "text": text}, *images] if images else text


@cache
def without_images(wire: Wire) -> Wire:
    """The same wire for a model that reads text only: the size of an image replaces it."""

    def begin() -> Writer:
        write = wire()
        return lambda new: write([_blind(message) for message in new])

    return begin


def _blind(message: Message) -> Message:
    if "images" not in message:
        return message
    told = [f"(an image, {one['size']}, which you cannot see)" for one in message["images"]]
    seen: Message = {**message, "content": "\n".join([message["content"], *told])}
    del seen["images"]
    return seen


def _with_forms(message: Message) -> str:
    forms = [_form(call) for call in message.get("calls", ())]
    return "\n".join(filter(None, [message["content"], *forms]))


def _form(call: NativeCall) -> str:
    try:
        return str(from_json(call))
    except InvalidCallError:
        return f"({call['name']} {call['arguments']})"  # the unreadable arguments, unchanged


def _said_by_user(message: Message) -> list[Item]:
    if "call_id" in message:
        return [{"type": "tool_result", "tool_use_id": message["call_id"], "content": message["content"]}]
    said = _with_images(message["content"], message, ANTHROPIC)
    return said if isinstance(said, list) else _text(message)


def _text(message: Message) -> list[Item]:
    """The text as a block; empty for a blank text, which the server refuses."""
    return [{"type": "text", "text": message["content"]}] if message["content"].strip() else []


def _use(call: NativeCall) -> Item:
    return {"type": "tool_use", "id": call["id"], "name": call["name"], "input": as_object(call["arguments"])}
