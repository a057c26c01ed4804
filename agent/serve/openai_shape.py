"""The shapes of OpenAI's chat completions: what a request may contain, and the answers.

Fields that are not known here are ignored, as clients send many. Source: the reference of the API, and what
the SDKs for Python and Node.js read of it (November 2026).
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quoth.tools.errors import UsageError

MOST_MESSAGES = 10_000
ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_DATA = re.compile(r"data:image/([\w.+-]{1,20});base64,(.*)", re.DOTALL)
_HIDDEN = re.compile(r"<(details|think|thinking)\b[^>]*>.*?</\1>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class TalkMessage:
    """A message of a conversation, without what clients add to it or leave out."""

    role: str  # user or assistant
    text: str

    @property
    def matched(self) -> str:
        """Its text as conversations are matched: an answer without thoughts and hidden lines."""
        text = _HIDDEN.sub(" ", self.text) if self.role == "assistant" else self.text
        return " ".join(text.split())


@dataclass(frozen=True)
class ChatRequest:
    """A request: the conversation so far, the ``text`` and images of the last message, and the choices."""

    model: str
    history: tuple[TalkMessage, ...]
    text: str
    images: tuple[tuple[str, bytes], ...] = ()
    instructions: str = ""
    stream: bool = False
    with_usage: bool = False
    temperature: float | None = None
    reply_tokens: int | None = None
    schema: Mapping[str, Any] | None = None  # of the answer, if it is to be JSON


def read_request(body: bytes) -> ChatRequest:
    """A request from its JSON. Raises UsageError with what is wrong."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        raise UsageError("The body must be JSON.") from None
    if not isinstance(said, dict):
        raise UsageError("The body must be a JSON object.")
    messages = said.get("messages")
    if not isinstance(messages, list) or not messages:
        raise UsageError("messages must be a list with at least one message.")
    if len(messages) > MOST_MESSAGES:
        raise UsageError(f"There are more than {MOST_MESSAGES} messages.")
    if said.get("n") not in (None, 1):
        raise UsageError("n must be 1: quoth gives one answer.")
    model = said.get("model")
    if not isinstance(model, str) or not model:
        raise UsageError("model must be the name of a model. See GET /v1/models.")
    rules, talk, images = _read_messages(messages)
    if not talk or talk[-1].role != "user":
        raise UsageError("The last message must have the role user.")
    if not talk[-1].text.strip() and not images:
        raise UsageError("The last message is empty.")
    options = said.get("stream_options")
    return ChatRequest(
        model,
        tuple(talk[:-1]),
        talk[-1].text,
        tuple(images),
        rules,
        stream=said.get("stream") is True,
        with_usage=isinstance(options, dict) and options.get("include_usage") is True,
        temperature=_number(said, "temperature", 0, 2),
        reply_tokens=_whole(said, "max_completion_tokens") or _whole(said, "max_tokens"),
        schema=_schema(said.get("response_format")),
    )


def _read_messages(messages: Sequence[Any]) -> tuple[str, list[TalkMessage], list[tuple[str, bytes]]]:
    """The instructions, the conversation, and the images of the last message."""
    rules: list[str] = []
    talk: list[TalkMessage] = []
    images: list[tuple[str, bytes]] = []
    for number, one in enumerate(messages, 1):
        place = f"messages[{number - 1}]"
        if not isinstance(one, dict) or one.get("role") not in ROLES:
            raise UsageError(f"{place} must be an object with one of the roles {', '.join(ROLES)}.")
        role = str(one["role"])
        text, seen = _content(one.get("content"), place, last=number == len(messages))
        if role in ("system", "developer"):
            rules.append(text)
        elif role in ("user", "assistant"):
            talk.append(TalkMessage(role, text))
            images = seen
    return "\n\n".join(filter(None, rules)), talk, images


def _content(content: Any, place: str, *, last: bool) -> tuple[str, list[tuple[str, bytes]]]:
    if content is None:
        return "", []
    if isinstance(content, str):
        return _valid(content), []
    if not isinstance(content, list):
        raise UsageError(f"{place}.content must be a text or a list of parts.")
    texts, images = [], []
    for number, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        at = f"{place}.content[{number}]"
        if kind in ("text", "input_text", "output_text", "refusal"):
            texts.append(_valid(str(part.get("text") or part.get("refusal") or "")))
        elif kind == "image_url":
            if last:
                images.append(_image(part.get("image_url"), at, number))
        else:
            raise UsageError(f"{at}: quoth takes parts of the types text and image_url, not {kind!r}.")
    return "\n".join(texts), images


def _image(said: Any, place: str, number: int) -> tuple[str, bytes]:
    url = said.get("url") if isinstance(said, dict) else said
    found = _DATA.fullmatch(url) if isinstance(url, str) else None
    if found is None:
        raise UsageError(f"{place}: send the image itself, as data:image/png;base64,…")
    try:
        return f"image-{number + 1}.{found[1].partition('+')[0]}", base64.b64decode(found[2], validate=True)
    except ValueError:
        raise UsageError(f"{place}: the data of the image is not base64.") from None


def _valid(text: str) -> str:
    """The text with lone halves of characters replaced."""
    return text.encode("utf-8", "replace").decode()


def _number(said: Mapping[str, Any], name: str, least: float, most: float) -> float | None:
    value = said.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise UsageError(f"{name} must be a number from {least} to {most}.")
    return float(value)


def _whole(said: Mapping[str, Any], name: str) -> int | None:
    value = said.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} must be a whole number above 0.")
    return value


def _schema(said: Any) -> Mapping[str, Any] | None:
    kind = said.get("type") if isinstance(said, dict) else "text"
    if said is None or kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    wrapped = said.get("json_schema") if kind == "json_schema" else None
    schema = wrapped.get("schema") if isinstance(wrapped, dict) else None
    if not isinstance(schema, dict):
        raise UsageError(
            "response_format must be of the type text, json_object, or json_schema with a schema."
        )
    return schema


# Answers


def model_data(name: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": "quoth"}


@dataclass(frozen=True)
class Answer:
    """The head that all pieces of one answer share."""

    id: str
    model: str
    created: int

    @classmethod
    def of(cls, model: str) -> Answer:
        return cls(f"chatcmpl-{secrets.token_hex(12)}", model, int(time.time()))

    def whole(self, text: str, thoughts: str, finish: str, usage: Mapping[str, int]) -> dict[str, Any]:
        message = {"role": "assistant", "content": text}
        if thoughts:
            message["reasoning_content"] = thoughts
        return {
            **self._head("chat.completion"),
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": dict(usage),
        }

    def begin(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str, *, thought: bool = False) -> bytes:
        return self._chunk({"reasoning_content" if thought else "content": text})

    def end(self, finish: str, usage: Mapping[str, int] | None) -> Iterator[bytes]:
        """The last chunks; with ``usage`` one more that has no choices."""
        yield self._chunk({}, finish)
        if usage is not None:
            yield _event({**self._head("chat.completion.chunk"), "choices": [], "usage": dict(usage)})
        yield b"data: [DONE]\n\n"

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def _chunk(self, delta: Mapping[str, str], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event({**self._head("chat.completion.chunk"), "choices": [choice]})


def _event(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
