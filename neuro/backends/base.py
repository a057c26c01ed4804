"""The interface of a model backend (messages in, one completion out), the size of its context window, and
circuit breakers for its server.

A backend only carries text, and native calls unchanged.
"""

from __future__ import annotations

import inspect
import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from quoth.neuro.backends.messages import ADAPTED, Message, Messages, NativeCall, to_json
from quoth.tools.errors import QuothError, UsageError
from quoth.tools.lazy_dataclass import dataclass

# Failures after which another model might answer: the model cannot be reached, is slow, limits requests,
# wants to be paid, refuses the key, fails, or its server sent something that is not an answer of a model.
Why = Literal["", "down", "slow", "limited", "bill", "key", "failed", "garbage"]


class ModelError(QuothError):
    """The model could not answer; the text says why and what to do. ``why`` is empty if the request itself
    was at fault. ``begun``: the model may have written a reply, which then costs tokens. ``ends_with`` is the
    reason of a run that it ends (agent/reply.py), if that is not ``failed``."""

    ends_with: str | None = None

    def __init__(self, sentence: str, why: Why = "", *, begun: bool = False) -> None:
        super().__init__(sentence)
        self.why: Why = why
        self.begun = begun or why == "slow"


class MovedError(ModelError):
    """A model did not answer, and a cascade has moved to its next one: make the request again, for the
    current name, tools and window of the backend. ``place`` is the index of that model in the list."""

    def __init__(self, sentence: str, place: int = 0, *, begun: bool = False) -> None:
        super().__init__(sentence, begun=begun)
        self.place = place


class NoKeyError(UsageError):
    """A model cannot be asked because there is no key for its server."""


class ToolsRefusedError(ModelError):
    """The server does not support native tools; the same request without them may succeed."""


class RequestRefusedError(ModelError):
    """The server refused the request for an unknown reason; a long request may be too long for it."""


class ContextFullError(ModelError):
    """The request is longer than the model's context window; ``window`` is its size in tokens, 0 if
    unknown."""

    def __init__(self, sentence: str, window: int = 0) -> None:
        super().__init__(sentence)
        self.window = window


@dataclass(frozen=True)
class Usage:
    """Tokens billed for one completion (0 if the server does not report them) and wall seconds. Input tokens
    include those read from and written to a cache; output tokens include those of reasoning."""

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
    model refused; ``text`` is its explanation) or ``malformed`` (its server could not read its calls, and
    left them out).

    ``calls`` are the native calls, in order. ``kept`` is the part of the reply that later requests need: data
    of the provider that must be sent back, and the adaptations to its server. ``note`` is a message for the
    user about changes of the request for this server.
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
    """The options of one request besides the conversation. A backend ignores options that it does not
    support.

    ``temperature``: the sampling temperature (None: the backend's).
    ``schema``: the JSON Schema of an answer without calls.
    ``seconds``: maximum time of the reply, including all retries.
    ``on_wait``: called with the seconds until a retry, and the reason.
    ``patience``: maximum seconds of one wait; a longer one fails instead.
    ``most_tokens``: maximum number of tokens of a reply including its thoughts."""

    temperature: float | None = None
    schema: Mapping[str, Any] | None = None
    seconds: float | None = None
    on_wait: Callable[[float, str], None] | None = None
    patience: float | None = None
    most_tokens: int | None = None


NO_OPTIONS = RequestOptions()


class PlainBackend(Protocol):
    """The minimum interface of a caller's own model; ``as_backend`` makes a Backend of it.

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
        """Free the resources of the backend. May be called twice."""
        ...


@runtime_checkable
class Backend(PlainBackend, Protocol):
    """A model as the loop sees it: a real one, or one with replies from a transcript.

    ``tool_view`` names the view of the tool list in which it takes native tools; it is empty if the model
    takes none, or its server has refused them. ``context`` is the size of its context window in tokens, None
    if unknown."""

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
        ToolsRefusedError if the server does not accept them."""
        ...


def takes_images(backend: PlainBackend) -> bool:
    """Whether messages to this model may contain images; a caller's own model may define ``takes_images``."""
    return bool(getattr(backend, "takes_images", False))


def tells_intent(backend: PlainBackend) -> bool:
    """Whether this model is asked which tools a task needs; a script says so itself."""
    return bool(getattr(backend, "tells_intent", True))


def as_backend(given: PlainBackend) -> Backend:
    """A caller's own model as a Backend. Without ``tool_view`` it takes no native tools; without ``context``
    the size of its context window is unknown; it need not accept ``options``."""
    return given if isinstance(given, Backend) and takes_options(given) else _Adapted(given)


