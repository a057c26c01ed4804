"""Reads Lisp text into Hy models with positions: a parser for a subset of Hy, with linear time and fixed
limits.

It returns the same models as ``hy.read_many`` or raises an error. It never runs anything.
"""

from __future__ import annotations

import sys
from typing import Any, Final, NamedTuple

from hy.models import (
    Complex,
    Expression,
    FComponent,
    Float,
    FString,
    Integer,
    Keyword,
    Object,
    String,
    Symbol,
)

from quoth.tools.advice import instead
from quoth.tools.lisp.lexicon import (
    ATOM,
    BLANK,
    BODIES,
    CLOSE,
    F_OPENER,
    F_TEXT,
    FIELD_OPENER,
    FIELD_TAIL,
    INTEGER,
    KEYWORD,
    NUMBERISH,
    OPEN,
    SHAPES,
    SPACE,
    SPEC,
    SPEC_TEXT,
    STRING,
    SYMBOL,
    TAIL,
    TOKEN,
    OpenForm,
    form_after,
)  # fmt: skip
from quoth.tools.lisp.read_error import LineIndex as LineIndex
from quoth.tools.lisp.read_error import ReadError as ReadError
from quoth.tools.lisp.strings import Strings
from quoth.tools.text import excerpt, short


class ReaderLimits(NamedTuple):
    max_chars: int = 5_000_000
    max_depth: int = 200
    max_forms: int = 100_000  # every node counts, not only the top-level forms
    max_digits: int = 1000
    booleans: bool = False  # read #t and #f, which Hy does not have, as True and False


DEFAULT: Final = ReaderLimits()


def read_all(text: str, limits: ReaderLimits = DEFAULT) -> list[Object]:
    """All top-level forms of ``text``. Raises ReadError."""
    return _whole(text, limits).read(0)[0]


def read_one(text: str, limits: ReaderLimits = DEFAULT) -> Object:
    """The only form of ``text``. Raises ReadError, also if there is none or more than one."""
    reader = _whole(text, limits)
    forms, stop = reader.read(0, one=True)
    if not forms:
        raise reader.error("there is no form here", 0, "write one, like (name :key value)", incomplete=True)
    second = reader.read(stop, one=True)[0]
    if second:
        line, column = second[0].start_line, second[0].start_column
        offset = sum(map(len, text.split("\n", line - 1)[: line - 1])) + line + column - 2
        raise reader.error("expected one form, found a second", offset, "give one at a time")
    return forms[0]


def read_prefix(
    text: str, start: int, limits: ReaderLimits = DEFAULT, lines: LineIndex | None = None
) -> tuple[Object, int]:
    """The form that begins at ``text[start]``, and the offset after it. ``max_chars`` limits the form, not
    the text. Pass the same ``lines`` to read many forms of one text in linear time. Raises ReadError."""
    end = min(len(text), start + limits.max_chars + 1)
    reader = _FormReader(text, limits, LineIndex(text) if lines is None else lines, end)
    if not 0 <= start < len(text) or text[start] in SPACE + ";":
        raise reader.error("there is no form here", max(0, min(start, len(text))))
    try:
        forms, stop = reader.read(start, one=True)
        cut = stop - start > limits.max_chars
    except ReadError as error:
        if not error.incomplete or end == len(text):
            raise
        cut = True
    if cut:
        raise reader.error(f"this form is longer than {limits.max_chars} characters", start)
    if not forms:
        raise reader.error("there is no form here", start)
    return forms[0], stop


def _whole(text: str, limits: ReaderLimits) -> _FormReader:
    if len(text) > limits.max_chars:
        raise ReadError(f"the text has {len(text)} characters, more than the {limits.max_chars} allowed")
    return _FormReader(text, limits, LineIndex(text), len(text))


_new_str, _new_tuple, _new_int, _new_object = str.__new__, tuple.__new__, int.__new__, object.__new__


