"""Decompresses an HTTP reply piece by piece, so that a reader can stop at its own limit.

httpx itself may expand one kilobyte to gigabytes before anybody can stop it. Must not know requests.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, AsyncIterable

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
