"""The connections that back ends share: one pool for all of an event loop that go the same way, in which
so many requests to each server have a place at once.

Knows connections, certificates and proxies; it must not know what is sent. The last one to leave closes it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import defaultdict
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import httpx

from quoth.neuro.backends.base import ModelError

PLACES = 100  # requests that are under way at one server
KEPT = 30.0  # seconds a connection is kept for the next request

# The way to a server: whether certificates are checked, the files with those that are trusted, the proxy.
Way = tuple[bool, str, str, str]


class Pool:
    """The transport of those who have joined, and their places. A place is given to whoever asked first;
    ``transport`` itself never has anybody wait."""

    def __init__(self, transport: httpx.AsyncBaseTransport, way: Way | None = None) -> None:
        self.transport = transport
        self.members = 1
        self._way = way
        self._places: defaultdict[bytes, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(PLACES))

    def place(self, url: httpx.URL) -> asyncio.Semaphore:
        """What a request holds as long as it is under way: ``async with pool.place(url)``."""
        return self._places[url.netloc]

    async def leave(self) -> None:
        """End one membership; the last one closes the connections."""
        self.members -= 1
        if self.members:
            return
        if self._way is not None:
            _POOLS.get(asyncio.get_running_loop(), {}).pop(self._way, None)
        await self.transport.aclose()


# Connections belong to the loop that opened them.
_POOLS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Way, Pool]] = WeakKeyDictionary()


def join(url: httpx.URL) -> Pool:
    """The pool of the running loop for this server, of which the caller is a member until it leaves. Raises
    ModelError where the way to the server cannot be gone."""
    proxy = proxy_to(url)
    certificates = (os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))
    way = (url.scheme != "http" or bool(proxy), *certificates, proxy)
    pools = _POOLS.setdefault(asyncio.get_running_loop(), {})
    if (pool := pools.get(way)) is None:
        pool = pools[way] = Pool(_transport(way), way)
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


def _transport(way: Way) -> httpx.AsyncBaseTransport:
    verify, *certificates, proxy = way
    # It would write to the log what a server says where the request should go, with what secrets there are.
    logging.getLogger("httpcore.http11").addFilter(_without_headers)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=PLACES, keepalive_expiry=KEPT)
    try:
        return httpx.AsyncHTTPTransport(verify=verify, limits=limits, proxy=proxy or None)
    except (ValueError, ImportError) as error:
        why = str(error).replace(proxy, "***")  # its address may hold a password
        raise ModelError(f"The proxy that the environment names cannot be used: {why}", "down") from None
    except OSError as error:
        name = "SSL_CERT_FILE" if certificates[0] else "SSL_CERT_DIR"
        raise ModelError(f"{name} names no certificates that can be read ({error}).", "down") from None


def _without_headers(record: logging.LogRecord) -> bool:
    return "receive_response_headers.complete" not in str(record.msg)
