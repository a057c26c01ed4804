"""The bytes of an HTTP reply, decompressed a piece at a time, so that a reader can stop at its own limit.

Knows no request and no limit. httpx itself makes gigabytes of a kilobyte before anybody can stop it.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, AsyncIterable

PIECE = 65_536  # bytes that are decompressed at a time


class UnknownEncodingError(Exception):
    """The reply is compressed in a way that nobody asked for; the text is the name of it."""


async def inflated(raw: AsyncIterable[bytes], encoding: str) -> AsyncGenerator[bytes]:
    """The plain bytes of a body with this ``content-encoding``. Raises UnknownEncodingError, zlib.error."""
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
