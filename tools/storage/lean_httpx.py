"""The one place that imports httpx; everything else takes it from here. To change to its continuation httpx2,
which has the same interface, change the import: a test runs back ends and web on it.

httpx comes without its command line, which it imports wherever rich and click are installed: they more than
double the time and the memory that it takes. This file must not know what httpx is used for.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import AsyncGenerator, AsyncIterable
from typing import Any

MAIN = "httpx._main"

if "httpx" in sys.modules:
    import httpx as httpx
else:
    modules: dict[str, Any] = sys.modules
    modules[MAIN] = None  # not installed, which httpx expects
    try:
        import httpx as httpx
    finally:
        del modules[MAIN]

USER_AGENT = f"python-{httpx.__name__}/{httpx.__version__}"
# The logs of the library below it, httpcore or httpcore2, about requests and responses.
WIRE_LOGS = tuple(f"{httpx.__name__.replace('httpx', 'httpcore')}.{name}" for name in ("http11", "http2"))


# Decompresses an HTTP reply piece by piece, so that a reader can stop at its own limit.
#
# httpx itself may expand one kilobyte to gigabytes before anybody can stop it. Must not know requests.


PIECE = 65_536  # bytes that are decompressed at a time


class UnknownEncodingError(Exception):
    """The reply has a compression that was not asked for; the text is its name."""


async def inflated(raw: AsyncIterable[bytes], encoding: str) -> AsyncGenerator[bytes]:
    """The decoded body for this ``content-encoding``, in pieces. Raises UnknownEncodingError, zlib.error."""
    encoding = encoding.strip().lower()
    if encoding not in ("identity", "", "gzip", "x-gzip"):
        raise UnknownEncodingError(encoding)
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 16) if "gzip" in encoding else None
    async for data in raw:
        if inflate is None:
            yield data
            continue
        piece = b""
        # What stands behind its end is read, so that the connection can serve again, and dropped.
        while not inflate.eof and (data or len(piece) == PIECE):
            piece = inflate.decompress(data, PIECE)
            data = inflate.unconsumed_tail
            yield piece
