"""What a call would change, as data: the files with their texts before and after.

It knows no tool and no door; the door fills it, and nothing of it is stored or told to a model.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Change:
    """One file that a call would change. ``before`` is None where there is no file, ``after`` is None where
    it would be removed. ``binary`` is the size of a file that is no text, which would be replaced."""

    path: str
    before: str | None
    after: str | None
    binary: int | None = None


@dataclass(frozen=True)
class Changes:
    """What one call would change. With ``trouble``, a sentence, that is not known, or the call ``fails``."""

    files: tuple[Change, ...] = ()
    trouble: str = ""
    fails: bool = field(default=False, compare=False)
