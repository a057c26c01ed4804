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
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from quoth.agent.serve.client_tools import NO_TOOLS, ClientCall, ClientTools, read_tools
from quoth.neuro.backends.base import Usage
from quoth.tools.errors import UsageError

MOST_MESSAGES = 10_000
ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_DATA = re.compile(r"data:image/([\w.+-]{1,20});base64,(.*)", re.DOTALL)
_HALVES = re.compile(rb"\\u[dD][89a-fA-F]")
_MARKUP = re.compile(r"#\+(?:begin|end)_src\b|[`*_/=~#+,-]", re.IGNORECASE)
_HIDDEN = re.compile(r"<(details|think|thinking)\b[^>]*>.*?</\1>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class TalkMessage:
    """A message of a conversation, without what clients add to it or leave out."""

    role: str  # user or assistant; response: the id of a response, for the conversation up to it
    text: str
    calls: tuple[str, ...] = ()  # the ids of the client's own tools that an answer calls

    @cached_property
    def matched(self) -> str:
        """Its text as conversations are matched: an answer without thoughts, hidden lines and markup, which
        gptel converts in buffers of Org; the ids of its calls if it has some."""
        if self.calls:
            return f"calls {' '.join(self.calls)}"
        text = self.text
        if self.role == "assistant":
            text = _MARKUP.sub("", _HIDDEN.sub(" ", text))
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
    response: str = ""  # the id of its answer, if the client may continue after it by this id
    tools: ClientTools = NO_TOOLS  # the client's own
    results: tuple[tuple[str, str], ...] = ()  # of their calls in the last answer: ids and texts

    @property
    def resumes(self) -> bool:
        """Whether it only sends results, and no message of a person."""
        return bool(self.results) and not self.text and not self.images

    @property
    def talk(self) -> tuple[TalkMessage, ...]:
        """The conversation, with its last message."""
        return self.history if self.resumes else (*self.history, TalkMessage("user", self.text))

    @property
    def previous(self) -> str:
        """The id of the response that it continues; empty for none."""
        first = self.history[:1]
        return first[0].text if first and first[0].role == "response" else ""


@dataclass(frozen=True)
class TurnEnd:
    """The end of an answer: its words and thoughts, why it ended, its tokens, the error that ended it, and
    the calls that its client is to run."""

    text: str
    thoughts: str = ""
    finish: str = "stop"
    usage: Usage = field(default_factory=Usage)
    error: str = ""
    calls: tuple[ClientCall, ...] = ()


def read_body(body: bytes) -> dict[str, Any]:
    """The JSON object of a request, with lone halves of characters replaced. Raises UsageError."""
    try:
        said = json.loads(body)
        if _HALVES.search(body):
            said = json.loads(json.dumps(said, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise UsageError("The body must be JSON.") from None
    if not isinstance(said, dict):
        raise UsageError("The body must be a JSON object.")
    return said


def read_model(said: Mapping[str, Any]) -> str:
    """The model of a request. Raises UsageError."""
    model = said.get("model")
    if not isinstance(model, str) or not model:
        raise UsageError("model must be the name of a model. See GET /v1/models.")
    return model


def read_request(body: bytes) -> ChatRequest:
    """A request from its JSON. Raises UsageError with what is wrong."""
    said = read_body(body)
    messages = said.get("messages")
    if not isinstance(messages, list) or not messages:
        raise UsageError("messages must be a list with at least one message.")
    if len(messages) > MOST_MESSAGES:
        raise UsageError(f"There are more than {MOST_MESSAGES} messages.")
    if said.get("n") not in (None, 1):
        raise UsageError("n must be 1: quoth gives one answer.")
    model = read_model(said)
    read = read_messages(messages, "messages")
    options = said.get("stream_options")
    return ChatRequest(
        model,
        read.history,
        read.text,
        read.images,
        read.instructions,
        stream=said.get("stream") is True,
        with_usage=isinstance(options, dict) and options.get("include_usage") is True,
        temperature=read_number(said, "temperature", 0, 2),
        reply_tokens=read_whole(said, "max_completion_tokens") or read_whole(said, "max_tokens"),
        schema=read_schema(said.get("response_format")),
        tools=read_tools(said),
        results=read.results,
    )


class ReadMessages(NamedTuple):
    """The instructions and the conversation of a list of messages: what was before, and the text and images
    of the last message, empty if only results of calls came last."""

    instructions: str
    history: tuple[TalkMessage, ...]
    text: str
    images: tuple[tuple[str, bytes], ...]
    results: tuple[tuple[str, str], ...]


def read_messages(messages: Sequence[Any], where: str, *, continues: bool = False) -> ReadMessages:
    """A list of messages, of which a person's or results of calls are the last; with ``continues`` there is
    an answer before them. Raises UsageError."""
    rules: list[str] = []
    talk: list[TalkMessage] = []
    images: list[tuple[str, bytes]] = []
    results: dict[str, str] = {}  # since the last answer
    role = ""
    for number, one in enumerate(messages, 1):
        place = f"{where}[{number - 1}]"
        if not isinstance(one, dict) or one.get("role") not in ROLES:
            raise UsageError(f"{place} must be an object with one of the roles {', '.join(ROLES)}.")
        before, role = role, str(one["role"])
        text, seen = _content(one.get("content"), place, last=number == len(messages))
        if role in ("system", "developer"):
            rules.append(text)
        elif role in ("user", "assistant"):
            calls = _call_ids(one) if role == "assistant" else ()
            if role == "assistant" and before == role:  # responses have an item for each part of an answer
                text, calls = f"{talk[-1].text}\n\n{text}".strip(), (*talk.pop().calls, *calls)
            talk.append(TalkMessage(role, text, calls))
            images = seen
            results = {} if role == "assistant" else results
        elif role == "tool":
            results[_call_id(one, place)] = text
    told = "\n\n".join(filter(None, rules)), tuple(talk), "", tuple(images), tuple(results.items())
    if role == "tool" and (continues or (talk and talk[-1].role == "assistant")):
        return ReadMessages(*told)
    if not talk or talk[-1].role != "user":
        raise UsageError(
            "The last message must have the role user, or tool after a call. To continue, send a message."
        )
    if not talk[-1].text.strip() and not images:
        raise UsageError("The last message is empty.")
    return ReadMessages(told[0], told[1][:-1], talk[-1].text, *told[3:])


def _call_ids(message: Mapping[str, Any]) -> tuple[str, ...]:
    """The ids of the calls of an answer."""
    calls = message.get("tool_calls")
    ids = [one.get("id") for one in calls if isinstance(one, dict)] if isinstance(calls, list) else []
    return tuple(id for id in ids if isinstance(id, str))


def _call_id(message: Mapping[str, Any], place: str) -> str:
    id = message.get("tool_call_id")
    if not isinstance(id, str) or not id:
        raise UsageError(f"{place}.tool_call_id must be the id of a call.")
    return id


def _content(content: Any, place: str, *, last: bool) -> tuple[str, list[tuple[str, bytes]]]:
    if content is None:
        return "", []
    if isinstance(content, str):
        return content, []
    if not isinstance(content, list):
        raise UsageError(f"{place}.content must be a text or a list of parts.")
    texts, images = [], []
    for number, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        at = f"{place}.content[{number}]"
        if kind in ("text", "input_text", "output_text", "refusal"):
            texts.append(str(part.get("text") or part.get("refusal") or ""))
        elif kind in ("image_url", "input_image"):
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


def read_number(said: Mapping[str, Any], name: str, least: float, most: float) -> float | None:
    value = said.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise UsageError(f"{name} must be a number from {least} to {most}.")
    return float(value)


def read_whole(said: Mapping[str, Any], name: str) -> int | None:
    value = said.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} must be a whole number above 0.")
    return value


def read_schema(said: Any, field: str = "response_format") -> Mapping[str, Any] | None:
    kind = said.get("type") if isinstance(said, dict) else "text"
    if said is None or kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    wrapped = said.get("json_schema", said) if kind == "json_schema" else None  # responses do not wrap it
    schema = wrapped.get("schema") if isinstance(wrapped, dict) else None
    if not isinstance(schema, dict):
        raise UsageError(f"{field} must be of the type text, json_object, or json_schema with a schema.")
    return schema


# Answers


class Answer(Protocol):
    """An answer in the shape of one API, as pieces of a stream or in one piece."""

    def begin(self) -> bytes: ...

    def piece(self, text: str, *, thought: bool = False) -> bytes: ...

    def end(self, end: TurnEnd) -> Iterator[bytes]: ...

    def whole(self, end: TurnEnd) -> dict[str, Any]: ...


def model_data(name: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": "quoth"}


@dataclass(frozen=True)
class ChatAnswer:
    """A chat completion. Its pieces share a head. ``with_usage``: one more piece has the tokens."""

    id: str
    model: str
    created: int
    with_usage: bool

    @classmethod
    def of(cls, request: ChatRequest) -> ChatAnswer:
        return cls(f"chatcmpl-{secrets.token_hex(12)}", request.model, int(time.time()), request.with_usage)

    def whole(self, end: TurnEnd) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": end.text}
        if end.calls:
            message |= {"content": end.text or None, "tool_calls": [*map(_call_data, end.calls)]}
        if end.thoughts:
            message["reasoning_content"] = end.thoughts
        return {
            **self._head("chat.completion"),
            "choices": [{"index": 0, "message": message, "finish_reason": end.finish}],
            "usage": _usage(end),
        }

    def begin(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str, *, thought: bool = False) -> bytes:
        return self._chunk({"reasoning_content" if thought else "content": text})

    def end(self, end: TurnEnd) -> Iterator[bytes]:
        if end.calls:
            calls = [{"index": place, **_call_data(call)} for place, call in enumerate(end.calls)]
            yield self._chunk({"tool_calls": calls})
        yield self._chunk({}, end.finish)
        if self.with_usage:
            yield _event({**self._head("chat.completion.chunk"), "choices": [], "usage": _usage(end)})
        yield b"data: [DONE]\n\n"

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event({**self._head("chat.completion.chunk"), "choices": [choice]})


def _call_data(call: ClientCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _usage(end: TurnEnd) -> dict[str, int]:
    asked, said = end.usage.input_tokens, end.usage.output_tokens
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def _event(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
