"""One request to a model server: its address, its options and their adaptations, its JSON Schemas and its
body; and the connection for it. http.py sends it."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
import os
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.util import find_spec
from typing import Any
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

from quoth.neuro.backends.base import ModelError, RequestOptions
from quoth.neuro.backends.messages import PIECE, Messages, to_json
from quoth.neuro.backends.providers import PROVIDERS
from quoth.tools.call.redaction import SENT
from quoth.tools.errors import UsageError
from quoth.tools.storage.addresses import trusted
from quoth.tools.storage.lean_httpx import WIRE_LOGS, httpx

REPLY_TOKENS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@dataclass(frozen=True)
class Adaptations:
    """The changes of requests to one model because its server refused the usual ones. They are kept with each
    reply, so that a resumed session begins with them."""

    options: frozenset[str] = frozenset()  # options to leave out
    keys: frozenset[str] = frozenset()  # keys to leave out of the tools' schemas
    most_tokens: int = 0  # maximum number of tokens of a reply, 0 if unknown
    images: bool = True  # whether the model reads images
    system: bool = True  # whether there is a system role
    strict: bool = False  # whether an assistant message must be between a result and the user
    counts_thoughts: bool = False  # whether the limit of a reply includes its thoughts
    thoughts: bool = True  # whether thoughts are sent back
    must_think: bool = False  # whether each message with calls must have thoughts
    signs: bool = False  # whether the signatures of calls are sent back

    def data(self, usual: Adaptations) -> dict[str, Any]:
        """The differences from the ``usual``, as JSON."""
        told = {name: value for name, value in vars(self).items() if value != getattr(usual, name)}
        return {
            name: sorted(value) if isinstance(value, frozenset) else value for name, value in told.items()
        }

    def with_data(self, data: Mapping[str, Any]) -> Adaptations:
        """These adaptations with those of ``data``; unknown ones are ignored."""
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
    """One request. ``options`` are left out if the server does not know them; ``parts`` are fields of the
    body that are already JSON, in pieces."""

    options: dict[str, Any]
    parts: dict[str, list[bytes]]
    has_tools: bool
    on_text: Callable[[str], None] | None
    messages: Messages
    wants: RequestOptions
    rewrite: Callable[[], dict[str, list[bytes]]]  # makes the parts again, if the server needs another format
    tokens: int  # maximum number of tokens in the words of the reply
    seconds: float  # maximum time of the reply, including all retries
    sent: Mapping[str, Any] = field(default_factory=dict)  # the options of its last try
    shortened: bool = False  # whether it asks for fewer tokens than at first
    queues: bool = False  # whether it waits for a place among the requests to its server
    unread: bool = False  # whether the server may still be sending an unread part of a reply
    shown: bool = False  # whether on_text was called: after that there is no retry
    start: float = field(default_factory=time.monotonic)

    @property
    def limit(self) -> float:
        """The maximum number of tokens of the reply."""
        return next((self.sent[name] for name in REPLY_TOKENS if name in self.sent), math.inf)

    @property
    def left(self) -> float:
        """The remaining seconds."""
        return self.start + self.seconds - time.monotonic()


class Payload(httpx.AsyncByteStream):
    """The body of a request in pieces, so that a long conversation is sent without copying. It can be sent
    again."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.length = sum(map(len, pieces))
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        short: list[bytes] = []  # each piece is one write; copying short pieces costs less
        length = 0
        for piece in self._pieces:
            if length + len(piece) > PIECE and short:
                yield b"".join(short)
                short, length = [], 0
            short.append(piece)
            length += len(piece)
        yield b"".join(short)


def endpoint(base_url: str, path: str, default: str = "") -> tuple[httpx.URL, tuple[str, str] | None]:
    """The address for requests, and the user and password in ``base_url``, separated because httpx logs URLs.

    ``default`` is the path if ``base_url`` has none; a URL that already ends with ``path`` is not changed.
    Raises UsageError.
    """
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:  # not quoted: it may contain a password
        raise UsageError("The base URL must look like http://127.0.0.1:8080/v1.")
    auth = (url.username, url.password) if url.userinfo else None
    whole = (url.path.rstrip("/") or default).removesuffix(path) + path
    return url.copy_with(userinfo=b"", path=whole), auth


def header_safe(key: str | None, variable: str) -> str | None:
    key = (key or "").strip()
    if not (key.isascii() and key.isprintable()):  # httpx would print the key in its error
        raise UsageError(
            f"{variable[:1].upper()}{variable[1:]} contains characters that are not allowed in a key."
        )
    return key or None


def basic(auth: tuple[str, str]) -> str:
    """The authorization header for a user and a password."""
    return f"Basic {base64.b64encode(':'.join(auth).encode()).decode()}"


# The names of kept thoughts in older sessions, in which thoughts had no owners.
OLD_NAMES = {"openai-responses": "responses"}


def owner_of(name: str, url: httpx.URL) -> str:
    """The owner of a model's thoughts: its provider, or its maker at a gateway for many makers; with the host
    of the server if it is not the provider's."""
    found = re.match(r"([\w-]+)(:.*(?=/))?", name)
    kind, whole = (found[1], found[0]) if found else (name, name)
    row = PROVIDERS.get(kind)
    if row is not None and row.url and httpx.URL(row.url).host == url.host:
        return OLD_NAMES.get(whole, whole)
    return f"{whole}@{url.host}"


