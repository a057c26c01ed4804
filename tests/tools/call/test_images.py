"""Images as values: told from texts by their first bytes, with their size, which may be a lie."""

from __future__ import annotations

import struct

import pytest
from pictures import gif, jpeg, png, webp

from quoth.tools.call.images import MAX_FOUND, images_in, is_image, media_of, size_of

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
