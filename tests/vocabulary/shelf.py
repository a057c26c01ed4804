"""A knowledge base in a folder, and what ann and ben put into it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from quoth.tools.call.service_types import Filed, Known, Origin
from quoth.tools.call.workspace import Workspace
from quoth.tools.knowledge.base import FileKnowledge
from quoth.tools.knowledge.entries import Stored

ANN = Origin("ann", "2026-11-23T09:00:00+00:00", "7", "s1", "c1")
BEN = Origin("ben", "2026-11-24T09:00:00+00:00", "8", "s2", "c2")


class Shelf:
    """A knowledge base with words to fill and read it. ``heard`` is what it told its host."""

    def __init__(self, root: Path) -> None:
        self.root, self.heard = root, list[str]()
        self.base = FileKnowledge(Workspace(root), self.heard.append)

    def source(self, title: str, text: str, origin: Origin = ANN, addresses: Iterable[str] = ()) -> Filed:
        return asyncio.run(self.base.add_source(title, text, origin, addresses=[*addresses]))

    def claim(self, text: str, origin: Origin = ANN) -> Filed:
        return asyncio.run(self.base.add_claim(text, origin))

    def learning(self, text: str, origin: Origin = ANN, category: str = "factual") -> Filed:
        return asyncio.run(self.base.add_learning(category, text, origin))

    def note(self, title: str, text: str, origin: Origin = ANN) -> Filed:
        return asyncio.run(self.base.add_note(title, text, origin))

    def found(self, query: str, limit: int = 5) -> list[Known]:
        return [*asyncio.run(self.base.look_up(query, limit))]

    @property
    def entries(self) -> list[Stored]:
        return [entry for _, entry in self.base.entries()]

    @property
    def only(self) -> Stored:
        (entry,) = self.entries
        return entry

    def read(self, path: str) -> str:
        return (self.root / path).read_bytes().decode()

    def write(self, path: str, text: str | bytes) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)

    def files(self) -> list[str]:
        return sorted(str(one.relative_to(self.root)) for one in self.root.rglob("*") if one.is_file())