# Some providers ignore or refuse these limits, so they become words in the description.
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
NAMED = ("properties", "$defs", "definitions")  # the keys in them are the user's, not JSON Schema's
DATA = ("enum", "const", "required", "description")
LEFT_OUT = ("title", "default", "examples", "discriminator", "uniqueItems")


def portable_schema(node: Any) -> Any:
    """The schema without keys that a provider may refuse: objects are closed, limits become words."""
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
    if "$ref" in made and len(made) > 1:  # it may have no other keys beside it
        made["anyOf"] = [{"$ref": made.pop("$ref")}]
    return made


def is_strict(schema: Any) -> bool:
    """Whether OpenAI can enforce a portable schema: all objects are closed and all fields required."""
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
    """The tools of a request, with these keys removed from their schemas."""
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


# The shared connections of back ends: a pool for each event loop and route to servers, with at most PLACES
# requests at a time to each server. The last member closes it.


PLACES = 100  # maximum number of requests in progress at one server
KEPT = 30.0  # seconds to keep a connection for the next request

# The route to a server: whether certificates are checked, the files of trusted certificates, the proxy.
Way = tuple[bool, str, str, str]
Make = Callable[[], Awaitable[httpx.AsyncBaseTransport]]


@dataclass
class _Server:
    """The places at one server (first come, first served), and the free connections, each with the time since
    which it is free."""

    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PLACES))
    free: list[tuple[float, httpx.AsyncBaseTransport]] = field(default_factory=list)


class Pool:
    """The shared connections. ``make`` makes a transport for one request at a time, for two reasons: a
    transport of httpx searches all its connections for each request, which with a hundred costs more than the
    request; and an HTTP/2 server stops a reply only when the connection is closed. Without ``way`` the
    transport is the caller's and is closed only at the end."""

    def __init__(self, make: Make, way: Way | None = None) -> None:
        self.members = 1
        self._make = make
        self._way = way
        self._servers: defaultdict[bytes, _Server] = defaultdict(_Server)
        self._made: set[httpx.AsyncBaseTransport] = set()

    @asynccontextmanager
    async def place(self, url: httpx.URL) -> AsyncIterator[httpx.AsyncBaseTransport]:
        """A place among the requests to a server: yields its most recently used transport. Closes transports
        that were not used for KEPT seconds, or whose request failed or was cancelled."""
        server = self._servers[url.netloc]
        async with server.turns:
            transport = server.free.pop()[1] if server.free else await self._make()
            self._made.add(transport)
            try:
                yield transport
            except BaseException:
                await self.close(transport)
                raise
            now = time.monotonic()
            server.free.append((now, transport))
        while server.free and now - server.free[0][0] > KEPT:  # its server may have closed it unnoticed
            await self.close(server.free.pop(0)[1])

    async def close(self, transport: httpx.AsyncBaseTransport) -> None:
        """Close the connection of a transport; its next request opens it again."""
        if self._way is not None:
            self._made.discard(transport)
            await transport.aclose()

    async def leave(self) -> None:
        """End a membership; the last one closes the connections."""
        self.members -= 1
        if self.members:
            return
        if self._way is not None:
            _POOLS.get(asyncio.get_running_loop(), {}).pop(self._way, None)
        for transport in self._made:
            await transport.aclose()


# Connections belong to the loop that opened them.
_POOLS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Way, Pool]] = WeakKeyDictionary()


def join(url: httpx.URL) -> Pool:
    """The pool of the running loop for this server. The caller is a member until it calls ``leave``. A place
    raises ModelError if the proxy or the certificates cannot be used."""
    proxy = proxy_to(url)
    certificates = (os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))
    way = (url.scheme != "http" or bool(proxy), *certificates, proxy)
    pools = _POOLS.setdefault(asyncio.get_running_loop(), {})
    if (pool := pools.get(way)) is None:
        pool = pools[way] = Pool(_maker(way), way)
    else:
        pool.members += 1
    return pool


def proxy_to(url: httpx.URL) -> str:
    """The proxy for a server in the environment; empty if there is none."""
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all") or ""
    if not proxy or proxy_bypass(url.netloc.decode()):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _maker(way: Way) -> Make:
    verify, named, _, proxy = way
    # It would log the target of a redirect, which may contain secrets.
    for log in WIRE_LOGS:
        logging.getLogger(log).addFilter(_without_headers)

    async def make() -> httpx.AsyncBaseTransport:
        try:
            context = await trusted() if verify else False
        except OSError as error:
            name = "SSL_CERT_FILE" if named else "SSL_CERT_DIR"
            raise ModelError(f"The certificates in {name} cannot be read ({error}).", "down") from None
        try:
            SENT.learn(httpx.URL(proxy).password)
            return httpx.AsyncHTTPTransport(
                verify=context,
                http2=find_spec("h2") is not None,  # from the extra quoth[http2]
                limits=httpx.Limits(max_connections=1, keepalive_expiry=KEPT),
                proxy=proxy or None,
            )
        except (ValueError, ImportError, httpx.InvalidURL) as error:
            why = str(error).replace(proxy, "***")  # its address may contain a password
            raise ModelError(
                f"The proxy in the environment variables cannot be used: {why}", "down"
            ) from None

    return make


def _without_headers(record: logging.LogRecord) -> bool:
    return "receive_response_headers.complete" not in str(record.msg)
