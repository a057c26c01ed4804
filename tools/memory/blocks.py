"""``BlockMemory``: the memory of one agent, over any store with transactions.

ACL, limits, versions and consent are the same for every store.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from quoth.tools.call.context import running_context
from quoth.tools.call.service_types import (
    Block,
    BlockKind,
    BlockPermission,
    BlockVersion,
    SearchDomain,
    SearchHit,
    SearchOptions,
)
from quoth.tools.errors import ToolError, ToolFailure
from quoth.tools.memory import checks
from quoth.tools.memory.operations import Operations, Writer
from quoth.tools.memory.stored import Blocks as Blocks
from quoth.tools.memory.stored import NeedsConsent

if TYPE_CHECKING:
    from quoth.tools.memory.transfer import Carried

T = TypeVar("T")


def matching(query: str, blocks: Sequence[Block]) -> list[SearchHit]:
    """The blocks that contain every word of the query, best first."""
    words = query.casefold().split()
    found = []
    for block in blocks:
        text = f"{block.label}\n{block.text}".casefold()
        if words and all(word in text for word in words):
            score = float(sum(map(text.count, words)))
            kind = f"{block.kind}_memory"
            found.append(SearchHit(block.label, block.text, score, kind, block.updated, block.owner))
    return sorted(found, key=lambda hit: -hit.score)


class BlockMemory(ABC):
    """A MemoryStore with SharedBlocks for ``agent_id``. Your own store needs to implement only
    ``_atomically``.

    With ``person``, a person uses it directly: the ACL does not apply, and the person may edit and forget
    blocks. Only a person may set the permissions partner, human and admin. ``user`` is the person's name.
    ``clock`` returns seconds since 1970."""

    def __init__(
        self,
        agent_id: str,
        *,
        user: str = "",
        person: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.agent_id = agent_id
        self.user = user
        self.person = person
        self._clock = clock

    @abstractmethod
    async def _atomically(self, work: Callable[[Blocks], T]) -> T:
        """Run ``work`` in one transaction that excludes other writers and is on disk when this returns. If
        ``work`` raises, the transaction is rolled back. ``work`` may be run more than once."""

    async def _reading(self, work: Callable[[Blocks], T]) -> T:
        """Run ``work``, which only reads."""
        return await self._atomically(work)

    # MemoryStore

    async def create_block(
        self,
        label: str,
        text: str = "",
        *,
        kind: BlockKind = "working",
        permission: BlockPermission = "read_write",
        description: str = "",
        limit: int = 0,
    ) -> Block:
        block = Block(label, text, kind, permission, description, limit=limit)
        return await self._write(lambda blocks: blocks.create(block))

    async def get_block(self, label: str) -> Block | None:
        return await self._read(lambda blocks: blocks.get(label))

    async def list_blocks(self, kind: BlockKind | None = None) -> Sequence[Block]:
        return await self._read(lambda blocks: blocks.all(kind))

    async def count_blocks(self, kind: BlockKind) -> int:
        """The number of blocks of a kind. A store that can count overrides this, to avoid reading them."""
        return len(await self.list_blocks(kind))

    async def update_block_text(self, label: str, text: str) -> Block:
        return await self._write(lambda blocks: blocks.update(label, text))

    async def append_to_block(self, label: str, text: str) -> Block:
        return await self._write(lambda blocks: blocks.append(label, text))

    async def replace_in_block(self, label: str, old: str, new: str) -> Block:
        return await self._write(lambda blocks: blocks.replace(label, old, new))

    async def move_block(self, label: str, kind: BlockKind, *, to: str = "") -> Block:
        return await self._write(lambda blocks: blocks.move(label, kind, to))

    async def swap_blocks(self, archive_label: str, load_label: str, *, to: str = "") -> Block:
        return await self._write(lambda blocks: blocks.swap(archive_label, load_label, to))

    async def delete_block(self, label: str) -> None:
        await self._write(lambda blocks: blocks.delete(label))

    async def history(self, label: str) -> Sequence[BlockVersion]:
        return await self._write(lambda blocks: blocks.history(label))  # text and deltas from the same moment

    async def undo(self, label: str) -> Block:
        return await self._write(lambda blocks: blocks.undo(label))

    async def search_blocks(
        self, query: str, limit: int = 10, domain: SearchDomain = "archival_memory"
    ) -> Sequence[SearchHit]:
        """The blocks that contain every word of the query. A store with an index overrides this."""
        if SearchOptions(limit, domain).domain == "conversations":
            return []
        blocks = await self.list_blocks("archival" if domain == "archival_memory" else None)
        return matching(query, blocks)[:limit]

    async def persist_block(self, label: str) -> None:
        """Check that the block exists. Nothing else is needed: every write is on disk when it returns."""
        await self._write(lambda blocks: blocks.find(label))

    # SharedBlocks

    async def share_block(self, label: str, agent_id: str, permission: BlockPermission = "read_only") -> None:
        if agent_id == self.agent_id or not self.agent_id:
            raise ToolError("An agent needs a name (agent_id) to share blocks, and shares them with others.")
        await self._write(lambda blocks: blocks.share(label, agent_id, permission))

    async def unshare_block(self, label: str, agent_id: str) -> None:
        await self._write(lambda blocks: blocks.unshare(label, agent_id))

    async def list_shared_blocks(self) -> Sequence[Block]:
        return await self._read(lambda blocks: blocks.shared())

    async def shares(self, label: str) -> dict[str, BlockPermission]:
        """The agents with which this one shares a block, each with the most it may do."""
        return await self._read(lambda blocks: blocks.shares(label))

    # For a person

    async def edit_block(
        self,
        label: str,
        *,
        text: str | None = None,
        permission: BlockPermission | None = None,
        kind: BlockKind | None = None,
        limit: int | None = None,
        description: str | None = None,
        version: int | None = None,
    ) -> Block:
        """Change the given fields, as one new version. ``limit`` 0 means the limit of the kind. Raises
        ToolError if the block's version is no longer ``version``."""
        self._by_person("edit")
        given = {
            "text": text,
            "permission": permission,
            "kind": kind,
            "limit": limit,
            "description": description,
        }
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        checks.checked_changes(changes)
        return await self._write(lambda blocks: blocks.edit(label, changes, version))

    async def forget(self, label: str) -> bool:
        """Remove a block and all its earlier texts, regardless of its permission. Returns False if the file
        of the store may still contain them."""
        self._by_person("forget")
        await self.delete_block(label)
        return True

    async def import_blocks(
        self, every: Sequence[Carried], *, replace: bool = False
    ) -> tuple[list[str], list[str]]:
        """Import blocks with their versions, all or none. Returns the labels of the new blocks and of the
        replaced blocks. Raises UsageError if a label is taken and ``replace`` is false."""
        from quoth.tools.memory.transfer import take_in  # imported here: only imports need Org

        self._by_person("import")
        now, by = self._now(), self._writer()
        return await self._atomically(lambda blocks: take_in(blocks, every, now, by, replace))

    def _by_person(self, what: str) -> None:
        if not self.person:
            raise ToolError(f"Only a person can {what} blocks: quoth memory {what} LABEL.")

    # Implementation

    async def _read(self, work: Callable[[Operations], T]) -> T:
        return await self._reading(lambda blocks: work(Operations(blocks, Writer(person=self.person))))

    async def _write(self, work: Callable[[Operations], T]) -> T:
        """Run an operation. If a person must approve it first, nothing is written; after the approval the
        operation is run again from its beginning, with all its checks."""
        context = running_context()
        allowed: frozenset[str] = (
            frozenset() if context is None else getattr(context.permission, "given", frozenset())
        )
        writer = Writer(self._writer(), self._now(), self.agent_id, self.person, allowed=allowed)
        while True:
            given = writer
            try:
                return await self._atomically(lambda blocks: work(Operations(blocks, given)))  # noqa: B023
            except NeedsConsent as needed:
                asked = await _consented(needed)
            writer = writer._replace(granted={*writer.granted, asked})

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="seconds")

    def _writer(self) -> str:
        """The author of a change, in words; people and models see it as the origin of a text."""
        if self.person:
            return f"a person ({self.user})" if self.user else "a person"
        context = running_context()
        if context is None:
            return f"the host, for {self.user}" if self.user else "the host"
        user, session = context.user or self.user, context.session
        who = " in ".join(part for part in (user, session and f"session {session}") if part)
        how = ", ".join(part for part in (context.tool, context.route) if part)
        return f"{who or 'a call'} ({how})" if how else who or "a call"


async def _consented(needed: NeedsConsent) -> str:
    """Ask a person, and return the name of the approval. Raises ToolFailure if it is not given."""
    context = running_context()
    if context is None:
        raise ToolFailure(
            "denied",
            f"{needed.name} was not changed: it {needed.reason[0].lower()}{needed.reason[1:]}, and outside a"
            " call no person can be asked.",
        ) from None
    await context.permission.request(needed.what, "; ".join(filter(None, (needed.reason, needed.shown))))
    return needed.what
