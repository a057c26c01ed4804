"""The operations on memory blocks. Each is atomic: all checks come before the first change.

The operations check the ACL and reach the store only through ``Blocks``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final, NamedTuple, get_args

from quoth.tools.call.service_types import Block, BlockKind, BlockPermission, BlockVersion
from quoth.tools.errors import ToolError, ToolFailure
from quoth.tools.memory import checks
from quoth.tools.memory.stored import Blocks, NeedsConsent, approval, delta, is_about, shown, unrolled

KINDS: Final[tuple[BlockKind, ...]] = get_args(BlockKind)  # the kind seen most comes first


class PermittedBlock(NamedTuple):
    """A stored block and this agent's permission for it."""

    block: Block
    permission: BlockPermission

    @property
    def name(self) -> str:
        """The block's name in messages."""
        return f"{self.block.label} (of {self.block.owner})" if self.block.owner else self.block.label

    def seen(self) -> Block:
        """The block as its reader sees it: with its limit and the reader's permission."""
        return replace(self.block, limit=checks.limit_of(self.block), permission=self.permission)


class Writer(NamedTuple):
    """The author and time of a change. The ACL does not apply to a ``person``."""

    by: str = ""
    now: str = ""
    agent: str = ""
    person: bool = False
    granted: AbstractSet[str] = frozenset()  # names of a person's approvals for this operation
    allowed: AbstractSet[str] = frozenset()  # names of a person's approvals for the whole call


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
        return self._readable(PermittedBlock(block, block.permission) for block in self._stored.all(kind))

    def shared(self) -> list[Block]:
        return self._readable(_shared(*one) for one in self._stored.shared())

    def _readable(self, blocks: Iterable[PermittedBlock]) -> list[Block]:
        seen = [one.seen() for one in blocks if checks.judge(one.permission, "read").kind == "allow"]
        return sorted(seen, key=lambda block: (block.label, block.owner))

    def shares(self, label: str) -> dict[str, BlockPermission]:
        shares = self._stored.shares(self._own(label, "list its shares").label)
        return {agent: checks.bound_of(share) for agent, share in shares.items()}

    def history(self, label: str) -> list[BlockVersion]:
        return list(self._versions(self._own(label, "see its earlier texts")))

    # Writing

    def create(self, block: Block) -> Block:
        checks.checked_label(block.label)
        checks.checked_changes(vars(block))
        self._may_set(block.permission, block.label)
        if there := self._stored_as(block.label):
            raise checks.taken(there)
        return self._add(block)

    def update(self, label: str, text: str) -> Block:
        checks.checked_text(text)
        found = self.find(label)
        self._allow(found, "overwrite", text=text)
        return self._change(found, text=text)

    def append(self, label: str, text: str) -> Block:
        checks.checked_text(text)
        found = self.find(label)
        self._allow(found, "append")
        if not text:
            raise ToolError(f"There is nothing to append to {label}: the text is empty.")
        return self._change(found, text=f"{found.block.text}\n{text}" if found.block.text else text)

    def replace(self, label: str, old: str, new: str) -> Block:
        checks.checked_text(old)
        checks.checked_text(new)
        found = self.find(label)
        text = found.block.text.replace(old, new) if old else ""
        self._allow(found, "overwrite", text=text)
        if not old or old not in found.block.text:
            raise checks.not_there(label, old)
        return self._change(found, text=text)

    def undo(self, label: str) -> Block:
        found = PermittedBlock(block := self._own(label, "undo its changes"), block.permission)
        earlier = next((one.text for one in self._versions(block) if one.text != block.text), None)
        self._allow(found, "overwrite", text=earlier or "")
        if earlier is None:
            raise ToolError(f"The text of {label} was never changed, so there is nothing to undo.")
        return self._change(found, text=earlier)

    def delete(self, label: str) -> None:
        found = self.find(label)
        self._allow(found, "delete")
        self._blocks.remove(found.block.label, found.block.owner)

    def move(self, label: str, kind: BlockKind, to: str = "") -> Block:
        checks.checked_kind(kind)
        found = self.find(label)
        if to and checks.composed(to) != checks.composed(label):
            return self._copy(found, kind, to)
        if found.block.kind == kind:
            raise ToolError(f"{label} is {kind} already.")
        self._may_move(found, kind)
        return self._change(found, kind=kind)

    def swap(self, archive_label: str, load_label: str, to: str = "") -> Block:
        leaves, comes = self.find(archive_label), self.find(load_label)
        if leaves.block.kind == "archival":
            raise ToolError(
                f"{archive_label} is archival already; swap archives only a core or working block."
            )
        if comes.block.kind != "archival":
            raise ToolError(f"{load_label} is {comes.block.kind}; swap loads only an archival block.")
        to = checks.composed(to)
        if to == checks.composed(archive_label):
            raise ToolError(f"{to} is the block to be archived; load the other block to another label.")
        kind = leaves.block.kind
        self._may_move(leaves, "archival")
        if not to or to == checks.composed(load_label):
            self._may_move(comes, kind)
            self._check(comes, kind=kind)
            self._change(leaves, kind="archival")
            return self._change(comes, kind=kind)
        target = self._target(to, comes, kind)
        self._change(leaves, kind="archival")
        loaded = self._fill(target, comes, kind, to)
        if checks.judge(comes.permission, "delete").kind == "allow":
            self._blocks.remove(comes.block.label, comes.block.owner)
        return loaded

    def share(self, label: str, agent: str, permission: BlockPermission) -> None:
        checks.checked_label(agent, "The name of an agent")
        checks.checked_permission(permission)
        label = self._own(label, "share it").label
        self._may_set(permission, label)
        bound = self._bound(label, agent, permission)
        self._blocks.share(label, agent, bound)

    def unshare(self, label: str, agent: str) -> None:
        checks.checked_label(agent, "The name of an agent")
        label = self._own(label, "share it").label
        if agent not in self._stored.shares(label):
            raise ToolError(f"{label} is not shared with {agent}.")
        self._bound(label, agent)
        self._blocks.share(label, agent, None)

    def edit(self, label: str, changes: dict[str, Any], version: int | None = None) -> Block:
        """Change any field of an own block, as a person may. Raises ToolError if its version is no longer
        ``version``."""
        found = PermittedBlock(self._own(label, "edit it"), "admin")
        if version not in (None, found.block.version):
            raise ToolError(f"{label} was changed by {found.block.by} in the meantime. Nothing was changed.")
        if "limit" in changes:
            changes = {**changes, "limit": _limit(changes["limit"], changes.get("kind", found.block.kind))}
        return self._change(found, **changes)

    # Permissions

    def _allow(self, found: PermittedBlock, access: checks.Access, **changes: Any) -> None:
        """Raise ToolFailure if the ACL denies the access. If a person must approve it, that is required
        before the first change. For an overwrite, ``changes`` are the changes that the person approves."""
        if self._writer.person:
            return
        verdict = checks.judge(found.permission, access)
        if verdict.kind == "deny":
            done = "read" if access == "read" else "changed"
            raise ToolFailure("denied", f"{found.name} was not {done}: {verdict.reason}.")
        if verdict.kind == "ask" and not (changes and _same(found.block, changes)):
            what = approval(found.block, access, changes)
            if what not in self._writer.granted:
                seen = shown(found.block, changes)
                self._asks.append(NeedsConsent(what, verdict.reason, seen, found.name))

    def _may_move(self, found: PermittedBlock, kind: BlockKind) -> None:
        """Check a move. Archiving a block, making it core, and any move of another agent's block need
        overwrite permission."""
        if found.block.owner or kind == "core" or KINDS.index(kind) > KINDS.index(found.block.kind):
            self._allow(found, "overwrite", kind=kind)

    def _may_set(self, permission: BlockPermission, label: str) -> None:
        if permission in checks.BY_PERSON and not self._writer.person:
            raise ToolError(
                f"Only a person can set the permission {permission}:"
                f" quoth memory edit {label} --permission {permission}."
            )

    def _bound(self, label: str, agent: str, permission: BlockPermission | None = None) -> str:
        """A share as it is stored. Only a person may loosen or end a share that a person has set."""
        before = self._stored.shares(label).get(agent, "")
        by_person = before.endswith(checks.SET_BY_PERSON)
        if by_person and not self._writer.person:
            held = checks.bound_of(before)
            if permission is None or checks.stricter(permission, held) != permission:
                raise ToolFailure(
                    "denied", f"A person shared {label} with {agent} ({held}); only a person can change that."
                )
        return f"{permission}{checks.SET_BY_PERSON if by_person or self._writer.person else ''}"

    @property
    def _blocks(self) -> Blocks:
        """The stored blocks, for changes. Raises NeedsConsent if a required approval is missing."""
        if self._asks:
            raise self._asks[0]
        return self._stored

    # Implementation

    def _look(self, label: str) -> PermittedBlock | None:
        """The agent's own block of that label, otherwise the block of that label shared with it. Raises
        ToolError if several agents share one."""
        checks.checked_type(label, "A label")
        if not checks.is_label(label):
            return None
        if own := self._stored_as(label):
            return PermittedBlock(own, own.permission)
        shared = [one for spelling in checks.spellings(label) for one in self._stored.shared(spelling)]
        if len(shared) > 1:
            raise checks.of_several(label, sorted(block.owner for block, _ in shared))
        return _shared(*shared[0]) if shared else None

    def _stored_as(self, label: str) -> Block | None:
        """The agent's own block of that label, in any Unicode form of the label."""
        return next(filter(None, map(self._stored.get, checks.spellings(label))), None)

    def find(self, label: str) -> PermittedBlock:
        """The block of that label, which this agent may read. Raises ToolError naming the nearest label."""
        if found := self._look(label):
            self._allow(found, "read")
            return found
        others = [block.label for block, _ in self._stored.shared()]
        known = sorted({*self._stored.labels("", checks.COMPARED), *others})
        near = known
        if len(known) >= checks.COMPARED and checks.is_label(label):  # too many to compare with each
            near = [*others, *self._stored.labels(label[:2], checks.COMPARED)]
        raise checks.unknown(label, near, known)

    def _own(self, label: str, what: str) -> Block:
        block = self.find(label).block
        if block.owner:
            raise ToolError(f"{label} belongs to {block.owner}, so only {block.owner} can {what}.")
        return block

    def _versions(self, block: Block) -> Iterator[BlockVersion]:
        """Yield the earlier versions, newest first."""
        return unrolled(block.text, self._stored.versions(block.label, block.owner))

    def _copy(self, found: PermittedBlock, kind: BlockKind, to: str) -> Block:
        archived = found.block.kind == "archival"
        label = found.block.label
        if kind == "archival" and archived:
            raise ToolError(f"{label} is archival already.")
        if kind != "archival" and not archived:
            raise ToolError(
                f"{label} is {found.block.kind}; only an archival block can be loaded to another label."
            )
        target = self._target(to, found, kind)
        if kind == "archival":
            self._allow(found, "delete")
        filled = self._fill(target, found, kind, to)
        if kind == "archival":
            self._blocks.remove(label, found.block.owner)
        return filled

    def _target(self, to: str, source: PermittedBlock, kind: BlockKind) -> PermittedBlock | None:
        """The block that a copy overwrites, or None. Raises ToolError or ToolFailure if it may not."""
        checks.checked_label(to)
        target = self._look(to)
        if target is None:
            checks.fits(replace(source.block, label=to, kind=kind))
            return None
        changes = {"text": source.block.text, "kind": _kind_of_copy(target.block.kind, kind)}
        self._allow(target, "overwrite", **changes)
        self._check(target, **changes)
        return target

    def _fill(self, target: PermittedBlock | None, source: PermittedBlock, kind: BlockKind, to: str) -> Block:
        if target is not None:
            return self._change(target, text=source.block.text, kind=_kind_of_copy(target.block.kind, kind))
        moves = kind == "archival" and not source.block.owner  # a move: the same block under another label
        permission = source.block.permission if moves else "read_write"
        return self._add(replace(source.block, label=to, kind=kind, permission=permission, owner=""))

    def _add(self, block: Block) -> Block:
        if any(is_about(block.label, what) for what in self._writer.allowed):
            raise ToolError(
                f"The block {block.label} was forgotten after the question was asked, so it was not created."
            )
        made = self._writer.now
        limit = _limit(block.limit, block.kind)
        label, by = checks.composed(block.label), self._writer.by
        block = replace(block, label=label, limit=limit, version=1, created=made, updated=made, by=by)
        checks.fits(block)
        self._blocks.put(block)
        return PermittedBlock(block, block.permission).seen()

    def _check(self, found: PermittedBlock, **changes: Any) -> None:
        checks.fits(replace(found.block, **changes))

    def _change(self, found: PermittedBlock, **changes: Any) -> Block:
        """Store the next version of a block, unless nothing changes."""
        block, writer = found.block, self._writer
        by = f"agent {writer.agent}: {writer.by}" if block.owner else writer.by
        changed = replace(block, version=block.version + 1, updated=writer.now, by=by, **changes)
        checks.fits(changed)
        blocks = self._blocks
        if _same(block, changes):
            changed = block
        else:
            back = delta(BlockVersion(block.version, block.text, block.updated, block.by), changed.text)
            blocks.put(changed, back)
        permission = found.permission if block.owner else changed.permission
        return PermittedBlock(changed, permission).seen()


def _same(block: Block, changes: Mapping[str, Any]) -> bool:
    return all(getattr(block, name) == value for name, value in changes.items())


def _shared(block: Block, share: str) -> PermittedBlock:
    return PermittedBlock(block, checks.stricter(block.permission, checks.bound_of(share)))


def _limit(limit: int, kind: BlockKind) -> int:
    """A limit as it is stored: 0 means the limit of the kind, and changes with it."""
    return 0 if limit == checks.LIMITS[kind] else limit


def _kind_of_copy(target: BlockKind, kind: BlockKind) -> BlockKind:
    """The new kind of a block that a copy overwrites. A core or working block keeps its kind, unless the copy
    is archived."""
    return kind if "archival" in (target, kind) else target
