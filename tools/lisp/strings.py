"""Parses Lisp string literals: prefixes, escapes, bracket strings, and their syntax errors."""

from __future__ import annotations

import codecs
import re
from typing import Any

from hy.models import Bytes, Object, String

from quoth.tools.advice import instead
from quoth.tools.lisp.lexicon import BODIES, BRACKET, JSON, RAW, SURROGATE, OpenForm
from quoth.tools.lisp.read_error import LineIndex, ReadError, error_at
from quoth.tools.text import excerpt

_new_str = str.__new__


class Strings:
    """The reader's parser of strings. It reads ``text`` up to ``end``; ``stack`` is the list of unclosed
    forms."""

    def __init__(self, text: str, lines: LineIndex, end: int) -> None:
        self.text = text
        self.lines = lines
        self.end = end
        self.stack: list[OpenForm] = []

    def _after(self, match: Any, pos: int) -> int:
        """The offset after the match of ``match`` (which always matches) at ``pos``."""
        found: re.Match[str] = match(self.text, pos, self.end)
        return found.end()

    def _quoted(self, start: int) -> tuple[Object, int]:
        """A string without prefix, and the offset after it."""
        text, first = self.text, start + 1
        stop = text.find('"', first, self.end)  # on a long string several times faster than a pattern
        if stop < 0 or text.find("\\", first, stop) >= 0 or text.find("\r", first, stop) >= 0:
            return self._escaped(start) or self._string(start, "")
        form: Any = _new_str(String, text[first:stop])
        form.brackets = None
        if not form.isascii():
            self._no_surrogate(first, stop)
        return form, stop + 1

    def _escaped(self, start: int) -> tuple[Object, int] | None:
        """The string read by the fast JSON parser, if its escapes mean the same in Hy; otherwise None."""
        try:
            value, stop = JSON(self.text, start)
        except ValueError:
            return None
        odd = ["\r"]  # not an escape in Hy, a line feed, or an unpaired surrogate
        odd += ["\\/"] if "/" in value else []
        odd += [] if value.isascii() else ["\\ud", "\\uD"]
        if stop > self.end or any(self.text.find(piece, start, stop) >= 0 for piece in odd):
            return None
        if not value.isascii():
            self._no_surrogate(start + 1, stop)
        return String(value), stop

    def _string(self, start: int, prefix: str) -> tuple[Object, int]:
        first = start + len(prefix) + 1
        stop = self._after(BODIES[prefix], first)
        if stop == self.end or self.text[stop] != '"':
            raise self._bad_escape(start, stop, first, prefix)
        body = self.text[first:stop]
        if "b" not in prefix:
            return String(self._decode(body, first, stop, raw="r" in prefix)), stop + 1
        if not body.isascii():
            at, bad = next((i, c) for i, c in enumerate(body) if not c.isascii())
            raise self.error(
                f"bytes can contain only ASCII, not {bad!a}", first + at, r"write \xNN, or drop the b"
            )
        data = _one_newline(body).encode("ascii")
        return Bytes(data if "r" in prefix else codecs.escape_decode(data)[0]), stop + 1

    def _bracket_string(self, start: int) -> tuple[Object, int]:
        found = BRACKET(self.text, start, self.end)
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
        except UnicodeDecodeError:  # all other escapes are valid here, so it is the name in a \N{}
            for found in re.finditer(r"\\(?:N\{[^}]*\}|.)", self.text[start:stop], re.DOTALL):
                try:
                    _unescape(found[0])
                except UnicodeDecodeError:
                    message = f"no character has the name in {excerpt(found[0])}"
                    offset = start + found.start()
                    raise self.error(message, offset, "write the character itself") from None
            raise

    def _no_surrogate(self, start: int, stop: int) -> None:
        found = SURROGATE(self.text, start, stop)
        if found:
            message = f"the character U+{ord(found[0]):04X} is half of a surrogate pair"
            raise self.error(message, found.start(), "write the character itself")

    def error(self, message: str, offset: int, hint: str = "", incomplete: bool = False) -> ReadError:
        return error_at(self.text, self.lines, message, offset, hint, incomplete)

    def _closers(self) -> str:
        return "".join(frame.closer for frame in reversed(self.stack[1:]))

    def _unclosed_string(self, start: int, closer: str) -> ReadError:
        hint = f"add {closer}{self._closers()} at the end"
        if closer == '"':
            hint += r", or write \" for a quote inside"
        return self.error("this string is never closed", start, hint, incomplete=True)

    def _bad_escape(self, start: int, stop: int, first: int, prefix: str = "") -> ReadError:
        """The error for a string from ``start`` that cannot be read beyond ``stop``."""
        if "r" in prefix or self._after(RAW, first) == self.end:
            return self._unclosed_string(start, '"')
        escape = self.text[stop : stop + 2]
        hint = r"write \\ for a backslash" + ("" if prefix else ', or r"…"')
        if "b" not in prefix or escape[1] not in "uUN":
            hint = instead("escape").get(escape[1], hint)
        return self.error(f"{escape} is not an escape here", stop, hint)


def _one_newline(body: str) -> str:
    return body.replace("\r\n", "\n").replace("\r", "\n") if "\r" in body else body


def _unescape(body: str) -> str:
    return body.encode("latin-1", "backslashreplace").decode("unicode_escape")
