"""What a model backend is: messages in, one completion out.

Knows nothing of tools, forms or the loop; a backend only moves text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypedDict, runtime_checkable

from tools.errors import QuothError


class ModelError(QuothError):
    """The model could not answer (down, slow, refused, garbage); the text says which and what to do."""


class Message(TypedDict):
    """One chat message; ``role`` is ``system``, ``user``, ``assistant`` or ``tool``."""

    role: str
    content: str


class Messages:
    """An append-only conversation that serialises each message once.

    The bytes of request n are a prefix of those of request n+1, so providers' prompt caches hit and the
    past is never serialised again (law "the prompt is a prefix").
    """

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._bytes: list[bytes] = []

    def append(self, role: str, content: str) -> None:
        # A model may stop in the middle of a character; half of a surrogate pair cannot be sent back to it.
        content = content.encode("utf-8", "replace").decode("utf-8")
        message: Message = {"role": role, "content": content}
        self._messages.append(message)
        self._bytes.append(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode())

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def __getitem__(self, index: int) -> Message:
        return self._messages[index]

    def as_json(self) -> bytes:
        """The JSON array of all messages, joined from the cached bytes."""
        return b"[" + b",".join(self._bytes) + b"]"


@dataclass(frozen=True)
class Usage:
    """Tokens billed for one completion (0 when the server does not say) and wall seconds."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True)
class Completion:
    """One reply. ``finish`` is ``stop`` (complete) or ``length`` (cut at ``max_tokens``)."""

    text: str
    usage: Usage = field(default_factory=Usage)
    finish: str = "stop"


@runtime_checkable
class Backend(Protocol):
    """A model. ``name`` is how a person would choose it (``openai:gpt-5``, ``local``, …);
    ``takes_grammar`` says whether ``grammar`` (GBNF) is obeyed."""

    name: str
    takes_grammar: bool

    async def complete(
        self,
        messages: Messages,
        *,
        grammar: str | None = None,
        max_tokens: int = 1024,
        on_text: Callable[[str], None] | None = None,
    ) -> Completion:
        """The model's reply to ``messages``. With ``on_text`` the reply is streamed to it piece by piece.
        Raises ModelError; never hangs past the backend's own deadline; cancelling stops the generation."""
        ...

    async def aclose(self) -> None:
        """Free what the backend holds. May be called twice."""
        ...
