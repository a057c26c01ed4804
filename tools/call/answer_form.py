"""A flat form that a question asks a person to fill in: how it is shown, and which words fill it in.

Its fields are a restricted JSON Schema, as the Model Context Protocol defines it for elicitation: texts,
numbers, yes or no, one of some choices, several of some choices. Answers become JSON data; the words come
from a person, and are checked here, before they are recorded.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any, Literal
from urllib.parse import urlsplit

from quoth.tools.errors import UsageError, no_such
from quoth.tools.text import listed, number_of, one_line, short
from quoth.tools.visible import visible

MAX_FIELDS = 20
MAX_OPTIONS = 100
MAX_CHARS = 20_000  # of the schema as JSON
TITLE_CHARS = 120
TEXT_CHARS = 4_000  # of one field's value
MOST_KEYS = 8  # of a question's choices, with a key each; the last key declines
ACCEPT, DECLINE, DEFAULTS = "accept", "decline", "defaults"
_YES, _NO = ("yes", "y", "true", "on"), ("no", "n", "false", "off")

Kind = Literal["text", "whole number", "number", "yes or no", "choice", "choices"]
_KINDS: dict[str, Kind] = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "yes or no",
    "array": "choices",
}


@dataclass(frozen=True)
class Field:
    """One field. ``least`` and ``most`` bound a number, the length of a text or the number of choices."""

    name: str
    kind: Kind
    title: str = ""
    required: bool = False
    default: Any = None
    options: tuple[tuple[str, str], ...] = ()  # value and label
    least: float | None = None
    most: float | None = None
    format: str = ""

    def read(self, words: str) -> Any:
        """The value of a person's words. Raises UsageError."""
        text = words.strip()
        if self.kind == "text":
            return self._text(words.strip("\n"))
        if self.kind == "yes or no":
            if (said := text.casefold()) in (*_YES, *_NO):
                return said in _YES
            raise self._wrong(text, "yes or no")
        if self.kind == "choice":
            return self._choice(text)
        if self.kind == "choices":
            found = [self._choice(one.strip()) for one in text.split(",") if one.strip()]
            self._require_bounds(len(found), "choices", text)
            return list(dict.fromkeys(found))
        return self._number(text)

    def check(self, value: Any) -> Any:
        """The value of a field that a person has written as JSON. Raises UsageError."""
        if self.kind == "yes or no" and isinstance(value, bool):
            return value
        if self.kind == "choices" and isinstance(value, list):
            return self.read(",".join(map(str, value)))
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return self.read(value if isinstance(value, str) else json.dumps(value))
        raise self._wrong(json.dumps(value), f"a {self.kind}")

    @property
    def row(self) -> str:
        """The field for a person: ``size (Size): small or large; default small``."""
        kind: str = self.kind
        if self.options:
            names = [value if value == label else f"{value} ({label})" for value, label in self.options]
            kind = listed(names, "or") if self.kind == "choice" else f"some of {listed(names)}"
        elif self.format:
            kind = self.format
        title = f" ({self.title})" if self.title not in ("", self.name) else ""
        limits = ("at least", self.least), ("at most", self.most)
        noun = {"text": " characters", "choices": " choices"}.get(self.kind, "")
        more = "".join(f", {what} {_number(bound)}{noun}" for what, bound in limits if bound is not None)
        if self.default is not None:
            more += f"; default {self._written(self.default)}"
        elif not self.required:
            more += "; may be left out"
        return visible(f"{self.name}{title}: {short(kind, 2_000)}{more}")

    def _written(self, value: Any) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        return ", ".join(map(str, value)) if isinstance(value, list) else one_line(str(value), 200)

    def _text(self, text: str) -> str:
        if len(text) > TEXT_CHARS:
            raise UsageError(f"{self.name} has {len(text):,} characters; the limit is {TEXT_CHARS:,}.")
        self._require_bounds(len(text), "characters", text)
        if self.format and not _FORMATS.get(self.format, lambda text: True)(text):
            raise self._wrong(text, f"in the format {self.format}")
        return text

    def _choice(self, text: str) -> str:
        values = {value: value for value, _ in self.options}
        labels = {label.casefold(): value for value, label in reversed(self.options)}
        numbers = {str(number): value for number, (value, _) in enumerate(self.options, 1)}
        for known in (values, labels, numbers):
            if (found := known.get(text) or known.get(text.casefold())) is not None:
                return found
        raise UsageError(no_such("choice", text, values))

    def _number(self, text: str) -> int | float:
        try:
            value = int(text) if self.kind == "whole number" else float(text)
        except ValueError:
            raise self._wrong(text, f"a {self.kind}") from None
        if not math.isfinite(value):
            raise self._wrong(text, f"a {self.kind}")
        self._require_bounds(value, "", text)
        return value

    def _require_bounds(self, number: float, noun: str, text: str) -> None:
        what = f" {noun}" if noun else ""
        if self.least is not None and number < self.least:
            raise self._wrong(text, f"at least {_number(self.least)}{what}")
        if self.most is not None and number > self.most:
            raise self._wrong(text, f"at most {_number(self.most)}{what}")

    def _wrong(self, text: str, must: str) -> UsageError:
        return UsageError(f"{self.name} must be {must}, not {visible(one_line(text, 60)) or 'empty'}.")


