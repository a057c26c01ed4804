"""``quoth serve`` as a process on a free port of loopback, and its keys."""

from __future__ import annotations

import contextlib
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from commands import Forked, started

if TYPE_CHECKING:
    import openai

SECONDS = 60
KEYS = {"me": ("m" * 32, "ask,decide"), "chat": ("c" * 32, "ask"), "other": ("o" * 32, "ask,decide")}


@dataclass(frozen=True)
class Served:
    """A server: its address, and its process."""

    url: str
    process: Forked

    def client(self, name: str | None = "me", **more: str) -> httpx.Client:
        """A client of HTTP with a key; ``more`` are further headers."""
        own = {} if name is None else {"Authorization": f"Bearer {token(name)}"}
        return httpx.Client(base_url=self.url, headers=own | more, timeout=SECONDS)

    def openai(self, name: str = "me", **more: Any) -> openai.OpenAI:
        """A client of OpenAI's SDK with a key."""
        import openai  # here: few tests need it

        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=token(name), max_retries=0, **more)


def token(name: str) -> str:
    return KEYS[name][0]


def key_file(folder: Path) -> Path:
    """A file with three keys."""
    path = folder / "keys"
    path.touch(0o600)
    path.write_text("".join(f"{name} {word} {rights}\n" for name, (word, rights) in KEYS.items()))
    return path


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[Served]:
    """Within it ``quoth serve`` runs in a folder; SIGTERM ends it."""
    keys = key_file(folder.parent if folder.parent.is_dir() else folder)
    with started("serve", "--port", "0", "--token-file", str(keys), *options, cwd=folder) as running:
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", running.heard)):
            line = running.stderr.readline()
            assert line, running.heard
            running.heard += line
        try:
            yield Served(found[0], running.process)
        finally:
            running.process.send_signal(signal.SIGTERM)
            running.process.wait(SECONDS)


def scripted(folder: Path, *options: str) -> contextlib.AbstractContextManager[Served]:
    """The same with the replies of ``model.hy``."""
    return serving(folder, "--model", "scripted:model.hy", *options)
