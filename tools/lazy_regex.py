"""``compile`` as in ``re``, except that a pattern is compiled at its first use, not at import.

Patterns that every start uses stay with ``re``. Two threads that meet at the first use get the same pattern.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from re import compile as compile  # checkers see a re.Pattern
else:

    def compile(pattern, flags=0):
        return _LazyPattern(pattern, flags)


class _LazyPattern:
    """Has every attribute of the compiled pattern; from the second use on as one of its own."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._compiled, name)
        setattr(self, name, value)
        return value
