"""What would become of a call that is not made, as data.

Knows no door; the door fills it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from quoth.tools.lisp.forms import CallForm


@dataclass(frozen=True)
class RemainingQuota:
    """What one limit leaves: so many calls, or (None) a sentence alone."""

    count: int | None
    words: str


@dataclass(frozen=True)
class CallPreview:
    """A call as the door sees it. ``paths`` are the files it names, None where that cannot be told;
    ``leads`` is where those lead that are links, as far as the form does not tell;
    ``secret`` names its arguments that are not shown."""

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
