"""The files of a task, and the images that its calls give: the model is shown a text as data, and an image as
it is.

Knows files, and where texts are kept, for a resumed run has to show the same; it must not know models or the
loop.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from quoth.neuro.backends.messages import Image, sendable
from quoth.tools.call.images import MAX_BYTES as IMAGE_BYTES
from quoth.tools.call.images import images_in, media_of
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.history.long_results import StorePages, Texts
from quoth.tools.lisp.printer import print_string
from quoth.tools.text import short
from quoth.tools.visible import visible

MOST_FILES = 20
TEXT_BYTES = 200_000
NAME = 100  # characters of the name of an image that a call gave
Given = str | Path | tuple[str, bytes]  # a path, or a name with its content


def attached(given: Iterable[Given], pages: StorePages, workspace: Workspace) -> list[dict[str, str]]:
    """The files as the stimulus of a run records them: a text whole, of an image the id under which it is
    kept. Raises UsageError, also for what no tool of the ``workspace`` may read, wherever it is."""
    files = [given] if isinstance(given, str | Path) else list(given)
    if len(files) > MOST_FILES:
        raise UsageError(f"A task takes at most {MOST_FILES} files, not {len(files)}.")
    paths = [Path(file) for file in files if not isinstance(file, tuple)]
    if hidden := next(filter(workspace.is_secret, paths), None):
        raise UsageError(f"{hidden} is a secret of quoth's, which no model is shown.")
    return [_attached(*_read(file), pages) for file in files]


def _read(given: Given) -> tuple[Path, bytes, int]:
    """The path of a file, its first bytes and its size."""
    if isinstance(given, tuple):
        return Path(given[0]), given[1], len(given[1])
    path = Path(given)
    if path.exists() and not path.is_file():  # reading a pipe might never end
        raise UsageError(f"{path} is no file.")
    try:
        with path.open("rb") as file:
            data = file.read(IMAGE_BYTES + 1)
            size = max(len(data), path.stat().st_size)  # what is no file on a disk says 0
    except OSError as error:
        raise UsageError(f"The file {path} cannot be read: {error.strerror}.") from None
    return path, data, size


def _attached(path: Path, data: bytes, size: int, pages: StorePages) -> dict[str, str]:
    if media := media_of(data):
        if len(data) > IMAGE_BYTES:
            raise UsageError(f"The image {path} has {size:,} bytes; a model takes {IMAGE_BYTES:,}.")
        if not (id := pages.keep(base64.b64encode(data).decode())):
            raise UsageError(f"The image {path} cannot be kept: the store of the workspace is full.")
        return {"name": path.name, "media": media, "id": id}
    try:
        if b"\0" in data:
            raise ValueError
        text = data.decode() if size <= TEXT_BYTES else ""
    except ValueError:
        raise UsageError(
            f"The file {path} is neither text in UTF-8 nor an image (PNG, JPEG, GIF or WebP)."
        ) from None
    if size > TEXT_BYTES:
        raise UsageError(
            f"The file {path} has {size:,} bytes, and a task takes {TEXT_BYTES:,} of a text; "
            "in the workspace the model can read it in parts."
        )
    return {"name": path.name, "text": text}


def images_of(files: Sequence[Mapping[str, Any]], pages: Texts | None) -> tuple[Image, ...]:
    """The images among recorded files; without ``pages`` only their names."""
    return tuple(image_of(one, pages) for one in files if "media" in one)


def image_of(recorded: Mapping[str, Any], pages: Texts | None) -> Image:
    """A recorded image with what is sent of it, as long as that is kept."""
    image = Image(recorded)
    if isinstance(pages, StorePages):
        with contextlib.suppress(ToolError, ValueError):
            data = pages.text(image["id"])
            if media_of(base64.b64decode(data[:64])) == image["media"]:  # an id may be anybody's words
                image.data = data
    return image


def result_images(values: Iterable[Any], pages: Texts | None) -> list[tuple[str, str, str, list[Image]]]:
    """The message that shows a model the images among the values of its calls; none without any."""
    found = {one["image"]: one for value in values for one in images_in(value)}
    images = [
        image_of(
            {
                "name": sendable(short(visible(one["name"]), NAME)),  # it may be anybody's words
                "media": one["type"],
                "id": one["image"],
                "size": f"{one['width']}x{one['height']}",
            },
            pages,
        )
        for one in found.values()
    ]
    if not images:
        return []
    names = ", ".join(print_string(image["name"]) for image in images)
    return [("user", f"Shown as a result: {names}", "", images)]
