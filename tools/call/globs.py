"""File patterns such as ``*.py``, ``src/*.py`` and ``**/*.txt``, as tools and settings take them.

Knows texts only; it must not open a file. A pattern is compared with the name of a file, and with its path
below the root.
"""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache


def fits(path: str, pattern: str) -> bool:
    """Whether the file at a path fits a pattern. ``**/`` stands for any number of folders, also for none."""
    found = _expression(pattern).fullmatch
    return found(path.rpartition("/")[2]) is not None or found(path) is not None


@lru_cache(maxsize=64)
def _expression(pattern: str) -> re.Pattern[str]:
    pieces = re.split(r"(?<![^/])\*\*/", pattern)
    return re.compile("(?:.*/)?".join(map(_translated, pieces)), re.DOTALL)


def _translated(piece: str) -> str:
    """A piece of a pattern as a regular expression, without the mark of the end."""
    return translate(piece).removeprefix("(?s:")[: -len(r")\Z")]
