"""Small pictures, as their bytes begin: enough for whoever reads a size, and one that can be looked at."""

from __future__ import annotations

import struct
import zlib


def png(width: int, height: int) -> bytes:
    """A red picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\xff\0\0" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<2H", width, height) + b"\0\0\0;"


def jpeg(width: int, height: int, before: bytes = b"\xff\xe0\0\x04ab\xff") -> bytes:
    return b"\xff\xd8" + before + b"\xff\xc2\0\x0b\x08" + struct.pack(">2H", height, width) + b"\1\1\0"


def webp(kind: bytes, rest: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + kind + b"\0\0\0\0" + rest
