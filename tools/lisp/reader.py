"""Text -> Hy models with positions: a safe, linear, bounded reader of a subset of Hy that runs nothing.

It agrees with ``hy.read_many`` or refuses. It must not know tools, language models, or doors.
"""

from __future__ import annotations

import codecs
import re
import sys
import unicodedata
from dataclasses import dataclass
from json import JSONDecoder
from typing import Any, Final

from hy.models import (
    Bytes,
    Complex,
    Dict,
    Expression,
    FComponent,
    Float,
    FString,
    Integer,
    Keyword,
    List,
    Object,
    Set,
    String,
    Symbol,
    Tuple,
)

from quoth.tools.errors import QuothError
from quoth.tools.text import excerpt, printable

_WINDOW = 80  # characters of a long line that caret() shows
_KEPT = 200  # characters an error keeps on each side of its column: a line may be megabytes long


class Lines:
    """Offset -> (line, column), both 1-based. As in Hy, only a line feed ends a line.

    It counts on from the last offset asked for, so asking in the order of the text is linear. ``line`` and
    ``column`` are those of ``text[0]``, for a text that is the rest of a longer one.
    """

    __slots__ = ("first", "line", "offset", "start", "text")

    def __init__(self, text: str, line: int = 1, column: int = 1) -> None:
        self.text = text
        self.offset = 0
        self.line = line
        self.start = self.first = 1 - column  # where the line of ``offset`` begins; before the text, below 0

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


class ReadError(QuothError):
    """Where the text cannot be read, why, and what would be right.

    ``source_line`` may lack its first ``cut`` characters. ``incomplete``: the text ended inside a form.
    ``offset`` is the place in the text that was given.
    """

    def __init__(
        self,
        message: str,
        line: int = 1,
        column: int = 1,
        hint: str = "",
        source_line: str = "",
        incomplete: bool = False,
        cut: int = 0,
        offset: int = 0,
    ) -> None:
        super().__init__(message, line, column, hint, source_line, incomplete, cut, offset)  # all, for pickle
        self.message = message
        self.line = line
        self.column = column
        self.hint = hint
        self.source_line = source_line
        self.incomplete = incomplete
        self.cut = cut
        self.offset = offset

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        return f"line {self.line}, column {self.column}: {self.message}{hint}"

    def caret(self) -> str:
        """The source line (a window of it, when long), and below it a caret under the column."""
        at = self.column - 1 - self.cut
        start = max(0, at - _WINDOW // 2) if len(self.source_line) > _WINDOW else 0
        stop = start + _WINDOW
        # The line may be a model's: its control characters must not reach a terminal.
        shown = printable(self.source_line[start:stop], "\t")
        pad = "".join(c if c == "\t" else " " * _width(c) for c in shown[: at - start])
        left = "…" if start or self.cut else ""
        right = "…" if stop < len(self.source_line) else ""
        return f"{left}{shown}{right}\n{' ' * len(left)}{pad}^"


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


@dataclass(frozen=True)
class Limits:
    max_chars: int = 5_000_000
    max_depth: int = 200
    max_forms: int = 100_000  # every node counts, not only those at the top
    max_digits: int = 1000
    booleans: bool = False  # read #t and #f, which are no Hy, as True and False


DEFAULT: Final = Limits()


def read_all(text: str, limits: Limits = DEFAULT) -> list[Object]:
    """Every form at the top of ``text``."""
    return _whole(text, limits).read(0)[0]


def read_one(text: str, limits: Limits = DEFAULT) -> Object:
    """The one form of ``text``; none, or a second one, is an error."""
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
    text: str, start: int, limits: Limits = DEFAULT, lines: Lines | None = None
) -> tuple[Object, int]:
    """The form that begins at ``text[start]``, and the offset just past it.

    Share ``lines`` to read many forms of one text in linear time. Here ``max_chars`` bounds the form.
    """
    end = min(len(text), start + limits.max_chars + 1)
    reader = _Reader(text, limits, Lines(text) if lines is None else lines, end)
    if not 0 <= start < len(text) or text[start] in _SPACE + ";":
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


def _whole(text: str, limits: Limits) -> _Reader:
    if len(text) > limits.max_chars:
        raise ReadError(f"the text has {len(text)} characters, more than the {limits.max_chars} allowed")
    return _Reader(text, limits, Lines(text), len(text))


# ---- the lexicon; under re.ASCII \s is exactly Hy's white space

