"""How a conversation is serialised for each kind of server: plain text, OpenAI's chat and Responses, and
Anthropic's messages.

Knows how a call is spelt as a form, for servers without native calls; it knows no tool and sends nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from quoth.neuro.backends.messages import Image, Message, NativeCall, Wire
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import from_json

Item = dict[str, Any]
_SHORT = re.compile(r"[A-Za-z0-9]{9}")


def text(new: Sequence[Message]) -> Iterator[Item]:
    """For models that take only text: native calls become call forms, a turn's results one tool message."""
    return _as_text(new, _CHAT)


def _as_text(new: Sequence[Message], parts: Parts) -> Iterator[Item]:
    results: list[str] = []
    for message in new:
        if "call_id" in message:
            results.append(message["content"])
            continue
        if results:
            yield {"role": "tool", "content": "\n\n".join(results)}
            results = []
        yield {"role": message["role"], "content": _with_images(_with_forms(message), message, parts)}
    if results:
        yield {"role": "tool", "content": "\n\n".join(results)}


def text_as_user(new: Sequence[Message]) -> Iterator[Item]:
    """The same with ``user`` for ``tool`` messages, which OpenAI refuses without call ids."""
    for item in text(new):
        yield {**item, "role": "user" if item["role"] == "tool" else item["role"]}


def openai(new: Sequence[Message]) -> Iterator[Item]:
    """OpenAI's chat completions: tool calls and tool messages keep their ids."""
    for message in new:
        if "call_id" in message:
            yield {"role": "tool", "tool_call_id": message["call_id"], "content": message["content"]}
        elif calls := message.get("calls"):
            yield {
                "role": "assistant",
                "content": message["content"] or None,
                "tool_calls": [
                    {
                        "id": call["id"],
                        "type": "function",
                        "function": {"name": call["name"], "arguments": call["arguments"]},
                    }
                    for call in calls
                ],
            }
        else:
            role = "user" if message["role"] == "tool" else message["role"]
            yield {"role": role, "content": _with_images(message["content"], message, _CHAT)}


def gemini(new: Sequence[Message]) -> Iterator[Item]:
    """The same with Gemini's signatures, without which it refuses the calls that its thoughts led to."""
    for message, item in zip(new, openai(new), strict=True):
        for call, signed in zip(
            item.get("tool_calls", ()), message.get("kept", {}).get("gemini", ()), strict=False
        ):
            call |= {"extra_content": signed} if signed else {}
        yield item


def responses(new: Sequence[Message]) -> Iterator[Item]:
    """OpenAI's Responses: each call and result is an item; a reply with thoughts goes back as it came."""
    for message in new:
        if kept := message.get("kept", {}).get("responses"):
            yield from kept
        else:
            yield from _items(message)


def responses_without_thoughts(new: Sequence[Message]) -> Iterator[Item]:
    """The same for a server that does not accept the thoughts of this conversation."""
    for message in new:
        yield from _items(message)


def responses_text(new: Sequence[Message]) -> Iterator[Item]:
    """The same as text, for its requests without tools."""
    for item in _as_text(new, _RESPONSES):
        yield from _said_in_responses(item["role"], item["content"])


def _items(message: Message) -> Iterator[Item]:
    if "call_id" in message:
        yield {"type": "function_call_output", "call_id": message["call_id"], "output": message["content"]}
    else:
        yield from _said_in_responses(message["role"], _with_images(message["content"], message, _RESPONSES))
    for call in message.get("calls", ()):
        yield {
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
        yield {"role": "user" if role == "tool" else role, "content": content}


def openai_short_ids(new: Sequence[Message]) -> Iterator[Item]:
    """The same for Mistral, which takes no call ids but its own kind: those of another model are hashed."""
    for item in openai(new):
        if "tool_call_id" in item:
            item["tool_call_id"] = _short(item["tool_call_id"])
        for call in item.get("tool_calls", ()):
            call["id"] = _short(call["id"])
        yield item


def _short(id: str) -> str:
    """Nine letters and digits, the same for the same id."""
    return id if _SHORT.fullmatch(id) else hashlib.sha256(id.encode()).hexdigest()[:9]


def anthropic(new: Sequence[Message]) -> Iterator[Item]:
    """Anthropic's messages: the results of one turn, and the user's text with them, become one user message.

    System messages are left out: they are a field of the request.
    """
    user: list[Item] = []
    for message in new:
        if message["role"] == "system":
            continue
        if message["role"] != "assistant":
            user += _said_by_user(message)
            continue
        if user:
            yield {"role": "user", "content": user}
            user = []
        if blocks := message.get("kept", {}).get("anthropic") or [*_text(message), *_uses(message)]:
            yield {"role": "assistant", "content": blocks}
    if user:
        yield {"role": "user", "content": user}


def anthropic_text(new: Sequence[Message]) -> Iterator[Item]:
    """The same as text, for requests without tools, in which Anthropic refuses tool blocks."""
    for item in _as_text(new, _ANTHROPIC):
        content = item["content"]
        if item["role"] != "system" and (content if isinstance(content, list) else content.strip()):
            yield {**item, "role": "user" if item["role"] == "tool" else item["role"]}


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
_CHAT: Parts = ("text", _chat_image)
_RESPONSES: Parts = ("input_text", _responses_image)
_ANTHROPIC: Parts = ("text", _anthropic_image)


def _with_images(text: str, message: Message, parts: Parts) -> str | list[Item]:
    """The text, as the first of several parts where the message has images."""
    kind, write = parts
    images = [
        write(one) if one.data else {"type": kind, "text": f"(The image {one['name']} is kept no longer.)"}
        for one in message.get("images", ())
    ]
    return [{"type": kind, "text": text}, *images] if images else text


@cache
def without_images(writes: Wire) -> Wire:
    """The same wire for a model that reads text only: of an image it is told the size."""

    def write(new: Sequence[Message]) -> Iterable[Item]:
        return writes([_blind(message) for message in new])

    return write


def _blind(message: Message) -> Message:
    if "images" not in message:
        return message
    told = [f"(an image, {one['size']}, which you cannot see)" for one in message["images"]]
    seen: Message = {"role": message["role"], "content": "\n".join([message["content"], *told])}
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
    said = _with_images(message["content"], message, _ANTHROPIC)
    return said if isinstance(said, list) else _text(message)


def _text(message: Message) -> list[Item]:
    """The text as a block; a blank one is refused by the server."""
    return [{"type": "text", "text": message["content"]}] if message["content"].strip() else []


def _uses(message: Message) -> list[Item]:
    return [
        {"type": "tool_use", "id": call["id"], "name": call["name"], "input": as_object(call["arguments"])}
        for call in message.get("calls", ())
    ]


def as_object(arguments: str) -> dict[str, Any]:
    """The arguments as a JSON object; empty if they are not one."""
    try:
        read = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}
