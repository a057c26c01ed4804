"""What forms print at a terminal: colours pass, and end with what is printed at once; all else that would
steer the terminal is shown as a mark.

A form prints what files and models have said, as in ``(print (read-file "a.txt"))``. Knows a stream.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from quoth.tools.text import printable

_COLORS = re.compile(r"(\x1b\[[0-9;]{0,30}m)")
_RESET = "\x1b[0m"


class SafeOutput:
    """Standard output whose control characters are made harmless."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        parts = _COLORS.split(text.replace("\r\n", "\n"))  # every second one is a colour
        safe = "".join(part if at % 2 else printable(part, "\n\t") for at, part in enumerate(parts))
        # A question, which may come next, must not be drawn in a colour that hides it.
        self._stream.write(safe + (_RESET if len(parts) > 1 else ""))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def safely_printed() -> Iterator[None]:
    """Have what is printed inside the ``with`` block go through SafeOutput."""
    kept: Any = sys.stdout
    sys.stdout = SafeOutput(kept)
    try:
        yield
    finally:
        if isinstance(sys.stdout, SafeOutput):
            kept.flush()
            sys.stdout = kept
