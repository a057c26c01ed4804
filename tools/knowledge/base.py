"""The knowledge base of a workspace: files sources, claims, learnings and notes in Org files, and finds them.

Knows where entries stand and how files are changed while others change them too; it must not know who asks,
nor what a model is shown (shown.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from quoth.tools.call.service_types import Filed, Known, Origin
from quoth.tools.call.workspace import Workspace, change_file
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.knowledge.entries import (
    FOLDER,
    QUEUE,
    Draft,
    KnowledgeFile,
    Stored,
    add_origin,
    same_call,
    without,
)
from quoth.tools.knowledge.index import Index
from quoth.tools.storage.file_lock import hold

TURN_SECONDS = 25.0  # so long who files something waits for the others


class FileKnowledge:
    """The knowledge base in ``knowledge/`` of a workspace (KnowledgeBase). ``say`` hears sentences for the
    host, such as on a file that cannot be read: searches leave it out, and nothing is written to it."""

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
        """Sentences on what could not be read."""
        return self._index.faults

    def entries(self) -> list[tuple[str, Stored]]:
        """All entries with their files, in the order of these."""
        return [(file.path, entry) for file in self._index.files() for entry, _ in file.entries]

    def forget(self, path: str, gone: Stored) -> bool:
        """Remove an entry from its file, and the file when it was a source's and nothing else is left;
        whether it was there. Raises ToolError for one with headlines below it."""

        def change(data: bytes) -> tuple[bytes | None, bool]:
            file = self._readable(data, path)
            places = [one for one, _ in file.entries if _elsewhere(one) == _elsewhere(gone)]
            if not places:
                return data, False
            there = next((one for one in places if one.row == gone.row), places[0])
            if there.children:
                raise ToolError(
                    f"{path}:{there.row + 1}: there are headlines below {gone.name}; move them elsewhere "
                    "first, or remove it in an editor."
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
            assert filed, "what is not there is appended"
            return filed

    def _change(self, path: str, new: Draft, *, appends: bool) -> Filed | None:
        """Give the entry that is there another origin, or append it; None where neither was done."""

        def change(data: bytes) -> tuple[bytes, Filed | None]:
            there = self._readable(data, path).with_digest(new.digest)
            if there is None:
                return (new.appended(data), Filed(path, new.title, True)) if appends else (data, None)
            again = same_call(new.origin, there.origin)  # which was broken off before it was recorded
            return add_origin(data, there, new.origin), Filed(path, there.title, again)

        return change_file(self._workspace, path, change, self._say)

    def _readable(self, data: bytes, path: str) -> KnowledgeFile:
        """Raises ToolError for a file in which something cannot be read: it is left as it is."""
        file = self._index.parsed(data, path)
        if file.faults:
            raise ToolError(file.faults[0])
        return file

    def _check_place(self) -> None:
        """Raise ToolError when the folder leads out of the workspace."""
        self._workspace.resolve(FOLDER)
        self._workspace.resolve(QUEUE)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Of several that file something at once, each sees what those before it have filed."""
        try:
            with hold(f"knowledge of {self._workspace.root}", "", TURN_SECONDS):
                yield
        except UsageError as error:
            raise ToolError(str(error)) from None


def _elsewhere(entry: Stored) -> Stored:
    """An entry but for its place."""
    return replace(entry, row=0, children=False)
