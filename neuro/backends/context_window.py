"""The size of a model's context window in tokens, and an estimate of the tokens that a request takes.

Knows names of models; no tokenizer, no tool, no loop.
Estimates depend only on the messages and on what the server said, so a replayed run gets the same ones.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from quoth.neuro.backends.base import Backend
from quoth.neuro.backends.messages import ADAPTED, Message, Messages, to_json

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
