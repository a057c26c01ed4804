"""Model text -> the calls in it, in order, and what could not be read.

Knows the shapes of calls and the names of the tools, and runs nothing. The rule of what is a call:

- a form at the start of a line (after blanks, a list mark, or a label such as ``Call:``), or after another form;
- outside of prose quotation: not in ``inline code``, not in a line that begins with ``>``, and inside a fence
  only when the fence is marked as Lisp or not marked at all;
- shaped as a call: a plist that names its tool, or a list whose head is a known tool, or a list whose arguments
  are all ``:key value`` (an unknown tool, which the door answers).

Any other form is text. A reply that is nothing but Lisp without a call in it is reported as an error.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import hy.models as m

from tools.errors import InvalidCallError
from tools.form import CallForm, canonical, from_model, is_plist_call, kebab, show
from tools.schema import NAME
from tools.sexp import Limits, Lines, ReadError, read_prefix

MAX_REPLY = 8_000_000
MAX_ERRORS = 10
MAX_CALLS = 200
MAX_WASTE = 4  # how many times the length of the text may be spent on forms that turn out unreadable
CALL_LIMITS = Limits(max_chars=6_000_000, max_depth=100, max_forms=100_000)
LISP_FENCES = {"", "lisp", "hy", "clojure", "clj", "scheme", "elisp", "emacs-lisp", "common-lisp", "cl", "tool", "text"}

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[ \t]*([\w+-]*)[^\n]*$", re.MULTILINE)
_START = re.compile(r"^[ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+)?(?:\**[A-Za-z][A-Za-z ]{0,30}:\**[ \t]*)?(?=\()", re.MULTILINE)
_NEXT = re.compile(r"\s*(?=\()")
_HEAD = re.compile(r"\(\s*(:?[^\s()\[\]{}\"';:]+)")


@dataclass(frozen=True)
class FoundCall:
    """One call and where it stands (1-based line and column, character offsets of the text)."""

    form: CallForm
    line: int
    column: int
    start: int
    end: int

    def to_json(self) -> dict[str, Any]:
        return {
            "tool": self.form.tool,
            "args": dict(self.form.args),
            "form": canonical(self.form),
            "line": self.line,
            "column": self.column,
        } | ({"positional": list(self.form.positional)} if self.form.positional else {})


@dataclass(frozen=True)
class Fault:
    """One thing that could not be read: what, where, the line with a caret, and what would be right."""

    message: str
    line: int
    column: int
    hint: str = ""
    caret: str = ""

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        shown = f"\n{self.caret}" if self.caret else ""
        return f"line {self.line}, column {self.column}: {self.message}{hint}{shown}"

    def to_json(self) -> dict[str, Any]:
        return {"message": self.message, "line": self.line, "column": self.column, "hint": self.hint}


@dataclass
class Reading:
    """What a reply holds: its calls in order, its text without them, and its faults."""

    calls: list[FoundCall] = field(default_factory=list)
    text: str = ""
    errors: list[Fault] = field(default_factory=list)
    wasted: int = field(default=0, repr=False)

    def to_json(self) -> dict[str, Any]:
        return {
            "forms": [call.to_json() for call in self.calls],
            "text": self.text,
            "errors": [error.to_json() for error in self.errors],
        }


def read_reply(text: str, known: Collection[str] = ()) -> Reading:
    """Every call in ``text``, in order. Never raises: what cannot be read is in ``errors``."""
    reading = Reading()
    if len(text) > MAX_REPLY:
        message = f"The reply has {len(text)} characters, more than the {MAX_REPLY} that are read"
        reading.errors.append(Fault(message, 1, 1, "answer in fewer words"))
        return reading
    lines = Lines(text)
    cuts: list[tuple[int, int]] = []
    other_forms = 0
    for begin, end in _regions(text):
        position = begin
        while position < end and len(reading.errors) < MAX_ERRORS and len(reading.calls) < MAX_CALLS:
            match = _START.search(text, position, end)
            if match is None or reading.wasted > MAX_WASTE * len(text) + 100_000:
                break
            position = match.end()
            while position < end and text[position] == "(":  # forms may follow each other on a line
                found = _one(text, position, lines, known, reading)
                if found is None:
                    position += 1
                    break
                form, stop = found
                if form is not None:
                    line, column = lines.at(position)
                    reading.calls.append(FoundCall(form, line, column, position, stop))
                    cuts.append((position, stop))
                else:
                    other_forms += 1
                following = _NEXT.match(text, stop, end)
                position = following.end() if following else stop
    if len(reading.calls) >= MAX_CALLS:
        line, column = lines.at(reading.calls[-1].end)
        message = f"Only the first {MAX_CALLS} calls of a reply are done"
        reading.errors.append(Fault(message, line, column, "make fewer calls at once"))
    reading.text = _without(text, cuts)
    if other_forms and not reading.calls and not reading.errors and _only_lisp(text):
        line, column = lines.at(len(text) - len(text.lstrip()))
        hint = "to run a program, write (eval :form (…)); to answer, write plain words"
        reading.errors.append(Fault("This is Lisp, but no call of a tool", line, column, hint))
    return reading


def _regions(text: str) -> list[tuple[int, int]]:
    """The stretches of the text that are read: all but fences of other languages. A fence left open is read."""
    regions: list[tuple[int, int]] = []
    begin, inside = 0, False
    for fence in _FENCE.finditer(text):
        if not inside:
            regions.append((begin, fence.start()))
            inside, begin = True, fence.end()
            language = fence.group(1).lower()
            skip = language not in LISP_FENCES
        else:
            if not skip:
                regions.append((begin, fence.start()))
            inside, begin = False, fence.end()
    if not inside or not skip:
        regions.append((begin, len(text)))
    return regions


def _one(
    text: str, position: int, lines: Lines, known: Collection[str], reading: Reading
) -> tuple[CallForm | None, int] | None:
    """The call at ``position`` and its end; (None, end) for a form that is no call; None when unreadable."""
    head = _HEAD.match(text, position)
    name = kebab(head.group(1)) if head else ""
    meant = name in known or name.startswith(":")
    try:
        model, end = read_prefix(text, position, CALL_LIMITS, lines)
    except ReadError as error:
        reading.wasted += _cost(text, position, lines, error)
        if meant or _looks_like_call(text, position):
            reading.errors.append(Fault(error.message, error.line, error.column, error.hint, error.caret()))
        return None
    if not _is_call(model, known):
        return None, end
    try:
        return from_model(model), end
    except InvalidCallError as error:
        line, column = lines.at(position)
        caret = ReadError("", line, column, source_line=_line_at(text, position)).caret()
        reading.errors.append(Fault(str(error).rstrip("."), line, column, "", caret))
        return None, end


def _cost(text: str, position: int, lines: Lines, error: ReadError) -> int:
    """How many characters were looked at before the error: each start may cost a scan to the end of the text."""
    if error.incomplete:
        return len(text) - position
    before = lines.breaks[error.line - 2] + 1 if error.line > 1 else 0
    return max(0, before + error.column - 1 - position)


def _is_call(model: Any, known: Collection[str]) -> bool:
    if is_plist_call(model):
        return True
    if not isinstance(model, m.Expression) or not model or not isinstance(model[0], m.Symbol):
        return False
    name = kebab(str(model[0]))
    if name in known:
        return True
    pairs = model[1:]
    keys, values = pairs[::2], pairs[1::2]
    return (
        bool(NAME.match(name))
        and len(pairs) > 0
        and len(pairs) % 2 == 0
        and all(isinstance(key, m.Keyword) for key in keys)
        and not any(isinstance(value, m.Keyword) for value in values)
    )


_CALLISH = re.compile(r"\(\s*[A-Za-z][\w-]*\s+:[A-Za-z]")


def _looks_like_call(text: str, position: int) -> bool:
    return _CALLISH.match(text, position) is not None


def _line_at(text: str, position: int) -> str:
    start = text.rfind("\n", 0, position) + 1
    stop = text.find("\n", position)
    return text[start : stop if stop >= 0 else len(text)]


def _only_lisp(text: str) -> bool:
    """Whether a reply is one Lisp form and no prose, fences aside."""
    bare = _FENCE.sub("", text).strip()
    try:
        _, end = read_prefix(bare, 0, CALL_LIMITS)
    except ReadError:
        return False
    return not re.search(r"[A-Za-z]", re.sub(r"\([^()]*\)", "", bare[end:]))


_EMPTY_FENCE = re.compile(r"(?:```|~~~)[\w+-]*\s*(?:```|~~~)")


def _without(text: str, cuts: list[tuple[int, int]]) -> str:
    kept, position = [], 0
    for start, end in cuts:
        kept.append(text[position:start])
        position = end
    kept.append(text[position:])
    return _EMPTY_FENCE.sub("", "".join(kept)).strip()


__all__ = ["Fault", "FoundCall", "Reading", "read_reply", "show"]
