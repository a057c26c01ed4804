"""How much a model can read: its context window in tokens, and about how many tokens a request takes.

Knows names of models, and what servers say of a request that is too long; no tokenizer, no tool, no loop. All
is a function of the messages and of what the server told: the same run always comes to the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quoth.neuro.backends.base import Backend
from quoth.neuro.backends.messages import Message, Messages, to_json

UNKNOWN = 32_768  # tokens, for a model nobody knows anything of
LONGEST_REPLY = 16_384  # tokens; a model that gives fewer at once says so, and is asked for those
EMBEDDED_REPLY = 2_048  # a small model may repeat itself for ever


@dataclass(frozen=True)
class Window:
    """Tokens that one request and its reply may take. ``known`` says that this is no guess: a run may be
    ended for it."""

    tokens: int
    known: bool = True


# What the makers say, by the name a model was chosen by; the first that matches. A server of one's own may be
# set to less or to more.
FAMILIES: tuple[tuple[str, Window], ...] = (
    # Ollama reads so much unless it is told otherwise, and drops the beginning of the rest without a word.
    (r"ollama:", Window(4_096, known=False)),
    (r"llamacpp:", Window(UNKNOWN, known=False)),
    (r"anthropic:|\w+:(.*/)?claude-", Window(200_000)),
    (r"openai:(.*/)?gpt-5.*-chat", Window(128_000)),
    (r"openai:(.*/)?gpt-5", Window(272_000)),  # of the 400,000 the rest is for the reply
    (r"openai:(.*/)?gpt-4\.1", Window(1_047_576)),
    (r"openai:(.*/)?(chatgpt-)?(gpt-)?4o|openai:(.*/)?gpt-4-turbo", Window(128_000)),
    (r"openai:(.*/)?gpt-4", Window(8_192)),
    (r"openai:(.*/)?gpt-3\.5", Window(16_385)),
    (r"openai:(.*/)?o1-(mini|preview)", Window(128_000)),
    (r"openai:(.*/)?o\d", Window(200_000)),
    (r"openai:(.*/)?gpt-oss", Window(131_072)),
)


def window_of(backend: Backend, given: int | None = None) -> Window:
    """The window of a model: what the user says, what the backend says (its ``context``), what its name says,
    or a guess."""
    told = given or backend.context
    if isinstance(told, int) and told > 0:
        return Window(told)
    found = (window for pattern, window in FAMILIES if re.match(pattern, backend.name))
    return next(found, Window(UNKNOWN, known=False))


def longest_reply(name: str, window: Window) -> int:
    """The most tokens of a reply, by the name of the model: a quarter of what it can read, within reason."""
    embedded = re.match(r"local(-small)?(:|$)", name)
    return max(min(window.tokens // 4, EMBEDDED_REPLY if embedded else LONGEST_REPLY), 1)


# How many tokens


def tokens_in(text: str | bytes) -> int:
    """About how many tokens a text takes, rather too many than too few: two for seven bytes. English takes
    less, code as much; a Chinese character has three bytes and takes about one."""
    size = len(text) if isinstance(text, bytes) or text.isascii() else len(text.encode("utf-8", "replace"))
    return -(-size * 2 // 7)


def message_tokens(message: Message) -> int:
    """About how many tokens a message takes, with the marks around it."""
    said = tokens_in(message["content"])
    said += sum(
        8 + tokens_in(call["name"]) + tokens_in(call["arguments"]) for call in message.get("calls", ())
    )
    return 4 + max(said, tokens_in(to_json(message["kept"])) if "kept" in message else 0)


class Gauge:
    """How full the window is. Each message is counted once; what the server says a request took corrects the
    count of all that follow."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.beside = 0  # tokens that go beside the messages: the tools
        self._told, self._asked = 1, 1  # tokens the server told of, and those counted, of one request
        self._messages: Messages | None = None
        self._seen = self._counted = 0

    def tokens(self, messages: Messages) -> int:
        """About how many tokens a request with these messages takes."""
        return self.corrected(self._count(messages))

    def corrected(self, counted: int) -> int:
        """A count, by what the last request really took."""
        return -(-counted * self._told // self._asked)

    def told(self, messages: Messages, asked: int, tokens: int) -> None:
        """The server said that a request took so many ``tokens``; it had the first ``asked`` of the messages.
        Nothing is learnt from a server that says nothing, or cannot mean what it says."""
        counted = self._count(messages) - sum(
            message_tokens(messages[place]) for place in range(asked, len(messages))
        )
        if tokens > 0:
            self._told, self._asked = min(max(tokens, counted // 2), counted * 3), max(counted, 1)

    def refused(self, messages: Messages, window: int) -> None:
        """The server said that a request was too long, and, if ``window`` is not 0, for which window. What
        was counted cannot have been right."""
        counted = self._count(messages)
        if window:
            self.window = Window(window)
            if self.corrected(counted) <= window:
                self._told, self._asked = window + 1, max(counted, 1)
        elif self.corrected(counted) <= self.window.tokens:
            self.window = Window(self.corrected(counted) - 1)

    def _count(self, messages: Messages) -> int:
        if messages is not self._messages or len(messages) < self._seen:
            self._messages, self._seen, self._counted = messages, 0, 0
        while self._seen < len(messages):
            self._counted += message_tokens(messages[self._seen])
            self._seen += 1
        return self._counted + self.beside


# What servers say of a request that is too long

_CODES = ("context_length_exceeded", "exceed_context_size_error")
_TOO_LONG = re.compile(
    r"prompt is too long|(?:maximum|max) (?:context|model) length|exceeds? (?:the |this )?(?:model'?s )?"
    r"(?:available |maximum )?context|context size has been exceeded|input token count.{0,20} exceeds",
    re.IGNORECASE,
)
_SIZE = re.compile(
    r"(?:context|model) length (?:is|of) (\d+)|context size \((\d+)|> (\d+)|context window of (\d+)"
    r"|with (\d+) maximum context|allowed \((\d+)",
    re.IGNORECASE,
)


_FEWER = re.compile(
    r"max_(?:completion_|output_|new_)?tokens.{0,200}?"
    r"(?:at most|>|\[1(?= )|less than or equal to|<=) ?`?(\d+)",
    re.DOTALL,
)


def fewer(error: Mapping[str, Any]) -> int:
    """The most tokens of a reply that a server gives, if an error says that more were asked for; else 0."""
    found = _FEWER.search(str(error.get("message") or "").replace(",", ""))
    return int(found.group(1)) if found and overflow(error) is None else 0


def overflow(error: Mapping[str, Any]) -> int | None:
    """Whether an error says that the request is longer than the model can read: the window if it tells it, 0
    if not, None for any other error."""
    said = str(error.get("message") or "").replace(",", "")
    known = error.get("code") in _CODES or error.get("type") in _CODES
    if not known and not _TOO_LONG.search(said):
        return None
    size = error.get("n_ctx")
    if isinstance(size, int) and size > 0:
        return size
    found = _SIZE.search(said)
    return int(next(filter(None, found.groups()))) if found else 0
