"""The connections that back ends share: for each event loop and route to servers a pool, in which at most
PLACES requests to each server are under way at once.

Knows connections, certificates and proxies; it must not know what is sent. The last one to leave closes it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

from quoth.neuro.backends.base import ModelError
from quoth.tools.call.redaction import SENT
from quoth.tools.storage.addresses import trusted
from quoth.tools.storage.lean_httpx import WIRE_LOGS, httpx

PLACES = 100  # requests that are under way at one server
KEPT = 30.0  # seconds a connection is kept for the next request

# The way to a server: whether certificates are checked, the files with those that are trusted, the proxy.
Way = tuple[bool, str, str, str]
Make = Callable[[], Awaitable[httpx.AsyncBaseTransport]]


@dataclass
class _Server:
    """The places at one server, given to whoever asked first, and the connections that are free, each since
    when."""

    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PLACES))
    free: list[tuple[float, httpx.AsyncBaseTransport]] = field(default_factory=list)


class Pool:
    """What those who have joined share. ``make`` makes a transport for one request at a time. A transport of
    httpx looks at all its connections for each request, which costs more than the request where there are a
    hundred; and with HTTP/2 only a closed connection tells a server that its reply is no longer wanted.
    Without a ``way`` the transport is one of the caller's, which is closed at the end alone."""

    def __init__(self, make: Make, way: Way | None = None) -> None:
        self.members = 1
        self._make = make
        self._way = way
        self._servers: defaultdict[bytes, _Server] = defaultdict(_Server)
        self._made: set[httpx.AsyncBaseTransport] = set()

    @asynccontextmanager
    async def place(self, url: httpx.URL) -> AsyncIterator[httpx.AsyncBaseTransport]:
        """A place among the requests to a server: its transport, the one that was used last. One that was not
        used for KEPT seconds is closed, and so is one whose request failed or was given up."""
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
        while server.free and now - server.free[0][0] > KEPT:  # nobody notices when its server closes it
            await self.close(server.free.pop(0)[1])

    async def close(self, transport: httpx.AsyncBaseTransport) -> None:
        """Close the connection of a transport, which the next request opens again."""
        if self._way is not None:
            self._made.discard(transport)
            await transport.aclose()

    async def leave(self) -> None:
        """End one membership; the last one closes the connections."""
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
    """The pool of the running loop for this server, of which the caller is a member until it leaves. A
    place raises ModelError where the way to the server cannot be gone."""
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
    """The proxy that the environment names for a server; empty if there is none."""
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all") or ""
    if not proxy or proxy_bypass(url.netloc.decode()):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _maker(way: Way) -> Make:
    verify, named, _, proxy = way
    # It would write to the log what a server says where the request should go, with what secrets there are.
    for log in WIRE_LOGS:
        logging.getLogger(log).addFilter(_without_headers)

    async def make() -> httpx.AsyncBaseTransport:
        try:
            context = await trusted() if verify else False
        except OSError as error:
            name = "SSL_CERT_FILE" if named else "SSL_CERT_DIR"
            raise ModelError(f"{name} names no certificates that can be read ({error}).", "down") from None
        try:
            SENT.learn(httpx.URL(proxy).password)
            return httpx.AsyncHTTPTransport(
                verify=context,
                http2=find_spec("h2") is not None,  # of the extra quoth[http2]
                limits=httpx.Limits(max_connections=1, keepalive_expiry=KEPT),
                proxy=proxy or None,
            )
        except (ValueError, ImportError, httpx.InvalidURL) as error:
            why = str(error).replace(proxy, "***")  # its address may hold a password
            raise ModelError(f"The proxy that the environment names cannot be used: {why}", "down") from None

    return make


def _without_headers(record: logging.LogRecord) -> bool:
    return "receive_response_headers.complete" not in str(record.msg)
