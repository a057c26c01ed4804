"""The operations on memory blocks, each done at once: every check comes before the first change.

It asks the ACL, and knows what is stored only through ``Blocks``; it must not know SQL, calls or how a person
is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, Protocol, get_args

from quoth.tools.call.service_types import Block, BlockKind, BlockPermission, BlockVersion
from quoth.tools.errors import ToolError, ToolFailure
from quoth.tools.memory import acl, checks
from quoth.tools.memory.versions import Delta, delta, unrolled

Asked = tuple[str, str, acl.Access]  # the owner ("" for the agent itself) and the label, and what for

KINDS: Final[tuple[BlockKind, ...]] = get_args(BlockKind)  # the first are the most in view


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

    def shared(self, label: str = "") -> Sequence[tuple[Block, BlockPermission]]:
        """The blocks that others share with this agent, all or those of one label, each with its owner and
        its bound, in any order."""
        ...

    def shares(self, label: str) -> dict[str, BlockPermission]:
        """The agents with which this one shares a block, each with its bound."""
        ...

    def share(self, label: str, agent: str, permission: BlockPermission | None) -> None:
        """Share a block of this agent; None ends it."""
        ...


class NeedsConsent(Exception):
    """An operation needs a person's approval first; nothing was changed."""

    def __init__(self, asked: Asked, reason: str, name: str) -> None:
        super().__init__(reason)
        self.asked = asked
        self.label = asked[1]
        self.reason = reason
        self.name = name


@dataclass(frozen=True)
class Found:
    """A stored block, and what this agent may do with it."""

    block: Block
    permission: BlockPermission

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"{self.block.label} (of {self.block.owner})" if self.block.owner else self.block.label

    def seen(self) -> Block:
        """The block as its reader sees it: with its limit, and the permission that holds for the reader."""
        return _with(self.block, limit=checks.limit_of(self.block), permission=self.permission)


@dataclass(frozen=True)
class Writer:
    """Who changes blocks, and when. The ACL does not bind a ``person``."""

    by: str = ""
    now: str = ""
    agent: str = ""
    person: bool = False
    granted: AbstractSet[Asked] = frozenset()  # what a person has approved for this operation


