"""The connections that back ends share: one pool for all of an event loop that go the same way, in which
so many requests to each server have a place at once.

Knows connections, certificates and proxies; it must not know what is sent. The last one to leave closes it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

from quoth.neuro.backends.base import ModelError
from quoth.tools.call.echoes import SENT
from quoth.tools.storage.addresses import trusted
from quoth.tools.storage.lean_httpx import WIRE_LOG, httpx

if TYPE_CHECKING:
    from ssl import SSLContext

PLACES = 100  # requests that are under way at one server
KEPT = 30.0  # seconds a connection is kept for the next request

# The way to a server: whether certificates are checked, the files with those that are trusted, the proxy.
Way = tuple[bool, str, str, str]
Make = Callable[[], Awaitable[httpx.AsyncBaseTransport]]


class Pool:
    """What those who have joined share. ``make`` makes a transport for one connection: httpx's own pool looks
    at all its connections for each request, which costs more than the request where there are a hundred."""

    def __init__(self, make: Make, way: Way | None = None) -> None:
        self.members = 1
        self._make = make
        self._way = way
        self._servers: defaultdict[bytes, _Server] = defaultdict(_Server)

    def place(self, url: httpx.URL) -> Place:
        """A place among the requests to a server: ``async with pool.place(url) as transport``."""
        return Place(self._servers[url.netloc], self._make)

    async def leave(self) -> None:
        """End one membership; the last one closes the connections."""
        self.members -= 1
        if self.members:
            return
        if self._way is not None:
            _POOLS.get(asyncio.get_running_loop(), {}).pop(self._way, None)
        for server in self._servers.values():
            for transport in server.made:
                await transport.aclose()


class _Server:
    """The places at one server, given to whoever asked first, and its connections: those that are ``free``,
    each since when, and all that were made."""

    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(PLACES)
        self.free: list[tuple[float, httpx.AsyncBaseTransport]] = []
        self.made: list[httpx.AsyncBaseTransport] = []


class Place:
    """The place of one request; the connection that was used last is used next. One that nobody has used for
    long is closed."""

    def __init__(self, server: _Server, make: Make) -> None:
        self._server = server
        self._make = make

    async def __aenter__(self) -> httpx.AsyncBaseTransport:
        server = self._server
        await server.turns.acquire()
        if server.free:
            _, self._transport = server.free.pop()
            return self._transport
        try:
            self._transport = await self._make()
        except BaseException:
            server.turns.release()
            raise
        server.made.append(self._transport)
        return self._transport

    async def __aexit__(self, *_: object) -> None:
        server, now = self._server, time.monotonic()
        server.free.append((now, self._transport))
        server.turns.release()
        while server.free and now - server.free[0][0] > KEPT:  # nobody notices when its server closes it
            idle = server.free.pop(0)[1]
            server.made.remove(idle)
            await idle.aclose()


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
    logging.getLogger(WIRE_LOG).addFilter(_without_headers)

    async def make() -> httpx.AsyncBaseTransport:
        try:
            context = await trusted() if verify else None
        except OSError as error:
            name = "SSL_CERT_FILE" if named else "SSL_CERT_DIR"
            raise ModelError(f"{name} names no certificates that can be read ({error}).", "down") from None
        if proxy:
            return _through(proxy, context)
        from quoth.neuro.backends.connection import Connection  # here: most commands send nothing

        return Connection(context, KEPT)

    return make


def _through(proxy: str, context: SSLContext | None) -> httpx.AsyncBaseTransport:
    limits = httpx.Limits(keepalive_expiry=KEPT)
    try:
        SENT.learn(httpx.URL(proxy).password)
        return httpx.AsyncHTTPTransport(verify=context or False, limits=limits, proxy=proxy)
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        why = str(error).replace(proxy, "***")  # its address may hold a password
        raise ModelError(f"The proxy that the environment names cannot be used: {why}", "down") from None


def _without_headers(record: logging.LogRecord) -> bool:
    return "receive_response_headers.complete" not in str(record.msg)
