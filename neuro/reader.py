"""Model text -> the calls in it, in order, and what could not be read.

Knows the shapes of calls and the names of the tools, and runs nothing. The rule of what is a call:

- a form at the start of a line (after blanks, a list mark, or a label such as ``Call:`` or ``Next step:``;
  not ``For example:``), or after another form;
- outside of prose quotation: not in ``inline code``, not in a line that begins with ``>``, and inside a fence
  only when the fence is marked as Lisp or not marked at all;
- shaped as a call: a plist that names its tool, or a list whose head is a known tool, or a list whose
  arguments are all ``:key value`` (an unknown tool, which the door answers).

Any other form is text. A reply that is nothing but Lisp without a call in it is reported as an error.

What stands inside a form is never a call of its own, a fence or a form in a string least of all. So after a
form that cannot be read only what begins no further to the right is read on (the convention of Lisp editors),
and nothing at all when the fault lies in a string of a call, for then nobody knows where the string ends.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import hy.models as m

from tools.errors import InvalidCallError
from tools.form import CallForm, canonical, from_model, is_plist_call, kebab
from tools.schema import NAME
from tools.sexp import Limits, Lines, ReadError, read_prefix

MAX_REPLY = 8_000_000
MAX_ERRORS = 10
MAX_CALLS = 200
MAX_FORMS = 20_000  # forms that are no calls, an unreadable one counted as ten; a reply with more is none
CALL_LIMITS = Limits(max_chars=6_000_000, max_depth=100, max_forms=100_000)
LISP_FENCES = {"", "lisp", "hy", "clojure", "clj", "scheme", "elisp", "emacs-lisp", "common-lisp", "cl"}
LISP_FENCES |= {"tool", "tool_call", "text"}  # what models write where they mean a call
DOCUMENT_FENCES = {"markdown", "md", "org", "rst"}  # a fence inside them is theirs
ENVELOPE = {":tool", ":target", ":action", ":type", ":args"}

# The info of a fence holds no form and no backtick: "```lisp (echo …)```" on one line is read by _START.
_FENCE = re.compile(r"^[ \t]*+(`{3,}+|~{3,}+)[ \t]*+([\w+-]*+)[^`(\n]*+$", re.MULTILINE)
_START = re.compile(
    r"""^[ \t]*+
    (?:(?:[-*+•]|\d{1,9}[.)])[ \t]++)?            # a list mark
    (?:\*{0,3}(?i:(?:tool|function|next)?[ ]?                # a label
       (?:call|action|step|form|tool)[ ]?\d{0,3}):\*{0,3}[ \t]*+)?
    (?:```(?P<language>[\w+-]*+)[ \t]*+)?         # a fence of one line
    (?=\()""",
    re.MULTILINE | re.VERBOSE,
)
_NEXT = re.compile(r"\s*+(?=\()")
_HEAD = re.compile(r"\(\s*+(:?[^\s()\[\]{}\"';:]++)")
_CALLISH = re.compile(r"\(\s*+[A-Za-z][\w-]*+\s++:[A-Za-z]")


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

    def to_json(self) -> dict[str, Any]:
        return {
            "forms": [call.to_json() for call in self.calls],
            "text": self.text,
            "errors": [error.to_json() for error in self.errors],
        }


def read_reply(text: str, known: Collection[str] = ()) -> Reading:
    """Every call in ``text``, in order. Never raises: what cannot be read is in ``errors``."""
    if len(text) > MAX_REPLY:
        message = f"The reply has {len(text)} characters, more than the {MAX_REPLY} that are read"
        return Reading(errors=[Fault(message, 1, 1, "answer in fewer words")])
    scan = _Scan(text, known)
    scan.run()
    reading = Reading(scan.calls, _without(text, scan.calls), scan.errors)
    if not reading.calls and not reading.errors and (fault := _no_answer(text, scan)):
        reading.errors.append(fault)
    return reading


class _Scan:
    """One walk over a reply, from line start to line start.

    Time is linear in the text: a form that is read is passed over whole, one that fails up to its fault, and
    reading to the end in vain has a budget.
    """

    def __init__(self, text: str, known: Collection[str]) -> None:
        self.text = text
        self.known = known
        self.lines = Lines(text)
        self.calls: list[FoundCall] = []
        self.errors: list[Fault] = []
        self.lisp = False  # whether there was a form that is no call
        self.passed_over = 0
        self.position = 0
        self.fence: re.Match[str] | None = None  # the one we are in
        self.rightmost = 0  # after a failed form: the last column where another may begin; 0 for any
        self.budget = 2 * len(text) + 1_000_000
        self.stopped = ""

    def run(self) -> None:
        mark = _FENCE.search(self.text)
        while not self.stopped:
            while mark is not None and mark.start() < self.position:  # it stood inside a form
                mark = _FENCE.search(self.text, self.position)
            start = None
            if self.fence is None or _is_lisp(self.fence):
                start = _START.search(self.text, self.position, mark.start() if mark else len(self.text))
            if start is not None:
                self._at_start(start)
            elif mark is not None:
                self._at_fence(mark)
                mark = _FENCE.search(self.text, self.position)
            else:
                return
        if rest := _START.search(self.text, self.position):
            self.errors.append(Fault("What follows was not read", *self.lines.at(rest.end()), self.stopped))

    def _at_fence(self, mark: re.Match[str]) -> None:
        self.position, self.rightmost = mark.end(), 0
        if self.fence is None:
            self.fence = mark
        elif mark[2]:
            if self.fence[2].lower() not in DOCUMENT_FENCES:  # the one before was left open
                self.fence = mark
        elif mark[1][0] == self.fence[1][0] and len(mark[1]) >= len(self.fence[1]):
            self.fence = None

    def _at_start(self, start: re.Match[str]) -> None:
        """Read the forms that follow each other from a line start on."""
        self.position = start.end()
        column = self.lines.at(self.position)[1]
        foreign = (start["language"] or "").lower() not in LISP_FENCES
        if foreign or (self.rightmost and column > self.rightmost):
            self.position += 1
            return
        self.rightmost = 0
        while not self.stopped and self._one():
            following = _NEXT.match(self.text, self.position)
            if following is None or _FENCE.search(self.text, self.position, following.end()):
                return
            self.position = following.end()

    def _one(self) -> bool:
        """Read the form at the position; false when it cannot be read."""
        text, start = self.text, self.position
        head = _HEAD.match(text, start)
        name = kebab(head[1]) if head else ""
        meant = name in self.known or name in ENVELOPE or _CALLISH.match(text, start) is not None
        try:
            model, self.position = read_prefix(text, start, CALL_LIMITS, self.lines)
        except ReadError as error:
            self._failed(error, start, meant)
            return False
        line, column = self.lines.at(start)
        if not _is_call(model, self.known):
            self._pass_over(1)
            return True
        try:
            self.calls.append(FoundCall(from_model(model), line, column, start, self.position))
        except InvalidCallError as error:
            caret = ReadError("", line, column, source_line=_line_at(text, start)).caret()
            self._fault(Fault(str(error).rstrip("."), line, column, "", caret))
        if len(self.calls) == MAX_CALLS:
            self.stopped = f"a reply holds at most {MAX_CALLS} calls"
        return True

    def _failed(self, error: ReadError, start: int, meant: bool) -> None:
        line, self.rightmost = self.lines.at(start)
        at = (self.lines.breaks[error.line - 2] if error.line > 1 else -1) + error.column
        if error.incomplete:
            self.budget -= len(self.text) - start
            self.position = start + 1
        else:
            self.position = max(start + 1, at)
        if meant:
            self._fault(Fault(error.message, error.line, error.column, error.hint, error.caret()))
            if self.text[at : at + 1] not in "()[]{}:#":
                self.stopped = f"it may stand in the string of the call at line {line}; mend that first"
        else:
            self._pass_over(10)
        if self.budget < 0:
            self.stopped = "too many forms before it are never closed"

    def _pass_over(self, weight: int) -> None:
        self.lisp = True
        self.passed_over += weight
        if self.passed_over >= MAX_FORMS:
            self.stopped = "there are too many forms before it that are no calls"

    def _fault(self, fault: Fault) -> None:
        self.errors.append(fault)
        if len(self.errors) == MAX_ERRORS:
            self.stopped = "there are too many errors before it"


def _is_lisp(fence: re.Match[str]) -> bool:
    return fence[2].lower() in LISP_FENCES


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


def _line_at(text: str, position: int) -> str:
    start = text.rfind("\n", 0, position) + 1
    stop = text.find("\n", position)
    return text[start : stop if stop >= 0 else len(text)]


def _no_answer(text: str, scan: _Scan) -> Fault | None:
    """Why a reply without a call is no answer either: it is Lisp and no prose, fences aside, or would be."""
    bare = _FENCE.sub("", text).strip()
    quoted = bare.startswith(("'(", "`(", "[("))
    if not quoted and not (scan.lisp and bare.startswith("(")):
        return None
    try:
        model, end = read_prefix(bare, 0, CALL_LIMITS)
    except ReadError as error:
        if quoted or not error.incomplete:
            return None
        line, column = scan.lines.at(text.index("("))
        return Fault(
            f"This form cannot be read: {error.message}",
            line,
            column,
            f"{error.hint}; to answer, write plain words",
        )
    if quoted and not any(_is_call(item, scan.known) for item in model):
        return None
    if re.search(r"[A-Za-z]", re.sub(r"\([^()]*\)", "", bare[end:])):
        return None
    line, column = scan.lines.at(len(text) - len(text.lstrip()))
    return Fault("This is Lisp, but no call of a tool", line, column, _INSTEAD)


_INSTEAD = "to run a program, write (eval :form (…)); to answer, write plain words"


# A fence that held nothing but calls; each call that was cut out has left a NUL.
# The look-behinds let a run of marks be tried from its first one only: a reply of backticks stays linear.
_EMPTY_FENCE = re.compile(
    r"(?:(?<!`)`{3,}+|(?<!~)~{3,}+)[\w+-]*+\s*+\0[\s\0]*+(?:(?:`{3,}+|~{3,}+)(?!\w)|\Z)"
)


def _without(text: str, calls: list[FoundCall]) -> str:
    kept, position = [], 0
    for call in calls:
        kept += [text[position : call.start].replace("\0", ""), "\0"]
        position = call.end
    kept.append(text[position:].replace("\0", ""))
    return _EMPTY_FENCE.sub("", "".join(kept)).replace("\0", "").strip()