class _FormReader(Strings):
    def __init__(self, text: str, limits: ReaderLimits, lines: LineIndex, end: int) -> None:
        super().__init__(text, lines, end)
        self.limits = limits
        # Beyond Python's own limit int() fails, and Hy would read the digits as a float.
        self.max_digits = min(limits.max_digits, sys.get_int_max_str_digits() or limits.max_digits)

    def read(self, pos: int, one: bool = False) -> tuple[list[Object], int]:
        """The forms from ``pos`` (only the first, if ``one``) and the offset after them. Positions are set
        through private fields, because the public setters cost more than the reading itself."""
        text, end, stack = self.text, self.end, self.stack
        frame = root = OpenForm("(", pos, 1, 1)
        stack[:] = [root]
        nodes = 0
        row, column = self.lines.at(pos)
        line_start, next_break = pos - column + 1, self._break(pos)
        form: Any
        while True:
            if frame.expect:  # inside an f-string: literal text and the ends of fields, not tokens
                line, column = frame.line, frame.column
                form, pos = self._tail(frame, pos) if frame.expect == TAIL else self._literal(frame, pos)
                nodes += 1
                frame = stack[-1]
                if form is None:
                    continue
            else:
                found = TOKEN(text, pos, end)
                if found is None:
                    if frame is root:
                        return root.items, end
                    raise self._unclosed(frame)
                kind: Any = found.lastindex
                start, pos = found.span(kind)
                if next_break < start:
                    row, line_start, next_break = self._rows(row, next_break, start)
                line, column = row, start - line_start + 1
                opener = ""
                if kind == SYMBOL:
                    form = _new_str(Symbol, found[kind])
                elif kind == STRING:
                    form, pos = self._quoted(start)
                elif kind == KEYWORD:
                    form = _new_object(Keyword)
                    form.name = text[start + 1 : pos]
                elif kind == OPEN:
                    opener = found[kind]
                elif kind == CLOSE:
                    if frame is root or frame.need or frame.closer != text[start]:
                        raise self._wrong_closer(frame, start)
                    form = _new_tuple(frame.make, frame.items)
                    line, column = frame.line, frame.column
                    stack.pop()
                    frame = stack[-1]
                elif kind == INTEGER and pos - start <= self.max_digits:
                    form = _new_int(Integer, found[kind])
                else:
                    opener, form, pos = self._other(start)
                    nodes += len(form) if isinstance(form, Expression) else 0  # a dotted name
                if opener:
                    frame = self._open(opener, start, line, column)
                    continue
            last = pos - 1
            if next_break < last:
                row, line_start, next_break = self._rows(row, next_break, last)
            form._start_line, form._start_column = line, column
            form._end_line, form._end_column = row, last - line_start + 1
            frame.items.append(form)
            nodes += 1
            if len(frame.items) == frame.need:
                frame, more = self._complete(frame, row, form._end_column)
                nodes += more
            if nodes > self.limits.max_forms:
                raise self._too_many(last)
            if one and root.items:
                return root.items, pos

    def _break(self, pos: int) -> int:
        """The offset of the next line feed from ``pos``, or the end."""
        found = self.text.find("\n", pos, self.end)
        return self.end if found < 0 else found

    def _rows(self, row: int, passed: int, pos: int) -> tuple[int, int, int]:
        """The row of ``pos``, its start, and the next line feed. ``passed`` is the end of ``row``."""
        row += self.text.count("\n", passed, pos)
        return row, self.text.rindex("\n", passed, pos) + 1, self._break(pos)

    # ---- frames

    def _open(self, opener: str, start: int, line: int, column: int) -> OpenForm:
        if len(self.stack) > self.limits.max_depth:
            message = f"nested deeper than {self.limits.max_depth}"
            raise self.error(message, start, "split it into smaller forms")
        frame = OpenForm(opener, start, line, column)
        self.stack.append(frame)
        return frame

    def _complete(self, frame: OpenForm, last_line: int, last_column: int) -> tuple[OpenForm, int]:
        """Close the complete prefixes. Returns the frame that is open then, and the number of new nodes."""
        made = 0
        while len(frame.items) == frame.need:
            if frame.opener == FIELD_OPENER:
                frame.expect = TAIL
                break
            self.stack.pop()
            made += 1
            inner, frame = frame, self.stack[-1]
            if inner.make is None:  # #_ drops its form
                break
            head: Any = _new_str(Symbol, inner.make)
            # #^ type name -> (annotate name type)
            form: Any = _new_tuple(Expression, (head, *reversed(inner.items)))
            for model in (head, form):
                model._start_line, model._start_column = inner.line, inner.column
                model._end_line, model._end_column = last_line, last_column
            frame.items.append(form)
            made += 1
        return frame, made

    def _literal(self, frame: OpenForm, pos: int) -> tuple[Object | None, int]:
        """Reads literal text of an f-string or a format spec, and the brace or quote that ends it."""
        spec = frame.expect == SPEC
        stop = self._after(SPEC_TEXT if spec else F_TEXT, pos)
        if stop > pos:
            body = self.text[pos:stop]
            if not spec:
                body = body.replace("{{", "{").replace("}}", "}")
            piece = String(self._decode(body, pos, stop))
            if piece:  # a backslash before a line end gives an empty text
                self._place(piece, frame.mark, stop)  # from the opening quote or colon, as in Hy
                frame.items.append(piece)
        char = self.text[stop : min(stop + 1, self.end)]
        if char == "{" and not (spec and self.text.startswith("{{", stop)):
            field = self._open(FIELD_OPENER, stop, *self.lines.at(stop))
            field.mark = self._after(BLANK, stop + 1)
            return None, stop + 1
        if char == frame.closer:
            return self._close(frame), stop + 1
        if not char:
            raise self._unclosed(frame)
        if spec:
            raise self.error(f"{char} is not allowed in a format spec", stop, "compute it in a nested {form}")
        if char == "}":
            raise self.error("a single } in an f-string", stop, "write }} for a brace")
        raise self._bad_escape(frame.offset, stop, frame.mark + 1)

    def _tail(self, frame: OpenForm, pos: int) -> tuple[Object | None, int]:
        """Reads the text after the form in an f-string field: !r, then } or : and a format spec."""
        found = FIELD_TAIL(self.text, pos, self.end)
        assert found  # the pattern also matches an empty text
        stop = found.end()
        if not found[2] and stop == self.end:
            raise self._unclosed(frame)
        if not found[2]:
            hint = "write !r, !s or !a after the form, then :spec, each after a space"
            raise self.error(f"expected }} of the f-string, found {excerpt(self.text[stop])}", stop, hint)
        frame.conversion = found[1]
        frame.expression = self.text[frame.mark : pos]
        frame.mark = stop - 1
        frame.expect = SPEC
        return (None if found[2] == ":" else self._close(frame)), stop

    def _close(self, frame: OpenForm) -> Object:
        self.stack.pop()
        if frame.make is FString:
            return FString(frame.items)
        return FComponent(frame.items, conversion=frame.conversion, expression=frame.expression)

    def _place(self, model: Object, start: int, last: int) -> None:
        model._start_line, model._start_column = self.lines.at(start)
        model._end_line, model._end_column = self.lines.at(last)

    # ---- tokens that need further checks: each method returns (opener of a frame or "", form, offset after
    # it)

    def _other(self, start: int) -> tuple[str, Object | None, int]:
        char = self.text[start]
        if char == "~" and self.text.startswith("~@", start, self.end):
            return "~@", None, start + 2
        if char in "'`~":
            return char, None, start + 1
        if char == "#":
            return self._dispatch(start)
        stop = self._after(ATOM, start)
        atom = self.text[start:stop]
        if not atom.isprintable():
            at, bad = next((i, c) for i, c in enumerate(atom) if not c.isprintable())
            hint = "write a plain space" if bad.isspace() else "remove it"
            raise self.error(f"the character U+{ord(bad):04X} is not allowed in a name", start + at, hint)
        if char == ":":
            if "." in atom:
                raise self.error(
                    f"the keyword {excerpt(atom)} contains a dot", start, "write - or _ instead of it"
                )
            return "", Keyword(atom[1:], from_parser=True), stop
        if stop == self.end or self.text[stop] != '"':
            return "", self._name(atom, start, stop), stop
        if atom in BODIES:
            return "", *self._string(start, atom)
        if atom == "f":
            return F_OPENER, None, stop + 1
        if set(atom) < set("bfrt") and len(atom) < 3:
            raise self.error(f'{atom}"…" strings are not read here', start, 'write "…", r"…", b"…" or f"…"')
        hint = r"put a space before the quote, or, inside a string, write \" for it"
        raise self.error(f"no string has the prefix {excerpt(atom)}", start, hint)

    def _dispatch(self, start: int) -> tuple[str, Object | None, int]:
        stop = self._after(ATOM, start + 1)
        opener = self.text[start:stop]
        if opener in SHAPES:
            return opener, None, stop
        if opener == "#":
            opener += self.text[stop : min(stop + 1, self.end)].strip()
            if opener == "#":
                raise self.error("there is a # alone here", start, "remove it", incomplete=stop == self.end)
            if opener == "#[":
                return "", *self._bracket_string(start)
        if self.limits.booleans and opener in ("#t", "#f", "#true", "#false"):
            return "", Symbol("True" if opener[1] == "t" else "False"), stop
        key = opener[1:] if opener[1] in "tf" else opener[1]
        hint = instead("dispatch").get(key, "write a plain form")
        if key in "_*^":
            hint = f"put a space after {'#**' if opener.startswith('#**') else opener[:2]}"
        raise self.error(f"reader macros are not read here: {excerpt(opener)}", start, hint)

    def _number(self, atom: str, start: int) -> Object | None:
        if not NUMBERISH(atom):
            return None
        if len(atom) > self.max_digits:
            message = f"this number has more than {self.max_digits} digits"
            raise self.error(message, start, "write it as a string")
        for model in (Integer, Float, Complex):
            try:
                return None if model is Complex and atom in ("j", "J") else model(atom)
            except ValueError:
                continue
        return None

    def _name(self, atom: str, start: int, stop: int) -> Object:
        number = self._number(atom, start)
        if number is not None:
            return number
        if "." not in atom or not atom.strip("."):
            return _new_str(Symbol, atom)
        bare = atom.lstrip(".")
        if ".." in bare:
            message = f"several dots inside the name {excerpt(atom)}"
            raise self.error(message, start, "write one dot between the parts")
        if atom.endswith("."):
            raise self.error(f"the name {excerpt(atom)} ends with a dot", start, "remove the dot")
        parts = bare.split(".")
        if len(parts) > self.limits.max_forms:
            raise self._too_many(start)
        for part in parts:
            if part[0] in ":#" or self._number(part, start) is not None:
                hint = "write a number, or a name whose parts are names"
                raise self.error(f"{excerpt(part)} cannot be a part of a dotted name", start, hint)
        dots = atom[: len(atom) - len(bare)]
        models = [_new_str(Symbol, part) for part in ([dots, "None"] if dots else ["."]) + parts]
        for model in models:
            self._place(model, start, stop - 1)
        return _new_tuple(Expression, models)

    # ---- errors

    def _too_many(self, offset: int) -> ReadError:
        return self.error(
            f"there are more than {self.limits.max_forms} forms here", offset, "read it in parts"
        )

    def _unclosed(self, frame: OpenForm, incomplete: bool = True) -> ReadError:
        where = "at the end"
        if found := form_after(self.stack[1:]):
            below = self.text[self.stack[1].offset : self.end].split("\n", found[1])[found[1]]
            del self.stack[found[0] + 1 :]
            frame, where = self.stack[-1], f"before the next form, {short(below.splitlines()[0].strip(), 30)}"
        message, hint = f"this {frame.opener} is never closed", f"add {self._closers()} {where}"
        if not frame.closer:  # a prefix, like '
            message, hint = f"there is no form after this {frame.opener}", "add one"
            if frame.opener == "'":
                hint = 'add one; a text is written in double quotes, "like this"'
        return self.error(message, frame.offset, hint, incomplete)

    def _wrong_closer(self, frame: OpenForm, start: int) -> ReadError:
        found = self.text[start]
        if len(self.stack) == 1:
            return self.error(f"there is no open form for this {found}", start, "remove it")
        if not frame.closer:
            return self._unclosed(frame, incomplete=False)
        if frame.need and found == frame.closer:
            message = "there is no form in this {} of an f-string"
            return self.error(message, frame.offset, "write {{}} for braces")
        line, column = frame.line, frame.column
        message = f"this {found} does not close the {frame.opener} at line {line}, column {column}"
        missing = ""
        for outer in reversed(self.stack[1:]):
            if outer.closer == found:
                return self.error(message, start, f"add {missing} before it")
            missing += outer.closer
        return self.error(message, start, f"write {frame.closer} instead")
