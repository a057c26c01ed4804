"""PythonHint: a short error message at a position of a program, with the corrected form in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import hy.models as m

from quoth.tools.lisp.printer import print_string
from quoth.tools.lisp.reader import ReaderLimits, ReadError, read_all
from quoth.tools.text import short

MAX_LESSON = 200  # characters of a message
MAX_FIXED = 110  # characters of the form shown; a longer form helps less than a general example
MAX_PYTHON = 2_000  # characters of a text that is tried as Python
LIMITS = ReaderLimits(max_chars=MAX_PYTHON, max_depth=60, max_forms=1_000, booleans=True)


@dataclass(frozen=True)
class PythonHint:
    line: int
    column: int
    message: str


def advice(what: str, fixed: str | None, example: str = "") -> str:
    """The message ``what`` with the corrected form, or with ``example`` if that is long or unreadable."""
    if fixed is not None and (len(fixed) > MAX_FIXED or "\n" in fixed or not reads(fixed)):
        fixed = None
    shown = fixed or example
    message = f"{what}; write {shown}" if shown else what
    return short(message, MAX_LESSON)


def reads(text: str) -> bool:
    try:
        return bool(read_all(text, LIMITS))
    except ReadError:
        return False


class NodeText:
    """Finds the source text of a program's nodes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0]
        for line in text.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def span(self, node: Any) -> tuple[int, int]:
        start = self.starts[node.start_line - 1] + node.start_column - 1
        return start, self.starts[node.end_line - 1] + node.end_column

    def of(self, node: Any) -> str:
        start, stop = self.span(node)
        return " ".join(self.text[start:stop].split("\n"))

    def all(self, nodes: Iterable[Any]) -> str:
        return " ".join(map(self.of, nodes))

    def clean(self, node: Any) -> str:
        """The text of a node without commas and the colons of JSON."""
        if isinstance(node, (m.List, m.Dict, m.Expression)) and self.of(node)[:1] in "([{":
            opener, closer = self.of(node)[0], self.of(node)[-1]
            parts = [part for item in node if (part := self.clean(item))]
            return opener + " ".join(parts) + closer
        text = self.of(node).rstrip(",")
        if isinstance(node, m.Keyword) and not node.name:
            return ""
        if isinstance(node, m.Symbol) and text.endswith(":"):
            return print_string(text[:-1])
        return text
