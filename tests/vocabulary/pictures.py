"""Small pictures, as their bytes begin: enough for whoever reads a size, and one that can be looked at; and a
browser's picture of a page made small, with the text of the page in it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

PNG = b"\x89PNG\r\n\x1a\n"
STEP = 17  # from one of 16 levels of a colour to the next
TEXT = b"Description\0\0\0\0\0"  # the name of a text in a picture; it is plain, and in no language


def png(width: int, height: int) -> bytes:
    """A red picture."""
    head = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\xff\0\0" * width) * height)
    return PNG + _chunk(b"IHDR", head) + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The parts of a PNG, by their kinds."""
    assert picture.startswith(PNG)
    at = len(PNG)
    while at < len(picture):
        size, kind = struct.unpack(">I4s", picture[at : at + 8])
        yield kind, picture[at + 8 : at + 8 + size]
        at += size + 12


def size_of(picture: bytes) -> tuple[int, int]:
    """Width and height of a PNG."""
    width, height = struct.unpack(">2I", dict(_chunks(picture))[b"IHDR"][:8])
    return width, height


def text_in(picture: bytes) -> str:
    """The text that ``small`` has put into a picture."""
    return dict(_chunks(picture))[b"iTXt"].removeprefix(TEXT).decode()


def small(picture: bytes, text: str) -> bytes:
    """A browser's PNG with at most 256 colours, and with a text in it."""
    width, height = size_of(picture)
    colours: dict[bytes, int] = {}
    level = bytes((one + STEP // 2) // STEP * STEP for one in range(256))
    rows = bytearray()
    for row in _rows(picture):
        even = row.translate(level)
        pixels = (even[at : at + 3] for at in range(0, len(even), len(row) // width))
        rows += b"\0" + bytes(colours.setdefault(pixel, len(colours)) for pixel in pixels)
    parts = {
        b"IHDR": struct.pack(">2I5B", width, height, 8, 3, 0, 0, 0),
        b"PLTE": b"".join(colours),
        b"iTXt": TEXT + text.encode(),
        b"IDAT": zlib.compress(rows, 9),
        b"IEND": b"",
    }
    return PNG + b"".join(_chunk(kind, data) for kind, data in parts.items())


def _rows(picture: bytes) -> Iterator[bytes]:
    """The pixels of a PNG of 8 bits, row by row."""
    parts = [*_chunks(picture)]
    (width, height), kind = size_of(picture), parts[0][1][9]
    each = {2: 3, 6: 4}[kind]  # bytes of a pixel: with or without transparency
    data = zlib.decompress(b"".join(part for name, part in parts if name == b"IDAT"))
    above = bytes(width * each)
    for at in range(height):
        begin = at * (width * each + 1)
        row = bytearray(data[begin + 1 : begin + 1 + width * each])
        for x, up in enumerate(above):
            left, corner = (row[x - each], above[x - each]) if x >= each else (0, 0)
            row[x] = (row[x] + _guess(data[begin], left, up, corner)) & 255
        yield bytes(row)
        above = bytes(row)


def _guess(how: int, left: int, up: int, corner: int) -> int:
    """What a row's filter expects of a byte."""
    if how < 4:
        return (0, left, up, (left + up) // 2)[how]
    middle = left + up - corner
    return min((left, up, corner), key=lambda one: abs(one - middle))


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<2H", width, height) + b"\0\0\0;"


def jpeg(width: int, height: int, before: bytes = b"\xff\xe0\0\x04ab\xff") -> bytes:
    return b"\xff\xd8" + before + b"\xff\xc2\0\x0b\x08" + struct.pack(">2H", height, width) + b"\1\1\0"


def webp(kind: bytes, rest: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + kind + b"\0\0\0\0" + rest
