"""Reads the form at one place of a reply, in any syntax: Lisp, JSON, or Python's. It runs nothing, and can
wait for more of a stream."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import Any

import hy.models as m

from quoth.neuro.reading import repair
from quoth.neuro.reading.json_calls import CALLED, KEYS, bare_name, is_meant, json_calls
from quoth.neuro.reading.literals import PYTHONIC, Literal, NotRead, read_literal
from quoth.neuro.reading.markup import Family, read_data
from quoth.neuro.reading.prose import is_draft
from quoth.neuro.reading.result import Fault, FoundCall
from quoth.tools import lazy_regex
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import CallForm, from_model, head_name, is_plist_call, kebab
from quoth.tools.lisp.read_error import LineIndex, ReadError, error_at
from quoth.tools.lisp.reader import ReaderLimits, read_one, read_prefix

MAX_ERRORS = 10
MAX_CALLS = 200
MAX_FORMS = 20_000  # maximum of forms other than calls; an unreadable one counts as ten
CALL_HINT = "write (name :key value …)"
BRACKETS = "The square brackets around the call were read as parentheses."
MAX_EFFORT = 2_000_000  # maximum of characters read by failed attempts
CALL_LIMITS = ReaderLimits(max_chars=6_000_000, max_depth=100, max_forms=100_000)
ENVELOPE = {":tool", ":target", ":action", ":type", ":args"}

# The info of a fence contains no form and no backtick: "```lisp (echo …)```" on one line is read as a start.
# A block of Org is a fence, too: its mark is "#+begin_" or "#+end_", its info the kind of block.
FENCE_LINE = (
    r"(?P<marks>`{3,}+|~{3,}+"
    r"|(?P<org>\#\+)(?i:(?:begin|end)_(?=(?:src|example|quote|verse|comment|export)\b)))"
    r"[ \t]*+(?P<info>[\w+-]*+)(?(org)[^\n]*+|[^`(\n]*+)$"
)
FENCE_END = r"`{3}|~{3}|#\+(?i:end)_"
FENCE = lazy_regex.compile(rf"^[ \t]*+{FENCE_LINE}", re.MULTILINE)
_HEAD = lazy_regex.compile(r"\(\s*+(:?[^\s()\[\]{}\"';:,]++)")
_CALLISH = lazy_regex.compile(r"\(\s*+[A-Za-z][\w-]*+(?:[./][A-Za-z][\w-]*+)*+\s++:[A-Za-z]")
_LIST_OF = lazy_regex.compile(r"\[\s*+(?:(?P<object>\{)|(?P<name>[A-Za-z_][\w.-]{0,63}+)(?P<then>\(|\s))")
_LIST_BEGUN = lazy_regex.compile(r"\[/?\s*+[\w.-]*+\Z")  # also of a mark
_NAME = lazy_regex.compile(r"\s*+([A-Za-z_][\w.-]{0,63}+)")
_OBJECT = lazy_regex.compile(r"""\{\s*+["'“}A-Za-z]""")
_ARGUMENT = lazy_regex.compile(r"""(?:\[\s*+)?\w[\w.-]*+\(\s*+(?:\w[\w-]*+\s*+=|["'])""")
_LINE_END = lazy_regex.compile(r"[ \t]*+[;,.]?[ \t]*+(?:`{3,}+[ \t]*+)?(?:\r?+\n|\Z)")
_ANOTHER = lazy_regex.compile(r"[ \t]*+[;,][ \t]*+(?=(?P<name>[A-Za-z_][\w.-]{0,63}+)\()")

LINE = -1
PRINT, _PRINTED = "print(", lazy_regex.compile(r"\s*+\)")
CALL = ".call"  # after the name of a tool, as Llama writes it


class Wait(Exception):
    """More of a stream is needed to continue.

    ``start`` is where the unfinished form begins; or LINE: the line is unfinished; or None: another form may
    follow the last one.
    """

    def __init__(self, start: int | None = None) -> None:
        self.start = start


class FormReader:
    """Reads the form at ``position`` and moves past it; collects the calls and the faults.

    Time is linear in the text: a readable form is skipped as a whole, a faulty one up to its fault, and
    failed attempts have a budget. ``text`` may be a later part of a longer text, in which it begins at
    ``base``. Unless the text is ``final``, the reader raises Wait if more text could change the outcome."""

    def __init__(self, text: str, known: Collection[str], *, cut: bool, final: bool) -> None:
        self.known = known
        self.cut = cut
        self.final = final
        self.calls: list[FoundCall] = []
        self.cuts: list[tuple[int, int]] = []  # spans that are not text
        self.errors: list[Fault] = []
        self.lisp = False  # whether there was a form other than a call
        self.passed_over = 0
        self.fence: tuple[str, str] | None = None  # the marks and the language of the current fence
        self.rightmost = 0  # after a failed form: the last column where another may begin; 0 for any
        self.chained = ""  # "(" or "{" directly after a form that another may follow
        self.example = False  # whether the current form is an example
        self.example_end = -1  # the end of the last example, in the whole text
        self.effort = 2 * len(text) + MAX_EFFORT
        self.unclosed: NotRead | None = None  # the fault of an endless text in curly or three quotes
        self.stopped = ""
        self.base = 0
        self.position = 0
        self.text = text
        self.lines = LineIndex(text)
        self.family: Family | None = None  # the family whose mark precedes the current form
        self.pure = 0  # the offset up to which the fence contains only calls

    def _need_line(self, position: int) -> None:
        """Wait until the line of ``position`` is complete."""
        if not self.final and self.text.find("\n", position) < 0:
            raise Wait(LINE)

    def _found(
        self,
        form: CallForm,
        span: tuple[int, int],
        repairs: tuple[str, ...] = (),
        whole: Any = None,
        tag: str = "",
    ) -> None:
        """Add a call; ``whole`` is the span that contains it and others."""
        if self.example:
            self._pass_over(1)
        if self.example or self.stopped:
            return
        start, end = span
        place = self.lines.at(start)
        self.calls.append(FoundCall(form, *place, start + self.base, end + self.base, repairs, tag))
        self._cut_out(*(whole or span))
        if len(self.calls) == MAX_CALLS:
            self.stopped = f"a reply may contain at most {MAX_CALLS} calls"

    def _cut_out(self, start: int, end: int) -> None:
        """Mark a span that contains a call as not text."""
        if self.fence is not None and not self.text[self.pure : start].strip():
            self.pure = end
        if not self.cuts or self.cuts[-1][1] <= start + self.base:
            self.cuts.append((start + self.base, end + self.base))

    # ---- Lisp

    def _lisp(self) -> None:
        text, start = self.text, self.position
        head = _HEAD.match(text, start)
        name = kebab(bare_name(head[1], self.known)) if head else ""
        meant = name in self.known or name in ENVELOPE or _CALLISH.match(text, start) is not None
        meant = (meant or self.family is not None) and not self.example
        repairs: tuple[str, ...] = ()
        model: Any
        try:
            model, end = read_prefix(text, start, CALL_LIMITS, self.lines)
        except ReadError as error:
            if error.incomplete and not self.final:
                raise Wait(start) from None
            mended = self._mended(start) if meant else None
            if mended is None:
                self._failed(error, start, meant)
                return
            model, end, repairs = mended
        else:
            if (meant or is_call(model, self.known)) and repair.may_be_odd(text, start, end):
                mended = self._mended(start)
                if mended is None and self._curly(start, end):
                    return
                model, end, repairs = mended or (model, end, ())
        self._take(model, start, end, repairs)
        self.chained = "("

    def _take(self, model: Any, start: int, end: int, repairs: tuple[str, ...]) -> None:
        self.position = end
        if not is_call(model, self.known):
            self._pass_over(1)
            return
        try:
            self._found(self._named(from_model(model)), (start, end), repairs)
        except InvalidCallError as error:
            self._fault(str(error).rstrip("."), start)

    def _mended(self, start: int) -> tuple[Any, int, tuple[str, ...]] | None:
        """The intended form at ``start``, its end, and the repairs; None if the intention is unclear."""
        self.unclosed = None
        if self.effort < 0:
            return None
        text = self.text
        attempts = [(len(text), False)]
        if self.fence is not None and (mark := FENCE.search(text, start)):
            attempts.append((mark.start(), True))
        elif self.final and not self.cut:
            attempts.append((len(text), True))
        for end, tail in attempts:
            try:
                mended = repair.mend(text, start, end, tail=tail, more=not (self.final or tail))
            except NotRead as error:
                if error.incomplete and not tail and not self.final:
                    raise Wait(start) from None
                self.effort -= (end if error.incomplete else error.offset) - start
                self.unclosed = error if error.hint else self.unclosed
                continue
            if mended is None:
                return None
            try:
                model = read_one(mended.text, CALL_LIMITS)
                call = self._named(from_model(model)) if tail else None
            except (ReadError, InvalidCallError):
                continue
            if call is None or call.tool in self.known:
                return model, mended.end, mended.repairs
        return None

    def _curly(self, start: int, end: int) -> bool:
        """Report an endless text in curly or three quotes; without one, false: the form is something else."""
        error = self.unclosed
        if error is None or not start <= error.offset < end or self.example:
            return False
        self.position = end
        self._fault(str(error), error.offset, error.hint)
        self._stop_behind(start)
        return True

    def _failed(self, error: ReadError, start: int, meant: bool) -> None:
        self.rightmost = self.lines.at(start)[1]
        at = error.offset
        if error.incomplete:
            self.position = start + 1
            self._spend(len(self.text) - start)
        else:
            self.position = max(start + 1, at)
        if meant:
            self._report(error)
            if self.text[at : at + 1] not in "()[]{}:#":
                self._stop_behind(start)
        else:
            self._pass_over(10)

    def _spend(self, characters: int) -> None:
        """Count characters that were read by a failed attempt."""
        self.effort -= characters
        if self.effort < 0:
            self.stopped = "too much before it cannot be read"

    def _stop_behind(self, start: int) -> None:
        """Stop, because the end of the call at ``start`` is unknown."""
        line = self.lines.at(start)[0]
        self.stopped = f"it may be inside a text of the call at line {line}; fix that call first"

    def _pass_over(self, weight: int) -> None:
        self.lisp = True
        self.passed_over += weight
        if self.passed_over >= MAX_FORMS:
            self.stopped = "too many forms before it are not calls"

    def hint(self, name: str, *, json: bool = False) -> str:
        """The hint that shows how to call the tool of that name."""
        return 'write {"tool": "name", "args": {…}}' if json else CALL_HINT

    def _fault(self, message: str, offset: int, hint: str = "") -> None:
        self._report(error_at(self.text, self.lines, message, offset, hint))

    def _report(self, error: ReadError) -> None:
        if self.example:
            return
        self.errors.append(Fault(error.message, error.line, error.column, error.hint, error.caret()))
        if len(self.errors) >= MAX_ERRORS:
            self.stopped = "there are too many errors before it"

    # ---- JSON, and calls in Python's syntax

    def _json(self) -> None:
        text, start = self.text, self.position
        marked = self.family is not None
        if text[start] == "{" and not marked and not _OBJECT.match(text, start):
            if not self.final and not text[start + 1 :].strip():
                raise Wait(start)
            self.position += 1
            return
        read = self._literal(start, marked)
        if read is None:
            return
        self.position = read.end
        try:
            calls = json_calls(read.value, self.known, marked)
        except InvalidCallError as error:
            self._fault(str(error).rstrip("."), start)
            return
        if calls is None:
            self._pass_over(1)
            return
        whole = (start, read.end)
        spans = read.spans if len(read.spans) == len(calls) else [whole] * len(calls)
        for call, span in zip(calls, spans, strict=True):
            self._found(call, span, read.repairs, whole)
        self.chained = "{"

    def _list(self) -> None:
        """``[{"name": …}, …]``, ``[name(…), …]`` or ``[name :key value]``."""
        text, start = self.text, self.position
        found = _LIST_OF.match(text, start)
        if found is None:
            if not self.final and _LIST_BEGUN.match(text, start):
                raise Wait(start)
            self.position += 1
        elif found["object"]:
            self._json()
        elif not self._is_known(found["name"]):
            self.position += 1
        elif found["then"] == "(":
            self._python()
        else:
            self._brackets()

    def _brackets(self) -> None:
        start = self.position
        try:
            model, end = read_prefix(self.text, start, CALL_LIMITS, self.lines)
        except ReadError as error:
            if error.incomplete and not self.final:
                raise Wait(start) from None
            self.effort -= (len(self.text) if error.incomplete else error.offset) - start
            self.position += 1
            return
        call = m.Expression(model)
        if len(call) > 1 and _has_pairs(call):
            self._take(call, start, end, (BRACKETS,))
        else:
            self.position = end

    def _python(self) -> None:
        """Calls of known tools up to the end of the line; if the line contains anything else, it is text."""
        text, first = self.text, self.position
        found: list[tuple[CallForm, tuple[int, int], tuple[str, ...]]] = []
        code = self.family is not None or (self.fence is not None and self.fence[1] == "tool_code")
        printed = code and text.startswith(PRINT, first)
        start = first + len(PRINT) * printed  # as Gemma writes it
        if printed and not self.final and "(" not in text[start : start + 70]:
            raise Wait(first)
        while True:
            name = _NAME.match(text, start + text.startswith("[", start))
            if name is None or not self._is_known(name[1]):
                self.position = first + 1
                return
            read = self._literal(start)
            if read is None:
                return
            calls = read.value if isinstance(read.value, list) else [read.value]
            self.position = read.end
            if not all(isinstance(call, CallForm) and self._is_known(call.tool) for call in calls):
                return
            calls = [self._named(call) for call in calls]
            repairs = tuple(repair for repair in read.repairs if repair not in PYTHONIC)
            spans = read.spans if isinstance(read.value, list) else [(start, read.end)]
            found += [(call, span, repairs) for call, span in zip(calls, spans, strict=True)]
            if printed and (closed := _PRINTED.match(text, read.end)):
                self.position = closed.end()
                read = read._replace(end=closed.end())
            another = _ANOTHER.match(text, read.end)
            if another is None or len(self.calls) + len(found) >= MAX_CALLS:
                break
            start = another.end()
        if another is None and self.family is None:
            if not _LINE_END.match(text, read.end):
                return
            self._need_line(read.end)
        for call, span, repairs in found:
            self._found(call, span, repairs, (first, read.end))

    def _literal(self, start: int, meant: bool = False) -> Literal | None:
        """The value at ``start``. An unreadable value is text, or a fault if a call was ``meant``."""
        text, guess = self.text, self.final and not self.cut
        try:
            if self.family is None:
                return read_literal(text, start)
            return read_data(text, start, "|".join(self.family.ends), guess=guess, outer=KEYS)
        except NotRead as error:
            if error.incomplete and not self.final:
                raise Wait(start) from None
            fault = error
        stop = len(text) if fault.incomplete else fault.offset
        self.position = start + 1
        meant = meant or is_meant(text, start, stop, self.known)
        if not meant and _ARGUMENT.match(text, start, stop):
            self._need_line(stop)
            meant = fault.incomplete or _line_from(text, stop).endswith((")", "]"))
        if meant and not self.example:
            with suppress(NotRead):  # if only its end is missing
                ends = FENCE_END if self.fence else "(?!)"
                return read_data(text, start, ends, guess=guess, outer=KEYS)
            self.position = max(self.position, stop)
            named = _NAME.match(text, start + (text[start] == "["))
            hint = self.hint(named[1] if named else "", json="{" in text[start : start + 2])
            self._fault(f"This call cannot be read: {fault}", fault.offset, hint)
            end = text.find("\n", start)
            if self.final and end >= 0 and is_draft(text, start, end):
                self.position = end
            else:
                self._stop_behind(start)
        else:
            self._pass_over(2)
            self._spend(stop - start)
        return None

    def _is_known(self, name: str) -> bool:
        """Whether a form in Python's syntax with that name is a call."""
        return self.family is not None or kebab(self._tool(name)) in self.known

    def _tool(self, name: str) -> str:
        """The name of a tool; some models write it with a namespace, or as a method of an object."""
        return bare_name(name if kebab(name) in self.known else name.removesuffix(CALL), self.known)

    def _named(self, form: CallForm) -> CallForm:
        return replace(form, tool=kebab(self._tool(form.tool)))


def _line_from(text: str, start: int) -> str:
    stop = text.find("\n", start)
    return text[start : stop if stop >= 0 else len(text)].rstrip()


def is_call(model: Any, known: Collection[str]) -> bool:
    if is_plist_call(model):
        return True
    if not isinstance(model, m.Expression) or not model or (head := head_name(model[0])) is None:
        return False
    name = kebab(bare_name(head, known) if "." in head or head[0] == "<" else head)
    if name in known:
        return True
    return CALLED.match(name) is not None and len(model) > 1 and _has_pairs(model)


def _has_pairs(model: Any) -> bool:
    """Whether keywords and values alternate after the head."""
    items = list(model)
    keys, values = items[1::2], items[2::2]
    return (
        len(model) % 2 == 1
        and all(isinstance(key, m.Keyword) for key in keys)
        and not any(isinstance(value, m.Keyword) for value in values)
    )
