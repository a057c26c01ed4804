"""``compile`` as in ``re``, except that a pattern is compiled at its first use, not at import.

Patterns that every start uses stay with ``re``. Two threads that meet at the first use get the same pattern.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from re import compile as compile  # checkers see a re.Pattern
else:

    def compile(pattern, flags=0):
        return _LazyPattern(pattern, flags)


class _LazyPattern:
    """Has every attribute of the compiled pattern; from the second use on as one of its own. It takes no
    lock, which a fork could leave held."""

    _compiled: re.Pattern[str] | None = None

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # a copy has no pattern yet
            raise AttributeError(name)
        compiled = self._compiled = self._compiled or re.compile(self.pattern, self._flags)
        value = getattr(compiled, name)
        setattr(self, name, value)
        return value
