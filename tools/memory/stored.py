"""``Blocks``: what a store of memory blocks must be able to do, inside of one transaction.

Operations are written over it, and stores implement it; it must not know either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from quoth.tools.call.service_types import Block, BlockKind
from quoth.tools.memory.versions import Delta


class Blocks(Protocol):
    """The stored blocks of one agent, inside of one transaction. ``owner`` names the agent of a block that
    is shared with this one; empty is this agent. It checks nothing."""

    def get(self, label: str, owner: str = "") -> Block | None:
        """The block as it is stored, with ``owner`` as it was given."""
        ...

    def all(self, kind: BlockKind | None = None) -> Sequence[Block]:
        """The agent's own blocks, all or those of one kind, in any order."""
        ...

    def labels(self, beginning: str, most: int) -> Sequence[str]:
        """At most so many of the agent's own labels that begin so, in order."""
        ...

    def put(self, block: Block, before: Delta | None = None) -> None:
        """Store a block: a new one, or with ``before`` its next version, together with the way back."""
        ...

    def remove(self, label: str, owner: str = "") -> None:
        """Remove a block with its versions and shares."""
        ...

    def versions(self, label: str, owner: str = "") -> Sequence[Delta]:
        """The ways back from a block's text, that of the last change first."""
        ...

    def shared(self, label: str = "") -> Sequence[tuple[Block, str]]:
        """The blocks that others share with this agent, all or those of one label, each with its owner and
        its bound, in any order."""
        ...

    def shares(self, label: str) -> dict[str, str]:
        """The agents with which this one shares a block, each with its bound."""
        ...

    def share(self, label: str, agent: str, permission: str | None) -> None:
        """Share a block of this agent with this bound, a text that is kept as it is; None ends it."""
        ...
