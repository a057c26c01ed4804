"""What a text that names a server must be, and the certificates that a connection to it needs. To read those
of all authorities takes 25 ms and a megabyte: they are read once, and beside the event loop.

Knows addresses and the environment's proxies and certificates; it must not know what is sent.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ssl import SSLContext
    from urllib.parse import SplitResult

_trusted: dict[tuple[object, ...], SSLContext] = {}  # one, by what the environment names


def web_address(text: str) -> SplitResult | None:
    """The parts of an address that begins with http:// or https://; None if the text is none."""
    from urllib.parse import urlsplit  # here: most commands send nothing

    try:
        parts = urlsplit(text)
        # To ask for the port raises ValueError where it is none.
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
    """What httpx is told of certificates on the way to an address: those that are trusted, the same for all
    of this process, or False. Raises OSError."""
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