class Operations:
    """The operations of one agent, in one transaction."""

    def __init__(self, blocks: Blocks, writer: Writer) -> None:
        self._stored = blocks
        self._writer = writer
        self._asks: list[NeedsConsent] = []

    # Reading

    def get(self, label: str) -> Block | None:
        found = self._look(label)
        if found is None:
            return None
        self._allow(found, "read")
        return found.seen()

    def all(self, kind: BlockKind | None = None) -> list[Block]:
        if kind is not None:
            checks.checked_kind(kind)
        return self._readable(Found(block, block.permission) for block in self._stored.all(kind))

    def shared(self) -> list[Block]:
        return self._readable(_shared(*one) for one in self._stored.shared())

    def _readable(self, blocks: Iterable[Found]) -> list[Block]:
        seen = [one.seen() for one in blocks if acl.judge(one.permission, "read").kind == "allow"]
        return sorted(seen, key=lambda block: (block.label, block.owner))

    def shares(self, label: str) -> dict[str, BlockPermission]:
        return self._stored.shares(self._own(label, "list its shares").label)

    def history(self, label: str) -> list[BlockVersion]:
        return list(self._versions(self.find(label).block))

    # Writing

    def create(self, block: Block) -> Block:
        checks.checked_label(block.label)
        checks.checked_changes(vars(block))
        self._may_set(block.permission, block.label)
        if there := self._stored.get(block.label):
            raise checks.taken(there)
        return self._add(block)

    def update(self, label: str, text: str) -> Block:
        checks.checked_text(text)
        found = self.find(label)
        self._allow(found, "overwrite")
        return self._change(found, text=text)

    def append(self, label: str, text: str) -> Block:
        checks.checked_text(text)
        found = self.find(label)
        self._allow(found, "append")
        if not text:
            raise ToolError(f"There is nothing to append to {label}: the text is empty.")
        return self._change(found, text=f"{found.block.text}\n{text}" if found.block.text else text)

    def replace(self, label: str, old: str, new: str) -> Block:
        checks.checked_text(new)
        found = self.find(label)
        self._allow(found, "overwrite")
        if not old or old not in found.block.text:
            raise checks.not_there(label, old)
        return self._change(found, text=found.block.text.replace(old, new))

    def undo(self, label: str) -> Block:
        found = self.find(label)
        self._allow(found, "overwrite")
        text = found.block.text
        earlier = next((one.text for one in self._versions(found.block) if one.text != text), None)
        if earlier is None:
            raise ToolError(f"The text of {label} has never been changed, so there is nothing to undo.")
        return self._change(found, text=earlier)

    def delete(self, label: str) -> None:
        found = self.find(label)
        self._allow(found, "delete")
        self._blocks.remove(label, found.block.owner)

    def move(self, label: str, kind: BlockKind, to: str = "") -> Block:
        checks.checked_kind(kind)
        found = self.find(label)
        if to and to != label:
            return self._copy(found, kind, to)
        if found.block.kind == kind:
            raise ToolError(f"{label} is {kind} already.")
        self._may_move(found, kind)
        return self._change(found, kind=kind)

    def swap(self, archive_label: str, load_label: str, to: str = "") -> Block:
        leaves, comes = self.find(archive_label), self.find(load_label)
        if leaves.block.kind == "archival":
            raise ToolError(f"{archive_label} is archival already; swap archives a core or a working block.")
        if comes.block.kind != "archival":
            raise ToolError(f"{load_label} is {comes.block.kind}; swap loads an archival block.")
        if to == archive_label:
            raise ToolError(f"{to} is the block that is archived; load the other one to another label.")
        kind = leaves.block.kind
        self._may_move(leaves, "archival")
        if not to or to == load_label:
            self._may_move(comes, kind)
            self._check(comes, kind=kind)
            self._change(leaves, kind="archival")
            return self._change(comes, kind=kind)
        target = self._target(to, comes, kind)
        self._change(leaves, kind="archival")
        loaded = self._fill(target, comes, kind, to)
        if acl.judge(comes.permission, "delete").kind == "allow":
            self._blocks.remove(load_label, comes.block.owner)
        return loaded

    def share(self, label: str, agent: str, permission: BlockPermission) -> None:
        checks.checked_label(agent, "The name of an agent")
        checks.checked_permission(permission)
        self._own(label, "share it")
        self._may_set(permission, label)
        self._may_reshare(label, agent)
        self._blocks.share(label, agent, permission)

    def unshare(self, label: str, agent: str) -> None:
        self._own(label, "share it")
        if agent not in self._stored.shares(label):
            raise ToolError(f"{label} is not shared with {agent}.")
        self._may_reshare(label, agent)
        self._blocks.share(label, agent, None)

    def edit(self, label: str, changes: dict[str, Any], version: int | None = None) -> Block:
        """Change anything of an own block, as a person may, if it still has the ``version`` they saw."""
        found = Found(self._own(label, "edit it"), "admin")
        if version not in (None, found.block.version):
            raise ToolError(f"{label} was changed meanwhile, by {found.block.by}. Nothing was changed.")
        if "limit" in changes:
            changes = {**changes, "limit": _limit(changes["limit"], changes.get("kind", found.block.kind))}
        return self._change(found, **changes)

    # What may be done

    def _allow(self, found: Found, access: acl.Access) -> None:
        """Raise ToolFailure when the ACL denies; what it asks, is asked before the first change."""
        if self._writer.person:
            return
        verdict = acl.judge(found.permission, access)
        if verdict.kind == "deny":
            done = "read" if access == "read" else "changed"
            raise ToolFailure("denied", f"{found.name} was not {done}: {verdict.reason}.")
        asked: Asked = (found.block.owner, found.block.label, access)
        if verdict.kind == "ask" and asked not in self._writer.granted:
            self._asks.append(NeedsConsent(asked, verdict.reason, found.name))

    def _may_move(self, found: Found, kind: BlockKind) -> None:
        """Taking a block out of view needs Overwrite; so does any move of another agent's block."""
        if found.block.owner or KINDS.index(kind) > KINDS.index(found.block.kind):
            self._allow(found, "overwrite")

    def _may_set(self, permission: BlockPermission, label: str) -> None:
        if permission in acl.BY_PERSON and not self._writer.person:
            raise ToolError(
                f"Only a person sets the permission {permission}:"
                f" quoth memory edit {label} --permission {permission}."
            )

    def _may_reshare(self, label: str, agent: str) -> None:
        bound = self._stored.shares(label).get(agent)
        if bound in acl.BY_PERSON and not self._writer.person:
            raise ToolFailure(
                "denied", f"A person shares {label} with {agent} ({bound}), so only a person changes that."
            )

    @property
    def _blocks(self) -> Blocks:
        """The stored blocks, to change them: a person must have approved everything that is asked."""
        if self._asks:
            raise self._asks[0]
        return self._stored

    # How it is done

    def _look(self, label: str) -> Found | None:
        """The agent's own block of that label, else one that is shared with it: of the first owner, if there
        are several."""
        if not checks.is_label(label):
            return None
        if own := self._stored.get(label):
            return Found(own, own.permission)
        shared = sorted(self._stored.shared(label), key=lambda one: one[0].owner)
        return _shared(*shared[0]) if shared else None

    def find(self, label: str) -> Found:
        """The block of that label, which this agent may read. Raises ToolError, which names the nearest."""
        if found := self._look(label):
            self._allow(found, "read")
            return found
        others = [block.label for block, _ in self._stored.shared()]
        known = sorted({*self._stored.labels("", checks.COMPARED), *others})
        near = known
        if len(known) >= checks.COMPARED and checks.is_label(label):  # too many to compare it with each
            near = [*others, *self._stored.labels(label[:2], checks.COMPARED)]
        raise checks.unknown(label, near, known)

    def _own(self, label: str, what: str) -> Block:
        block = self.find(label).block
        if block.owner:
            raise ToolError(f"{label} belongs to {block.owner}, so only {block.owner} can {what}.")
        return block

    def _versions(self, block: Block) -> Iterator[BlockVersion]:
        """The earlier versions, the newest first, each as it is asked for."""
        return unrolled(block.text, self._stored.versions(block.label, block.owner))

    def _copy(self, found: Found, kind: BlockKind, to: str) -> Block:
        archived = found.block.kind == "archival"
        label = found.block.label
        if kind == "archival" and archived:
            raise ToolError(f"{label} is archival already.")
        if kind != "archival" and not archived:
            raise ToolError(
                f"{label} is {found.block.kind}; only an archival block is loaded to another label."
            )
        target = self._target(to, found, kind)
        if kind == "archival":
            self._allow(found, "delete")
        filled = self._fill(target, found, kind, to)
        if kind == "archival":
            self._blocks.remove(label, found.block.owner)
        return filled

    def _target(self, to: str, source: Found, kind: BlockKind) -> Found | None:
        """The block that a copy overwrites, if there is one; all that can be wrong with it is said here."""
        checks.checked_label(to)
        target = self._look(to)
        if target is None:
            checks.fits(_with(source.block, label=to, kind=kind))
            return None
        self._allow(target, "overwrite")
        self._check(target, text=source.block.text, kind=_kind_of_copy(target.block.kind, kind))
        return target

    def _fill(self, target: Found | None, source: Found, kind: BlockKind, to: str) -> Block:
        if target is not None:
            return self._change(target, text=source.block.text, kind=_kind_of_copy(target.block.kind, kind))
        moves = kind == "archival" and not source.block.owner  # it is the same block under another label
        permission = source.block.permission if moves else "read_write"
        return self._add(_with(source.block, label=to, kind=kind, permission=permission, owner=""))

    def _add(self, block: Block) -> Block:
        made = self._writer.now
        limit = _limit(block.limit, block.kind)
        block = _with(block, limit=limit, version=1, created=made, updated=made, by=self._writer.by)
        checks.fits(block)
        self._blocks.put(block)
        return Found(block, block.permission).seen()

    def _check(self, found: Found, **changes: Any) -> None:
        checks.fits(_with(found.block, **changes))

    def _change(self, found: Found, **changes: Any) -> Block:
        """Store the next version of a block. One that would be the same is none."""
        block, writer = found.block, self._writer
        by = f"agent {writer.agent}: {writer.by}" if block.owner else writer.by
        changed = _with(block, version=block.version + 1, updated=writer.now, by=by, **changes)
        checks.fits(changed)
        blocks = self._blocks
        if all(getattr(block, name) == value for name, value in changes.items()):
            changed = block
        else:
            back = delta(BlockVersion(block.version, block.text, block.updated, block.by), changed.text)
            blocks.put(changed, back)
        permission = found.permission if block.owner else changed.permission
        return Found(changed, permission).seen()


def _with(block: Block, **changes: Any) -> Block:
    """The block with these fields; ``dataclasses.replace``, at each write, takes five times as long."""
    made = object.__new__(Block)
    vars(made).update(vars(block), **changes)
    return made


def _shared(block: Block, bound: BlockPermission) -> Found:
    return Found(block, acl.stricter(block.permission, bound))


def _limit(limit: int, kind: BlockKind) -> int:
    """A limit as it is stored: 0 for that of the kind, so that it changes with the kind."""
    return 0 if limit == checks.LIMITS[kind] else limit


def _kind_of_copy(target: BlockKind, kind: BlockKind) -> BlockKind:
    """The kind of a block that a copy overwrites: one that is in view stays where it is, unless the copy is
    archived."""
    return kind if "archival" in (target, kind) else target
