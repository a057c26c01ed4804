"""Syntax errors: the line and column of an offset, and the error that the reader raises."""

from __future__ import annotations

import unicodedata

from quoth.tools.errors import QuothError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.text import printable

_KEPT = 200  # characters kept on each side of the column, because a line can have megabytes
_WINDOW = 80  # characters of a long line that caret() shows


class LineIndex:
    """Converts an offset in ``text`` to (line, column), both from 1. Only a line feed ends a line. ``line``
    and ``column`` are the position of ``text[0]``. It counts from the last offset, so ascending offsets take
    linear time in total."""

    __slots__ = ("first", "line", "offset", "start", "text")

    def __init__(self, text: str, line: int = 1, column: int = 1) -> None:
        self.text = text
        self.offset = 0
        self.line = line
        self.start = self.first = 1 - column  # start of the line of ``offset``; negative if before the text

    def at(self, offset: int) -> tuple[int, int]:
        if offset > self.offset:
            if passed := self.text.count("\n", self.offset, offset):
                self.line += passed
                self.start = self.text.rindex("\n", self.offset, offset) + 1
        elif passed := self.text.count("\n", offset, self.offset):
            self.line -= passed
            self.start = self.text.rfind("\n", 0, offset) + 1 or self.first
        self.offset = offset
        return self.line, offset - self.start + 1


@dataclass(eq=False)
class ReadError(QuothError):
    """A syntax error with its position and a ``hint`` how to fix it. ``incomplete`` means that the text ended
    inside a form. ``source_line`` may lack its first ``cut`` characters; ``offset`` is the offset in the
    text."""

    message: str
    line: int = 1
    column: int = 1
    hint: str = ""
    source_line: str = ""
    incomplete: bool = False
    cut: int = 0
    offset: int = 0

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        return f"line {self.line}, column {self.column}: {self.message}{hint}"

    def caret(self) -> str:
        """The source line (at most 80 characters of it), and below it a caret under the column."""
        at = self.column - 1 - self.cut
        start = max(0, at - _WINDOW // 2) if len(self.source_line) > _WINDOW else 0
        stop = start + _WINDOW
        # A model may have written the line: its control characters must not reach a terminal.
        shown = printable(self.source_line[start:stop], "\t")
        pad = "".join(c if c == "\t" else " " * _width(c) for c in shown[: at - start])
        left = "…" if start or self.cut else ""
        right = "…" if stop < len(self.source_line) else ""
        return f"{left}{shown}{right}\n{' ' * len(left)}{pad}^"


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def error_at(
    text: str, lines: LineIndex, message: str, offset: int, hint: str = "", incomplete: bool = False
) -> ReadError:
    """A ReadError for ``text[offset]``, with its line and column and the source line."""
    line, column = lines.at(offset)
    first = offset - column + 1
    start = max(first, offset - _KEPT, 0)
    source = text[start : offset + _KEPT]
    stop = source.find("\n", offset - start)
    source = (source if stop < 0 else source[:stop]).rstrip("\r")
    return ReadError(message, line, column, hint, source, incomplete, start - first, offset)
