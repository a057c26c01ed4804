"""The one place that imports httpx; everything else takes it from here. To change to its continuation httpx2,
which has the same interface, change the import: a test runs back ends and web on it.

httpx is loaded without its command line, which it imports if rich and click are installed: they more than
double its import time and memory.
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
    modules[MAIN] = None  # as if not installed, which httpx handles
    try:
        import httpx as httpx
    finally:
        del modules[MAIN]

USER_AGENT = f"python-{httpx.__name__}/{httpx.__version__}"
# The logs of the library below it, httpcore or httpcore2, about requests and responses.
WIRE_LOGS = tuple(f"{httpx.__name__.replace('httpx', 'httpcore')}.{name}" for name in ("http11", "http2"))


# Decompresses an HTTP reply piece by piece, so that a reader can stop at its own limit.
#
# httpx itself may expand one kilobyte to gigabytes before the reader can stop it.


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
        # Data after its end is read and dropped, so that the connection can be reused.
        while not inflate.eof and (data or len(piece) == PIECE):
            piece = inflate.decompress(data, PIECE)
            data = inflate.unconsumed_tail
            yield piece
