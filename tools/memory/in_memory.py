"""``InMemoryStore``: memory blocks in dictionaries, for tests. They are lost when the process ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from quoth.tools.call.service_types import Block, BlockKind, SearchHit, SearchOptions, SearchScope
from quoth.tools.memory.blocks import BlockMemory, Blocks, matching
from quoth.tools.memory.stored import Delta

T = TypeVar("T")
Tables = dict[str, dict[Any, Any]]


class InMemoryStore(BlockMemory):
    """MemoryStore, Search and SharedBlocks of one agent. Agents with the same ``tables`` share blocks. It
    searches blocks by words only, and has no conversations."""

    def __init__(self, agent_id: str = "agent", *, tables: Tables | None = None, **options: Any) -> None:
        super().__init__(agent_id, **options)
        self.tables: Tables = {"blocks": {}, "versions": {}, "shares": {}} if tables is None else tables

    async def _atomically(self, work: Callable[[Blocks], T]) -> T:
        tables = {name: dict(table) for name, table in self.tables.items()}
        done = work(_Blocks(tables, self.agent_id))
        self.tables.update(tables)
        return done

    async def search(self, query: str, scope: SearchScope, options: SearchOptions) -> Sequence[SearchHit]:
        """The blocks in ``scope`` that contain every word of the query."""
        found: list[SearchHit] = []
        if scope != "shared":
            found += await self.search_blocks(query, options.limit, options.domain)
        if scope != "agent" and options.domain != "conversations":
            found += matching(query, await self.list_shared_blocks())
        return found[: options.limit]


class _Blocks:
    """``Blocks`` in dictionaries, by owner and label."""

    def __init__(self, tables: Tables, agent: str) -> None:
        self._blocks, self._versions, self._shares = tables["blocks"], tables["versions"], tables["shares"]
        self._agent = agent

    def get(self, label: str, owner: str = "") -> Block | None:
        found = self._blocks.get((owner or self._agent, label))
        return found and replace(found, owner=owner)

    def all(self, kind: BlockKind | None = None) -> list[Block]:
        mine = [block for (agent, _), block in self._blocks.items() if agent == self._agent]
        return [block for block in mine if kind in (None, block.kind)]

    def labels(self, beginning: str, most: int) -> list[str]:
        return sorted(block.label for block in self.all() if block.label.startswith(beginning))[:most]

    def put(self, block: Block, before: Delta | None = None) -> None:
        key = block.owner or self._agent, block.label
        self._blocks[key] = replace(block, owner="")
        if before is not None:
            self._versions[key] = [before, *self._versions.get(key, [])]

    def remove(self, label: str, owner: str = "") -> None:
        for table in (self._blocks, self._versions, self._shares):
            table.pop((owner or self._agent, label), None)

    def versions(self, label: str, owner: str = "") -> list[Delta]:
        return list(self._versions.get((owner or self._agent, label), []))

    def shared(self, label: str = "") -> list[tuple[Block, str]]:
        return [
            (replace(self._blocks[owner, name], owner=owner), bounds[self._agent])
            for (owner, name), bounds in self._shares.items()
            if self._agent in bounds and label in ("", name)
        ]

    def shares(self, label: str) -> dict[str, str]:
        return dict(self._shares.get((self._agent, label), {}))

    def share(self, label: str, agent: str, permission: str | None) -> None:
        bounds = {name: bound for name, bound in self.shares(label).items() if name != agent}
        self._shares[self._agent, label] = bounds | ({agent: permission} if permission else {})
