"""A host of chats that answers from a function, for tests of queues, inboxes and sockets.

Knows the words of agent/chat only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from quoth.agent.reply import FollowUp, Reply


class NoRequests:
    def requests(self, **_: Any) -> list[Any]:
        return []


@dataclass
class Host:
    """A host whose chats answer each text by ``answer``."""

    answer: Callable[[str], Awaitable[str]]
    heard: list[tuple[str, str, str]] = field(default_factory=list)
    broker: Any = field(default_factory=NoRequests)
    follow_ups: tuple[FollowUp, ...] = ()

    @property
    def host(self) -> Host:
        return self

    def for_chat(self, chat: str) -> Any:
        return Talk(self, chat)


@dataclass
class Talk:
    owner: Host
    chat: str
    on_event: Any = None

    @property
    def host(self) -> Talk:
        return self

    events = host

    @property
    def session(self) -> str:
        return f"chat-{self.chat}"

    @property
    def broker(self) -> Any:
        return self.owner.broker

    async def aclose(self) -> None:
        """Nothing to close."""

    async def say(self, text: str, *, speaker: str | None = None, turn: str | None = None) -> Reply:
        self.owner.heard.append((self.chat, speaker or "", text))
        said = await self.owner.answer(text)
        return Reply(self.session, "done", said, follow_ups=self.owner.follow_ups)


async def echo(text: str) -> str:
    return f"{text}!"
