"""JSON and Python text -> data: literals, even with models' mistakes in them, and ``name(key=value)``.

Linear, bounded, and without recursion on the input's depth. It runs nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, Final, NamedTuple

from quoth.tools import lazy_regex
from quoth.tools.errors import QuothError
from quoth.tools.lisp.forms import CallForm, canonical, kebab
from quoth.tools.lisp.printer import HARD_KEYS, MAX_HARD_KEYS, Code, is_hard_key

MAX_DEPTH = 100
MAX_VALUES = 100_000
MAX_DIGITS = 1000

# Repairs. Some are faults only in one language: a comma at the end is valid Python.
SMART_QUOTES = "Curly quotes were read as straight ones."
SINGLE_QUOTES = "Texts in single quotes were read as if in double ones."
TRAILING_COMMA = "A comma before a closing bracket was dropped."
PYTHON_WORDS = "Python's True, False and None were read as JSON's."
# For a pattern: characters that look like a space or like nothing, and are not blanks in JSON or Lisp.
ODD_SPACES = "\u00a0\u2000-\u200a\u202f\u205f\u3000\ufeff"
SPACES = "No-break spaces and similar characters were read as spaces."
BARE_KEYS = "Keys without quotes were read as texts."
LINE_BREAKS = "Line breaks inside a text were kept."
PYTHONIC: Final = {SINGLE_QUOTES, TRAILING_COMMA, PYTHON_WORDS}


def tail_repair(closers: str) -> str:
    return f"{closers} was added where the reply broke off."


class NotRead(QuothError):
    """The text at ``offset`` is not a literal; the message says why. ``incomplete``: the text ended inside
    it.
    ``hint``: the correct text."""

    def __init__(self, message: str, offset: int, incomplete: bool = False, hint: str = "") -> None:
        super().__init__(message)
        self.offset = offset
        self.incomplete = incomplete
        self.hint = hint


class Literal(NamedTuple):
    """A value, the offset of its end, its repairs, and, for a list, the spans of its items."""

    value: Any
    end: int
    repairs: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()


_TOKEN = lazy_regex.compile(
    rf"""[\s{ODD_SPACES}]*+"""
    r"""(?:
      (?P<string>[bBfFrRuU]{0,2}+(?:\"{3}|'{3}|["'“”„‟‘]))
    | (?P<open>[\[({])
    | (?P<close>[\])}])
    | (?P<comma>,)
    | (?P<colon>:)
    | (?P<number>[+-]?(?:0[xX][0-9a-fA-F]++|(?:[0-9][0-9_]*+(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+
        |Infinity|NaN))(?![\w.])
    | (?P<name>[A-Za-z_][\w-]*+(?:\.[\w-]++)*+)
    )""",
    re.ASCII | re.VERBOSE,
)
_BLANK = lazy_regex.compile(rf"[\s{ODD_SPACES}]*+", re.ASCII)
_ODD = lazy_regex.compile(f"[{ODD_SPACES}]")
_BEGUN = lazy_regex.compile(r"[\w.+-]*+[ \t]*+\Z")  # a token that the end of the text may have cut
_KEYWORD = lazy_regex.compile(r"[ \t]*+=(?!=)", re.ASCII)
_COLON = lazy_regex.compile(r"\s*+:", re.ASCII)
_WORDS: Final = {
    "True": True,
    "False": False,
    "None": None,
    "true": True,
    "false": False,
    "null": None,
    "nil": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
}
_BODIES: Final[dict[str, re.Pattern[str]]] = {
    '"': lazy_regex.compile(r'(?:[^"\\]++|\\.)*+(")', re.DOTALL),
    "'": lazy_regex.compile(r"(?:[^'\\\n]++|\\.)*+(')", re.DOTALL),
    '"""': lazy_regex.compile(r'(?:[^"\\]++|\\.|"(?!""))*+(""")', re.DOTALL),
    "'''": lazy_regex.compile(r"(?:[^'\\]++|\\.|'(?!''))*+(''')", re.DOTALL),
    "“": lazy_regex.compile("[^”]*+(”)"),
    "”": lazy_regex.compile("[^”]*+(”)"),
    "„": lazy_regex.compile("[^“”]*+([“”])"),
    "‟": lazy_regex.compile("[^”]*+(”)"),
    "‘": lazy_regex.compile(r"(?:[^’]++|’(?=\w))*+(’)"),
}
_ESCAPE = lazy_regex.compile(
    r"\\(?:u[0-9a-fA-F]{4}|U00[01][0-9a-fA-F]{5}|x[0-9a-fA-F]{2}|[0-7]{1,3}|\r?\n|.)", re.DOTALL
)
_SIMPLE: Final = dict(zip("\"'\\/bfnrtav", "\"'\\/\b\f\n\r\t\a\v", strict=True)) | {"\n": "", "\r\n": ""}
_JSON_TEXT = json.JSONDecoder(strict=False).decode
_CLOSERS: Final = {"[": "]", "(": ")", "{": "}"}
_ITEM, _SEPARATOR, _KEY, _VALUE = range(4)  # the next expected element of a frame


def smart_text(text: str, start: int, end: int) -> tuple[str, int] | None:
    """The content of the string in curly quotes at ``start`` and the offset after it; None if unclosed."""
    found = _BODIES[text[start]].match(text, start + 1, end)
    return None if found is None else (text[start + 1 : found.start(1)], found.end())


def unescape(body: str) -> str:
    """The content of a string with the escapes of JSON and Python replaced; unknown ones keep the
    backslash."""
    if "\\" not in body:
        return body
    if '"' not in body:
        try:
            return str(_JSON_TEXT(f'"{body}"'))
        except ValueError:
            pass
    text = _ESCAPE.sub(_escaped, body)
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):  # JSON's pairs
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text


def _escaped(found: re.Match[str]) -> str:
    escape = found[0][1:]
    if escape in _SIMPLE:
        return _SIMPLE[escape]
    try:
        if escape[0] in "01234567":
            return chr(int(escape, 8))
        return chr(int(escape[1:], 16))
    except (ValueError, OverflowError):  # unknown, or beyond the last character
        pass
    return found[0]


class _OpenBracket:
    """A bracket that is still open."""

    __slots__ = ("closer", "comma", "expect", "hard", "items", "key", "name", "offset", "pairs")

    def __init__(self, opener: str, offset: int, name: str | None = None) -> None:
        self.closer = _CLOSERS[opener]
        self.offset = offset
        self.name = name  # the name of a call
        self.items: list[Any] = []
        self.pairs: dict[Any, Any] = {}
        self.key: Any = None
        self.hard = 0  # number of keys that could be chosen to collide
        self.comma = False  # whether its last token is a comma
        self.expect = _KEY if opener == "{" else _ITEM

    @property
    def value(self) -> Any:
        if self.name is not None:
            return CallForm(kebab(self.name), self.pairs, tuple(self.items))
        return self.pairs if self.closer == "}" else self.items


def read_literal(
    text: str, start: int, end: int | None = None, *, outer: Collection[str] | None = None
) -> Literal:
    """The literal, or the call, that begins at ``text[start]``. A call inside a call is Code.

    With ``outer``, brackets still open at the end of the text are closed there, unless an inner object has a
    key of ``outer`` (or, if that is empty, any key after its first): it may be a key of an outer object, so
    the inner one could have ended before it. Raises NotRead."""
    return _Literals(text, len(text) if end is None else end, outer).read(start)


class _Literals:
    def __init__(self, text: str, end: int, outer: Collection[str] | None) -> None:
        self.text = text
        self.end = end
        self.stack: list[_OpenBracket] = []
        self.repairs: dict[str, None] = {}
        self.in_call = 0  # number of open frames of calls
        self.spans: list[tuple[int, int]] = []
        self.outer = outer
        self.spills = False  # whether an inner object could have ended before its last key

    def read(self, pos: int) -> Literal:
        text, end, stack = self.text, self.end, self.stack
        value: Any = None
        values = 0
        while True:
            found = _TOKEN.match(text, pos, end)
            if found is None:
                at = self._skip_blanks(pos)
                if at < end:
                    raise NotRead(
                        f"{text[at]!r} is not allowed here", at, _BEGUN.match(text, at, end) is not None
                    )
                if self.outer is not None and stack and stack[-1].expect == _SEPARATOR:
                    return self._close_all(pos)
                raise NotRead("the text ends inside it", stack[-1].offset if stack else at, incomplete=True)
            kind, at = found.lastgroup, found.start(found.lastgroup or 0)
            if not found[0].isascii() and _ODD.search(text, pos, at):
                self._mended(SPACES)
            pos = found.end()
            frame = stack[-1] if stack else None
            if kind == "comma":
                if frame is None or frame.expect != _SEPARATOR:
                    raise NotRead("a value was expected, not a comma", at)
                frame.expect = _KEY if frame.closer == "}" else _ITEM
                frame.comma = True
                continue
            if kind == "close":
                value = self._closed(frame, found["close"], at)
                at = frame.offset if frame else at
            elif kind == "colon":
                raise NotRead("a value was expected, not a colon", at)
            elif frame is not None and frame.expect == _SEPARATOR:
                raise NotRead(f"a comma or {frame.closer} is missing", at)
            elif kind == "open" or (kind == "name" and text[pos : min(pos + 1, end)] == "("):
                pos = self._open(found, at)
                continue
            elif (
                kind == "name"
                and frame is not None
                and frame.name is not None
                and frame.expect == _ITEM
                and (key := _KEYWORD.match(text, pos, end))
            ):
                self._take_key(frame, kebab(found["name"]), at)
                pos = key.end()
                continue
            else:
                value, pos = self._leaf(found, at)
            values += 1
            if values > MAX_VALUES:
                raise NotRead(f"there are more than {MAX_VALUES} values", at)
            if not stack:
                return Literal(value, pos, tuple(self.repairs), tuple(self.spans))
            self._place(at, pos)
            pos = self._take(stack[-1], value, at, pos)

    def _skip_blanks(self, pos: int) -> int:
        found = _BLANK.match(self.text, pos, self.end)
        return found.end() if found else pos

    def _mended(self, repair: str) -> None:
        self.repairs[repair] = None

    # ---- frames

    def _open(self, found: re.Match[str], at: int) -> int:
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.expect == _KEY:
            raise NotRead("a key must be a text", at)
        if len(self.stack) == MAX_DEPTH:
            raise NotRead(f"nested deeper than {MAX_DEPTH}", at)
        name = found["name"]
        self.stack.append(_OpenBracket(found["open"] or "(", at, name))
        self.in_call += name is not None
        return found.end() + (name is not None)

    def _closed(self, frame: _OpenBracket | None, closer: str, at: int) -> Any:
        if frame is None or frame.closer != closer:
            raise NotRead(f"there is no open bracket for this {closer}", at)
        if frame.expect == _VALUE:
            raise NotRead("a value is missing", at)
        if frame.comma:
            self._mended(TRAILING_COMMA)
        self.stack.pop()
        self.in_call -= frame.name is not None
        if self.outer is not None and any(outer.closer == "}" for outer in self.stack):
            self._note([*frame.pairs][1:])
        value = frame.value
        return Code(canonical(value)) if self.in_call and isinstance(value, CallForm) else value

    def _note(self, keys: list[Any]) -> None:
        """Note whether one of these keys may belong to an outer object."""
        self.spills |= any(key in self.outer for key in keys) if self.outer else bool(keys)

    def _close_all(self, at: int) -> Literal:
        """Close all open brackets at the end of the text."""
        for frame in self.stack[1:]:
            keys = [*frame.pairs, *([frame.key] if frame.expect == _VALUE else [])]
            self._note(keys if self.outer else keys[1:])
        self.outer = None
        if self.spills:
            raise NotRead("its end is missing, and could have been in several places", at, incomplete=True)
        self._mended(tail_repair("".join(frame.closer for frame in reversed(self.stack))))
        value: Any = None
        while self.stack:
            begin = self.stack[-1].offset
            value = self._closed(self.stack[-1], self.stack[-1].closer, at)
            if self.stack:
                self._place(begin, at)
                self._take(self.stack[-1], value, at, at)
        return Literal(value, at, tuple(self.repairs), tuple(self.spans))

    def _place(self, start: int, end: int) -> None:
        if len(self.stack) == 1 and self.stack[0].closer == "]":
            self.spans.append((start, end))

    def _take_key(self, frame: _OpenBracket, key: Any, at: int) -> None:
        frame.hard += is_hard_key(key)
        if frame.hard > MAX_HARD_KEYS:
            raise NotRead(HARD_KEYS.rstrip("."), at)
        if key in frame.pairs:
            raise NotRead(f"{key} is given twice", at)
        frame.key = key
        frame.expect = _VALUE

    def _take(self, frame: _OpenBracket, value: Any, at: int, pos: int) -> int:
        """Add a value to its frame. Returns the offset after it, or, for a key, after its colon."""
        if frame.expect == _KEY:
            colon = _COLON.match(self.text, pos, self.end)
            if colon is None:
                at = self._skip_blanks(pos)
                raise NotRead("a : is missing after a key", at, incomplete=at == self.end)
            if isinstance(value, (list, dict, CallForm)):
                raise NotRead("a key must be a text", at)
            self._take_key(frame, value, at)
            return colon.end()
        if frame.expect == _VALUE:
            frame.pairs[frame.key] = value
        else:
            frame.items.append(value)
        frame.expect = _SEPARATOR
        frame.comma = False
        return pos

    # ---- leaves

    def _leaf(self, found: re.Match[str], at: int) -> tuple[Any, int]:
        """The value of one token, and the offset after it."""
        pos, name = found.end(), found["name"]
        if name is not None and self.stack and self.stack[-1].expect == _KEY:
            self._mended(BARE_KEYS)
            return name, pos
        if name is not None:
            return self._word(name, at), pos
        if found["number"] is not None:
            return self._number(found["number"], at), pos
        return self._string(found["string"], at, pos)

    def _word(self, name: str, at: int) -> Any:
        if name not in _WORDS:
            begun = _BEGUN.match(self.text, at, self.end) is not None
            raise NotRead(f"{name[:40]} is not a value; put a text in quotes", at, begun)
        if name in ("True", "False", "None"):
            self._mended(PYTHON_WORDS)
        return _WORDS[name]

    def _number(self, text: str, at: int) -> Any:
        if len(text) > MAX_DIGITS:
            raise NotRead(f"this number has more than {MAX_DIGITS} digits", at)
        if text.endswith(("Infinity", "NaN")):
            return float(text)
        try:
            return int(text, 16) if text.lstrip("+-")[:2] in ("0x", "0X") else int(text)
        except ValueError:
            try:
                return float(text)
            except ValueError:
                raise NotRead(f"{text[:40]} is not a number", at) from None

    def _string(self, opening: str, at: int, pos: int) -> tuple[str, int]:
        quote = opening.lstrip("bBfFrRuU")
        prefix = opening[: len(opening) - len(quote)].lower()
        if prefix not in ("", "r", "u"):
            raise NotRead(f"{prefix}{quote[0]}…{quote[0]} is not a plain text", at)
        found = _BODIES[quote].match(self.text, pos, self.end)
        if found is None:
            cut = quote != "'" or "\n" not in self.text[pos : self.end]
            raise NotRead("a text is never closed", at, incomplete=cut)
        body = self.text[pos : found.start(1)]
        if quote == '"' and "\n" in body:
            self._mended(LINE_BREAKS)
        elif quote == "'":
            self._mended(SINGLE_QUOTES)
        elif quote in "“”„‟‘":
            self._mended(SMART_QUOTES)
        return (body if prefix == "r" else unescape(body)), found.end()
