"""Images as values: the session stores each once, under an id, with its type and size.

It reads the first bytes of the four formats that models accept, and decodes no picture. The bytes may be
hostile: everything read here is bounded.
"""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING, Any

from quoth.tools.errors import ToolError

if TYPE_CHECKING:
    from quoth.tools.call.context import ToolContext

MAX_BYTES = 5_000_000  # the most that providers accept
MAX_SEGMENTS = 1_000  # of a JPEG, before the one that contains its size
MAX_SIDE = 65_535
MAX_FOUND, MAX_DEPTH = 20, 3  # images shown of one value, and their greatest depth in it
KINDS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_NO_SIZE = {0xC4, 0xC8, 0xCC}  # segments of a JPEG among the frame headers that contain no size
_FIELDS = ("image", "name", "type", "width", "height")


def media_of(data: bytes) -> str:
    """The media type of an image by its first bytes; empty for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media for begin, media in KINDS.items() if data.startswith(begin)), "")


def size_of(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels, read from the image's header; None if the header is broken."""
    try:
        width, height = _SIZES[media_of(data)](data)
    except (KeyError, struct.error, ValueError):
        return None
    return (width, height) if 0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE else None


def _png(data: bytes) -> tuple[int, int]:
    kind, width, height = struct.unpack_from(">4s2I", data, 12)
    return (width, height) if kind == b"IHDR" else (0, 0)


def _gif(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<2H", data, 6)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    for _ in range(MAX_SEGMENTS):
        mark, kind, length = struct.unpack_from(">2BH", data, at)
        if mark != 0xFF or (kind != 0xFF and length < 2):
            raise ValueError("no segment")
        if kind == 0xFF:  # one more byte between segments
            at += 1
        elif 0xC0 <= kind <= 0xCF and kind not in _NO_SIZE:
            height, width = struct.unpack_from(">2H", data, at + 5)
            return width, height
        else:
            at += 2 + length
    raise ValueError("too many segments")


def _webp(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X" and len(data) >= 30:
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L":
        bits = int(struct.unpack_from("<I", data, 21)[0])
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<2H", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    raise ValueError("no such kind")


_SIZES = {"image/png": _png, "image/gif": _gif, "image/jpeg": _jpeg, "image/webp": _webp}


def is_image(data: bytes) -> bool:
    """Whether data is an image, and not a text that begins like one."""
    if not media_of(data):
        return False
    try:
        return b"\0" in data or not data.decode()
    except UnicodeDecodeError:
        return True


def image_value(ctx: ToolContext, data: bytes, name: str) -> dict[str, Any]:
    """An image as the value of a call: its id in the session's store, name, type and size. Raises ToolError
    for an image that is too large or broken."""
    if len(data) > MAX_BYTES:
        raise ToolError(f"{name} is an image of more than {MAX_BYTES:,} bytes, too large for a model.")
    media, size = media_of(data), size_of(data)
    if size is None:
        raise ToolError(f"{name} looks like an image ({media or 'unknown'}), but its header is broken.")
    id = ctx.pages.keep(base64.b64encode(data).decode()) if ctx.pages is not None else ""
    if not id and ctx.pages is not None:
        raise ToolError(f"The image {name} cannot be kept: the store of the workspace is full.")
    ctx.say(f"An image, {size[0]}x{size[1]}.")
    return {"image": id, "name": name, "type": media, "width": size[0], "height": size[1]}


def images_in(value: Any, depth: int = 0) -> list[dict[str, Any]]:
    """The images in the value of a call, as ``image_value`` returned them."""
    if isinstance(value, dict) and all(field in value for field in _FIELDS):
        sound = all(isinstance(value[field], str if field in _FIELDS[:3] else int) for field in _FIELDS)
        return [value] if sound and value["image"] and value["type"] in _SIZES else []
    if depth == MAX_DEPTH or not isinstance(value, dict | list):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [found for one in inner for found in images_in(one, depth + 1)][:MAX_FOUND]
