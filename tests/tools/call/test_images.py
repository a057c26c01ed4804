"""Images as values: told from texts by their first bytes, with their size, which may be a lie."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from pictures import gif, jpeg, png, webp
from words import complaint, shipped, tool

from quoth.tools.call.context import ToolContext
from quoth.tools.call.images import MAX_FOUND, image_value, images_in, is_image, media_of, size_of
from quoth.tools.errors import ToolError

LOSSLESS = webp(b"VP8L", b"\x2f" + struct.pack("<I", 639 | 479 << 14))
LOSSY = webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<2H", 640, 480))
EXTENDED = webp(b"VP8X", b"\0\0\0\0\x7f\x02\0\xdf\x01\0")


@pytest.mark.parametrize(
    ("data", "media"),
    [
        (png(640, 480), "image/png"),
        (gif(640, 480), "image/gif"),
        (jpeg(640, 480), "image/jpeg"),
        (jpeg(640, 480, before=b""), "image/jpeg"),
        (LOSSLESS, "image/webp"),
        (LOSSY, "image/webp"),
        (EXTENDED, "image/webp"),
    ],
)
def test_an_image_tells_its_kind_and_size_and_no_part_of_it_does(data: bytes, media: str) -> None:
    assert (media_of(data), size_of(data), is_image(data)) == (media, (640, 480), True)
    for end in range(len(data)):
        assert size_of(data[:end]) in (None, (640, 480))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GIF89a is what such a file begins with.",
        b"RIFF\0\0\0\0WAVE",
        png(0, 5),
        png(70_000, 1)[:40],
        png(4, 4).replace(b"IHDR", b"IEND"),
        jpeg(0, 4),
        b"\xff\xd8" + b"\xff\xe0\0\0" * 9,
        b"\xff\xd8" + b"\xff" * 100_000,
        b"\xff\xd8" + b"\xff\xe0\0\2" * 100_000,
        webp(b"ALPH", b"\0" * 40),
    ],
    ids=range(11),
)
def test_what_is_no_image_or_a_broken_one_has_no_size(data: bytes) -> None:
    assert size_of(data) is None or not is_image(data)


def test_images_are_found_in_a_value() -> None:
    one = {"image": "abcdefgh", "name": "a.png", "type": "image/png", "width": 4, "height": 3}
    assert images_in(one) == [one]
    assert images_in({"url": "x", "pages": [one, 3, "text"]}) == [one, *[]]
    assert len(images_in([one] * 99)) == MAX_FOUND
    assert images_in([[[[one]]]]) == []
    for wrong in ({"image": ""}, {"image": 3}, {"type": "image/svg"}, {"name": None}, {"width": "4\nNo"}):
        assert images_in(one | wrong) == []


LARGEST = 65_535
EDGES = [
    (png(1, 1), (1, 1)),
    (gif(LARGEST, 1), (LARGEST, 1)),
    (gif(1, LARGEST), (1, LARGEST)),
    (gif(0, 1), None),
    (gif(1, 0), None),
    (png(2, 1)[:16] + struct.pack(">2I", LARGEST, LARGEST), (LARGEST, LARGEST)),
    (png(2, 1)[:16] + struct.pack(">2I", LARGEST + 1, 1), None),
    (png(2, 1)[:16] + struct.pack(">2I", 1, LARGEST + 1), None),
    (b"\xff\xd8\xff\xff\xff" + jpeg(3, 2, before=b"")[2:], (3, 2)),  # filled up between segments
    (b"\xff\xd8\xff\xe0\0\2" + jpeg(3, 2, before=b"")[2:], (3, 2)),
    (b"\xff\xd8\xff\xe0\0\1" + jpeg(3, 2, before=b"")[2:], None),
    (b"\xff\xd8\xfe\xe0\0\2" + jpeg(3, 2, before=b"")[2:], None),
    *((b"\xff\xd8\xff" + bytes([kind]) + jpeg(3, 2, before=b"")[4:], (3, 2)) for kind in (0xC0, 0xC1, 0xCF)),
    *((b"\xff\xd8\xff" + bytes([kind]) + jpeg(3, 2, before=b"")[4:], None) for kind in (0xBF, 0xC4, 0xD0)),
    (webp(b"VP8X", b"\0\0\0\0\x7f\x02\1\xdf\x01\0\1"), None),  # 66,176 wide
    (webp(b"VP8X", b"\0\0\0\0\x7f\x02\0\xdf\x01\0\1"), (640, 480)),
    (webp(b"VP8X", b"\0\0\0\0\x7f\x02\0\xdf\x01"), None),
    (webp(b"VP8L", b"\x2f" + struct.pack("<I", 0x3FFF | 0x3FFF << 14 | 1 << 29)), (16_384, 16_384)),
    (webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<2H", 0xFFFF, 0xC001)), (16_383, 1)),
]


@pytest.mark.parametrize(("data", "size"), EDGES)
def test_the_size_of_an_image_has_bounds(data: bytes, size: tuple[int, int] | None) -> None:
    assert size_of(data) == size


@pytest.mark.parametrize(("data", "is_one"), [(b"GIF89a", False), (b"GIF89a\0", True), (b"GIF89a\xff", True)])
def test_a_text_that_begins_like_an_image_is_none(data: bytes, is_one: bool) -> None:
    assert is_image(data) == is_one


class Pages:
    """Keeps what it is given, or nothing."""

    def __init__(self, id: str) -> None:
        self.id = id

    def keep(self, text: str) -> str:
        assert text.startswith("iVBORw0KGgo")
        return self.id


@pytest.mark.parametrize(
    ("pages", "image"),
    [
        (None, {"image": ""}),
        (Pages("abcdefgh"), {"image": "abcdefgh"}),
        (Pages(""), "The image a.png cannot be kept:"),
    ],
)
def test_an_image_is_kept_and_told_by_its_size(pages: Any, image: Any, tmp_path: Path) -> None:
    said: list[Any] = []

    def body(ctx: ToolContext) -> Any:
        said.append(image_value(ctx, png(640, 480), "a.png"))

    result = shipped(tmp_path, tool("look", body), given={"pages": pages}).pass_through("(look)")
    if isinstance(image, str):
        assert result.message.startswith(image)
    else:
        assert said == [{**image, "name": "a.png", "type": "image/png", "width": 640, "height": 480}]
        assert result.message == "An image, 640x480."


def test_an_image_may_be_just_so_large(monkeypatch: pytest.MonkeyPatch) -> None:
    ctx: Any = type("Context", (), {"pages": None, "say": lambda self, text: None})()
    data = png(4, 4)
    monkeypatch.setattr("quoth.tools.call.images.MAX_BYTES", len(data))
    assert image_value(ctx, data, "a.png")["width"] == 4
    monkeypatch.setattr("quoth.tools.call.images.MAX_BYTES", len(data) - 1)
    assert complaint(ToolError, lambda: image_value(ctx, data, "a.png")).startswith(
        "a.png is an image of more"
    )
    assert complaint(ToolError, lambda: image_value(ctx, png(0, 4), "a.png")) == (
        "a.png looks like an image (image/png), but its header is broken."
    )


@pytest.mark.parametrize(
    ("change", "found"),
    [({}, 1), ({"image": ""}, 0), ({"type": "text/plain"}, 0), ({"width": "4"}, 0), ({"name": 4}, 0)],
)
def test_only_a_sound_value_is_an_image(change: dict[str, Any], found: int) -> None:
    one = {"image": "abcdefgh", "name": "a.png", "type": "image/png", "width": 4, "height": 3} | change
    assert len(images_in(one)) == found
    assert [len(images_in(value)) for value in ([[[one]]], [[{"a": one}]], [[[[one]]]])] == [found, found, 0]
