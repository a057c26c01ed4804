"""Error messages for programs that cannot be read, do not compile, or fail while they run. Only failures are
explained here; nothing is run."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, Final

import hy
import hy.models as m

from quoth.tools.advice import instead
from quoth.tools.errors import SURE, did_you_mean, nearest
from quoth.tools.lisp.printer import print_string
from quoth.tools.lisp.reader import ReadError, read_all
from quoth.tools.lisp.syntax import head_of
from quoth.tools.program.from_python import INFIX, whole_python
from quoth.tools.program.hint import LIMITS, MAX_FIXED, MAX_PYTHON, NodeText, PythonHint, advice, reads
from quoth.tools.text import excerpt

# ---- texts that cannot be read

_SINGLE = re.compile(r"'([^'\"()\[\]{}\n]*)'")
_NAMED_TEXT = re.compile(r"([A-Za-z_][\w-]*)=(?=\")")


def unreadable(text: str, error: ReadError) -> PythonHint | None:
    """A better message than the reader's for a text that it refused, with the corrected form; or None."""

    def lesson(what: str, fixed: str | None) -> PythonHint | None:
        if fixed is None or len(fixed) > MAX_FIXED or "\n" in fixed or not reads(fixed):
            return None
        return PythonHint(error.line, error.column, advice(what, fixed))

    stripped = text.strip()
    if len(stripped) > MAX_PYTHON:
        return None
    python = whole_python(text)
    if python:
        return lesson("this is Python", python)
    if "no form after this '" in error.message or "a symbol" in error.message or _SINGLE.search(stripped):
        found = lesson("a text is written in double quotes", _SINGLE.sub(r'"\1"', stripped))
        if found:
            return found
    if "no string has the prefix" in error.message and _NAMED_TEXT.search(stripped):
        return lesson("an argument's name is a keyword before its value", _NAMED_TEXT.sub(r":\1 ", stripped))
    if error.message.startswith("there is no open form"):
        before = text[: error.offset].strip()
        if before and before[0] not in "([{" and reads(f"({before})"):
            return lesson("the ( before the first word is missing", f"({stripped}")
        rest = text[error.offset + 1 :].strip()
        return lesson(f"there is one {text[error.offset]} too many", f"{before} {rest}".strip())
    closers = re.search(r"add ([)\]}]+) at the end", error.hint)
    if error.incomplete and closers:
        return lesson(f"{error.message}; {error.hint}", stripped + closers[1])
    if error.message.startswith("this ") and "does not close" in error.message:
        for opener in ")]}":
            for fixed in (
                text[: error.offset] + opener + text[error.offset + 1 :],
                text[: error.offset] + opener + text[error.offset :],
            ):
                if reads(fixed):
                    return lesson(error.message, fixed.strip())
    return None


# ---- programs that do not compile


# Parts of Hy's messages for a form that its macro cannot read.
HYS_WORDS: Final = (
    "end of macro call",
    "[ … ]",
    "some(",
    "binding target",
    "unexpected token",
    "an even number",
)


def misused(text: str, line: int, column: int) -> str | None:
    """A message for a form that Hy cannot compile, with an example of its innermost special form; or None."""
    try:
        pending = list(read_all(text, LIMITS))
    except ReadError:
        return None
    found = None
    while pending:
        node = pending.pop()
        if not isinstance(node, m.Sequence):
            continue
        start, stop = (node.start_line, node.start_column), (node.end_line, node.end_column)
        if start <= (line, column) <= stop:
            found = head_of(node) if head_of(node) in instead("usage") else found
            pending = list(node)
    return advice(f"{found} does not fit here", instead("usage")[found]) if found else None


# ---- programs that fail

READER: Final = "read-file"
_PATH = re.compile(r"[\w./-]*(?:/[\w.-]+|[\w-]\.[A-Za-z]\w{0,4})")


def undefined(name: str, text: str, names: Iterable[str]) -> str:
    """A message for a NameError, with the corrected form if one is likely. ``names`` are the names of the
    tools."""
    known = list(names)
    if reading := _reading(name, text, known):
        return f"The program uses {excerpt(name, 80)}, which is not defined.{reading}"
    said = f"The program uses {excerpt(name, 80)}, which is not defined."
    close = nearest(name, known)
    hint = did_you_mean(name, known)
    if name in INFIX:
        return f"{said} An operator comes first in its form: (+ 1 2)."
    try:
        pending: list[Any] = list(read_all(text, LIMITS))
    except ReadError:
        return said + hint
    source = NodeText(text)
    while pending:
        node = pending.pop()
        if not isinstance(node, m.Sequence):
            continue
        whole = source.of(node)
        spelt = str(node[0]) if _same(head_of(node), name) else ""
        if spelt and close and spelt in whole and len(whole) <= MAX_FIXED:
            return f"{said}{hint} Write {whole.replace(spelt, close, 1)}."
        if head_of(node) == "." or isinstance(node, (m.FString, m.FComponent)):
            continue
        for item in node[1:] if isinstance(node, m.Expression) else node:
            word = item[1] if head_of(item) == "." and len(item) > 2 else item
            plain = re.fullmatch(r"[A-Za-z][\w./-]*", name)
            if not close and plain and isinstance(word, m.Symbol) and _same(str(word), name):
                (start, _), (first, last) = source.span(node), source.span(item)
                quoted = print_string(source.of(item))
                fixed = whole[: first - start] + quoted + whole[last - start :]
                if len(fixed) <= MAX_FIXED:
                    return f"{said} Set it first; a text is written in quotes: {fixed}."
        pending.extend(node[::-1])
    return said + hint


def _reading(name: str, text: str, names: Collection[str]) -> str:
    """A hint how to read a file, if an unknown function is called with a file path. Empty otherwise, and if
    the function is nearly the name of a tool."""
    if READER not in names or nearest(name, names, SURE):
        return ""
    try:
        pending: list[Any] = list(read_all(text, LIMITS))
    except ReadError:
        return ""
    while pending:
        node = pending.pop(0)
        if isinstance(node, m.Expression) and _same(head_of(node), name):
            for item in node:
                if isinstance(item, m.String) and _PATH.fullmatch(str(item)):
                    return f" To read a file: ({READER} :path {print_string(str(item))})."
        if isinstance(node, m.Sequence):
            pending += node
    return ""


def _same(spelt: str, name: str) -> bool:
    try:
        return bool(spelt) and hy.mangle(spelt) == hy.mangle(name)
    except Exception:
        return False


def failed(kind: str, message: str, text: str, names: Iterable[str]) -> str | None:
    """A better message for an uncaught exception of class ``kind``, or None."""
    if kind == "NameError" and "'" in message:
        name = str(hy.unmangle(message.split("'")[1])).replace("_", "-")
        return undefined(name, text, names)
    found = re.match(r"'(\w+)' object is not callable", message)
    if kind == "TypeError" and found:
        return (
            f"The program calls a value ({found[1]}): x is the value, (x) calls it, (get x 0) gets an item."
        )
    return None
