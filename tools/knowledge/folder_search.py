"""Searches a folder of text files by words: the WebSearch of a host that names no server.

Knows files; it must not know servers or tools. Nothing outside of the folder and nothing hidden is read, no
link is followed, and the rules of the running call are kept.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quoth.tools.call.service_types import WebHit
from quoth.tools.call.sources import may_read
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.text import one_line
from quoth.tools.words import WORD

SECONDS = 10.0
MAX_HITS = 20
TITLE, TEXT = 200, 500  # characters of a result
MAX_FILES = 5000
MAX_BYTES = 1_000_000  # of one file; a longer one is searched so far
MAX_WORDS = 32
LINES = 3  # that are shown of a file

_TITLE = re.compile(r"(?im)^#\+title:[ \t]*(\S.*)$|^(?:\*+|#+)[ \t]+(\S.*)$")


@dataclass
class _Text:
    """A file that has some of the words: how often it has each."""

    file: Path
    text: str
    counts: dict[str, int]


class FolderSearch:
    """The text files of a folder, found by their words. Raises UsageError for what is no folder."""

    def __init__(self, folder: str | Path, root: str | Path = ".") -> None:
        self._root = Path(root).resolve()
        try:
            self.folder = (self._root / Path(folder).expanduser()).resolve(strict=True)
            fine = self.folder.is_dir()
        except (OSError, RuntimeError, ValueError):
            fine = False
        if not fine:
            named = "" if "@" in str(folder) else f": {folder}"  # a mistyped address may hold a password
            raise UsageError(f"--search names no folder{named}. A server's address begins with http://.")
        self.kept = {"search": str(self.folder)}  # in the opening of a session
        self._files = Workspace(self.folder)

    @property
    def name(self) -> str:
        return self._shown(self.folder)

    async def find(self, query: str, limit: int = 10) -> Sequence[WebHit]:
        """The files in which the words stand, those with the rarer words first. Raises ToolError."""
        words = list(dict.fromkeys(WORD.findall(query.casefold())))[:MAX_WORDS]
        if not words:
            raise ToolError("There is no word in the query; letters or digits are searched for.")
        return await asyncio.to_thread(self._find, words, min(limit, MAX_HITS))

    def _find(self, words: list[str], limit: int) -> list[WebHit]:
        deadline, looked, found = time.monotonic() + SECONDS, 0, list[_Text]()
        for file in self._files.walk("."):
            looked += 1
            if looked > MAX_FILES or time.monotonic() > deadline:
                raise ToolError(
                    f"There is too much in the folder {self.name} to search it; name a smaller one."
                )
            # What is hidden, such as .env, is for no chat; of an odd name the address would not be one line.
            if file.name.startswith(".") or not str(file).isprintable():
                continue
            if may_read(file) and (text := self._text(file)) is not None:
                there = Counter(WORD.findall(f"{file.stem} {text}".casefold()))
                counts = {word: there[word] for word in words}
                if any(counts.values()):
                    found.append(_Text(file, text, counts))
        rare = {
            word: math.log(1 + looked / having)
            for word in words
            if (having := sum(1 for one in found if one.counts[word]))
        }

        def score(one: _Text) -> float:
            return sum(rare[word] * (1 + math.log(often)) for word, often in one.counts.items() if often)

        best = heapq.nlargest(limit, found, key=score)
        titles = [_title(one) for one in best]
        return [
            WebHit(title, self._shown(one.file), _lines(one.text, title, rare))
            for title, one in zip(titles, best, strict=True)
        ]

    def _text(self, file: Path) -> str | None:
        """The text of a file; None for one that is none, or cannot be read."""
        try:
            with self._files.open_read(self._files.shown(file)) as stream:
                data = stream.read(MAX_BYTES)
        except (ToolError, OSError):
            return None
        return None if b"\0" in data else data.decode("utf-8", "replace")

    def _shown(self, path: Path) -> str:
        """A path as an address: relative to the root if it is there, else absolute."""
        return path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else str(path)


def _title(one: _Text) -> str:
    """The title that a file gives itself, or its name."""
    found = _TITLE.search(one.text[:5000])
    return one_line(found[1] or found[2], TITLE) if found else one.file.name


def _lines(text: str, title: str, rare: dict[str, float]) -> str:
    """The lines of a text that have the rarest of the words, in their order; not its title once more."""

    def score(place: int) -> float:
        if lines[place].startswith("#+") or lines[place].lstrip("#* ").strip() == title:
            return 0.0
        return sum(rare.get(word, 0.0) for word in set(WORD.findall(lines[place].casefold())))

    lines = text.splitlines()
    best = heapq.nlargest(LINES, (place for place in range(len(lines)) if score(place)), key=score)
    return " … ".join(one_line(lines[place], TEXT // LINES - 3) for place in sorted(best))
