"""What may be stored in a block, what its permission lets an agent do, and the sentences that say why not.

It knows texts, labels and limits; it must not know stores or calls.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, cast, get_args

from quoth.tools.call.call import ALLOW, Verdict, ask, deny
from quoth.tools.call.service_types import Block, BlockKind, BlockPermission, one_of
from quoth.tools.errors import ToolError, did_you_mean
from quoth.tools.text import excerpt

LIMITS: Final[dict[BlockKind, int]] = {"core": 5_000, "working": 20_000, "archival": 100_000}
MAX_LIMIT = 10_000_000  # characters
MAX_LABEL = 100
LISTED = 20  # labels that an error message lists
COMPARED = 1_000  # labels that a misspelt one is compared with


def limit_of(block: Block) -> int:
    """The largest length of a block's text, in characters; 0 for a kind that is unknown, as it is damaged."""
    return block.limit or LIMITS.get(block.kind, 0)


def checked_type(given: object, what: str, wanted: type = str) -> None:
    """Raise ToolError unless it is a text, or a whole number where ``wanted`` is int."""
    if not isinstance(given, wanted) or isinstance(given, bool):
        kind = "a text" if wanted is str else "a whole number"
        raise ToolError(f"{what} is {kind}, not {excerpt(ascii(given))}.")


def is_label(label: str) -> bool:
    """Whether ``label`` can name a block."""
    return 0 < len(label) <= MAX_LABEL and label.isprintable() and label == label.strip()


def composed(label: str) -> str:
    """The label as it is stored: in Unicode's composed form (NFC), so that two that look the same are one."""
    return label if not isinstance(label, str) or label.isascii() else unicodedata.normalize("NFC", label)


def spellings(label: str) -> tuple[str, ...]:
    """Under which a block of that label may be stored; older ones are not always composed."""
    if label.isascii():
        return (label,)
    return tuple(dict.fromkeys((composed(label), label, unicodedata.normalize("NFD", label))))


def checked_label(label: str, what: str = "A label") -> None:
    """Raise ToolError unless it is a label."""
    checked_type(label, what)
    if not is_label(label):
        raise ToolError(
            f"{what} is 1 to {MAX_LABEL} printable characters without a space at its ends, not"
            f" {label[:40]!a}."
        )


def checked_text(text: str) -> None:
    """Raise ToolError unless a store can hold ``text``."""
    checked_type(text, "What a block holds")
    if fault := fault_of(text):
        raise ToolError(f"A block cannot hold {fault}.")


def fault_of(text: str) -> str:
    """What no store can hold of ``text``, and where; empty if there is none."""
    if "\0" in text:
        return f"a NUL character, which character {text.index(chr(0)) + 1} is"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"half a character (a lone surrogate), which character {error.start + 1} is"
    return ""


def checked_kind(kind: str) -> None:
    checked_type(kind, "The kind of a block")
    one_of("kind of block", kind, get_args(BlockKind))


def checked_permission(permission: str) -> None:
    checked_type(permission, "A permission")
    one_of("permission", permission, get_args(BlockPermission))


def checked_limit(limit: int) -> None:
    checked_type(limit, "The limit of a block", int)
    if not 0 <= limit <= MAX_LIMIT:
        raise ToolError(f"The limit of a block is 1 to {MAX_LIMIT:,} characters, not {limit:,}.")


def fits(block: Block) -> None:
    """Raise ToolError when the text of a block is longer than its limit."""
    limit, length = limit_of(block), len(block.text)
    if length > limit:
        raise ToolError(
            f"{block.label} holds at most {limit:,} characters, and this would make it {length:,}:"
            f" {length - limit:,} character{'s' * (length - limit > 1)} too many. Nothing was changed."
        )


def unknown(label: str, near: Sequence[str], known: Sequence[str]) -> ToolError:
    """That there is no such block: ``near`` are labels it may have meant, ``known`` the first of all."""
    shown = excerpt(label, MAX_LABEL)
    if not known:
        return ToolError(f"There is no block named {shown}; there are no blocks yet.")
    listed, more = ", ".join(known[:LISTED]), " and more" if len(known) > LISTED else ""
    return ToolError(
        f"There is no block named {shown}.{did_you_mean(label, near)} The blocks are: {listed}{more}."
    )


def of_several(label: str, owners: Sequence[str]) -> ToolError:
    return ToolError(
        f"Several agents share a block named {label} with this one: {', '.join(owners)}. Which is meant"
        f" is not clear until all but one unshare it: quoth memory edit {label} --agent OWNER --share AGENT="
    )


def taken(block: Block) -> ToolError:
    return ToolError(
        f"There is already a block named {block.label} ({block.kind}); change that one, or take another"
        " label."
    )


def not_there(label: str, old: str) -> ToolError:
    return ToolError(f"{label} does not hold the text {excerpt(old)!r}, so nothing was replaced.")


def checked_changes(changes: Mapping[str, Any]) -> None:
    """Raise ToolError unless each field can have its new value."""
    for name, check in CHECKS.items():
        if name in changes:
            check(changes[name])


CHECKS: Final[dict[str, Callable[[Any], None]]] = {
    "text": checked_text,
    "description": checked_text,
    "kind": checked_kind,
    "permission": checked_permission,
    "limit": checked_limit,
}


# The ACL of memory blocks: what each permission lets an agent do, as data.
#
# The stores ask it, so that no caller goes round it (seed 004). It must not know stores, tools or people.


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