def takes_options(given: PlainBackend) -> bool:
    """Whether a caller's own model accepts the options of a request."""
    taken = inspect.signature(given.complete).parameters
    return "options" in taken or any(one.kind is one.VAR_KEYWORD for one in taken.values())


class _Adapted:
    """A PlainBackend with the methods of a Backend; missing ones get defaults."""

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


# The size of a model's context window in tokens, and an estimate of the tokens that a request takes.
#
# Estimates depend only on the messages and the reports of the server, so a replayed run gets the same ones.


UNKNOWN = 32_768  # tokens, for an unknown model
LONGEST_REPLY = 16_384  # tokens; a model with a smaller limit reports it, and is then asked for that
EMBEDDED_REPLY = 2_048  # tokens; a small model may repeat itself forever


class Window(NamedTuple):
    """The maximum number of tokens of a request and its reply together. ``known`` is false for a guess; only
    a known window may end a run."""

    tokens: int
    known: bool = True


_ANY = r"[\w-]+:(.*/)?"  # at any provider: openai:gpt-5, openrouter:openai/gpt-5
# The makers' numbers by the model's name in its spec; the first match counts. A user's own server may be set
# to less or more.
FAMILIES: tuple[tuple[str, Window], ...] = (
    # The default of both; they may drop the beginning of a longer request silently.
    (r"(ollama|lmstudio):", Window(4_096, known=False)),
    (r"(llamacpp|scripted|vllm):", Window(UNKNOWN, known=False)),
    (rf"anthropic:|{_ANY}claude-", Window(200_000)),
    (rf"{_ANY}gpt-5.*-chat", Window(128_000)),
    (rf"{_ANY}gpt-5", Window(272_000)),  # of 400,000; the rest is for the reply
    (rf"{_ANY}gpt-4\.1", Window(1_047_576)),
    (rf"{_ANY}((chatgpt-)?(gpt-)?4o|gpt-4-turbo)", Window(128_000)),
    (rf"{_ANY}gpt-4", Window(8_192)),
    (rf"{_ANY}gpt-3\.5", Window(16_385)),
    (rf"{_ANY}o1-(mini|preview)", Window(128_000)),
    (rf"{_ANY}o\d", Window(200_000)),
    (rf"{_ANY}gpt-oss", Window(131_072)),
    (rf"{_ANY}gemini-", Window(1_000_000)),
    (rf"{_ANY}deepseek-(v[4-9]|flash)", Window(1_000_000)),
    (rf"{_ANY}kimi-k", Window(262_144)),
    (r"(deepseek|groq|mistral|zai):", Window(131_072, known=False)),  # most of their models
)


def window_of(backend: Backend, given: int | None = None) -> Window:
    """The window of a model: the first of ``given`` (by the user), the backend's ``context``, the table of
    names, and a guess."""
    told = given or backend.context
    if isinstance(told, int) and told > 0:
        return Window(told)
    found = (window for pattern, window in FAMILIES if re.match(pattern, backend.name))
    return next(found, Window(UNKNOWN, known=False))


