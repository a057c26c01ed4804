"""The log of one server: its stderr, and what it prints to stdout beside messages. Bounded, without the
values of the environment and the headers that the server was given."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from quoth.tools.storage.paths import private_folder, state_dir

MAX_BYTES = 500_000  # of each of two files
LONGEST_LINE = 8_000  # bytes; a longer line is written in pieces
SHORTEST_SECRET = 6  # characters; a shorter value is found in ordinary words


def log_path(name: str) -> Path:
    """The log of the server ``name``; an older part is beside it, named ``NAME.log.1``."""
    return state_dir() / "mcp" / f"{name}.log"


class ServerLog:
    """Appends lines. A log that cannot be written stops no server."""

    def __init__(self, path: Path, secrets: Iterable[str] = ()) -> None:
        self._path = path
        found = (secret.encode() for secret in secrets if len(secret) >= SHORTEST_SECRET)
        self._secrets = sorted(found, key=len, reverse=True)
        self._begun = b""  # the line that has not ended yet

    def feed(self, chunk: bytes) -> None:
        """Add output of the server; its lines are written once they end, or are too long."""
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        if len(self._begun) > LONGEST_LINE:
            lines, self._begun = [*lines, self._begun], b""
        self.write(*lines)

    def end(self) -> None:
        """Write the last line, even if it has not ended."""
        if self._begun:
            self.write(self._begun)
            self._begun = b""

    def write(self, *lines: bytes) -> None:
        """Write whole lines."""
        if not lines:
            return
        text = b"".join(line[:LONGEST_LINE] + b"\n" for line in lines)
        for secret in self._secrets:
            text = text.replace(secret, b"[secret]")
        with contextlib.suppress(OSError):
            self._append(text[-MAX_BYTES:])

    def _append(self, text: bytes) -> None:
        private_folder(self._path.parent)
        with contextlib.suppress(FileNotFoundError):
            if self._path.stat().st_size + len(text) > MAX_BYTES:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.write(file, text)
        finally:
            os.close(file)