_SPACE = " \t\n\r\f\v"
_NAME = r"""[^\s()\[\]{};"'`~]"""  # what may stand in a symbol or a keyword
_PLAIN = r"[\w!#$%&*+,\-/:<=>?@\\^|]"  # the part of it that needs no second look
_STOP = r"""(?=[\s()\[\]{};'`~]|\Z)"""  # no '"': that would make the atom the prefix of a string

_SYMBOL, _KEYWORD, _STRING, _OPEN, _CLOSE, _INTEGER, _OTHER = range(1, 8)
# Each group is a whole token. A symbol that begins like a number (sign, dot, Inf, NaN, j) is left to _OTHER.
_TOKEN = re.compile(
    rf"""(?:\s++|;[^\n]*+)*+(?:
      ((?![jJIN])[A-Za-z_*/<>=!?$%&@^|]{_PLAIN}*+{_STOP})
    | (:{_PLAIN}*+(?!{_NAME}))
    | (")
    | (\#?[({{]|\[)
    | ([)\]}}])
    | (-?[1-9][0-9]*+{_STOP}|0{_STOP})
    | ([^\s;])
    )""",
    re.ASCII | re.VERBOSE,
).match
_BLANK = re.compile(r"\s*+", re.ASCII).match
_ATOM = re.compile(f"{_NAME}*+", re.ASCII).match
# \d without re.ASCII: Python reads the digits of any script.
_NUMBERISH = re.compile(r"[+\-._,]*(?:\d|Inf|NaN|[jJ][_,]*\Z)").match
_FIELD_TAIL = re.compile(r"\s*+(?:!([rsa]))?+\s*+([:}]?)", re.ASCII).match
_BRACKET = re.compile(r"#\[([^\[\]\n\r]*+)\[\r?\n?").match
_JSON = JSONDecoder(strict=False).raw_decode
_SURROGATE = re.compile("[\ud800-\udfff]").search

# Python's escapes, without those for half a surrogate pair and octals above \377 (Python warns of those).
_BYTE_ESCAPE = r"""[\n\r\\'"abfnrtv]|[0-3][0-7]{2}|[0-7]{1,2}(?![0-7])|x[0-9a-fA-F]{2}"""
_ESCAPE = (
    _BYTE_ESCAPE + r"|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|N\{[-A-Za-z0-9 ]+\}"
    r"|U(?!0000[dD][89a-fA-F])00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}"
)
_TEXT = re.compile(rf'(?:[^"\\]++|\\(?:{_ESCAPE}))*+').match
_BYTES = re.compile(rf'(?:[^"\\]++|\\(?:{_BYTE_ESCAPE}))*+').match
_RAW = re.compile(r'(?:[^"\\]++|\\.?)*+', re.DOTALL).match
# Hy takes the N{ of \\N{ for a name although its backslash is escaped: refused, as the meaning would differ.
_F_TEXT = re.compile(rf'(?:[^"\\{{}}]++|\{{\{{|\}}\}}|\\(?!\\N\{{)(?:{_ESCAPE}))*+').match
_SPEC_TEXT = re.compile(r'[^"\\{}]*+').match
_BODIES: Final = {"": _TEXT, "b": _BYTES, "r": _RAW, "rb": _RAW, "br": _RAW}

_FORMS, _TAIL, _LITERAL, _SPEC = range(4)  # what a frame expects next
_F_OPENER, _FIELD_OPENER = 'f"', "{ of an f-string"
# opener -> model (of a prefix: the name of its head), closer, number of forms if fixed, what it expects first
_SHAPES: Final[dict[str, tuple[Any, str, int, int]]] = {
    "(": (Expression, ")", 0, _FORMS),
    "[": (List, "]", 0, _FORMS),
    "{": (Dict, "}", 0, _FORMS),
    "#(": (Tuple, ")", 0, _FORMS),
    "#{": (Set, "}", 0, _FORMS),
    "'": ("quote", "", 1, _FORMS),
    "`": ("quasiquote", "", 1, _FORMS),
    "~": ("unquote", "", 1, _FORMS),
    "~@": ("unquote-splice", "", 1, _FORMS),
    "#*": ("unpack-iterable", "", 1, _FORMS),
    "#**": ("unpack-mapping", "", 1, _FORMS),
    "#^": ("annotate", "", 2, _FORMS),
    "#_": (None, "", 1, _FORMS),
    _F_OPENER: (FString, '"', 0, _LITERAL),
    _FIELD_OPENER: (FComponent, "}", 1, _FORMS),
}
_DISPATCH_HINTS: Final = {
    "'": "write the name alone",
    ".": "nothing is evaluated while reading",
    ":": "write the name, or the keyword, alone",
    "|": "a comment is ; to the end of the line",
    "\\": "write the character as a string",
    '"': 'write the string alone, or r"…" to keep its backslashes',
    "t": "write True",
    "f": "write False",
}

