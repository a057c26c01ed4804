"""Checks of a block's fields and of an agent's permission, with the messages for each violation."""

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
LISTED = 20  # maximum number of labels in an error message
COMPARED = 1_000  # maximum number of labels that a misspelt one is compared with


def limit_of(block: Block) -> int:
    """The maximum length of a block's text, in characters; 0 for an unknown kind (a damaged store)."""
    return block.limit or LIMITS.get(block.kind, 0)


def checked_type(given: object, what: str, wanted: type = str) -> None:
    """Raise ToolError unless ``given`` has the type ``wanted`` (str or int)."""
    if not isinstance(given, wanted) or isinstance(given, bool):
        kind = "a text" if wanted is str else "a whole number"
        raise ToolError(f"{what} must be {kind}, not {excerpt(ascii(given))}.")


def is_label(label: str) -> bool:
    """Whether ``label`` can name a block."""
    return 0 < len(label) <= MAX_LABEL and label.isprintable() and label == label.strip()


def composed(label: str) -> str:
    """The label as it is stored: in Unicode's composed form (NFC). Labels that look the same are the same."""
    return label if not isinstance(label, str) or label.isascii() else unicodedata.normalize("NFC", label)


def spellings(label: str) -> tuple[str, ...]:
    """The forms in which a label may be stored: older stores also have labels that are not composed."""
    if label.isascii():
        return (label,)
    return tuple(dict.fromkeys((composed(label), label, unicodedata.normalize("NFD", label))))


def checked_label(label: str, what: str = "A label") -> None:
    """Raise ToolError unless ``label`` is valid."""
    checked_type(label, what)
    if not is_label(label):
        raise ToolError(
            f"{what} must be 1 to {MAX_LABEL} printable characters, without a space at either end, not"
            f" {label[:40]!a}."
        )


def checked_text(text: str) -> None:
    """Raise ToolError unless ``text`` can be stored."""
    checked_type(text, "The content of a block")
    if fault := fault_of(text):
        raise ToolError(f"A block cannot contain {fault}.")


def fault_of(text: str) -> str:
    """The first character of ``text`` that cannot be stored, in words with its place; empty if there is
    none."""
    if "\0" in text:
        return f"a NUL character (character {text.index(chr(0)) + 1})"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"an unpaired surrogate (character {error.start + 1})"
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
        raise ToolError(f"The limit of a block must be 1 to {MAX_LIMIT:,} characters, not {limit:,}.")


def fits(block: Block) -> None:
    """Raise ToolError if the text of a block is longer than its limit."""
    limit, length = limit_of(block), len(block.text)
    if length > limit:
        raise ToolError(
            f"{block.label} is limited to {limit:,} characters; this would make it {length:,}:"
            f" {length - limit:,} character{'s' * (length - limit > 1)} too many. Nothing was changed."
        )


def unknown(label: str, near: Sequence[str], known: Sequence[str]) -> ToolError:
    """The error for an unknown label. ``near`` are similar labels, ``known`` the first existing ones."""
    shown = excerpt(label, MAX_LABEL)
    if not known:
        return ToolError(f"There is no block named {shown}; there are no blocks yet.")
    listed, more = ", ".join(known[:LISTED]), " and more" if len(known) > LISTED else ""
    return ToolError(
        f"There is no block named {shown}.{did_you_mean(label, near)} The blocks are: {listed}{more}."
    )


def of_several(label: str, owners: Sequence[str]) -> ToolError:
    return ToolError(
        f"Several agents share a block named {label} with this one: {', '.join(owners)}. All but one of them"
        f" must unshare it first: quoth memory edit {label} --agent OWNER --share AGENT="
    )


def taken(block: Block) -> ToolError:
    return ToolError(
        f"There is already a block named {block.label} ({block.kind}). Change that one, or choose another"
        " label."
    )


def not_there(label: str, old: str) -> ToolError:
    return ToolError(f"{label} does not contain the text {excerpt(old)!r}, so nothing was replaced.")


def checked_changes(changes: Mapping[str, Any]) -> None:
    """Raise ToolError if the new value of a field is invalid."""
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


# The ACL of memory blocks: the accesses that each permission allows, as data. The stores check it themselves,
# so that no caller can bypass it.


Access = Literal["read", "append", "overwrite", "delete"]

# Strictest first. For each permission: read, append, overwrite, delete.
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
BY_PERSON: Final[frozenset[BlockPermission]] = frozenset(
    {"partner", "human", "admin"}
)  # only a person may set these
SET_BY_PERSON: Final = " by a person"  # suffix of a share that a person has set


def judge(permission: BlockPermission, access: Access) -> Verdict:
    """The verdict of a block's permission on one access. The reason of a denial names the allowed
    accesses."""
    row = TABLE.get(permission, TABLE[FROM_STRICTEST[0]])  # unknown only if the store is damaged
    word = row[ACCESSES.index(access)]
    if word == "allow":
        return ALLOW
    if word == "ask":
        return ask(f"Requires {permission} approval to {access}")
    return deny(f"its permission is {permission}, which does not let you {access}; you may {may(permission)}")


def may(permission: str) -> str:
    """The accesses that a permission allows, in words."""
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
    """The permission in a stored share."""
    return cast(BlockPermission, share.removesuffix(SET_BY_PERSON))
