"""The preview of a call, as data: what would happen if the call were made.

It knows no door; the door fills it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from quoth.tools.lisp.forms import CallForm


@dataclass(frozen=True)
class RemainingQuota:
    """What one limit leaves: ``count`` calls, or None where only ``words`` can describe it."""

    count: int | None
    words: str


@dataclass(frozen=True)
class CallPreview:
    """The preview of one call. ``paths`` are the files it names, None where they are not known. ``leads``
    maps arguments to the targets of their links, where the form does not name the target. ``secret`` names
    the arguments that must not be shown."""

    form: CallForm
    verdict: Literal["allow", "ask", "deny", "invalid", "unknown"]
    reason: str = ""
    effects: tuple[str, ...] = ()
    cost: str = "free"
    gate: bool = False
    version: str = ""
    left: tuple[RemainingQuota, ...] = ()
    paths: tuple[str, ...] | None = None
    leads: Mapping[str, str] = field(default_factory=dict)
    secret: frozenset[str] = field(default_factory=frozenset)
