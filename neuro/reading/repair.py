"""Repairs call forms that models misspell: returns the intended Lisp text, and a sentence for each repair.

It works on text: curly and single quotes, commas, ``key=value``, JSON inside a form, Common Lisp's ``#'f``, a
missing end. An ambiguous form is not changed. It runs nothing.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from quoth.neuro.reading.literals import (
    PYTHON_WORDS,
    SINGLE_QUOTES,
    SMART_QUOTES,
    NotRead,
    read_literal,
    smart_text,
    tail_repair,
    unescape,
)
from quoth.tools import lazy_regex
from quoth.tools.lisp.forms import kebab
from quoth.tools.lisp.printer import CONSTANTS, print_string, print_value

UNCLOSED = "this text in curly quotes is never closed", 'write straight quotes, "so"'
UNCLOSED_TRIPLE = (
    "this text in three quotes is never closed",
    'write one quote, "so", and \\" for a quote inside',
)
KEYS = "Arguments written key=value or key: were read as :key value."
SHARPS = "Common Lisp's #' was read as ', and its #p was dropped."
TRIPLES = "Texts in three quotes were read as if in one."
COMMAS = "Commas between the items of a form were dropped."
SPACES = "No-break spaces between the items of a form were read as spaces."
MAX_PIECES = 200_000  # the reader accepts half as many forms
ENVELOPE = {"tool", "target", "action", "type", "args"}

_CLOSERS: Final = {"(": ")", "#(": ")", "[": "]", "{": "}", "#{": "}"}
_PIECE = lazy_regex.compile(
    r"""
      (?P<blank>(?:\s++|;[^\n]*+)++)
    | (?P<triple>r?+"{3}(?P<body>(?:[^"\\]++|\\.|"(?!""))*+)"{3})
    | (?P<unclosed>r?+"{3})
    | (?P<string>(?:[bfr]|br|rb)?+"(?:[^"\\]++|\\.)*+")
    | (?P<bracket>\#\[(?P<delimiter>[^\[\]\n\r]*+)\[)
    | (?P<space>[\u00a0\u2007\u202f\u3000]++)
    | (?P<sharp>\#'|\#[pP](?="))
    | (?P<smart>[“”„‟‘])
    | (?P<open>\#?[({]|\[)
    | (?P<close>[)\]}])
    | (?P<comma>,)
    | (?P<single>'[^'"\\\n]*+'(?=[\s,)\]}]))
    | (?P<prefix>['`~]@?|\#(?:\*\*?|\^|_)(?=[\s(\[{"]))
    | (?P<key>:?(?P<name>[A-Za-z_][\w-]*+)(?:=(?=[^\s=])|:(?=\s)))
    | (?P<atom>[^\s()\[\]{};"'`~,“”„‟‘\u00a0\u2007\u202f\u3000]++)
    """,
    re.ASCII | re.VERBOSE | re.DOTALL,
)
_BLANK = lazy_regex.compile(r"(?:\s++|;[^\n]*+)++\Z", re.ASCII)
_LOST = lazy_regex.compile(r";[^\n]*?(?:[)\]}]|:[A-Za-z])")  # text that a ; may have hidden by mistake
# A dictionary of JSON, Python or JavaScript; in Hy's a key has no colon after it.
_JSON = lazy_regex.compile(
    r"""\{\s*+(?: "(?:[^"\\]++|\\.)*+"(?::|\s++:\s) | '[^'\n]*+'\s*+: | [“„][^”]*+”\s*+:
        | [A-Za-z_][\w-]*+:\s )""",
    re.VERBOSE | re.DOTALL,
)
_NUMBER = lazy_regex.compile(r"[+-]?[\d.]")
# The beginnings of all repairable mistakes in a readable form; most forms contain none.
may_be_odd: Final = re.compile(r"""[^\x00-\x7f]|[',=#{]|"{3}|:\s""").search
_TOP, _PLIST, _ARGS, _DATA, _CODE = range(
    5
)  # a call, the plist of one, its :args, data in these, anything else


class Mended(NamedTuple):
    """The repaired form as Lisp text, the offset of its end in the original text, and the repairs."""

    text: str
    end: int
    repairs: tuple[str, ...]


class _Level:
    __slots__ = ("closer", "count", "keys", "kind", "last", "offset", "wild")

    def __init__(self, kind: int, closer: str, offset: int) -> None:
        self.kind = kind
        self.closer = closer
        self.offset = offset
        self.count = 0  # the number of its items
        self.last = ""  # its last item, if that is an atom
        self.keys: list[str] = []
        self.wild = False  # whether it may contain prose

    def take(self, atom: str = "") -> None:
        """Add an item."""
        self.count += 1
        self.last = atom


def mend(text: str, start: int, end: int, *, tail: bool = False, more: bool = False) -> Mended | None:
    """The repaired form that begins at ``text[start]``; None if it needs no repair.

    With ``tail``, brackets still open at ``end`` are closed there, if that is the only possible reading. With
    ``more``, the text may continue after ``end``. Raises NotRead.
    """
    return _Mender(text, end, more).run(start, tail)


class _Mender:
    def __init__(self, text: str, end: int, more: bool) -> None:
        self.text = text
        self.end = end
        self.more = more
        self.pieces: list[str] = []
        self.stack: list[_Level] = []
        self.repairs: dict[str, None] = {}
        self.changed = False

    def run(self, start: int, tail: bool) -> Mended | None:
        text, end = self.text, self.end
        pos = start
        while True:
            if len(self.pieces) > MAX_PIECES:
                raise NotRead("the form has too many parts", pos)
            found = _PIECE.match(text, pos, end)
            if found is None:
                if pos < end and text[pos] != '"':
                    raise NotRead(f"{text[pos]!r} is not allowed in a form", pos)
                if not (tail and pos == end):
                    raise NotRead("the form is never closed", start, incomplete=True)
                pos = self._close_all(start, pos)
                break
            kind = found.lastgroup or ""
            if kind == "name":
                kind = "key"
            elif kind == "delimiter":
                kind = "bracket"
            elif kind == "body":
                kind = "triple"
            before, pos = pos, self._piece(kind, found)
            if not self.stack:
                break
            if pos == before:
                raise NotRead("the form cannot be read", pos)
        if not self.changed:
            return None
        return Mended("".join(self.pieces), pos, tuple(self.repairs))

    def _piece(self, kind: str, found: re.Match[str]) -> int:
        """Take one piece. Returns the offset after it."""
        text, at, piece = self.text, found.start(), found[0]
        frame = self.stack[-1] if self.stack else None
        if kind == "open":
            return self._open(piece, at)
        if frame is None:
            raise NotRead("a form begins with (", at)
        data = frame.kind != _CODE
        if kind in ("triple", "unclosed", "smart", "bracket") or (kind == "single" and data):
            frame.take()
            return self._string(kind, found)
        if kind == "close":
            if frame.closer != piece:
                raise NotRead(f"this {piece} does not match the open bracket", at)
            self.stack.pop()
        elif kind == "comma" and data and not self._in_number(frame, at):
            if not frame.count:
                raise NotRead("an item was expected, not a comma", at)
            return self._replace(" ", found.end(), COMMAS)
        elif kind == "space":
            return self._replace(" ", found.end(), SPACES)
        elif kind == "sharp":
            return self._replace("'" if piece == "#'" else "", found.end(), SHARPS)
        elif kind == "single":
            self.pieces.append("'")
            return at + 1
        elif kind == "prefix" and piece[0] == "'" and self.more and text.find("\n", at, self.end) < 0:
            raise NotRead("a text in single quotes may end later", at, incomplete=True)
        elif kind == "key" and self._is_key(frame, piece):
            self._take_atom(frame, f":{found['name']}")
            return self._replace(f":{found['name']} ", found.end(), KEYS)
        elif kind in ("atom", "key"):
            self._take_atom(frame, piece)
        elif kind == "string":
            frame.take()
        self.pieces.append(piece)
        return found.end()

    def _string(self, kind: str, found: re.Match[str]) -> int:
        """Take a text that is not a plain Lisp string, or may not end."""
        text, at, piece = self.text, found.start(), found[0]
        if kind == "unclosed":
            raise NotRead(UNCLOSED_TRIPLE[0], at, True, UNCLOSED_TRIPLE[1])
        if kind == "triple":
            body = found["body"]
            body = body if piece[0] == "r" else unescape(body)
            return self._replace(print_string(body), found.end(), TRIPLES)
        if kind == "single":
            return self._replace(print_string(piece[1:-1]), found.end(), SINGLE_QUOTES)
        if kind == "smart":
            whole = smart_text(text, at, self.end)
            if whole is None:
                raise NotRead(UNCLOSED[0], at, True, UNCLOSED[1])
            return self._replace(print_string(unescape(whole[0])), whole[1], SMART_QUOTES)
        closer = f"]{found['delimiter']}]"
        stop = text.find(closer, found.end(), self.end)
        if stop < 0:
            raise NotRead("a text is never closed", at, incomplete=True)
        self.pieces.append(text[at : stop + len(closer)])
        return stop + len(closer)

    def _replace(self, piece: str, end: int, repair: str = "") -> int:
        self.pieces.append(piece)
        self.changed = True
        if repair:
            self.repairs[repair] = None
        return end

    def _is_key(self, frame: _Level, piece: str) -> bool:
        """Whether ``key=`` or ``key:`` names an argument; not if a value is expected."""
        if frame.kind not in (_TOP, _ARGS) or not (frame.count or frame.kind == _ARGS):
            return False
        return piece.startswith(":") or not frame.last.startswith(":")

    def _in_number(self, frame: _Level, at: int) -> bool:
        """Whether a comma is inside a number: Hy reads ``1,000`` among arguments as one number; in brackets
        the comma separates two."""
        around = self.text[max(0, at - 1) : at + 2]
        return frame.kind in (_TOP, _ARGS, _PLIST) and len(around) == 3 and around[::2].isdigit()

    def _take_atom(self, frame: _Level, atom: str) -> None:
        if not frame.count and frame.kind == _TOP and atom.startswith(":"):
            frame.kind = _PLIST
        elif atom.startswith(":"):
            frame.keys.append(kebab(atom[1:]))
        elif (frame.count or frame.kind == _ARGS) and frame.kind != _PLIST:
            plain = atom in CONSTANTS or _NUMBER.match(atom)
            frame.wild = frame.wild or not plain
        frame.take(atom)

    def _open(self, opener: str, at: int) -> int:
        frame = self.stack[-1] if self.stack else None
        if opener == "{" and frame is not None and _JSON.match(self.text, at, self.end):
            try:
                read = read_literal(self.text, at, self.end)
            except NotRead as error:
                if error.incomplete:
                    raise
            else:
                frame.take()
                for repair in read.repairs:
                    if repair != PYTHON_WORDS:  # True is Lisp's too
                        self.repairs[repair] = None
                return self._replace(print_value(read.value), read.end)
        if len(self.stack) >= 100:
            raise NotRead("nested too deeply", at)
        self.stack.append(_Level(self._kind(frame, opener, at), _CLOSERS[opener], at))
        if frame is not None:
            frame.take()
        self.pieces.append(opener)
        return at + len(opener)

    def _kind(self, frame: _Level | None, opener: str, at: int) -> int:
        """The kind of a bracket inside ``frame``."""
        if frame is None:
            return _TOP
        if frame.kind == _CODE:
            return _CODE
        if opener == "(" and self.text[at - 1] != "'":
            if frame.kind == _PLIST and frame.last.lower() == ":args":
                return _ARGS
            if frame.kind == _ARGS and not frame.count:
                return _ARGS
            # A form on a new line, no further to the right, may be the next one.
            frame.wild = frame.wild or self._column(at) <= self._column(self.stack[0].offset)
            return _CODE
        return _DATA

    def _column(self, at: int) -> int:
        return at - self.text.rfind("\n", max(0, at - 1000), at)

    def _close_all(self, start: int, pos: int) -> int:
        """Close all open brackets at the end of the text, if none of them could have ended earlier."""
        for depth, frame in enumerate(self.stack):
            spills = frame.keys if frame.kind == _DATA else ENVELOPE & set(frame.keys)
            if frame.kind == _CODE or frame.wild or (depth and spills) or (not depth and frame.count < 2):
                raise NotRead("its end is missing, and could have been in several places", start, True)
        while _BLANK.match(self.pieces[-1]):  # a closing bracket after a comment would be a part of it
            if _LOST.search(self.pieces[-1]):
                raise NotRead("a comment hides its end, and may hide arguments", start, True)
            pos -= len(self.pieces.pop())
        closers = "".join(frame.closer for frame in reversed(self.stack))
        self.stack.clear()
        return self._replace(closers, pos, tail_repair(closers))
