"""One request to a model server: where it goes, what is asked, and its body.

Knows neither providers nor connections; http.py sends it.
"""

from __future__ import annotations

import base64
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from quoth.neuro.backends.base import RequestOptions
from quoth.neuro.backends.messages import PIECE, Messages
from quoth.tools.errors import UsageError
from quoth.tools.storage.lean_httpx import httpx

REPLY_TOKENS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@dataclass(frozen=True)
class Adaptations:
    """How requests to one model are changed because its server refused the usual ones. They are kept with
    each reply, so that a resumed session begins with them."""

    options: frozenset[str] = frozenset()  # options that are left out
    keys: frozenset[str] = frozenset()  # keys that are left out of the tools' schemas
    most_tokens: int = 0  # tokens that a reply may have, 0 if the server did not say
    images: bool = True  # whether the model reads images
    system: bool = True  # whether there is a system role
    strict: bool = False  # whether the assistant speaks between a result and the user
    counts_thoughts: bool = False  # whether the limit of a reply counts its thoughts
    thoughts: bool = True  # whether thoughts go back
    must_think: bool = False  # whether each message with calls has thoughts
    signs: bool = False  # whether the signatures of calls go back

    def data(self, usual: Adaptations) -> dict[str, Any]:
        """What differs from the ``usual``, as JSON."""
        told = {name: value for name, value in vars(self).items() if value != getattr(usual, name)}
        return {
            name: sorted(value) if isinstance(value, frozenset) else value for name, value in told.items()
        }

    def with_data(self, data: Mapping[str, Any]) -> Adaptations:
        """These and those of ``data``; what is unknown in it is ignored."""
        found: dict[str, Any] = {}
        for name, mine in vars(self).items():
            value = data.get(name)
            if isinstance(mine, frozenset) and isinstance(value, list):
                found[name] = mine | frozenset(map(str, value))
            elif type(value) is type(mine):
                found[name] = value
        return replace(self, **found)


@dataclass
class Request:
    """One request. ``options`` are dropped when the server does not know them; ``parts`` are fields of the
    body that are JSON already, in pieces."""

    options: dict[str, Any]
    parts: dict[str, list[bytes]]
    has_tools: bool
    on_text: Callable[[str], None] | None
    messages: Messages
    wants: RequestOptions
    rewrite: Callable[
        [], dict[str, list[bytes]]
    ]  # the parts anew, where the server takes them in another way
    tokens: int  # that the words of the reply may have
    seconds: float  # that the reply may take, with all its tries
    sent: Mapping[str, Any] = field(default_factory=dict)  # the options that its last try had
    shortened: bool = False  # whether fewer tokens are asked for than were at first
    queues: bool = False  # whether it waits for a place among the requests to its server
    shown: bool = False  # whether on_text was told something: from then on nothing is tried again
    start: float = field(default_factory=time.monotonic)

    @property
    def limit(self) -> float:
        """The most tokens that the reply may have."""
        return next((self.sent[name] for name in REPLY_TOKENS if name in self.sent), math.inf)

    @property
    def left(self) -> float:
        """The seconds that are left of it."""
        return self.start + self.seconds - time.monotonic()


class Payload(httpx.AsyncByteStream):
    """The body of a request in pieces, so that a long conversation is sent without copying it. It can be sent
    again."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.length = sum(map(len, pieces))
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        short: list[bytes] = []  # each piece is a write of its own, which costs more than to copy a short one
        length = 0
        for piece in self._pieces:
            if length + len(piece) > PIECE and short:
                yield b"".join(short)
                short, length = [], 0
            short.append(piece)
            length += len(piece)
        yield b"".join(short)


def endpoint(base_url: str, path: str, default: str = "") -> tuple[httpx.URL, tuple[str, str] | None]:
    """The address to post to, and the user and password that it contained: they are split off because httpx
    logs URLs.

    ``default`` is the path to use when ``base_url`` has none; one that ends with ``path`` is taken as it is.
    Raises UsageError.
    """
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:  # not repeated: it may hold a password
        raise UsageError("The base URL must look like http://127.0.0.1:8080/v1.")
    auth = (url.username, url.password) if url.userinfo else None
    whole = (url.path.rstrip("/") or default).removesuffix(path) + path
    return url.copy_with(userinfo=b"", path=whole), auth


def header_safe(key: str | None, variable: str) -> str | None:
    key = (key or "").strip()
    if not (key.isascii() and key.isprintable()):  # httpx would complain, and print the key
        raise UsageError(f"{variable[:1].upper()}{variable[1:]} holds characters that no key can have.")
    return key or None


def basic(auth: tuple[str, str]) -> str:
    """The header that says a user and a password."""
    return f"Basic {base64.b64encode(':'.join(auth).encode()).decode()}"
