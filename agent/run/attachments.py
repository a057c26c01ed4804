"""The files of a task: the model is shown a text as data, and an image as it is.

Knows files, and where texts are kept, for a resumed run has to show the same; it must not know models or the
loop.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from quoth.neuro.backends.messages import Image
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.history.long_results import StorePages

MOST_FILES = 20
TEXT_BYTES = 200_000
IMAGE_BYTES = 5_000_000  # what the providers take of one
IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def attached(paths: Iterable[str | Path], pages: StorePages, workspace: Workspace) -> list[dict[str, str]]:
    """The files as the stimulus of a run records them: a text whole, of an image the id under which it is
    kept. Raises UsageError, also for what no tool of the ``workspace`` may read, wherever it is."""
    paths = [paths] if isinstance(paths, str | Path) else list(paths)
    if len(paths) > MOST_FILES:
        raise UsageError(f"A task takes at most {MOST_FILES} files, not {len(paths)}.")
    if hidden := next((path for path in paths if workspace.is_secret(Path(path))), None):
        raise UsageError(f"{hidden} is a secret of quoth's, which no model is shown.")
    return [_attached(Path(path), pages) for path in paths]


def _attached(path: Path, pages: StorePages) -> dict[str, str]:
    if path.exists() and not path.is_file():  # reading a pipe might never end
        raise UsageError(f"{path} is no file.")
    try:
        with path.open("rb") as file:
            data = file.read(IMAGE_BYTES + 1)
            size = max(len(data), path.stat().st_size)  # what is no file on a disk says 0
    except OSError as error:
        raise UsageError(f"The file {path} cannot be read: {error.strerror}.") from None
    if media := _media(data):
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


def _media(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media for begin, media in IMAGES.items() if data.startswith(begin)), "")


def texts_of(files: Sequence[Mapping[str, str]]) -> list[str]:
    """What the model is shown of the texts among recorded files."""
    return [f"The file {one['name']}:\n{one['text']}" for one in files if "text" in one]


def images_of(files: Sequence[Mapping[str, str]], pages: StorePages | None) -> tuple[Image, ...]:
    """The images among recorded files; without ``pages`` only their names."""
    return tuple(image_of(one, pages) for one in files if "media" in one)


def image_of(recorded: Mapping[str, Any], pages: StorePages | None) -> Image:
    """A recorded image with what is sent of it, as long as that is kept."""
    image = Image(recorded)
    if pages is not None:
        try:
            image.data = pages.text(image["id"])
        except ToolError:
            image.data = ""
    return image
