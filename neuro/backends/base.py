"""What a model backend is: messages in, one completion out; how many tokens it can read, and when its server
is left alone.

Knows nothing of tools, forms or the loop; a backend only carries text, and native calls unchanged.
"""

from __future__ import annotations

import inspect
import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from quoth.neuro.backends.messages import ADAPTED, Message, Messages, NativeCall, to_json
from quoth.tools.errors import QuothError, UsageError

# What kept a model from answering, as far as another one might answer in its place: there is no way to it, it
# is slow, it limits requests, it waits for its bill to be paid, it refuses the key, it fails, or what came is
# no answer of a model.
Why = Literal["", "down", "slow", "limited", "bill", "key", "failed", "garbage"]


class ModelError(QuothError):
    """The model could not answer; the text says why and what to do. ``why`` is empty where the request itself
    was at fault. ``begun`` says that the model may have written a reply, which then has to be paid.
    ``ends_with`` is the reason of a run that it ends (agent/reply.py), where that is not ``failed``."""

    ends_with: str | None = None

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


# The size of a model's context window in tokens, and an estimate of the tokens that a request takes.
#
# Knows names of models; no tokenizer, no tool, no loop.
# Estimates depend only on the messages and on what the server said, so a replayed run gets the same ones.


UNKNOWN = 32_768  # tokens, for a model nobody knows anything of
LONGEST_REPLY = 16_384  # tokens; a model that gives fewer at once says so, and is asked for those
EMBEDDED_REPLY = 2_048  # a small model may repeat itself for ever


class Window(NamedTuple):
    """How many tokens a request and its reply may take together. ``known`` is false for a guess; only a known
    window may end a run."""

    tokens: int
    known: bool = True


_ANY = r"[\w-]+:(.*/)?"  # at whatever provider: openai:gpt-5, openrouter:openai/gpt-5
# What the makers say, by the name a model was chosen by; the first that matches. A server of one's own may be
# set to less or to more.
FAMILIES: tuple[tuple[str, Window], ...] = (
    # Both read so much unless told otherwise, and may drop the beginning of the rest without a word.
    (r"(ollama|lmstudio):", Window(4_096, known=False)),
    (r"(llamacpp|scripted|vllm):", Window(UNKNOWN, known=False)),
    (rf"anthropic:|{_ANY}claude-", Window(200_000)),
    (rf"{_ANY}gpt-5.*-chat", Window(128_000)),
    (rf"{_ANY}gpt-5", Window(272_000)),  # of the 400,000 the rest is for the reply
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
    (r"(deepseek|groq|mistral|zai):", Window(131_072, known=False)),  # most of theirs
)


def window_of(backend: Backend, given: int | None = None) -> Window:
    """The window of a model: ``given`` by the user, else stated by the backend (its ``context``), else known
    from its name, else a guess."""
    told = given or backend.context
    if isinstance(told, int) and told > 0:
        return Window(told)
    found = (window for pattern, window in FAMILIES if re.match(pattern, backend.name))
    return next(found, Window(UNKNOWN, known=False))


