"""The markup in which families of models call tools: the definition of a family, and the tools of its parser.

A parser begins at a place of a reply, moves only forward and raises NotRead. It runs nothing.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from quoth.neuro.reading.literals import Literal, NotRead, read_literal
from quoth.tools import lazy_regex
from quoth.tools.errors import InvalidCallError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm, from_json, too_deep

NAME: Final = r"[A-Za-z_][\w./-]{0,127}"
FENCED: Final = "The code fence around the arguments was dropped."
ENTITIES: Final = "HTML entities in the call were read as their characters."
DOUBLED: Final = "The doubled braces around the call were read as single ones."
EXTRA: Final = "{} was dropped after the value."

_compiled = lru_cache(maxsize=512)(re.compile)
_FENCE = lazy_regex.compile(r"\s*+`{3}[\w+-]*+\s*+")
_FENCE_END = lazy_regex.compile(r"\s*+`{3}")
_BLANK = lazy_regex.compile(r"\s*+")
_BRACES = lazy_regex.compile(r"\s*+\}")
_EXCESS = lazy_regex.compile(r"(?:\s*+[}\])]){1,9}+(?=\s*+(?:<|\[[A-Z/]|`{3}|\Z))")
_UNNAMED = lazy_regex.compile(r"\(\?P<\w+>")
_LINE = lazy_regex.compile(r"\A(?:\r?\n)?(.*?)(?:\r?\n)?\Z", re.DOTALL)
_ESCAPED = lazy_regex.compile(r"[\[{]\s*+\{?+\s*+&(?:quot|\#34|\#x22);")


class Called(NamedTuple):
    """A call of a section, the offsets of its beginning and end, and the repairs of its spelling."""

    form: CallForm
    start: int
    end: int
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Family:
    """One notation of calls. ``mark`` is the regular expression for the beginning of a section of calls.

    A section is read by ``read``, or by these: ``call`` begins a call, with the name of its tool as the group
    ``tool`` (if the group is missing, the call is unreadable); ``key`` begins a value, with its name as the
    group ``name``, and ``value_end`` ends it; without ``key`` the arguments are JSON; ``end`` ends a call. If
    ``stray`` first finds its group ``stray`` after that, the call is ambiguous. ``close`` ends the section,
    and ``words`` begin words. Without all of them a form in JSON, Lisp or Python's syntax follows the mark.

    ``ends`` are marks that end a section or a turn: they are not text. ``results`` begin a result that the
    model invents. ``shape`` shows a call."""

    name: str
    mark: str = ""
    read: Callable[[Cursor], None] | None = None
    call: str = ""
    key: str = ""
    value_end: str = ""
    end: str = "(?!)"
    stray: str = ""
    close: str = "(?!)"
    words: str = "(?!)"
    ends: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    shape: str = ""

    @property
    def has_sections(self) -> bool:
        return bool(self.read or self.call)

    def read_section(self, at: Cursor) -> None:
        """Read the calls of a section, after its mark."""
        if self.read is not None:
            return self.read(at)
        while found := at.begin(self.call):
            if found["tool"] is None:
                raise NotRead("the name of the tool is missing", at.position, at.at_end)
            arguments: Mapping[str, Any]
            if self.key and not at.take(r"(?=[{`])"):
                arguments = at.parameters(self.key, self.value_end, self.end)
                if at.take(self.end) is None and (at.cut or not at.at_end):
                    raise NotRead("its end mark is missing", at.position, at.at_end)
                stray = _compiled(self.stray).search(at.text, at.position) if self.stray else None
                if stray and stray["stray"]:
                    raise NotRead("a value contains an end mark, so its end is ambiguous", at.start)
            else:
                arguments = at.object(self.end)
                at.take(self.end)
            at.add(found["tool"], arguments)
        at.take(self.close)
        at.speaks = at.take(self.words) is not None
        return None


class Cursor:
    """A position in a reply that moves forward while a section of calls is read."""

    def __init__(self, text: str, position: int, *, cut: bool = False) -> None:
        self.text = text
        self.position = position
        self.cut = cut  # the reply was cut off at its maximum length
        self.calls: list[Called] = []
        self.repairs: dict[str, None] = {}
        self.speaks = False  # the section is not a call: words follow
        self.start = position  # the start of the current call

    @property
    def at_end(self) -> bool:
        return not self.text[self.position : self.position + 1000].strip()

    def take(self, pattern: str) -> re.Match[str] | None:
        """The match here, after blanks; moves the position after it."""
        found = _compiled(rf"\s*+(?:{pattern})").match(self.text, self.position)
        if found is not None:
            self.position = found.end()
        return found

    def begin(self, pattern: str) -> re.Match[str] | None:
        """The match here, which begins a call."""
        blank = _BLANK.match(self.text, self.position)
        self.start, self.repairs = blank.end() if blank else self.position, {}
        return self.take(pattern)

    def add(self, name: str, arguments: Any) -> None:
        """Add a call, which ends here."""
        try:
            form = from_json({"name": name.strip(), "arguments": arguments})
        except InvalidCallError as error:
            raise NotRead(str(error).rstrip("."), self.start) from None
        if too_deep(form.args):
            raise NotRead("an argument is nested too deeply", self.start)
        self.calls.append(Called(form, self.start, self.position, tuple(self.repairs)))

    def until(self, closer: str, follows: str) -> str:
        """The text up to a closing mark that is followed by a mark matching ``follows``, or by the end."""
        found = _compiled(rf"(?:{closer})(?=\s*+(?:{follows}|\Z))").search(self.text, self.position)
        if found is None:
            raise NotRead("a value is never closed", self.position, True)
        start, self.position = self.position, found.end()
        return self.text[start : found.start()]

    def parameters(self, opener: str, closer: str, end: str) -> dict[str, Any]:
        """The values between marks, by the group ``name`` of their opening marks. A value is unchanged text
        without the line breaks next to the marks; with ``string="false"`` it is JSON."""
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

    def object(self, stop: str) -> Mapping[str, Any]:
        """The arguments: an object in JSON; empty if ``stop`` follows at once."""
        if _compiled(rf"\s*+(?:{stop})").match(self.text, self.position):
            return {}
        value = self.value(stop)
        if value is None or value == []:  # some models write an empty object like this
            return {}
        if not isinstance(value, Mapping):
            raise NotRead("the arguments are an object with a name for each value", self.start)
        return value

    def skip_excess(self) -> None:
        """Skip closing brackets without opening ones, before an end mark."""
        if excess := _EXCESS.match(self.text, self.position):
            self.repairs[EXTRA.format("".join(excess[0].split()))] = None
            self.position = excess.end()

    def value(self, stop: str = "") -> Any:
        """The arguments in JSON, in a fence or not; mistakes with only one reading are repaired."""
        fence = _FENCE.match(self.text, self.position)
        start = (fence or _BLANK.match(self.text, self.position)).end()  # type: ignore[union-attr]
        read = read_data(self.text, start, stop, guess=not self.cut)
        self.repairs |= dict.fromkeys(((FENCED,) if fence else ()) + read.repairs)
        self.position = read.end
        self.skip_excess()
        if fence and (end := _FENCE_END.match(self.text, self.position)):
            self.position = end.end()
        return read.value


def read_data(
    text: str,
    start: int,
    stop: str = "",
    *,
    guess: bool = True,
    outer: Collection[str] = (),
) -> Literal:
    """The JSON value at ``start``, even if it is misspelt but has only one reading: as read_literal reads it,
    with doubled braces, HTML entities, and closing brackets missing before ``stop`` (the pattern of an end
    mark), or before the end of the text if that may be guessed. ``outer`` are the known keys of the outer
    object. Raises NotRead."""
    ends = _compiled(stop) if stop else None
    if _ESCAPED.match(text, start):
        found = ends.search(text, start) if ends else None
        end = found.start() if found else len(text)
        try:
            read = read_data(html.unescape(text[start:end]), 0, outer=outer)
        except NotRead as error:
            raise NotRead(str(error), start, error.incomplete) from None
        return read._replace(end=end, spans=(), repairs=(*read.repairs, ENTITIES))
    if text.startswith("{{", start):
        read = read_literal(text, start + 1)
        if braces := _BRACES.match(text, read.end):
            return read._replace(end=braces.end(), repairs=(*read.repairs, DOUBLED))
        raise NotRead("a brace that is opened twice is closed once", start)
    try:
        read = read_literal(text, start)
    except NotRead as error:
        at = len(text) if error.incomplete else error.offset
        if not (ends.match(text, at) if ends and not error.incomplete else error.incomplete and guess):
            raise
        return read_literal(text, start, at, outer=outer)
    return read


def invocations(name: str, prefix: str) -> Family:
    """A family with the notation of Anthropic's models in text: ``<invoke name="…"><parameter name="…">…``;
    the names of the elements may have a prefix."""
    call, value = rf"{prefix}(?:invoke|function)", rf"{prefix}param(?:eter)?"
    return Family(
        name,
        call=rf'<{call}\s+name="?(?P<tool>[^<>"\n]+)"?\s*>',
        key=rf'<{value}\s+name="?(?P<name>[^">\n]+)"?(?:\s+string="(?P<string>true|false)")?\s*>',
        value_end=rf"</{value}>",
        end=rf"</{call}>",
    )
