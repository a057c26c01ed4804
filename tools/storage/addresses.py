"""What a text that names a server must be, and whether the connection to it needs certificates: reading those
of all authorities takes 25 ms each time.

Knows addresses and proxies of the environment; it must not know what is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from urllib.parse import SplitResult


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
