"""What a person is asked before a block is changed: an approval covers what its name says, and nothing else.

It must not know stores, calls or how a person is asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from quoth.tools.call.service_types import Block
from quoth.tools.memory import acl
from quoth.tools.memory.stored import common
from quoth.tools.text import excerpt, number_of

SHOWN: Final = 200  # characters of a text that a person is shown
BEFORE: Final = 20  # of them, so many before the first change of a longer one


class NeedsConsent(Exception):
    """An operation needs a person's approval first; nothing was changed. ``what`` they approve; ``reason``
    says why they are asked, ``shown`` what the block would hold."""

    def __init__(self, what: str, reason: str, shown: str, name: str) -> None:
        super().__init__(reason)
        self.what = what
        self.reason = reason
        self.shown = shown
        self.name = name


def approval(block: Block, access: acl.Access, changes: Mapping[str, Any]) -> str:
    """The name of the approval that an access needs: of an overwrite it says the version that is changed, and
    with the digest of both texts, what from and what to. So it holds for no other block, text or moment."""
    parts = [f"of {_plain(block.owner)}"] if block.owner else []
    if access != "append":
        parts.append(f"{access} version {block.version}")
        if changes.get("kind", block.kind) != block.kind:
            parts.append(f"kind {changes['kind']}")
        if "text" in changes:
            parts.append(f"text {_digest(block.text, changes['text'])}")
    return f"MemoryEdit {_plain(block.label)}" + (f" ({', '.join(parts)})" if parts else "")


def is_about(label: str, what: str) -> bool:
    """Whether an approval of that name is about an own block of that label."""
    name = f"MemoryEdit {_plain(label)}"
    return what == name or (what.startswith(f"{name} (") and not what.startswith(f"{name} (of "))


def shown(block: Block, changes: Mapping[str, Any]) -> str:
    """What a block would be, for a person; of its text the beginning, or of a long one what follows the first
    change."""
    would = []
    if changes.get("kind", block.kind) != block.kind:
        would.append(f"be {changes['kind']}")
    if "text" in changes:
        text, start = changes["text"], 0
        if len(text) > SHOWN:
            start = max(0, common(block.text, text) - BEFORE)
        part = ("…" if start else "") + text[start : start + SHOWN + 1].replace("\n", " ")
        would.append(
            f"hold {number_of(len(text), 'character')}" + (f': "{excerpt(part, SHOWN)}"' if text else "")
        )
    return f"{_plain(block.label)} would then {' and '.join(would)}" if would else ""


def _digest(before: str, text: str) -> str:
    """96 bits, so that no two texts are found that share it, one to be shown and one to be written."""
    return hashlib.sha256(json.dumps([before, text]).encode()).hexdigest()[:24]


def _plain(name: str) -> str:
    """A label or the name of an agent: in quotes if it could be read as something else."""
    return json.dumps(name, ensure_ascii=False) if {*'("'} & {*name} else name
