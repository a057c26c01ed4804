"""The entries of the knowledge base in memory, read again only where files have changed, and their search.

Knows the workspace and how entries are read; it must not know how they are written.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from typing import Final

from quoth.tools.call.service_types import Known
from quoth.tools.call.workspace import Workspace, read_whole
from quoth.tools.errors import ToolError
from quoth.tools.knowledge.entries import FOLDER, KnowledgeFile, Section, Stored
from quoth.tools.words import STOP_WORDS, WORD, stem

MOST_CHARS: Final = 10_000  # of a query
MOST_WORDS: Final = 64  # of a query
FEW_WORDS: Final = 4
PASSAGE_CHARS: Final = 500  # of an entry in a result
LEAST_PART: Final = 0.3  # of the best score, below which nothing is a match

Version = tuple[int, ...]


class Index:
    """All entries, in memory. ``say`` hears of each file that cannot be read, once for as long as it is."""

    def __init__(self, workspace: Workspace, say: Callable[[str], None] = lambda text: None) -> None:
        self._workspace, self._say = workspace, say
        self._files: dict[str, tuple[Version, KnowledgeFile]] = {}
        self._lock = threading.Lock()
        self.faults: list[str] = []

    def files(self) -> list[KnowledgeFile]:
        """The files as they are now, in the order of their paths."""
        with self._lock:
            found, faults, now = dict(self._found()), [], {}
            for path, version in sorted(found.items()):
                before = self._files.get(path)
                if before is None or before[0] != version:
                    before = version, self._read(path, before[1] if before else None)
                now[path] = before
                faults += before[1].faults
            self._files = now
            new = [fault for fault in faults if fault not in self.faults]
            self.faults = faults
            files = [file for _, file in now.values()]
        for fault in new:
            self._say(fault)
        return files

    def parsed(self, data: bytes, path: str) -> KnowledgeFile:
        """A file with this content, of which only what is new is read."""
        known = self._files.get(path)
        return KnowledgeFile(data, path, known[1] if known else None)

    def _read(self, path: str, before: KnowledgeFile | None) -> KnowledgeFile:
        try:
            return KnowledgeFile(read_whole(self._workspace, path), path, before)
        except ToolError as error:
            file = KnowledgeFile(b"", path)
            file.faults.append(str(error))
            return file

    def _found(self) -> Iterator[tuple[str, Version]]:
        """The Org files of the folder, by their paths in the workspace, and what differs when one was
        changed. A link is followed as far as the workspace goes."""
        folders, seen = [FOLDER], set()
        while folders:
            shown = folders.pop()
            try:
                real = self._workspace.resolve(shown)
                inside = [*os.scandir(real)] if real not in seen else []
            except (ToolError, OSError):
                continue  # there is none, or it leads elsewhere
            seen.add(real)
            for one in inside:
                if one.name[0] == ".":
                    continue
                path = f"{shown}/{one.name}"
                try:
                    if one.is_dir():
                        folders.append(path)
                    elif one.name.endswith(".org"):
                        if one.is_symlink():
                            self._workspace.resolve(path)
                        now = one.stat()
                        yield path, (now.st_mtime_ns, now.st_size, now.st_ino)
                except (ToolError, OSError):
                    continue

    def look_up(self, query: str, limit: int) -> list[Known]:
        """The entries that match the words best: a rare word counts more than one that many entries have, a
        word of the title twice."""
        said = dict.fromkeys(WORD.findall(query[:MOST_CHARS].lower()))
        wanted = {stem(word) for word in said if word not in STOP_WORDS}
        wanted = set(sorted(wanted)[:MOST_WORDS])
        if not wanted:
            return []
        needed = 1 if len(wanted) <= FEW_WORDS else 2  # one word of a long message says little
        every, matches, having = 0, [], dict.fromkeys(wanted, 0)
        for file in self.files():
            every += len(file.entries)
            for entry, section in file.entries:
                common = wanted & section.stems if not wanted.isdisjoint(section.stems) else set()
                if len(common) >= needed or not section.title_stems.isdisjoint(common):
                    matches.append((entry, section, file.path, common))
                    for word in common:
                        having[word] += 1
        weights = {word: math.log(1 + every / count) for word, count in having.items() if count}
        scored = [(_score(one, common, weights), path, stored) for stored, one, path, common in matches]
        scored.sort(key=lambda one: (-one[0], one[1], one[2].row))
        return [
            _known(stored, path, score, wanted)
            for score, path, stored in scored[: max(limit, 0)]
            if score >= LEAST_PART * scored[0][0]
        ]


def _score(section: Section, common: set[str], weights: dict[str, float]) -> float:
    found = sum(weights[word] * (2 if word in section.title_stems else 1) for word in common)
    return found / (1 + math.log1p(len(section.stems)) / 10)  # a long text has many words of anything


def _known(stored: Stored, path: str, score: float, wanted: set[str]) -> Known:
    of = stored.origin
    text = passage(stored.text, wanted)
    return Known(stored.kind, stored.title, text, path, stored.row + 1, of.user, of.at, round(score, 3))


def passage(text: str, wanted: set[str]) -> str:
    """The part of a text around the first word that is wanted, at most PASSAGE_CHARS."""
    if len(text) <= PASSAGE_CHARS:
        return text
    places = (one.start() for one in WORD.finditer(text) if stem(one[0]) in wanted)
    first = max(0, min(next(places, 0) - PASSAGE_CHARS // 4, len(text) - PASSAGE_CHARS + 1))
    part = text[first : first + PASSAGE_CHARS - 2]
    return f"{'…' if first else ''}{part.strip()}{'…' if first + len(part) < len(text) else ''}"
