"""A backend that answers from a script: for tests of quoth and for users' tests of their own agents.

Must not know tools, forms or the network. It keeps what it was shown, so a test can check the prefix law.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from neuro.backends.base import Completion, Message, Messages, ModelError
from tools.errors import UsageError

Reply = Callable[[Messages], str | Awaitable[str]]


class ScriptedBackend:
    """Replies one by one from a list, or from a function (plain or async) of the messages."""

    takes_grammar = False

    def __init__(self, replies: Iterable[str] | Reply, name: str = "scripted") -> None:
        self.name = name
        self.seen: list[bytes] = []  # messages.as_json() of each request, in order
        self._reply = replies if callable(replies) else _one_by_one(list(replies))

    async def complete(
        self,
        messages: Messages,
        *,
        grammar: str | None = None,
        max_tokens: int = 1024,
        on_text: Callable[[str], None] | None = None,
    ) -> Completion:
        self.seen.append(messages.as_json())
        answer = self._reply(messages)
        text = await answer if inspect.isawaitable(answer) else answer
        if not isinstance(text, str):
            raise ModelError(f"A scripted reply must be text, but the script gave {type(text).__name__}.")
        if on_text is not None:
            on_text(text)
        return Completion(text)

    async def aclose(self) -> None:
        """Nothing to free."""


def _one_by_one(replies: list[str]) -> Reply:
    rest = iter(replies)

    def reply(_: Messages) -> str:
        for text in rest:
            return text
        count = "1 reply" if len(replies) == 1 else f"{len(replies)} replies"
        raise ModelError(f"The script is exhausted: it held {count} and one more was asked for.")

    return reply


def load_scripted(path: Path) -> ScriptedBackend:
    """The script in a file: replies separated by lines of ``---``, or a ``.hy`` file defining ``reply``."""
    if not path.is_file():
        raise UsageError(f"There is no script file {path}.")
    replies = _hy_reply(path) if path.suffix == ".hy" else _text_replies(path)
    return ScriptedBackend(replies, name=f"scripted:{path}")


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
    from tools.hycache import load_hy_file  # here, so that a text script does not load Hy

    reply = getattr(load_hy_file(path), "reply", None)
    if not callable(reply):
        raise UsageError(f"The script {path} must define a function: (defn reply [messages] …).")
    wants_messages = bool(inspect.signature(reply).parameters)

    async def answer(messages: Messages) -> str:
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
