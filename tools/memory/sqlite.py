"""``SqliteMemory``: memory blocks in the SQLite file of a workspace. Permissions are checked in
operations.py; the search is in search.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, TypeVar

from quoth.tools.call.service_types import (
    Block,
    BlockKind,
    SearchDomain,
    SearchHit,
    SearchOptions,
    SearchScope,
)
from quoth.tools.call.services import Embedder
from quoth.tools.errors import UsageError
from quoth.tools.memory.blocks import BlockMemory
from quoth.tools.memory.stored import Blocks, Delta
from quoth.tools.storage.database import Statement, Store
from quoth.tools.text import excerpt

T = TypeVar("T")

# The column ``size`` is the limit, and ``writer`` is Block.by.
GET = """
    SELECT id, label, text, kind, permission, description, size, version, created, updated, writer FROM blocks
    WHERE agent = ?"""
ADD = """
    INSERT INTO blocks (label, text, kind, permission, description, size, version, created, updated, writer,
    agent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
CHANGE_TEXT = "UPDATE blocks SET text = ?, version = ?, updated = ?, writer = ? WHERE id = ?"
CHANGE_REST = "UPDATE blocks SET kind = ?, permission = ?, description = ?, size = ? WHERE id = ?"
SHARED = """
    SELECT blocks.agent, block_shares.permission, label, text, kind, blocks.permission, description, size,
    version, created, updated, writer FROM block_shares JOIN blocks ON blocks.id = block
    WHERE block_shares.agent = ?"""


class SqliteMemory(BlockMemory):
    """MemoryStore, Search and SharedBlocks of one agent in the store of a workspace. Without an ``embedder``,
    only words are searched. ``older`` returns the embedder of a model used before."""

    def __init__(
        self,
        store: Callable[[], Store],
        agent_id: str,
        *,
        embedder: Embedder | None = None,
        older: Callable[[str], Embedder | None] = lambda name: None,
        **options: Any,
    ) -> None:
        super().__init__(agent_id, **options)
        self.store = store
        self.embedder = embedder
        self.older = older

    async def _atomically(self, work: Callable[[Blocks], T]) -> T:
        with self.store().transaction() as run:
            return work(SqliteBlocks(run, self.agent_id))

    async def _reading(self, work: Callable[[Blocks], T]) -> T:
        return work(SqliteBlocks(self.store().execute, self.agent_id))

    async def count_blocks(self, kind: BlockKind) -> int:
        sql, which = "SELECT count(*) FROM blocks WHERE agent = ?", " AND kind = ? AND kind != 'archival'"
        values: tuple[str, ...] = (self.agent_id, kind)
        if kind == "archival":  # the total minus the other kinds, because archival has no index
            sql, which = f"SELECT ({sql}) - ({sql}", " AND kind != 'archival')"
            values = (self.agent_id, self.agent_id)
        ((count,),) = self.store().execute(sql + which, values)
        return int(count)

    async def usage(self) -> list[tuple[str, str, int, int]]:
        """For each agent in this store and each kind: the number of blocks and of characters."""
        rows = self.store().execute(
            "SELECT agent, kind, count(*), sum(length(text)) FROM blocks GROUP BY agent, kind"
            " ORDER BY agent, instr('core working archival', kind)"
        )
        return [(str(agent), str(kind), int(blocks), int(chars)) for agent, kind, blocks, chars in rows]

    async def outline(self, limit: int) -> list[tuple[Any, ...]]:
        """The first blocks of the agent without their texts: label, kind, permission, characters, version,
        time and author of the last change, description."""
        return self.store().execute(
            "SELECT label, kind, permission, length(text), version, updated, writer, description FROM blocks"
            " WHERE agent = ? ORDER BY instr('core working archival', kind), label LIMIT ?",
            (self.agent_id, limit),
        )

    async def search_blocks(
        self, query: str, limit: int = 10, domain: SearchDomain = "archival_memory"
    ) -> Sequence[SearchHit]:
        return await self.search(query, "agent", SearchOptions(limit, domain))

    async def search(self, query: str, scope: SearchScope, options: SearchOptions) -> Sequence[SearchHit]:
        searching = import_module("quoth.tools.memory.search")  # imported here: most processes never search
        hits: Sequence[SearchHit] = await searching.search(
            self.store,
            self.agent_id,
            query,
            scope,
            options,
            self.embedder,
            user=self.user,
            older=self.older,
        )
        return hits

    async def forget(self, label: str) -> bool:
        await super().forget(label)
        erased: bool = import_module("quoth.tools.memory.search").erase(self.store())
        return erased


class SqliteBlocks:
    """``Blocks`` in the tables ``blocks``, ``block_versions`` and ``block_shares``."""

    def __init__(self, run: Statement, agent: str) -> None:
        self._run = run
        self._agent = agent
        self._rows: dict[tuple[str, str], tuple[int, Block]] = {}  # blocks read so far, with their rows

    def get(self, label: str, owner: str = "") -> Block | None:
        rows = self._run(GET + " AND label = ?", (owner or self._agent, label))
        if not rows:
            return None
        ((row, *fields),) = rows
        block = _block(fields, owner)
        self._rows[owner, label] = row, block
        return block

    def _row(self, label: str, owner: str = "") -> tuple[int, Block]:
        """The row id of an existing block, and the block."""
        if (owner, label) not in self._rows:
            self.get(label, owner)
        return self._rows[owner, label]

    def all(self, kind: BlockKind | None = None) -> list[Block]:
        where, values = "", [self._agent]
        if kind is not None:
            where = " AND kind = ?" + (" AND kind != 'archival'" if kind != "archival" else "")  # its index
            values.append(kind)
        rows = self._run(GET + where, values)
        return [_block(fields) for _, *fields in rows]

    def labels(self, beginning: str, most: int) -> list[str]:
        rows = self._run(
            "SELECT label FROM blocks WHERE agent = ? AND label >= ? AND substr(label, 1, ?) = ?"
            " ORDER BY label LIMIT ?",
            (self._agent, beginning, len(beginning), beginning, most),
        )
        return [str(label) for (label,) in rows]

    def put(self, block: Block, before: Delta | None = None) -> None:
        rest = (block.kind, block.permission, block.description, block.limit)
        if before is None:
            values = (block.label, block.text, *rest, block.version, block.created, block.updated, block.by)
            self._run(ADD, (*values, block.owner or self._agent))
            return
        row, held = self._row(block.label, block.owner)
        if rest != (held.kind, held.permission, held.description, held.limit):  # otherwise no index changes
            self._run(CHANGE_REST, (*rest, row))
        self._run(CHANGE_TEXT, (block.text, block.version, block.updated, block.by, row))
        self._run(
            "INSERT INTO block_versions (block, version, head, tail, middle, at, writer)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (row, before.version, before.head, before.tail, before.middle, before.at, before.by),
        )
        self._rows[block.owner, block.label] = row, block

    def remove(self, label: str, owner: str = "") -> None:
        row, _ = self._row(label, owner)
        del self._rows[owner, label]
        self._run("DELETE FROM blocks WHERE id = ?", (row,))
        self._run("DELETE FROM block_versions WHERE block = ?", (row,))
        self._run("DELETE FROM block_shares WHERE block = ?", (row,))

    def versions(self, label: str, owner: str = "") -> list[Delta]:
        row, _ = self._row(label, owner)
        rows = self._run(
            "SELECT version, head, tail, middle, at, writer FROM block_versions WHERE block = ?"
            " ORDER BY version DESC",
            (row,),
        )
        return [Delta(*row) for row in rows]

    def shared(self, label: str = "") -> list[tuple[Block, str]]:
        where, values = (" AND label = ?", [label]) if label else ("", [])
        rows = self._run(SHARED + where, (self._agent, *values))
        return [(_block(row, owner), bound) for owner, bound, *row in rows]

    def shares(self, label: str) -> dict[str, str]:
        row, _ = self._row(label)
        rows = self._run("SELECT agent, permission FROM block_shares WHERE block = ? ORDER BY agent", (row,))
        return dict(rows)

    def share(self, label: str, agent: str, permission: str | None) -> None:
        row, _ = self._row(label)
        self._run("DELETE FROM block_shares WHERE block = ? AND agent = ?", (row, agent))
        if permission is not None:
            self._run(
                "INSERT INTO block_shares (block, agent, permission) VALUES (?, ?, ?)",
                (row, agent, permission),
            )


def _block(row: Iterable[Any], owner: str = "") -> Block:
    label, text, kind, permission, description, limit, version, created, updated, by = row
    return Block(label, text, kind, permission, description, owner, limit, version, created, updated, by)


# Opening the memory that the host or a person chose: SQLite, or PostgreSQL for a URL.


POSTGRES = ("postgresql", "postgres")


def open_memory(url: str | None, store: Callable[[], Store], agent_id: str, **options: Any) -> Any:
    """The memory of an agent (MemoryStore, Search and SharedBlocks): in the store of the workspace, or in the
    database at ``url``. Conversations are searched in ``store`` in both cases. ``options`` are passed to
    SqliteMemory. Raises UsageError if ``url`` is not for PostgreSQL."""
    if not url:
        return SqliteMemory(store, agent_id, **options)
    scheme, colon, _ = url.partition("://")
    if not colon or scheme not in POSTGRES:
        shown = f"{excerpt(scheme)}://" if colon else "text without ://"
        raise UsageError(
            "The URL of the memory must be postgresql://USER:PASSWORD@HOST/DATABASE (or postgres://…), not"
            f" {shown}. Without a URL, the memory is in the workspace."
        )
    options.pop("older", None)  # there a search embeds missing passages itself
    postgres = import_module("quoth.tools.memory.postgres")
    return postgres.PostgresMemory(url, agent_id, store=store, **options)
