"""``SqliteMemory``: memory blocks in the SQLite file of a workspace.

It knows the tables of blocks; what may be done with a block is decided in operations.py, how blocks are
searched in search.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, TypeVar

from quoth.tools.call.service_types import (
    Block,
    BlockKind,
    BlockPermission,
    SearchHit,
    SearchOptions,
    SearchScope,
)
from quoth.tools.call.services import Embedder
from quoth.tools.errors import StoreError, ToolError
from quoth.tools.memory.blocks import BlockMemory
from quoth.tools.memory.operations import Blocks
from quoth.tools.memory.versions import Delta
from quoth.tools.storage.database import Statement, Store

T = TypeVar("T")

# The column ``size`` is the limit, and ``writer`` is Block.by.
GET = """
    SELECT label, text, kind, permission, description, size, version, created, updated, writer FROM blocks
    WHERE agent = ?"""
ADD = """
    INSERT INTO blocks (label, text, kind, permission, description, size, version, created, updated, writer,
    agent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
CHANGE = """
    UPDATE blocks SET text = ?, kind = ?, permission = ?, description = ?, size = ?, version = ?, created = ?,
    updated = ?, writer = ? WHERE agent = ? AND label = ? RETURNING id"""
SHARED = """
    SELECT blocks.agent, block_shares.permission, label, text, kind, blocks.permission, description, size,
    version, created, updated, writer FROM block_shares JOIN blocks ON blocks.id = block
    WHERE block_shares.agent = ?"""


class SqliteMemory(BlockMemory):
    """MemoryStore, Search and SharedBlocks of one agent in the store of a workspace. Without an ``embedder``
    it searches by words alone."""

    def __init__(
        self,
        store: Callable[[], Store],
        agent_id: str,
        *,
        user: str = "",
        embedder: Embedder | None = None,
        person: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(agent_id, user=user, person=person, **options)
        self.store = store
        self.embedder = embedder

    async def _atomically(self, work: Callable[[Blocks], T]) -> T:
        with self.store().transaction() as run:
            return work(SqliteBlocks(run, self.agent_id))

    async def _reading(self, work: Callable[[Blocks], T]) -> T:
        return work(SqliteBlocks(self.store().execute, self.agent_id))

    async def search_blocks(self, query: str, limit: int = 10) -> Sequence[SearchHit]:
        return await self.search(query, "agent", SearchOptions(limit, "archival_memory"))

    async def search(self, query: str, scope: SearchScope, options: SearchOptions) -> Sequence[SearchHit]:
        try:
            searching = import_module("quoth.tools.memory.search")  # here: most processes never search
        except ModuleNotFoundError:
            raise ToolError("There is no search in this memory yet.") from None
        hits: Sequence[SearchHit] = await searching.search(
            self.store, self.agent_id, query, scope, options, self.embedder
        )
        return hits

    async def forget(self, label: str) -> None:
        await super().forget(label)
        with contextlib.suppress(StoreError):  # another process reads: SQLite does it later
            self.store().execute("PRAGMA wal_checkpoint(TRUNCATE)")


class SqliteBlocks:
    """``Blocks`` in the tables ``blocks``, ``block_versions`` and ``block_shares``."""

    def __init__(self, run: Statement, agent: str) -> None:
        self._run = run
        self._agent = agent

    def get(self, label: str, owner: str = "") -> Block | None:
        rows = self._run(GET + " AND label = ?", (owner or self._agent, label))
        return _block(rows[0], owner) if rows else None

    def all(self, kind: BlockKind | None = None) -> list[Block]:
        where, values = "", [self._agent]
        if kind is not None:
            where = " AND kind = ?" + (" AND kind != 'archival'" if kind != "archival" else "")  # its index
            values.append(kind)
        rows = self._run(GET + where, values)
        return [_block(row) for row in rows]

    def labels(self, beginning: str, most: int) -> list[str]:
        rows = self._run(
            "SELECT label FROM blocks WHERE agent = ? AND label >= ? AND substr(label, 1, ?) = ?"
            " ORDER BY label LIMIT ?",
            (self._agent, beginning, len(beginning), beginning, most),
        )
        return [str(label) for (label,) in rows]

    def put(self, block: Block, before: Delta | None = None) -> None:
        owner = block.owner or self._agent
        values = _values(block)
        if before is None:
            self._run(ADD, (*values, owner))
            return
        ((row,),) = self._run(CHANGE, (*values[1:], owner, block.label))
        self._run(
            "INSERT INTO block_versions (block, version, head, tail, middle, at, writer)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (row, before.version, before.head, before.tail, before.middle, before.at, before.by),
        )

    def remove(self, label: str, owner: str = "") -> None:
        ((row,),) = self._run(
            "DELETE FROM blocks WHERE agent = ? AND label = ? RETURNING id", (owner or self._agent, label)
        )
        self._run("DELETE FROM block_versions WHERE block = ?", (row,))
        self._run("DELETE FROM block_shares WHERE block = ?", (row,))

    def versions(self, label: str, owner: str = "") -> list[Delta]:
        rows = self._run(
            "SELECT block_versions.version, head, tail, middle, at, block_versions.writer FROM block_versions"
            " JOIN blocks ON blocks.id = block WHERE agent = ? AND label = ?"
            " ORDER BY block_versions.version DESC",
            (owner or self._agent, label),
        )
        return [Delta(*row) for row in rows]

    def shared(self, label: str = "") -> list[tuple[Block, BlockPermission]]:
        where, values = (" AND label = ?", [label]) if label else ("", [])
        rows = self._run(SHARED + where, (self._agent, *values))
        return [(_block(row, owner), bound) for owner, bound, *row in rows]

    def shares(self, label: str) -> dict[str, BlockPermission]:
        rows = self._run(
            "SELECT block_shares.agent, block_shares.permission FROM block_shares"
            " JOIN blocks ON blocks.id = block WHERE blocks.agent = ? AND label = ? ORDER BY 1",
            (self._agent, label),
        )
        return dict(rows)

    def share(self, label: str, agent: str, permission: BlockPermission | None) -> None:
        ((row,),) = self._run("SELECT id FROM blocks WHERE agent = ? AND label = ?", (self._agent, label))
        self._run("DELETE FROM block_shares WHERE block = ? AND agent = ?", (row, agent))
        if permission is not None:
            self._run(
                "INSERT INTO block_shares (block, agent, permission) VALUES (?, ?, ?)",
                (row, agent, permission),
            )


def _block(row: Iterable[Any], owner: str = "") -> Block:
    label, text, kind, permission, description, limit, version, created, updated, by = row
    return Block(label, text, kind, permission, description, owner, limit, version, created, updated, by)


def _values(block: Block) -> tuple[Any, ...]:
    return (
        block.label,
        block.text,
        block.kind,
        block.permission,
        block.description,
        block.limit,
        block.version,
        block.created,
        block.updated,
        block.by,
    )
