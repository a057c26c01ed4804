"""The ACL of memory blocks: what each permission lets an agent do, as data.

The stores ask it, so that no caller goes round it (seed 004). It must not know stores, tools or people.
"""

from __future__ import annotations

from typing import Final, Literal, cast, get_args

from quoth.tools.call.call import ALLOW, Verdict, ask, deny
from quoth.tools.call.service_types import BlockPermission

Access = Literal["read", "append", "overwrite", "delete"]

# From the strictest. For each permission: read, append, overwrite, delete.
TABLE: Final[dict[BlockPermission, tuple[str, str, str, str]]] = {
    "read_only": ("allow", "deny", "deny", "deny"),
    "partner": ("allow", "ask", "ask", "deny"),
    "human": ("allow", "ask", "ask", "deny"),
    "append": ("allow", "allow", "deny", "deny"),
    "read_write": ("allow", "allow", "allow", "deny"),
    "admin": ("allow", "allow", "allow", "allow"),
}
ACCESSES: Final[tuple[Access, ...]] = get_args(Access)
FROM_STRICTEST: Final = tuple(TABLE)
BY_PERSON: Final[frozenset[BlockPermission]] = frozenset({"partner", "human", "admin"})  # only a person sets
SET_BY_PERSON: Final = " by a person"  # behind the bound of a share that a person has set, as it is stored


def judge(permission: BlockPermission, access: Access) -> Verdict:
    """What a block's permission says of one access; the reason of a denial says what would be allowed."""
    row = TABLE.get(permission, TABLE[FROM_STRICTEST[0]])  # an unknown one: a byte of the store is damaged
    word = row[ACCESSES.index(access)]
    if word == "allow":
        return ALLOW
    if word == "ask":
        return ask(f"Requires {permission} approval to {access}")
    return deny(f"its permission is {permission}, which does not let you {access}; you may {may(permission)}")


def may(permission: str) -> str:
    """What an agent with that permission may do, in words."""
    row = TABLE.get(cast(BlockPermission, permission), TABLE[FROM_STRICTEST[0]])
    allowed = [one for one, answer in zip(ACCESSES, row, strict=True) if answer == "allow"]
    asked = [one for one, answer in zip(ACCESSES, row, strict=True) if answer == "ask"]
    head, _, last = ", ".join(allowed).rpartition(", ")
    said = f"{head} and {last}" if head else last
    if asked:
        said += f", and with a person's approval {' and '.join(asked)}"
    return said


def stricter(one: BlockPermission, other: BlockPermission) -> BlockPermission:
    """The stricter of two permissions."""
    ranks = {name: rank for rank, name in enumerate(FROM_STRICTEST)}
    return min(one, other, key=lambda name: ranks.get(name, -1))


def bound_of(share: str) -> BlockPermission:
    """The bound of a share as it is stored."""
    return cast(BlockPermission, share.removesuffix(SET_BY_PERSON))
