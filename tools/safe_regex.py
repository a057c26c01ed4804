"""Compiles untrusted regular expressions within bounds.

Compilation expands counted repeats and cannot be interrupted, so its size is estimated first. The caller sets
a deadline for matching.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from quoth.tools.errors import ToolError

if TYPE_CHECKING:
    from regex import Pattern

MAX_PATTERN = 2000  # characters
MAX_UNROLLED = 100_000  # items after counted repeats are expanded
_RECURSIVE = re.compile(r"(?<!\\)\(\?(?:R|\d|&|P>)")  # (?R), (?1), (?&name): may allocate a gigabyte

_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\{(\d+)(,?)(\d*)\}|[\s\S]")


def compiled(pattern: str) -> Pattern[str]:
    """Compile a regular expression. Raises ToolError with its fault."""
    import regex

    if len(pattern) > MAX_PATTERN:
        raise ToolError(f"The pattern is longer than {MAX_PATTERN} characters.")
    if _RECURSIVE.search(pattern):
        raise ToolError(f"{pattern} calls itself; write it without recursion.")
    if unrolled(pattern) > MAX_UNROLLED:
        raise ToolError(f"{pattern} repeats too much; use smaller counts.")
    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError, ValueError, OverflowError) as error:
        raise ToolError(f"{pattern} is not a regular expression: {error}.") from None


def unrolled(pattern: str) -> int:
    """The approximate number of items of ``pattern`` with its repeats expanded; nested repeats multiply."""
    sizes, last = [0], 0
    for token in _TOKEN.finditer(pattern):
        text, least = token[0], token[1]
        if least:
            last *= max(1, int(least), int(token[3] or 0))
        elif text == "+":
            last *= 2
        elif text in "*?":
            continue
        elif text == "(":
            sizes[-1] += last
            sizes.append(0)
            last = 0
        elif text == ")" and len(sizes) > 1:
            last += sizes.pop()
        else:
            sizes[-1] += last
            last = 1
    return sum(sizes) + last
