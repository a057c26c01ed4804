"""Addresses of servers, and the certificates for connections to them. Reading the certificates of all
authorities takes 25 ms and a megabyte: they are read once, outside the event loop.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ssl import SSLContext
    from urllib.parse import SplitResult

_trusted: dict[tuple[object, ...], SSLContext] = {}  # by the environment's settings


def web_address(text: str) -> SplitResult | None:
    """The parts of an address that begins with http:// or https://; None for any other text."""
    from urllib.parse import urlsplit  # here: most commands send nothing

    try:
        parts = urlsplit(text)
        # Reading the port raises ValueError if it is invalid.
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return None
    return parts if fine and text.isprintable() and " " not in text else None


def proxied() -> bool:
    """Whether the environment names a proxy."""
    import urllib.request  # here: most commands send nothing

    return any(name != "no" for name in urllib.request.getproxies())


def verified(scheme: str) -> bool:
    """Whether certificates are verified on the way to an address: plain http without a proxy has none."""
    return scheme != "http" or proxied()


async def certificates(scheme: str) -> SSLContext | bool:
    """The argument for httpx about certificates: the trusted certificates, shared by this process, or False.
    Raises OSError."""
    return await trusted() if verified(scheme) else False


async def trusted() -> SSLContext:
    """The certificates that the environment names, or those of all authorities. Raises OSError."""
    import asyncio  # here: most commands send nothing

    from quoth.tools.storage.lean_httpx import httpx

    named = tuple((path, _changed(path)) for path in map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
    if named not in _trusted:
        context = await asyncio.to_thread(httpx.create_ssl_context)
        context.set_alpn_protocols(["http/1.1"])
        _trusted.clear()
        _trusted[named] = context
    return _trusted[named]


def _changed(path: str | None) -> int:
    try:
        return Path(path).stat().st_mtime_ns if path else 0
    except OSError:
        return 0
