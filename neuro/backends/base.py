"""What a model backend is: messages in, one completion out.

Knows nothing of tools, forms or the loop; a backend only carries text, and native calls unchanged.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from quoth.neuro.backends.messages import Messages, NativeCall
from quoth.tools.errors import QuothError, UsageError

# What kept a model from answering, as far as another one might answer in its place: there is no way to it, it
# is slow, it limits requests, it waits for its bill to be paid, it refuses the key, it fails, or what came is
# no answer of a model.
Why = Literal["", "down", "slow", "limited", "bill", "key", "failed", "garbage"]


class ModelError(QuothError):
    """The model could not answer; the text says why and what to do. ``why`` is empty where the request itself
    was at fault. ``begun`` says that the model may have written a reply, which then has to be paid."""

    def __init__(self, sentence: str, why: Why = "", *, begun: bool = False) -> None:
        super().__init__(sentence)
        self.why: Why = why
        self.begun = begun or why == "slow"


class MovedError(ModelError):
    """A model did not answer, and a cascade has gone on to its next one: the request is to be made anew, for
    the name, tools and window that the backend has now. ``place`` is that of the model in the list."""

    def __init__(self, sentence: str, place: int = 0, *, begun: bool = False) -> None:
        super().__init__(sentence, begun=begun)
        self.place = place


class NoKeyError(UsageError):
    """A model cannot be asked because there is no key for its server."""


class ToolsRefusedError(ModelError):
    """The server does not support native tools; the same request without them may succeed."""


class RequestRefusedError(ModelError):
    """The server refused the request in words that are not known; a long request may be too long for it."""


class ContextFullError(ModelError):
    """The request is longer than the model's context window; ``window`` is its size in tokens, 0 when the
    server does not say."""

    def __init__(self, sentence: str, window: int = 0) -> None:
        super().__init__(sentence)
        self.window = window


@dataclass(frozen=True)
class Usage:
    """Tokens billed for one completion (0 when the server does not say) and wall seconds. Those read from a
    cache and those written to one are among those of the input, those of reasoning among those of the
    output."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    reasoning_tokens: int = 0
    written_tokens: int = 0

    @property
    def tokens(self) -> int:
        """All tokens, in and out."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(mine + vars(other)[name] for name, mine in vars(self).items()))


@dataclass(frozen=True)
class Completion:
    """One reply. ``finish`` is ``stop`` (complete), ``length`` (cut at ``max_tokens``), ``refused`` (the
    model will not do it; ``text`` is what it says of that) or ``malformed`` (its server could not read its
    calls, and left them out).

    ``calls`` are the native calls, in order; ``kept`` is what later requests need of this reply: data of the
    provider that must be sent back, and how requests to its server are adapted; ``note`` tells the user how
    the request was changed for this server.
    """

    text: str
    usage: Usage = field(default_factory=Usage)
    finish: str = "stop"
    calls: tuple[NativeCall, ...] = ()
    kept: Mapping[str, Any] | None = None
    note: str = field(default="", compare=False)


ToolChoice = Literal["auto", "required", "none"]


@dataclass(frozen=True)
class RequestOptions:
    """What one request wants beyond the conversation. ``temperature`` is that of sampling (None: the
    backend's own); ``schema`` is the JSON Schema that an answer without calls has to follow; ``seconds``
    bounds the reply with all its tries; ``on_wait`` is told how many seconds a backend waits before it tries
    again, and why; a pause longer than ``patience`` is not waited for; ``most_tokens`` bounds a reply
    together with its thoughts. A backend ignores what it cannot do."""

    temperature: float | None = None
    schema: Mapping[str, Any] | None = None
    seconds: float | None = None
    on_wait: Callable[[float, str], None] | None = None
    patience: float | None = None
    most_tokens: int | None = None


NO_OPTIONS = RequestOptions()


class PlainBackend(Protocol):
    """The least that a caller's own model must have; ``as_backend`` makes a Backend of it.

    ``name`` is the spec by which a person chooses it (``openai:gpt-5``, ``local``, …); ``takes_grammar`` says
    whether it obeys ``grammar`` (GBNF)."""

    @property
    def name(self) -> str: ...

    @property
    def takes_grammar(self) -> bool: ...

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


@runtime_checkable
class Backend(PlainBackend, Protocol):
    """A model as the loop sees it: a real one, or one whose replies are read from a transcript.

    ``tool_view`` names the view of the belt in which it takes native tools; it is empty for a model that
    takes none, and once its server has refused them. ``context`` is the size of its context window in tokens,
    None if it does not say."""

    @property
    def tool_view(self) -> str: ...

    @property
    def context(self) -> int | None: ...

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
        """As for PlainBackend; ``tools`` is the JSON array of the tools in ``tool_view``. Raises
        ToolsRefusedError when the server does not accept them."""
        ...


def takes_images(backend: PlainBackend) -> bool:
    """Whether messages to this model may hold images; a caller's own says so by ``takes_images``."""
    return bool(getattr(backend, "takes_images", False))


def as_backend(given: PlainBackend) -> Backend:
    """A caller's own model as a Backend. Without ``tool_view`` it takes no native tools, without ``context``
    the size of its context window is unknown; it need not take ``options``."""
    return given if isinstance(given, Backend) and takes_options(given) else _Adapted(given)


def takes_options(given: PlainBackend) -> bool:
    """Whether a model of a caller's own can be told the options of a request."""
    taken = inspect.signature(given.complete).parameters
    return "options" in taken or any(one.kind is one.VAR_KEYWORD for one in taken.values())


class _Adapted:
    """A PlainBackend, and as much of a Backend as it has."""

    def __init__(self, given: PlainBackend) -> None:
        self._given = given
        self.name = given.name
        self.aclose = given.aclose

    @property
    def takes_grammar(self) -> bool:
        return self._given.takes_grammar

    @property
    def tool_view(self) -> str:
        return str(getattr(self._given, "tool_view", ""))

    @property
    def context(self) -> int | None:
        return getattr(self._given, "context", None)

    @property
    def takes_images(self) -> bool:
        return takes_images(self._given)

    async def complete(
        self,
        messages: Messages,
        *,
        tools: bytes | None = None,
        tool_choice: ToolChoice = "auto",
        options: RequestOptions = NO_OPTIONS,
        **asked: Any,
    ) -> Completion:
        native: dict[str, Any] = {} if tools is None else {"tools": tools, "tool_choice": tool_choice}
        if options != NO_OPTIONS and takes_options(self._given):
            native["options"] = options
        return await self._given.complete(messages, **asked, **native)