def longest_reply(name: str, window: Window) -> int:
    """The maximum number of tokens of a reply: a quarter of the window, up to a limit of the model."""
    embedded = re.match(r"local(-small)?(:|$)", name)
    return max(min(window.tokens // 4, EMBEDDED_REPLY if embedded else LONGEST_REPLY), 1)


# Estimates of tokens


def tokens_in(text: str | bytes) -> int:
    """An estimate of the tokens in a text, rather too high than too low: two for seven bytes. English needs
    fewer, code about the same; a Chinese character has three bytes and takes about one token."""
    size = len(text) if isinstance(text, bytes) or text.isascii() else len(text.encode("utf-8", "replace"))
    return -(-size * 2 // 7)


IMAGE_TOKENS = 1600  # approximately the providers' count for a large image


def message_tokens(message: Message) -> int:
    """An estimate of the tokens that a message takes, with the markup around it."""
    said = tokens_in(message["content"])
    said += sum(
        8 + tokens_in(call["name"]) + tokens_in(call["arguments"]) for call in message.get("calls", ())
    )
    said += IMAGE_TOKENS * len(message.get("images", ()))
    for name, kept in message.get("kept", {}).items():
        if name == ADAPTED:
            continue
        # A list replaces the message, fields are added to it.
        beside = said if isinstance(kept, dict) else 0
        said = max(said, beside + tokens_in(to_json(kept)))
    return 4 + said


class Gauge:
    """Estimates how full the context window is. Each message is counted once; the token count that the server
    reports for a request corrects later estimates."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.beside = 0  # tokens besides the messages: the tools
        self.tools: tuple[str, str] | None = None  # the dialect and the view of the tools
        self._told, self._asked = 1, 1  # reported and estimated tokens of one request
        self._messages: Messages | None = None
        self._seen = self._counted = 0

    def tokens(self, messages: Messages) -> int:
        """An estimate of the tokens of a request with these messages."""
        return self.corrected(self._count(messages))

    def corrected(self, counted: int) -> int:
        """An estimate, scaled by the ratio of reported to estimated tokens of the last request."""
        return -(-counted * self._told // self._asked)

    def told(self, messages: Messages, asked: int, tokens: int) -> None:
        """Use the report of ``tokens`` by the server for a request with the first ``asked`` messages. A
        report of 0 is ignored, and an implausible one is limited."""
        counted = self._count(messages) - sum(
            message_tokens(messages[place]) for place in range(asked, len(messages))
        )
        if tokens > 0:
            self._told, self._asked = min(max(tokens, counted // 2), counted * 3), max(counted, 1)

    def refused(self, messages: Messages, window: int) -> None:
        """Correct the estimate or the window, because the server refused a request as too long; ``window`` is
        the reported size in tokens, 0 if unknown."""
        counted = self._count(messages)
        if window:
            self.window = Window(window)
            if self.corrected(counted) <= window:
                self._told, self._asked = window + 1, max(counted, 1)
        elif self.corrected(counted) <= self.window.tokens:
            self.window = Window(self.corrected(counted) - 1)

    @property
    def counts(self) -> list[int]:
        """Its counts and the server's reports so far, for ``go_on``."""
        return [self._told, self._asked, self._seen, self._counted]

    def go_on(self, messages: Messages, counts: list[int]) -> None:
        """Continue with the ``counts`` of another gauge of the same messages."""
        self._messages = messages
        self._told, self._asked, self._seen, self._counted = counts

    def _count(self, messages: Messages) -> int:
        if messages is not self._messages or len(messages) < self._seen:
            self._messages, self._seen, self._counted = messages, 0, 0
        while self._seen < len(messages):
            self._counted += message_tokens(messages[self._seen])
            self._seen += 1
        return self._counted + self.beside


# Circuit breakers: after repeated failures of a server, this process sends it no requests for a while.


FAILURES = 5  # failed requests (each with its retries) that open a breaker
WITHIN = 60.0  # seconds for these failures, without an answered request between them
REST = 30.0  # seconds until one request tries again
BROKEN = ("down", "slow", "failed")  # a server that limits requests or refuses a key works


@dataclass
class Breaker:
    """The breaker of one server. ``why`` is the message of the last failure."""

    server: str
    clock: Callable[[], float] = time.monotonic
    why: str = ""
    _failed: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES))
    _until: float | None = None  # the time until which it is open; None: closed
    _trying: bool = False  # whether one request tries the server again

    @property
    def left(self) -> float | None:
        """The seconds until the server is tried again; None while the breaker is closed."""
        return None if self._until is None else max(0.0, self._until - self.clock())

    @contextmanager
    def asking(self) -> Iterator[None]:
        """The context of a request. Raises ModelError while the breaker is open."""
        tries = self._tries()
        try:
            yield
        except ModelError as error:
            self.told(str(error) if error.why in BROKEN else "")
            raise
        else:
            self.told("")
        finally:
            if tries:
                self._trying = False

    def _tries(self) -> bool:
        """Whether the next request is the one that tries the server again."""
        if (left := self.left) is None:
            return False
        if left > 0 or self._trying:
            when = f"in {math.ceil(left)} s" if left > 0 else "just now, by another request"
            raise ModelError(
                f"No request is sent to {self.server}: it failed {FAILURES} times in a row. It is tried again"
                f" {when}.",
                "down",
            )
        self._trying = True
        return True

    def told(self, failure: str) -> None:
        """Count a failed request; with an empty text, an answered one."""
        now = self.clock()
        if not failure:
            self._failed.clear()
            self._until = None
            return
        self.why = failure
        self._failed.append(now)
        often = len(self._failed) == FAILURES and now - self._failed[0] <= WITHIN
        if often or self._trying:
            self._until = now + REST


_breakers: dict[str, Breaker] = {}


def breaker_of(server: str) -> Breaker:
    """The breaker of a server by its address, without any user or password."""
    return _breakers.setdefault(server, Breaker(server))


def resting() -> list[Breaker]:
    """The breakers that are open now."""
    return [one for one in _breakers.values() if one.left is not None]


def forget_failures() -> None:
    """Close all breakers."""
    for breaker in list(_breakers.values()):
        breaker.told("")