@dataclass(frozen=True)
class AnswerForm:
    """The fields of a form, in order."""

    fields: tuple[Field, ...]

    @cached_property
    def rows(self) -> list[str]:
        """The form for a person: a row for each field, and how to answer."""
        if not self.fields:
            return []
        names = " ".join(f"{field.name}=…" for field in self.fields)
        how = f"Answer {names}" if self.fields[1:] else "Answer with its value"
        filled = all(field.default is not None or not field.required for field in self.fields)
        how += f", or {DEFAULTS}" if filled else ""
        return [*(field.row for field in self.fields), f"{visible(how)}, or {DECLINE}."]

    @property
    def choices(self) -> tuple[str, ...]:
        """The answers to choose from, with a key each; none for a form that needs words."""
        if not self.fields:
            return ACCEPT, DECLINE
        (field, *more) = self.fields
        if more or field.kind not in ("choice", "yes or no") or len(field.options) > MOST_KEYS:
            return ()
        labels = ["yes", "no"] if field.kind == "yes or no" else [label for _, label in field.options]
        named = [one_line(label, TITLE_CHARS) for label in labels]
        return (*named, DECLINE) if len({*map(str.casefold, named), DECLINE}) == len(named) + 1 else ()

    def answer(self, said: str) -> str:
        """A person's words as ``decline`` or JSON, ``{"accept": {…}}``, which are answers themselves. Raises
        UsageError."""
        text = said.strip()
        word = text.casefold()
        if word == DECLINE or (self.choices and text == str(len(self.choices))):
            return DECLINE
        given = {} if word in (DEFAULTS, *((ACCEPT, "1") if not self.fields else ())) else self._given(text)
        content = {}
        for field in self.fields:
            if field.name in given:
                content[field.name] = given[field.name]
            elif field.default is not None:
                content[field.name] = field.default
            elif field.required:
                raise UsageError(f"{field.name} is missing: {field.row}")
        return json.dumps({ACCEPT: content}, ensure_ascii=False)

    def _given(self, text: str) -> dict[str, Any]:
        named = {field.name: field for field in self.fields}
        if text.startswith("{"):
            try:
                data = json.loads(text)
            except ValueError as error:
                raise UsageError(f"The answer is not a JSON object: {error}.") from None
            if data.keys() == {ACCEPT} and isinstance(data[ACCEPT], dict):  # no field's value is an object
                data = data[ACCEPT]
            if unknown := [name for name in data if name not in named]:
                raise UsageError(no_such("field", unknown[0], named, "The fields are"))
            return {name: named[name].check(value) for name, value in data.items() if value is not None}
        pairs = self._pairs(text)
        if pairs is None:
            if len(self.fields) == 1:
                return {self.fields[0].name: self.fields[0].read(text)}
            raise UsageError(f"An answer must be {' '.join(f'{name}=…' for name in named)}, or {DECLINE}.")
        return {name: named[name].read(value) for name, value in pairs.items()}

    def _pairs(self, text: str) -> dict[str, str] | None:
        """The fields in ``a=x b=two words``; None if the text does not begin with a field. Raises
        UsageError."""
        known = "|".join(re.escape(one.name) for one in sorted(self.fields, key=lambda one: -len(one.name)))
        starts = [*re.finditer(rf"(?:\A|(?<=\s))({known})\s*=", text)] if known else []
        if not starts or starts[0].start() != 0:
            unknown = re.match(r"([\w.-]{1,40})\s*=", text)
            if unknown and len(self.fields) > 1:
                raise UsageError(
                    no_such("field", unknown[1], [one.name for one in self.fields], "The fields are")
                )
            return None
        ends = [*(found.start() for found in starts[1:]), len(text)]
        found: dict[str, str] = {}
        for start, end in zip(starts, ends, strict=True):
            if start[1] in found:
                raise UsageError(f"{start[1]} is given twice.")
            value = text[start.end() : end].strip()
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            found[start[1]] = value[1:-1] if quoted else value
        return found


