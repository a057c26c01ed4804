"""The knowledge base of a workspace: stores sources, claims, learnings and notes in Org files, and finds
them.

Other programs may change the files at the same time. The text for a model is made in shown.py.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from quoth.tools.call.service_types import Filed, Known, Origin
from quoth.tools.call.workspace import Workspace, change_file, read_whole
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.knowledge.entries import (
    FOLDER,
    QUEUE,
    Draft,
    EntrySection,
    KnowledgeFile,
    Stored,
    add_origin,
    same_call,
    without,
)
from quoth.tools.storage.file_lock import hold
from quoth.tools.words import STOP_WORDS, WORD, stem

# The entries of the knowledge base in memory, and their search. Only changed files are read again.


MOST_CHARS: Final = 10_000  # of a query
MOST_WORDS: Final = 64  # of a query
FEW_WORDS: Final = 4
PASSAGE_CHARS: Final = 500  # characters of an entry in a result
LEAST_PART: Final = 0.3  # minimum score of a match, relative to the best score

Version = tuple[int, ...]


class Index:
    """All entries, in memory. ``say`` is called with a sentence for each file that cannot be read, once until
    it can be read again."""

    def __init__(self, workspace: Workspace, say: Callable[[str], None] = lambda text: None) -> None:
        self._workspace, self._say = workspace, say
        self._files: dict[str, tuple[Version, KnowledgeFile]] = {}
        self._lock = threading.Lock()
        self.faults: list[str] = []

    def files(self) -> list[KnowledgeFile]:
        """The files as they are now, ordered by path."""
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
        """The file with this content; only changed parts are parsed."""
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
        """The Org files of the folder: their paths in the workspace, and a version that differs after a
        change. A link is followed only inside the workspace."""
        folders, seen = [FOLDER], set()
        while folders:
            shown = folders.pop()
            try:
                real = self._workspace.resolve(shown)
                inside = [*os.scandir(real)] if real not in seen else []
            except (ToolError, OSError):
                continue  # missing, or a link out of the workspace
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
        """The entries that match the words best. A rare word counts more than a frequent one; a word of the
        title counts twice."""
        said = dict.fromkeys(WORD.findall(query[:MOST_CHARS].lower()))
        wanted = {stem(word) for word in said if word not in STOP_WORDS}
        wanted = set(sorted(wanted)[:MOST_WORDS])
        if not wanted:
            return []
        needed = 1 if len(wanted) <= FEW_WORDS else 2  # a single word of a long message is not enough
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


def _score(section: EntrySection, common: set[str], weights: dict[str, float]) -> float:
    found = sum(weights[word] * (2 if word in section.title_stems else 1) for word in common)
    return found / (1 + math.log1p(len(section.stems)) / 10)  # a long text matches many words by chance


def _known(stored: Stored, path: str, score: float, wanted: set[str]) -> Known:
    of = stored.origin
    text = passage(stored.text, wanted)
    return Known(stored.kind, stored.title, text, path, stored.row + 1, of.user, of.at, round(score, 3))


def passage(text: str, wanted: set[str]) -> str:
    """The part of a text around the first of the wanted words, at most PASSAGE_CHARS characters."""
    if len(text) <= PASSAGE_CHARS:
        return text
    places = (one.start() for one in WORD.finditer(text) if stem(one[0]) in wanted)
    first = max(0, min(next(places, 0) - PASSAGE_CHARS // 4, len(text) - PASSAGE_CHARS + 1))
    part = text[first : first + PASSAGE_CHARS - 2]
    return f"{'…' if first else ''}{part.strip()}{'…' if first + len(part) < len(text) else ''}"


TURN_SECONDS = 25.0  # how long to wait for other processes that add entries


class FileKnowledge:
    """The knowledge base in ``knowledge/`` of a workspace (KnowledgeBase). ``say`` is called with sentences
    for the host, such as about a file that cannot be read: searches skip it, and it is never changed."""

    def __init__(self, workspace: Workspace, say: Callable[[str], None] = lambda text: None) -> None:
        self._workspace, self._say = workspace, say
        self._index = Index(workspace, say)

    async def add_source(
        self, title: str, text: str, origin: Origin, *, addresses: Sequence[str] = ()
    ) -> Filed:
        return await self._add(Draft("source", title, text, origin, addresses=tuple(addresses)))

    async def add_claim(self, text: str, origin: Origin) -> Filed:
        return await self._add(Draft("claim", "", text, origin))

    async def add_learning(self, category: str, text: str, origin: Origin) -> Filed:
        return await self._add(Draft("learning", "", text, origin, category))

    async def add_note(self, title: str, text: str, origin: Origin) -> Filed:
        return await self._add(Draft("note", title, text, origin))

    async def look_up(self, query: str, limit: int = 5) -> Sequence[Known]:
        return await asyncio.to_thread(self._index.look_up, query, limit)

    # For people

    @property
    def faults(self) -> Sequence[str]:
        """Sentences about headlines and files that could not be read."""
        return self._index.faults

    def entries(self) -> list[tuple[str, Stored]]:
        """All entries with the paths of their files, ordered by path."""
        return [(file.path, entry) for file in self._index.files() for entry, _ in file.entries]

    def forget(self, path: str, gone: Stored) -> bool:
        """Remove an entry from its file, and a source's file if nothing else is left in it. Returns whether
        the entry existed. Raises ToolError if there are headlines below it."""

        def change(data: bytes) -> tuple[bytes | None, bool]:
            file = self._readable(data, path)
            places = [one for one, _ in file.entries if _elsewhere(one) == _elsewhere(gone)]
            if not places:
                return data, False
            there = next((one for one in places if one.row == gone.row), places[0])
            if there.children:
                raise ToolError(
                    f"{path}:{there.row + 1}: there are headlines below {gone.name}. Move them elsewhere "
                    "first, or remove the entry in an editor."
                )
            left = without(data, there)
            alone = path.startswith(f"{QUEUE}/") and not KnowledgeFile(left, path).entries
            return None if alone else left, True

        with self._alone():
            return change_file(self._workspace, path, change, self._say)

    # Writing

    async def _add(self, new: Draft) -> Filed:
        return await asyncio.to_thread(self._filed, new)

    def _filed(self, new: Draft) -> Filed:
        self._check_place()
        with self._alone():
            for file in self._index.files():
                there = file.with_digest(new.digest)
                if there and (filed := self._change(file.path, new, appends=False)):
                    return filed
            filed = self._change(new.path, new, appends=True)
            assert filed, "a missing entry is appended"
            return filed

    def _change(self, path: str, new: Draft, *, appends: bool) -> Filed | None:
        """Add another origin to the existing entry, or append the entry. None if neither was done."""

        def change(data: bytes) -> tuple[bytes, Filed | None]:
            there = self._readable(data, path).with_digest(new.digest)
            if there is None:
                return (new.appended(data), Filed(path, new.title, True)) if appends else (data, None)
            again = same_call(new.origin, there.origin)  # the call was interrupted before it was recorded
            return add_origin(data, there, new.origin), Filed(path, there.title, again)

        return change_file(self._workspace, path, change, self._say)

    def _readable(self, data: bytes, path: str) -> KnowledgeFile:
        """The parsed file. Raises ToolError if a part of it cannot be read; such a file is not changed."""
        file = self._index.parsed(data, path)
        if file.faults:
            raise ToolError(file.faults[0])
        return file

    def _check_place(self) -> None:
        """Raise ToolError if the folder is a link out of the workspace."""
        self._workspace.resolve(FOLDER)
        self._workspace.resolve(QUEUE)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Holds the lock of the knowledge base, so that each writer sees the entries of the writers before
        it."""
        try:
            with hold(f"knowledge of {self._workspace.root}", "", TURN_SECONDS):
                yield
        except UsageError as error:
            raise ToolError(str(error)) from None


def _elsewhere(entry: Stored) -> Stored:
    """An entry without its position, for comparisons."""
    return replace(entry, row=0, children=False)
