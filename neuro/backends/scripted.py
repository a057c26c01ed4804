"""A backend that answers from a script: for tests of quoth and for users' tests of their own agents.

Must not know tools, forms or the network. It records every request, so that a test can check the prefix law.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from quoth.neuro.backends.base import NO_OPTIONS, Completion, ModelError, RequestOptions, ToolChoice
from quoth.neuro.backends.messages import Message, Messages, NativeCall, SentBytes
from quoth.tools.errors import UsageError
from quoth.tools.text import number_of

Scripted = str | Mapping[str, Any] | Completion
Reply = Callable[[Messages], Scripted | Awaitable[Scripted]]


class ScriptedBackend:
    """Replies one by one from a list, or from a function (plain or async) of the messages.

    A reply is a text, a Completion, or for native calls a mapping
    ``{"text": "…", "tool_calls": [{"id": "c1", "name": "echo", "arguments": {"text": "hi"}}]}`` (text and id
    may be left out; arguments may also be JSON text, to script invalid JSON). With ``whole`` the list covers
    the conversation from its beginning: a resumed conversation gets the reply that comes next in it."""

    takes_grammar = False
    tool_view = "openai"
    takes_images = True
    context: int | None = None

    def __init__(
        self, replies: Iterable[Scripted] | Reply, name: str = "scripted", *, whole: bool = False
    ) -> None:
        self.name = name
        self.seen = SentBytes()  # messages.as_json() of each request, in order
        self.tools: list[bytes | None] = []  # the tools of each request
        self.choices: list[ToolChoice] = []  # and whether it had to call one
        self._reply = replies if callable(replies) else _one_by_one(list(replies), whole)

    async def complete(
        self,
        messages: Messages,
        *,
        grammar: str | None = None,
        max_tokens: int = 1024,
        on_text: Callable[[str], None] | None = None,
        tools: bytes | None = None,
        tool_choice: ToolChoice = "auto",
        options: RequestOptions = NO_OPTIONS,
    ) -> Completion:
        self.seen.add(messages)
        self.tools.append(tools)
        self.choices.append(tool_choice)
        answer = self._reply(messages)
        completion = _completion(await answer if inspect.isawaitable(answer) else answer, messages.turn)
        if on_text is not None:
            on_text(completion.text)
        return completion

    async def aclose(self) -> None:
        """Do nothing: a script holds no resources."""


def _completion(reply: object, turn: int) -> Completion:
    if isinstance(reply, Completion):
        return reply
    if isinstance(reply, str):
        return Completion(reply)
    if not isinstance(reply, Mapping):
        raise ModelError(f"A scripted reply must be text, but the script gave {type(reply).__name__}.")
    calls = [_call(call, f"call_{turn}_{place}") for place, call in enumerate(reply.get("tool_calls", ()))]
    return Completion(str(reply.get("text", "")), calls=tuple(calls))


def _call(call: Any, id: str) -> NativeCall:
    if not isinstance(call, Mapping) or "name" not in call:
        raise ModelError('A scripted tool call is a mapping: {"name": "echo", "arguments": {"text": "hi"}}.')
    arguments = call.get("arguments", {})
    return NativeCall(
        id=str(call.get("id", id)),
        name=str(call["name"]),
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False),
    )


def _one_by_one(replies: list[Scripted], whole: bool) -> Reply:
    rest = iter(replies)
    begun = not whole

    def reply(messages: Messages) -> Scripted:
        nonlocal begun
        if not begun:
            begun = True
            said = sum(message["role"] == "assistant" for message in messages)
            next(islice(rest, said, said), None)
        for text in rest:
            return text
        count = number_of(len(replies), "reply", "replies")
        raise ModelError(f"The script is exhausted: it held {count} and one more was asked for.")

    return reply


def load_scripted(path: Path) -> ScriptedBackend:
    """The script in a file: replies separated by lines of ``---``, or a ``.hy`` file defining ``reply``."""
    if not path.is_file():
        raise UsageError(f"There is no script file {path}.")
    replies = _hy_reply(path) if path.suffix == ".hy" else _text_replies(path)
    return ScriptedBackend(replies, name=f"scripted:{path}", whole=True)


def _text_replies(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read the script file {path}: {error}.") from error
    if not text.strip():
        raise UsageError(f"The script file {path} is empty; write replies separated by lines of ---.")
    replies = [""]
    for line in text.splitlines(keepends=True):
        if line.rstrip() == "---":
            replies.append("")
        else:
            replies[-1] += line
    if not replies[-1].strip():  # a separator after the last reply ends it and opens no new one
        replies.pop()
    return [reply.strip("\n") for reply in replies]


def _hy_reply(path: Path) -> Reply:
    from quoth.tools.hy_loader import load_hy_file  # here, so that a text script does not load Hy

    reply = getattr(load_hy_file(path), "reply", None)
    if not callable(reply):
        raise UsageError(f"The script {path} must define a function: (defn reply [messages] …).")
    wants_messages = bool(inspect.signature(reply).parameters)

    async def answer(messages: Messages) -> Scripted:
        shown: list[Message] = list(messages)
        arguments = (shown,) if wants_messages else ()
        try:
            # In a thread: a slow script must not keep an interrupt from being heard.
            text: Any = await asyncio.to_thread(reply, *arguments)
            return await text if inspect.isawaitable(text) else text  # type: ignore[no-any-return]  # checked by complete
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"reply in {path} raised {type(error).__name__}: {error}") from error

    return answer