def read_form(schema: Mapping[str, Any]) -> AnswerForm:
    """The form of a JSON Schema. Raises UsageError with the reason if it is not a flat form."""
    if len(json.dumps(schema)) > MAX_CHARS:
        raise UsageError(f"the form has more than {MAX_CHARS:,} characters")
    properties, required = schema.get("properties"), schema.get("required") or []
    if not isinstance(required, list):
        raise UsageError("the form has a required that is not a list")
    if schema.get("type") != "object" or not isinstance(properties, Mapping):
        raise UsageError("the form is not an object with properties")
    if len(properties) > MAX_FIELDS:
        raise UsageError(f"the form has {number_of(len(properties), 'field')}; the limit is {MAX_FIELDS}")
    return AnswerForm(tuple(_field(name, node, name in required) for name, node in properties.items()))


def _field(name: str, node: Any, required: bool) -> Field:
    what = f"the field {visible(one_line(name, 60))}"
    if not isinstance(node, Mapping) or not re.fullmatch(r"[^\s=\"'{},]{1,60}", name):
        raise UsageError(f"{what} has no name and type that a form may have")
    one = node.get("type") if not ("enum" in node or "oneOf" in node) else "string"
    kind = _KINDS.get(one) if isinstance(one, str) else None
    if kind is None:
        raise UsageError(f"{what} is not a text, a number, yes or no, or a choice")
    options = _options(node.get("items") if kind == "choices" else node)
    if kind == "choices" and not options:
        raise UsageError(f"{what} is a list without choices")
    if len(options) > MAX_OPTIONS:
        raise UsageError(f"{what} has {len(options)} choices; the limit is {MAX_OPTIONS}")
    kind = "choice" if options and kind == "text" else kind
    bounds = {"text": "Length", "choices": "Items"}.get(kind, "imum")
    title = " ".join(str(node[key]) for key in ("title", "description") if isinstance(node.get(key), str))
    field = Field(
        name,
        kind,
        one_line(title, TITLE_CHARS),
        required,
        options=options,
        least=_bound(node.get(f"min{bounds}")),
        most=_bound(node.get(f"max{bounds}")),
        format=one_line(str(node.get("format") or ""), 20),
    )
    return _with_default(field, node.get("default"))


def _with_default(field: Field, default: Any) -> Field:
    """The field with its default; without one that does not fit the field itself."""
    if default is None or (field.kind == "yes or no") != isinstance(default, bool):
        return field
    try:
        return Field(**{**vars(field), "default": field.check(default)})
    except UsageError:
        return field


def _options(node: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(node, Mapping):
        return ()
    if isinstance(titled := node.get("oneOf") or node.get("anyOf"), Sequence):
        found = [one for one in titled if isinstance(one, Mapping) and isinstance(one.get("const"), str)]
        return tuple((one["const"], one_line(str(one.get("title") or one["const"]), 80)) for one in found)
    enum = node.get("enum")
    values = [value for value in enum if isinstance(value, str)] if isinstance(enum, list) else []
    names = node.get("enumNames")
    labels = names if isinstance(names, list) and len(names) == len(values) else values
    return tuple((value, one_line(str(label), 80)) for value, label in zip(values, labels, strict=True))


def _bound(value: Any) -> float | None:
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    return value if numeric and -math.inf < value < math.inf else None


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _is_date(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_time(text: str) -> bool:
    try:
        return "T" in text.upper() and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def _is_url(text: str) -> bool:
    try:
        return bool(urlsplit(text).scheme)
    except ValueError:
        return False


_FORMATS = {
    "email": lambda text: re.fullmatch(r"[^\s@]+@[^\s@]+\.[^\s@]+", text) is not None,
    "uri": _is_url,
    "date": _is_date,
    "date-time": _is_time,
}