_ESCAPE_HINTS: Final = {
    **dict.fromkeys("01234567", r"an octal escape ends at \377"),
    "x": r"write two hexadecimal digits, as in \x41",
    "u": r"write four hexadecimal digits, as in \u00e9; a character that needs more, write itself",
    "U": r"write the eight hexadecimal digits of a character, as in \U0001F600",
    "N": r"write the name of a character in braces, as in \N{EM DASH}",
}

_new_str, _new_tuple, _new_int, _new_object = str.__new__, tuple.__new__, int.__new__, object.__new__


class _Frame:
    """A form that is still open."""

    __slots__ = (
        "closer", "column", "conversion", "expect", "expression", "items", "line",
        "make", "mark", "need", "offset", "opener",
    )  # fmt: skip

    def __init__(self, opener: str, offset: int, line: int, column: int) -> None:
        self.make, self.closer, self.need, self.expect = _SHAPES[opener]
        self.opener = opener
        self.offset = offset
        self.line = line
        self.column = column
        self.items: list[Object] = []
        self.mark = offset + 1  # in an f-string: where the field's text or the literal text begins
        self.conversion: str | None = None
        self.expression = ""


class _Reader:
    def __init__(self, text: str, limits: Limits, lines: Lines, end: int) -> None:
        self.text = text
        self.limits = limits
        self.lines = lines
        self.end = end
        # Beyond Python's own limit int() fails, and Hy would go on to read a float.
        self.max_digits = min(limits.max_digits, sys.get_int_max_str_digits() or limits.max_digits)
        self.stack: list[_Frame] = []

    def read(self, pos: int, one: bool = False) -> tuple[list[Object], int]:
        """The forms from ``pos`` on (only the first, if ``one``) and the offset behind them.

        Positions are set through the models' private fields: the public setters cost more than the reading.
        """
        text, end, stack = self.text, self.end, self.stack
        max_forms, max_digits = self.limits.max_forms, self.max_digits
        frame = root = _Frame("(", pos, 1, 1)
        stack[:] = [root]
        nodes = 0
        row, column = self.lines.at(pos)
        line_start = pos - column + 1
        next_break = text.find("\n", pos, end)
        if next_break < 0:
            next_break = end
        form: Any
        while True:
            if frame.expect:  # inside an f-string: no tokens, but literal text and the ends of fields
                line, column = frame.line, frame.column
                form, pos = self._tail(frame, pos) if frame.expect == _TAIL else self._literal(frame, pos)
                nodes += 1
                frame = stack[-1]
                if form is None:
                    continue
            else:
                found = _TOKEN(text, pos, end)
                if found is None:
                    if frame is root:
                        return root.items, end
                    raise self._unclosed(frame)
                kind: Any = found.lastindex
                start, pos = found.span(kind)
                if next_break < start:
                    row += text.count("\n", next_break, start)
                    line_start = text.rindex("\n", next_break, start) + 1
                    next_break = text.find("\n", start, end)
                    if next_break < 0:
                        next_break = end
                line, column = row, start - line_start + 1
                opener = ""
                if kind == _SYMBOL:
                    form = _new_str(Symbol, found[kind])
                elif kind == _STRING:
                    # find() is several times faster on a long string than a pattern
                    stop = text.find('"', pos, end)
                    if stop < 0 or text.find("\\", pos, stop) >= 0 or text.find("\r", pos, stop) >= 0:
                        form, pos = self._escaped(start) or self._string(start, "")
                    else:
                        form = _new_str(String, text[pos:stop])
                        form.brackets = None
                        if not form.isascii():
                            self._no_surrogate(pos, stop)
                        pos = stop + 1
                elif kind == _KEYWORD:
                    form = _new_object(Keyword)
                    form.name = text[start + 1 : pos]
                elif kind == _OPEN:
                    opener = found[kind]
                elif kind == _CLOSE:
                    if frame is root or frame.need or frame.closer != text[start]:
                        raise self._wrong_closer(frame, start)
                    form = _new_tuple(frame.make, frame.items)
                    line, column = frame.line, frame.column
                    stack.pop()
                    frame = stack[-1]
                elif kind == _INTEGER and pos - start <= max_digits:
                    form = _new_int(Integer, found[kind])
                else:
                    opener, form, pos = self._other(start)
                    if isinstance(form, Expression):  # a dotted name
                        nodes += len(form)
                if opener:
                    frame = self._open(opener, start, line, column)
                    continue
            last = pos - 1
            if next_break < last:
                row += text.count("\n", next_break, last)
                line_start = text.rindex("\n", next_break, last) + 1
                next_break = text.find("\n", last, end)
                if next_break < 0:
                    next_break = end
            last_line, last_column = row, last - line_start + 1
            while True:  # the form is complete, and so may be the prefixes before it
                form._start_line = line
                form._start_column = column
                form._end_line = last_line
                form._end_column = last_column
                frame.items.append(form)
                nodes += 1
                if len(frame.items) != frame.need:
                    break
                if frame.opener == _FIELD_OPENER:
                    frame.expect = _TAIL
                    break
                stack.pop()
                nodes += 1
                line, column = frame.line, frame.column
                form, frame = self._prefixed(frame, last_line, last_column), stack[-1]
                if form is None:
                    break
            if nodes > max_forms:
                raise self._too_many(last)
            if one and root.items:
                return root.items, pos

    def _after(self, match: Any, pos: int) -> int:
        """The offset behind what ``match`` (it always matches) takes from ``pos`` on."""
        found: re.Match[str] = match(self.text, pos, self.end)
        return found.end()

    # ---- frames

    def _open(self, opener: str, start: int, line: int, column: int) -> _Frame:
        if len(self.stack) > self.limits.max_depth:
            message = f"nested deeper than {self.limits.max_depth}"
            raise self.error(message, start, "split it into smaller forms")
        frame = _Frame(opener, start, line, column)
        self.stack.append(frame)
        return frame

    def _prefixed(self, frame: _Frame, last_line: int, last_column: int) -> Object | None:
        if frame.make is None:  # #_ drops its form
            return None
        head = _new_str(Symbol, frame.make)
        head._start_line, head._start_column = frame.line, frame.column
        head._end_line, head._end_column = last_line, last_column
        return _new_tuple(Expression, (head, *reversed(frame.items)))  # #^ type name -> (annotate name type)

    def _literal(self, frame: _Frame, pos: int) -> tuple[Object | None, int]:
        """Literal text of an f-string or of a format spec, and the brace or quote that ends it."""
        spec = frame.expect == _SPEC
        stop = self._after(_SPEC_TEXT if spec else _F_TEXT, pos)
        if stop > pos:
            body = self.text[pos:stop]
            if not spec:
                body = body.replace("{{", "{").replace("}}", "}")
            piece = String(self._decode(body, pos, stop))
            if piece:  # a backslash before a line's end leaves nothing
                self._place(piece, frame.mark, stop)  # as Hy does: from the opening quote or colon on
                frame.items.append(piece)
        char = self.text[stop : min(stop + 1, self.end)]
        if char == "{" and not (spec and self.text.startswith("{{", stop)):
            field = self._open(_FIELD_OPENER, stop, *self.lines.at(stop))
            field.mark = self._after(_BLANK, stop + 1)
            return None, stop + 1
        if char == frame.closer:
            return self._close(frame), stop + 1
        if not char:
            raise self._unclosed(frame)
        if spec:
            raise self.error(f"{char} cannot stand in a format spec", stop, "compute it in a nested {form}")
        if char == "}":
            raise self.error("a single } in an f-string", stop, "write }} for a brace")
        raise self._bad_escape(frame.offset, stop, frame.mark + 1)

    def _tail(self, frame: _Frame, pos: int) -> tuple[Object | None, int]:
        """What follows the form of an f-string's field: !r, then } or : and a format spec."""
        found = _FIELD_TAIL(self.text, pos, self.end)
        assert found  # it can match nothing
        stop = found.end()
        if not found[2] and stop == self.end:
            raise self._unclosed(frame)
        if not found[2]:
            hint = "after the form may come !r, !s or !a, then :spec, each after a space"
            raise self.error(f"expected }} of the f-string, found {excerpt(self.text[stop])}", stop, hint)
        frame.conversion = found[1]
        frame.expression = self.text[frame.mark : pos]
        frame.mark = stop - 1
        frame.expect = _SPEC
        return (None if found[2] == ":" else self._close(frame)), stop

    def _close(self, frame: _Frame) -> Object:
        self.stack.pop()
        if frame.make is FString:
            return FString(frame.items)
        return FComponent(frame.items, conversion=frame.conversion, expression=frame.expression)

    def _place(self, model: Object, start: int, last: int) -> None:
        model._start_line, model._start_column = self.lines.at(start)
        model._end_line, model._end_column = self.lines.at(last)

    # ---- the tokens that need a second look: (opener of a frame or "", form, offset behind it)

    def _other(self, start: int) -> tuple[str, Object | None, int]:
        char = self.text[start]
        if char == "~" and self.text.startswith("~@", start, self.end):
            return "~@", None, start + 2
        if char in "'`~":
            return char, None, start + 1
        if char == "#":
            return self._dispatch(start)
        stop = self._after(_ATOM, start)
        atom = self.text[start:stop]
        if not atom.isprintable():
            at, bad = next((i, c) for i, c in enumerate(atom) if not c.isprintable())
            hint = "write a plain space" if bad.isspace() else "remove it"
            raise self.error(f"the character U+{ord(bad):04X} cannot stand in a name", start + at, hint)
        if char == ":":
            if "." in atom:
                raise self.error(
                    f"the keyword {excerpt(atom)} holds a dot", start, "write - or _ instead of it"
                )
            return "", Keyword(atom[1:], from_parser=True), stop
        if stop == self.end or self.text[stop] != '"':
            return "", self._name(atom, start, stop), stop
        if atom in _BODIES:
            return "", *self._string(start, atom)
        if atom == "f":
            return _F_OPENER, None, stop + 1
        if set(atom) < set("bfrt") and len(atom) < 3:
            raise self.error(f'{atom}"…" strings are not read here', start, 'write "…", r"…", b"…" or f"…"')
        hint = r"put a space before the quote, or, inside a string, write \" for it"
        raise self.error(f"no string has the prefix {excerpt(atom)}", start, hint)

    def _dispatch(self, start: int) -> tuple[str, Object | None, int]:
        stop = self._after(_ATOM, start + 1)
        opener = self.text[start:stop]
        if opener in _SHAPES:
            return opener, None, stop
        if opener == "#":
            opener += self.text[stop : min(stop + 1, self.end)].strip()
            if opener == "#":
                raise self.error("a # stands alone here", start, "remove it", incomplete=stop == self.end)
            if opener == "#[":
                return "", *self._bracket_string(start)
        if self.limits.booleans and opener in ("#t", "#f", "#true", "#false"):
            return "", Symbol("True" if opener[1] == "t" else "False"), stop
        key = opener[1:] if opener[1] in "tf" else opener[1]
        hint = _DISPATCH_HINTS.get(key, "write a plain form")
        if key in "_*^":
            hint = f"put a space after {'#**' if opener.startswith('#**') else opener[:2]}"
        raise self.error(f"reader macros are not read here: {excerpt(opener)}", start, hint)

    def _number(self, atom: str, start: int) -> Object | None:
        if not _NUMBERISH(atom):
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

    # ---- strings

    def _escaped(self, start: int) -> tuple[Object, int] | None:
        """The string read by the fast reader of JSON, where its escapes are Hy's and mean the same."""
        try:
            value, stop = _JSON(self.text, start)
        except ValueError:
            return None
        odd = ["\r"]  # what is no escape to Hy, means a line feed or makes half a character
        odd += ["\\/"] if "/" in value else []
        odd += [] if value.isascii() else ["\\ud", "\\uD"]
        if stop > self.end or any(self.text.find(piece, start, stop) >= 0 for piece in odd):
            return None
        if not value.isascii():
            self._no_surrogate(start + 1, stop)
        return String(value), stop

    def _string(self, start: int, prefix: str) -> tuple[Object, int]:
        first = start + len(prefix) + 1
        stop = self._after(_BODIES[prefix], first)
        if stop == self.end or self.text[stop] != '"':
            raise self._bad_escape(start, stop, first, prefix)
        body = self.text[first:stop]
        if "b" not in prefix:
            return String(self._decode(body, first, stop, raw="r" in prefix)), stop + 1
        if not body.isascii():
            at, bad = next((i, c) for i, c in enumerate(body) if not c.isascii())
            raise self.error(f"bytes hold ASCII only, not {bad!a}", first + at, r"write \xNN, or drop the b")
        data = _one_newline(body).encode("ascii")
        return Bytes(data if "r" in prefix else codecs.escape_decode(data)[0]), stop + 1

    def _bracket_string(self, start: int) -> tuple[Object, int]:
        found = _BRACKET(self.text, start, self.end)
        if found is None:
            incomplete = not set("[]\n\r").intersection(self.text[start + 2 : self.end])
            raise self.error("this #[ does not begin a bracket string", start, "write #[[text]]", incomplete)
        delimiter = found[1]
        if delimiter == "f" or delimiter.startswith("f-"):
            raise self.error(f"#[{excerpt(delimiter)}[ f-strings are not read here", start, 'write f"…"')
        closer = f"]{delimiter}]"
        stop = self.text.find(closer, found.end(), self.end)
        if stop < 0:
            raise self._unclosed_string(start, closer)
        body = self._decode(self.text[found.end() : stop], found.end(), stop, raw=True)
        return String(body, brackets=delimiter), stop + len(closer)

    def _decode(self, body: str, start: int, stop: int, raw: bool = False) -> str:
        if not body.isascii():
            self._no_surrogate(start, stop)
        body = _one_newline(body)
        if raw or "\\" not in body:
            return body
        try:
            return _unescape(body)
        except UnicodeDecodeError:  # the pattern let only whole escapes through, so it is the name in a \N{}
            for found in re.finditer(r"\\(?:N\{[^}]*\}|.)", self.text[start:stop], re.DOTALL):
                try:
                    _unescape(found[0])
                except UnicodeDecodeError:
                    message = f"no character has the name in {excerpt(found[0])}"
                    offset = start + found.start()
                    raise self.error(message, offset, "write the character itself") from None
            raise

    def _no_surrogate(self, start: int, stop: int) -> None:
        found = _SURROGATE(self.text, start, stop)
        if found:
            message = f"the character U+{ord(found[0]):04X} is half of a surrogate pair"
            raise self.error(message, found.start(), "write the character itself")

    # ---- errors

    def error(self, message: str, offset: int, hint: str = "", incomplete: bool = False) -> ReadError:
        return error_at(self.text, self.lines, message, offset, hint, incomplete)

    def _too_many(self, offset: int) -> ReadError:
        return self.error(
            f"there are more than {self.limits.max_forms} forms here", offset, "read it in parts"
        )

    def _closers(self) -> str:
        return "".join(frame.closer for frame in reversed(self.stack[1:]))

    def _unclosed(self, frame: _Frame, incomplete: bool = True) -> ReadError:
        message, hint = f"this {frame.opener} is never closed", f"add {self._closers()} at the end"
        if not frame.closer:  # a prefix, like '
            message, hint = f"there is no form after this {frame.opener}", "add one"
            if frame.opener == "'":
                hint = 'add one; a text stands in double quotes, "so"'
        return self.error(message, frame.offset, hint, incomplete)

    def _unclosed_string(self, start: int, closer: str) -> ReadError:
        hint = f"add {closer}{self._closers()} at the end"
        if closer == '"':
            hint += r", or write \" for a quote inside"
        return self.error("this string is never closed", start, hint, incomplete=True)

    def _wrong_closer(self, frame: _Frame, start: int) -> ReadError:
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

    def _bad_escape(self, start: int, stop: int, first: int, prefix: str = "") -> ReadError:
        """Why a string that begins at ``start`` cannot be read on from ``stop``."""
        if "r" in prefix or self._after(_RAW, first) == self.end:
            return self._unclosed_string(start, '"')
        escape = self.text[stop : stop + 2]
        hint = r"write \\ for a backslash" + ("" if prefix else ', or r"…"')
        if "b" not in prefix or escape[1] not in "uUN":
            hint = _ESCAPE_HINTS.get(escape[1], hint)
        return self.error(f"{escape} is no escape here", stop, hint)


def error_at(
    text: str, lines: Lines, message: str, offset: int, hint: str = "", incomplete: bool = False
) -> ReadError:
    """The error at ``text[offset]``, with the line it stands in."""
    line, column = lines.at(offset)
    first = offset - column + 1
    start = max(first, offset - _KEPT, 0)
    source = text[start : offset + _KEPT]
    stop = source.find("\n", offset - start)
    source = (source if stop < 0 else source[:stop]).rstrip("\r")
    return ReadError(message, line, column, hint, source, incomplete, start - first, offset)


def _one_newline(body: str) -> str:
    return body.replace("\r\n", "\n").replace("\r", "\n") if "\r" in body else body


def _unescape(body: str) -> str:
    return body.encode("latin-1", "backslashreplace").decode("unicode_escape")
