"""Whether a connection needs certificates: reading those of all authorities takes 25 ms each time.

Knows addresses and proxies of the environment; it must not know what is sent.
"""

from __future__ import annotations


def proxied() -> bool:
    """Whether the environment names a proxy."""
    import urllib.request  # here: most commands send nothing

    return any(name != "no" for name in urllib.request.getproxies())


def verified(scheme: str) -> bool:
    """Whether certificates are verified on the way to an address: plain http without a proxy has none."""
    return scheme != "http" or proxied()
