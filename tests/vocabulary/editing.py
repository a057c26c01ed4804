"""An editor with unsaved texts, as the buffers of a workspace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


class Editing:
    """An editor with unsaved ``texts`` by path; it saves what is written, as ``formats`` changes it."""

    def __init__(self, **texts: str) -> None:
        self.texts = {name.replace("_", "."): text for name, text in texts.items()}
        self.asked: list[str] = []
        self.read_only = False
        self.formats: Callable[[str], str] = lambda text: text

    def read(self, real: Path, *, latest: bool = False) -> str | None:
        self.asked.append(f"read {real.name}")
        if real.name in self.texts:
            return self.texts[real.name]
        return (
            real.read_text(encoding="utf-8-sig") if real.exists() else None
        )  # with \n for \r\n, as editors do

    def writes(self, real: Path) -> bool:
        return not self.read_only

    def write(self, real: Path, text: str) -> None:
        self.asked.append(f"write {real.name}")
        old = real.read_bytes() if real.exists() else b""
        saved = self.formats(text).encode()
        if b"\r\n" in old:
            saved = saved.replace(b"\n", b"\r\n")
        real.write_bytes(b"\xef\xbb\xbf" * old.startswith(b"\xef\xbb\xbf") + saved)
        self.texts.pop(real.name, None)
