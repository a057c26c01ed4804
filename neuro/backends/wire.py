"""How a conversation is serialised for each kind of server: plain text, OpenAI's chat and Responses, and
Anthropic's messages.

Knows how a call is spelt as a form, for servers without native calls; it knows no tool and sends nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from quoth.neuro.backends.history import (
    ALL_ROLES,
    ANY_ID,
    BLANK,
    WORD_ID,
    History,
    Roles,
    accepted_call,
    as_object,
    with_calls,
)
from quoth.neuro.backends.messages import Image, Message, NativeCall, Wire, Writer
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import from_json

Item = dict[str, Any]


@dataclass(frozen=True)
class Text:
    """For models that take only text: native calls become call forms, a turn's results one message of a tool;
    ``as_user``: of the user, because OpenAI refuses those of tools without call ids."""

    as_user: bool = False
    roles: Roles = ALL_ROLES

    def __call__(self) -> Writer:
        history = History(roles=self.roles, put=_words_of_user if self.as_user else _words)
        return lambda new: (_plain(message, CHAT) for message in history.grow(new))


text = Text()
text_as_user = Text(as_user=True)


@dataclass(frozen=True)
class Chat:
    """OpenAI's chat completions: tool calls and tool messages keep their ids. ``ids`` are those that the
    server takes; ``owner`` is whose thoughts go back to it. With ``thinks`` each message with calls has that
    field, which is empty where nothing was thought; with ``signs`` each has a signature."""

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
    """Gemini's signatures, without which it refuses the calls that its thoughts led to. The first call of
    another model gets its word for a call that has none."""
    for call, signed in zip(calls, signatures or [UNSIGNED], strict=False):
        call |= {"extra_content": signed} if signed else {}


# What Google's documentation gives for calls that another model made.
UNSIGNED = {"google": {"thought_signature": "skip_thought_signature_validator"}}


@dataclass(frozen=True)
class Responses:
    """OpenAI's Responses: each call and result is an item; a reply of ``owner`` with thoughts goes back as it
    came."""

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
            ends = bool(items) and items[-1].get("type") != "reasoning"  # a thought is not the end of a reply
            return items if ends else [*items, *_said_in_responses("assistant", BLANK)]
        said = _said_in_responses(message["role"], _with_images(message["content"], message, RESPONSES))
        return [*said, *calls]


responses = Responses()


def responses_text() -> Writer:
    """The same as text, for its requests without tools."""
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
    if role == "assistant":  # llama.cpp takes the text of a reply in this form only
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
        )  # a thought is no end of a reply


anthropic = Anthropic()


def anthropic_text() -> Writer:
    """The same as text, for requests without tools, in which Anthropic refuses tool blocks."""
    history = History(put=_words_of_user)
    return lambda new: (_plain(message, ANTHROPIC) for message in history.grow(_without_system(new)))


def _without_system(new: Sequence[Message]) -> Iterator[Message]:
    return (message for message in new if message["role"] != "system")


def kept_for(owner: str, message: Message) -> Any:
    """What this owner wants back with a message; nothing of any other."""
    kept = message.get("kept")
    return kept.get(owner) if kept else None


# How a message is put


def _of_user(message: Message) -> Message:
    """Results of calls in text are the user's where tools have ids."""
    return {**message, "role": "user"} if message["role"] == "tool" and "call_id" not in message else message


def _words(message: Message) -> Message:
    """The message in words alone."""
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


# The type of a part of text beside images, and how an image is written.
Parts = tuple[str, Callable[[Image], Item]]
CHAT: Parts = ("text", _chat_image)
RESPONSES: Parts = ("input_text", _responses_image)
ANTHROPIC: Parts = ("text", _anthropic_image)


def _with_images(text: str, message: Message, parts: Parts) -> str | list[Item]:
    """The text, as the first of several parts where the message has images."""
    kind, write = parts
    images = [
        write(one) if one.data else {"type": kind, "text": f"(The image {one['name']} is kept no longer.)"}
        for one in message.get("images", ())
    ]
    return [{"type": kind, "text": text}, *images] if images else text


@cache
def without_images(wire: Wire) -> Wire:
    """The same wire for a model that reads text only: of an image it is told the size."""

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
        return f"({call['name']} {call['arguments']})"  # as unreadable as it was


def _said_by_user(message: Message) -> list[Item]:
    if "call_id" in message:
        return [{"type": "tool_result", "tool_use_id": message["call_id"], "content": message["content"]}]
    said = _with_images(message["content"], message, ANTHROPIC)
    return said if isinstance(said, list) else _text(message)


def _text(message: Message) -> list[Item]:
    """The text as a block; a blank one is refused by the server."""
    return [{"type": "text", "text": message["content"]}] if message["content"].strip() else []


def _use(call: NativeCall) -> Item:
    return {"type": "tool_use", "id": call["id"], "name": call["name"], "input": as_object(call["arguments"])}
