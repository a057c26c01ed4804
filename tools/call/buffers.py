"""The port of an editor's buffers, which come before the disk, and a file as an editor has it.

The Workspace asks them after its own checks of a path; without an editor it uses the disk alone.
"""

from __future__ import annotations

import codecs
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Protocol

MARK = codecs.BOM_UTF8


class Buffers(Protocol):
    """The files of an editor, by their real paths. The methods block, and raise OSError with the reason."""

    def read(self, real: Path, *, latest: bool = False) -> str | None:
        """The text of a file in the editor; None if the editor has no such file. Only the ``latest`` text is
        certainly not one that was read earlier in the same call."""
        ...

    def writes(self, real: Path) -> bool:
        """Whether changes of this file go through the editor."""
        ...

    def write(self, real: Path, text: str) -> None:
        """Replace the text of a file in the editor, and save it; a missing file is created."""
        ...


class Buffer(NamedTuple):
    """A file in an editor. Editors show a text without the byte order mark and carriage returns of the disk:
    ``data`` has them, and ``mark`` and ``returns`` are whether the editor adds them when it saves. ``saved``
    is whether the disk has the same content."""

    data: bytes
    saved: bool = False
    mark: bool = False
    returns: bool = False

    def as_saved(self, text: str) -> bytes:
        """The content of the disk after the editor has saved a text."""
        data = text.encode("utf-8", "surrogatepass")
        if self.returns:
            data = data.replace(b"\n", b"\r\n")
        return MARK + data if self.mark else data

    def as_edited(self, data: bytes) -> str:
        """The text to give to the editor for a content of the disk, which is UTF-8."""
        if self.mark:
            data = data.removeprefix(MARK)
        return (data.replace(b"\r\n", b"\n") if self.returns else data).decode()


def buffer_of(text: str, disk: bytes | None) -> Buffer:
    """The buffer with this text, of a file with the content ``disk``; None for a file that is not there."""
    if disk is None:
        return Buffer(Buffer(b"").as_saved(text))
    returns = "\r" not in text and b"\r\n" in disk and disk.count(b"\n") == disk.count(b"\r\n")
    ends = Buffer(b"", mark=disk.startswith(MARK) and not text.startswith("\ufeff"), returns=returns)
    data = ends.as_saved(text)
    return ends._replace(data=data, saved=data == disk)


def is_behind(real: Path, buffer: Buffer, both: dict[Path, bytes]) -> bool:
    """Whether only the disk has changed since it and the buffer had the same content: a program wrote it, and
    the editor has not read it again. ``both`` has the digest of the last content that both had."""
    digest = sha256(buffer.data).digest()
    if buffer.saved:
        both[real] = digest
    return not buffer.saved and both.get(real) == digest


def is_text(data: bytes) -> bool:
    """Whether a content is text that an editor and the protocol keep unchanged."""
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
