"""The preview of a call, as data: what would happen if the call were made, and what it would change.

It knows no door; the door fills it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

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


# What a call would change, as data: the files with their texts before and after, and the lines that differ.
#
# It knows no tool and no door; the door fills it, and nothing of it is stored or told to a model.


COMPARED = 2000  # lines of each text; what is longer is told as taken away and put there


class Change(NamedTuple):
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


def lines_of(text: str | None) -> list[str]:
    """The lines of a text with their ends, as editors count them."""
    return re.findall(r"[^\n]*\n|[^\n]+\Z", text) if text else []


def differing(old: list[str], new: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """The places where two texts differ: from and to in the old one, and in the new one. What both begin and
    end with is left out first, so that a small change in a long file is quickly found."""
    import difflib  # here: most calls change nothing

    begin = 0
    while begin < min(len(old), len(new)) and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < min(len(old), len(new)) - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    before, after = old[begin : len(old) - end], new[begin : len(new) - end]
    if max(len(before), len(after)) > COMPARED:
        yield begin, len(old) - end, begin, len(new) - end
        return
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after).get_opcodes():
        if kind != "equal":
            yield begin + a, begin + b, begin + c, begin + d
