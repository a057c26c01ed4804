"""A file's text with its name, and places in it, for error messages that point at a form."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import NamedTuple

from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.reader import ReadError


@dataclass(frozen=True)
class SourceText:
    """The text of a file, and its name in error messages."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def complaint(self, place: Place, message: str) -> str:
        """``file:line:column: message``, the source line, and a caret under the column."""
        caret = ReadError("", place.line, place.column, source_line=place.text.rstrip("\r")).caret()
        shown = "\n".join(f"  {row}" for row in caret.split("\n"))
        return f"{self.name}:{place.line}:{place.column}: {message}\n{shown}"


class Place(NamedTuple):
    """A position in a file. Line and column count from 1."""

    source: SourceText
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}"

    @property
    def text(self) -> str:
        """The text of the line."""
        return self.source.lines[self.line - 1]

    def complaint(self, message: str) -> str:
        return self.source.complaint(self, message)