def longest_reply(name: str, window: Window) -> int:
    """The tokens a reply may have: a quarter of the window, up to a limit that depends on the model."""
    embedded = re.match(r"local(-small)?(:|$)", name)
    return max(min(window.tokens // 4, EMBEDDED_REPLY if embedded else LONGEST_REPLY), 1)


# How many tokens


def tokens_in(text: str | bytes) -> int:
    """An estimate of the tokens in a text, rather too high than too low: two for seven bytes. English needs
    fewer, code about as many; a Chinese character has three bytes and takes about one token."""
    size = len(text) if isinstance(text, bytes) or text.isascii() else len(text.encode("utf-8", "replace"))
    return -(-size * 2 // 7)


IMAGE_TOKENS = 1600  # what the providers count for a large one, about


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
        # A list is in place of the message, fields are beside it.
        beside = said if isinstance(kept, dict) else 0
        said = max(said, beside + tokens_in(to_json(kept)))
    return 4 + said


class Gauge:
    """Estimates how full the context window is. Each message is counted once; the token count that the server
    reports for a request corrects later estimates."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.beside = 0  # tokens that go beside the messages: the tools
        self.tools: tuple[str, str] | None = None  # the dialect and the view of these
        self._told, self._asked = 1, 1  # tokens the server told of, and those counted, of one request
        self._messages: Messages | None = None
        self._seen = self._counted = 0

    def tokens(self, messages: Messages) -> int:
        """An estimate of the tokens of a request with these messages."""
        return self.corrected(self._count(messages))

    def corrected(self, counted: int) -> int:
        """An estimate, scaled by the ratio of reported to estimated tokens of the last request."""
        return -(-counted * self._told // self._asked)

    def told(self, messages: Messages, asked: int, tokens: int) -> None:
        """Learn that the server reported ``tokens`` for a request with the first ``asked`` of the messages. A
        report of 0 is ignored, and an implausible one is limited."""
        counted = self._count(messages) - sum(
            message_tokens(messages[place]) for place in range(asked, len(messages))
        )
        if tokens > 0:
            self._told, self._asked = min(max(tokens, counted // 2), counted * 3), max(counted, 1)

    def refused(self, messages: Messages, window: int) -> None:
        """Learn that the server refused a request as too long, for a window of ``window`` tokens if that is
        not 0; correct the estimate or the window accordingly."""
        counted = self._count(messages)
        if window:
            self.window = Window(window)
            if self.corrected(counted) <= window:
                self._told, self._asked = window + 1, max(counted, 1)
        elif self.corrected(counted) <= self.window.tokens:
            self.window = Window(self.corrected(counted) - 1)

    @property
    def counts(self) -> list[int]:
        """What it has counted and was told so far, for ``go_on``."""
        return [self._told, self._asked, self._seen, self._counted]

    def go_on(self, messages: Messages, counts: list[int]) -> None:
        """Go on with the ``counts`` of another gauge of the same messages."""
        self._messages = messages
        self._told, self._asked, self._seen, self._counted = counts

    def _count(self, messages: Messages) -> int:
        if messages is not self._messages or len(messages) < self._seen:
            self._messages, self._seen, self._counted = messages, 0, 0
        while self._seen < len(messages):
            self._counted += message_tokens(messages[self._seen])
            self._seen += 1
        return self._counted + self.beside


# Circuit breakers: a server that keeps failing is left alone for a while, by all who ask it in this process.
#
# Knows addresses and times only; it sends nothing.


FAILURES = 5  # requests, each with all its tries, that open a breaker
WITHIN = 60.0  # seconds, if no request was answered between them
REST = 30.0  # seconds, after which one request tries again
BROKEN = ("down", "slow", "failed")  # a server that limits requests or refuses a key is at work


@dataclass
class Breaker:
    """The breaker of one server. ``why`` is the last failure, in its own words."""

    server: str
    clock: Callable[[], float] = time.monotonic
    why: str = ""
    _failed: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES))
    _until: float | None = None  # when it is open
    _trying: bool = False  # whether one request tries the server again

    @property
    def left(self) -> float | None:
        """The seconds until the server is tried again; None while it is asked as ever."""
        return None if self._until is None else max(0.0, self._until - self.clock())

    @contextmanager
    def asking(self) -> Iterator[None]:
        """A request is made within. Raises ModelError, and lets none be made, while the server rests."""
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
        """Whether the request that is about to be made is the one that tries a resting server again."""
        if (left := self.left) is None:
            return False
        if left > 0 or self._trying:
            when = f"in {math.ceil(left)} s" if left > 0 else "just now, by another request"
            raise ModelError(
                f"{self.server} is not asked: it has failed {FAILURES} times in a row, and is tried again"
                f" {when}.",
                "down",
            )
        self._trying = True
        return True

    def told(self, failure: str) -> None:
        """Count a failed request; with no words, one that was answered."""
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
    """Ask every server as if it had never failed."""
    for breaker in list(_breakers.values()):
        breaker.told("")
