"""The markup in which families of models call tools: what a family is, and what its parser needs.

A parser reads from a place of a reply on, moves forward only and raises NotRead. It knows no tools and runs
nothing.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from quoth.neuro.reading.json_calls import KEYS
from quoth.neuro.reading.literals import Literal, NotRead, read_literal
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import CallForm, from_json, too_deep

NAME: Final = r"[A-Za-z_][\w./-]{0,127}"
FENCED: Final = "The code fence around the arguments was dropped."
ENTITIES: Final = "HTML entities in the call were read as the characters they stand for."
DOUBLED: Final = "The doubled braces around the call were read as single ones."
ADDED: Final = "A closing bracket that was missing before the end mark was added."

_compiled = lru_cache(maxsize=512)(re.compile)
_FENCE = re.compile(r"\s*+`{3}[\w+-]*+\s*+").match
_FENCE_END = re.compile(r"\s*+`{3}").match
_BLANK = re.compile(r"\s*+").match
_BRACES = re.compile(r"\s*+\}").match
_EXCESS = re.compile(r"\s*+[}\]]{1,3}+(?=\s*+(?:<|\[[A-Z/]|`{3}|\Z))").match
_UNNAMED = re.compile(r"\(\?P<\w+>")
_LINE = re.compile(r"\A(?:\r?\n)?(.*?)(?:\r?\n)?\Z", re.DOTALL)
_ESCAPED = re.compile(r"[\[{]\s*+\{?+\s*+&(?:quot|\#34|\#x22);").match


class Called(NamedTuple):
    """A call of a section, the offsets of its beginning and end, and the repairs of its spelling."""

    form: CallForm
    start: int
    end: int
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Family:
    """One way of calling. ``mark`` is the regular expression of what begins a section of calls. ``read``
    reads the section; without it a form in JSON, Lisp or Python's syntax follows the mark. ``ends`` are marks
    that end a section, or a turn: they are no text. ``results`` begin what the model makes up of a result.
    ``shape`` shows a call."""

    name: str
    mark: str = ""
    read: Callable[[Cursor], None] | None = None
    ends: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    shape: str = ""


class Cursor:
    """A place in a reply that moves forward as a section of calls is read."""

    def __init__(self, text: str, position: int, *, cut: bool = False) -> None:
        self.text = text
        self.position = position
        self.cut = cut  # the reply was cut off at its maximal length
        self.calls: list[Called] = []
        self.repairs: dict[str, None] = {}
        self.speaks = False  # the section is no call: what follows are words
        self.start = position  # of the call that is being read

    @property
    def at_end(self) -> bool:
        return not self.text[self.position : self.position + 1000].strip()

    def take(self, pattern: str) -> re.Match[str] | None:
        """What matches here, blanks before it aside; the place is behind it then."""
        found = _compiled(rf"\s*+(?:{pattern})").match(self.text, self.position)
        if found is not None:
            self.position = found.end()
        return found

    def need(self, pattern: str, what: str) -> re.Match[str]:
        found = self.take(pattern)
        if found is None:
            raise NotRead(f"{what} is missing", self.position, self.at_end)
        return found

    def ends(self, pattern: str) -> None:
        """Take the mark that ends a call or a section. It may be missing at the end of a whole reply only."""
        if self.take(pattern) is None and (self.cut or not self.at_end):
            raise NotRead("its end mark is missing", self.position, self.at_end)

    def begin(self) -> None:
        """A call begins here."""
        found = _BLANK(self.text, self.position)
        self.start = found.end() if found else self.position
        self.repairs = {}

    def add(self, name: str, arguments: Any) -> None:
        """One call more, which ends here."""
        try:
            form = from_json({"name": name.strip(), "arguments": arguments})
        except InvalidCallError as error:
            raise NotRead(str(error).rstrip("."), self.start) from None
        if too_deep(form.args):
            raise NotRead("an argument is nested too deeply", self.start)
        self.calls.append(Called(form, self.start, self.position, tuple(self.repairs)))

    def until(self, closer: str, follows: str) -> str:
        """The text up to a closing mark that is followed by one of the marks that may stand there, or by the
        end."""
        found = _compiled(rf"(?:{closer})(?=\s*+(?:{follows}|\Z))").search(self.text, self.position)
        if found is None:
            raise NotRead("a value is never closed", self.position, True)
        start, self.position = self.position, found.end()
        return self.text[start : found.start()]

    def parameters(self, opener: str, closer: str, end: str) -> dict[str, Any]:
        """The values between marks, by the group ``name`` of their opening ones. A value is text as it is,
        but for the line breaks next to the marks; with ``string="false"`` it is JSON."""
        values: dict[str, Any] = {}
        while found := self.take(opener):
            at, name = self.position, found["name"].strip()
            value = self.until(closer, f"{_UNNAMED.sub('(?:', opener)}|{end}")
            if _compiled(rf"(?m)(?:^\s*+|>)(?:{opener})").search(value):
                raise NotRead(f"the value of {name} is never closed", at)
            if name in values:
                raise NotRead(f"{name} is given twice", at)
            value = _LINE.sub(r"\1", value)
            try:
                values[name] = json.loads(value) if found.groupdict().get("string") == "false" else value
            except (ValueError, RecursionError):
                raise NotRead(f"the value of {name} is not JSON", at) from None
        return values

    def object(self, stop: str = "") -> Mapping[str, Any]:
        """The arguments: an object in JSON, in a fence or with repairs; empty where ``stop`` follows at
        once."""
        if stop and _compiled(rf"\s*+(?:{stop})").match(self.text, self.position):
            return {}
        value = self.value(stop)
        if value is None or value == []:  # an empty object, as some print it
            return {}
        if not isinstance(value, Mapping):
            raise NotRead("the arguments are an object with a name for each value", self.start)
        return value

    def skip_excess(self) -> None:
        """Pass over closing brackets that no other ones open, before an end mark."""
        if excess := _EXCESS(self.text, self.position):
            self.position = excess.end()

    def value(self, stop: str = "") -> Any:
        fence = _FENCE(self.text, self.position)
        start = (fence or _BLANK(self.text, self.position)).end()  # type: ignore[union-attr]
        read = mended_literal(self.text, start, stop, guess=not self.cut)
        self.repairs.update(dict.fromkeys(read.repairs))
        self.position = read.end
        self.skip_excess()
        if fence and (end := _FENCE_END(self.text, self.position)):
            self.repairs[FENCED] = None
            self.position = end.end()
        return read.value


def read_invocations(at: Cursor, prefix: str = "") -> None:
    """Calls as Anthropic's models write them in text: ``<invoke name="…"><parameter name="…">…``; the names
    of the elements may have a prefix."""
    call, value = rf"{prefix}(?:invoke|function)", rf"{prefix}param(?:eter)?"
    opener = rf'<{value}\s+name="?(?P<name>[^">\n]+)"?(?:\s+string="(?P<string>true|false)")?\s*>'
    while True:
        at.begin()
        found = at.take(rf'<{call}\s+name="?(?P<tool>[^">\n]+)"?\s*>')
        if found is None:
            return
        values = at.parameters(opener, rf"</{value}>", rf"</{call}>")
        at.ends(rf"</{call}>")
        at.add(found["tool"], values)


def mended_literal(text: str, start: int, stop: str = "", *, guess: bool = True) -> Literal:
    """The JSON value at ``start``, with what is known to go wrong in sections mended: doubled braces, HTML
    entities, and closing brackets that are missing before ``stop``, the pattern of an end mark, or before the
    end of the text if it may be guessed."""
    ends = _compiled(stop) if stop else None
    if _ESCAPED(text, start):
        return _unescaped(text, start, ends)
    if text.startswith("{{", start):
        read = read_literal(text, start + 1)
        if end := _BRACES(text, read.end):
            return read._replace(end=end.end(), repairs=(*read.repairs, DOUBLED))
        raise NotRead("a brace that is opened twice is closed once", start)
    try:
        read = read_literal(text, start)
    except NotRead as error:
        at = len(text) if error.incomplete else error.offset
        if not (ends.match(text, at) if ends and not error.incomplete else error.incomplete and guess):
            raise
        read = read_literal(text, start, at, tail=KEYS)
        return read._replace(repairs=(ADDED,)) if at < len(text) else read
    return read


def _unescaped(text: str, start: int, ends: re.Pattern[str] | None) -> Literal:
    found = ends.search(text, start) if ends else None
    stop = found.start() if found else len(text)
    try:
        read = mended_literal(html.unescape(text[start:stop]), 0)
    except NotRead as error:
        raise NotRead(str(error), start, error.incomplete) from None
    return read._replace(end=stop, spans=(), repairs=(*read.repairs, ENTITIES))
