"""Parses header arguments of Org Babel, such as ``:var x=name``, and ``#+CALL: name(x=1)``.

Values are only literals or names. Columns count from 0. Nothing is run here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from quoth.tools.advice import instead
from quoth.tools.errors import QuothError, did_you_mean
from quoth.tools.lisp.printer import Code, code_in, to_value
from quoth.tools.lisp.reader import ReadError, read_one

# Header arguments of Org. A plan uses var, eval and results; the others are only for Org itself.
KNOWN = frozenset(
    """
    cache cmdline colnames comments dir epilogue eval exports file file-desc file-ext file-mode hlines mkdirp
    no-expand noeval noweb noweb-ref noweb-sep noweb-prefix output-dir padline post prologue results rownames
    sep session shebang tangle tangle-mode var wrap name
    """.split()  # noqa: SIM905
)
_NAME = re.compile(r"[^\s\[\]()\"'`=,]+\Z")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?\Z")
_CALL = re.compile(r"([^\[\]()\s]+)[ \t]*(?:\[(.*?)\])?[ \t]*(?:\((.*)\))?[ \t]*(.*)\Z")


@dataclass(frozen=True)
class Header:
    """One header argument, without its colon, and the columns of its name and value."""

    name: str
    value: str
    column: int
    value_column: int


@dataclass(frozen=True, eq=False)
class Var:
    """``x=…``: a literal ``value``, or ``ref``, the name of the block whose result is the value."""

    name: str
    text: str
    column: int
    ref: str = ""
    value: Any = None


class HeaderError(QuothError):
    """A header argument that cannot be parsed; ``column`` is its position."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.column = column


def split(text: str, column: int = 0, at: str = " \t") -> Iterator[tuple[str, int]]:
    """The parts of a line between characters ``at`` outside brackets and quotes, with their columns."""
    start, depth, quoted, place = 0, 0, False, 0
    while place <= len(text):
        char = text[place] if place < len(text) else at[0]
        if quoted:
            place += char == "\\" and place < len(text)
            quoted = char != '"' and place < len(text)
        elif char == '"':
            quoted = True
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth = max(0, depth - 1)
        if (char in at and not depth and not quoted) or place >= len(text):
            part = text[start:place]
            if part.strip():
                yield part.strip(), column + start + len(part) - len(part.lstrip())
            start = place + 1
        place += 1


def headers(text: str, column: int = 0) -> list[Header]:
    """The header arguments of a line. Text before the first one is ignored."""
    found: list[Header] = []
    for part, where in split(text, column):
        if part.startswith(":") and len(part) > 1:
            found.append(Header(part[1:], "", where, where))
        elif found:
            last = found[-1]
            gap = " " * (where - last.value_column - len(last.value)) if last.value else ""
            found[-1] = Header(
                last.name, last.value + gap + part, last.column, last.value_column if last.value else where
            )
    return found


def language(text: str) -> str:
    """The language of a source block, from the text after ``#+begin_src``; empty if there is none."""
    word = text.split(maxsplit=1)[:1]
    return word[0] if word and not word[0].startswith((":", "-")) else ""


def variables(text: str, column: int = 0, commas: bool = False) -> list[Var]:
    """The assignments ``x=1 y=name``, or ``x=1, y=name`` with ``commas``. Raises HeaderError."""
    found = []
    for part, where in split(text, column, "," if commas else " \t"):
        name, sign, value = part.rstrip(",").partition("=")
        name = name.strip()
        if not _NAME.match(name) or not sign or not value.strip():
            shown = name.rstrip(":") if _NAME.match(name) else "x"
            raise HeaderError(f"{part} does not assign a value. Write {shown}=name or {shown}=5.", where)
        found.append(_var(name, value.strip(), where))
    return found


def unreadable(text: str) -> list[Var]:
    """The variables in a text that ``variables`` refuses: only their names."""
    found = [(part.partition("=")[0].strip(" :"), part, where) for part, where in split(text)]
    return [Var(name, part, where) for name, part, where in found if _NAME.match(name)]


def _var(name: str, text: str, column: int) -> Var:
    if _NUMBER.match(text):
        return Var(name, text, column, value=int(text) if re.match(r"[-+]?\d+\Z", text) else float(text))
    if text[0] in "\"'`([{":
        try:
            value = to_value(read_one(text))
        except (ReadError, QuothError):
            value = Code(text)
        if isinstance(value, Code) and value.data is not None:
            value = value.data
        if code_in(value) is None:
            return Var(name, text, column, value=value)
    elif _NAME.match(ref := text.removesuffix("()")):
        return Var(name, text, column, ref=ref)
    raise HeaderError(f"{name}={text} is not a plain value. Write a number, text, list or name.", column)


def call(text: str, column: int = 0) -> tuple[str, list[Var]]:
    """The block name and the variables of ``#+CALL: name(x=1)``. Raises HeaderError."""
    found = _CALL.match(text)
    if not found:
        raise HeaderError("A call must name a block, such as #+CALL: name(x=5).", column)
    if text.count("(") > text.count(")"):
        raise HeaderError("This ( is never closed.", column + text.index("("))
    given = variables(found[3] or "", column + max(found.start(3), 0), commas=True)
    for group in (2, 4):
        for header in headers(found[group] or "", column + max(found.start(group), 0)):
            if header.name == "var":
                given += variables(header.value, header.value_column)
    return found[1], given


def is_silent(header: Header) -> bool:
    """Whether a header argument makes Org not write results."""
    return header.name == "results" and not {"silent", "none", "discard"}.isdisjoint(header.value.split())


def forbids(header: Header) -> bool:
    """Whether a header argument makes Org not run the block."""
    return header.name == "noeval" or (header.name == "eval" and header.value in ("no", "never"))


def unknown(header: Header) -> str | None:
    """An error message for a header argument that Org does not have or plans do not support; otherwise
    None."""
    if header.name in instead("header") and header.value not in ("", "no", "nil"):
        return f"Plans do not support :{header.name}; {instead('header')[header.name]}."
    if header.name in KNOWN or header.name.startswith(("header-args", "x-")):
        return None
    return f"Unknown header argument :{header.name}.{did_you_mean(header.name, KNOWN, mark=':')}"
