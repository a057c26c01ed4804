"""One request to a model server: where it goes, what is asked and how that is adapted, the JSON Schemas in
it, and its body.

Knows neither connections nor replies; http.py sends it.
"""

from __future__ import annotations

import base64
import json
import math
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from quoth.neuro.backends.base import RequestOptions
from quoth.neuro.backends.messages import PIECE, Messages, to_json
from quoth.neuro.backends.providers import PROVIDERS
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
class ModelRequest:
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
    unread: bool = False  # whether the server may still be sending a reply that is not read to its end
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


# The names under which sessions have kept thoughts since before these had owners.
OLD_NAMES = {"openai-responses": "responses"}


def owner_of(name: str, url: httpx.URL) -> str:
    """Whose thoughts a model's are: its provider's, or its maker's at a gateway for many; with the host of
    the server where that is not the provider's own."""
    found = re.match(r"([\w-]+)(:.*(?=/))?", name)
    kind, whole = (found[1], found[0]) if found else (name, name)
    row = PROVIDERS.get(kind)
    if row is not None and row.url and httpx.URL(row.url).host == url.host:
        return OLD_NAMES.get(whole, whole)
    return f"{whole}@{url.host}"


# Not every provider enforces these, some refuse them: they are told to the model in words.
LIMITS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
    "minLength": "characters: at least",
    "maxLength": "characters: at most",
    "pattern": "matches",
    "minItems": "items: at least",
    "maxItems": "items: at most",
}
NAMED = ("properties", "$defs", "definitions")  # what they hold is named by the user, not by JSON Schema
DATA = ("enum", "const", "required", "description")
LEFT_OUT = ("title", "default", "examples", "discriminator", "uniqueItems")


def portable_schema(node: Any) -> Any:
    """The schema without what a provider may refuse: its objects are closed, its limits are words."""
    if isinstance(node, list):
        return [portable_schema(one) for one in node]
    if not isinstance(node, Mapping):
        return node
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key in NAMED and isinstance(value, Mapping):
            made[key] = {name: portable_schema(one) for name, one in value.items()}
        elif key in DATA:
            made[key] = value
        elif key not in LIMITS and key not in LEFT_OUT:
            made["anyOf" if key == "oneOf" else key] = portable_schema(value)
    told = ", ".join(f"{words} {node[key]}" for key, words in LIMITS.items() if key in node)
    if told:
        made["description"] = " ".join(filter(None, [made.get("description"), f"({told})"]))
    if "properties" in made:
        made["additionalProperties"] = False
    if "$ref" in made and len(made) > 1:  # it must stand alone
        made["anyOf"] = [{"$ref": made.pop("$ref")}]
    return made


def is_strict(schema: Any) -> bool:
    """Whether OpenAI can enforce a portable schema: objects are closed and none of their fields may be
    missing."""
    return all(
        node.get("additionalProperties") is False and set(node.get("required", ())) == set(node["properties"])
        if "properties" in node
        else node.get("type") != "object"
        for node in _nodes(schema)
    )


def _nodes(node: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(node, list):
        for one in node:
            yield from _nodes(one)
    elif isinstance(node, Mapping):
        yield node
        for key, value in node.items():
            if key in NAMED:
                yield from _nodes(list(value.values()))
            elif key not in DATA:
                yield from _nodes(value)


@lru_cache(maxsize=8)
def tools_without(tools: bytes, keys: frozenset[str]) -> bytes:
    """The tools of a request without these keys of their schemas."""
    return to_json(_without(json.loads(tools), keys)) if keys else tools


def _without(node: Any, keys: frozenset[str]) -> Any:
    if isinstance(node, list):
        return [_without(item, keys) for item in node]
    if not isinstance(node, dict):
        return node
    left: dict[str, Any] = {}
    for key, value in node.items():
        if key in NAMED and isinstance(value, dict):
            left[key] = {name: _without(item, keys) for name, item in value.items()}
        elif key == "type" and "type" in keys and isinstance(value, list):
            left[key] = next((kind for kind in value if kind != "null"), "string")
        elif key in DATA and key not in keys:
            left[key] = value
        elif key not in keys or key == "type":
            left[key] = _without(value, keys)
        elif key == "const":
            left["enum"] = [value]
        elif key in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
            branches = [_without(one, keys) for one in value if one != {"type": "null"}]
            left |= branches[0] if len(branches) == 1 or (branches and key == "allOf") else {}
    return left
