"""Hy models to plain data, and models and data to Lisp text that reads back as equal values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import hy.models as m

from quoth.tools.errors import InvalidCallError
from quoth.tools.text import escape

Value: TypeAlias = Any  # JSON data, or Code for an expression

CONSTANTS: dict[str, Value] = {
    **dict.fromkeys(("nil", "NIL", "none", "null", "None"), None),
    **dict.fromkeys(("t", "T", "true", "#t", "True"), True),
    **dict.fromkeys(("false", "#f", "False"), False),
}


class Code(str):
    """An argument that is an expression, as its canonical text. ``data`` is the list in a quoted form or
    ``(list …)``, for tools that take plain data; otherwise None."""

    data: list[Any] | None = None


class FormData(dict[str, str]):
    """A form as the value of a call: ``{"$form": "(f x)"}`` in JSON, which is never read back as a form, and
    ``'(f x)`` in Lisp, which ``form_data`` reads back."""

    def __init__(self, text: str) -> None:
        super().__init__({"$form": text})

    def __str__(self) -> str:
        return self["$form"]


def form_data(value: Value) -> Value:
    """The value of a call as it was before printing: a quoted form becomes FormData."""
    if isinstance(value, Code):
        return FormData(value[1:]) if value.startswith("'") else value
    if isinstance(value, Mapping):
        return {key: form_data(item) for key, item in value.items()}
    return [form_data(item) for item in value] if isinstance(value, list) else value


def forms_as_code(model: Any) -> Any:
    """A model of data in which each quoted form is one symbol, so that ``to_value`` makes Code of it. This
    also works for a name, and for a dictionary that has a key without a value."""
    if isinstance(model, m.Expression) and len(model) == 2 and model[0] == m.Symbol("quote"):
        return m.Symbol(show(model), from_parser=True)
    return type(model)(map(forms_as_code, model)) if type(model) in (m.List, m.Dict) else model


def contains_form(value: Value) -> bool:
    """Whether a value is or contains FormData, or the Code that FormData is read back as."""
    if isinstance(value, (Code, FormData)):
        return True
    items = [*value.values()] if isinstance(value, Mapping) else value
    return isinstance(items, (list, tuple)) and any(map(contains_form, items))


def code_in(value: Value) -> Code | None:
    """The first Code inside a value, at any depth of lists and dictionaries, or None."""
    if isinstance(value, Code):
        return value
    items = [*value, *value.values()] if isinstance(value, Mapping) else value
    if not isinstance(items, (list, tuple)):
        return None
    return next((found for item in items if (found := code_in(item)) is not None), None)


class DisplayText(Code):
    """Text shown to people instead of a value in a form. It is printed unchanged and never read back."""


# A call with only texts and whole numbers, as most are: it reads back as a program with any names.
_SIMPLE_CALL: Final = re.compile(r'\([a-z][a-z0-9-]*(?: :[a-z][a-z0-9-]* (?:"[^"\\]*"|-?[0-9]{1,18}))*\)')
_SIMPLE_LENGTH: Final = 10_000


def _print_code(text: str) -> str:
    if len(text) < _SIMPLE_LENGTH and text.isprintable() and _SIMPLE_CALL.fullmatch(text):
        return text  # reading it would cost fifty times as much, and a transcript prints each call
    return _print_read(text)


@lru_cache(64)
def _print_read(text: str) -> str:
    """A program as printed inside a form: bare if it reads back as one argument that is a program (a comment
    at its end must not swallow the rest of the form), otherwise as a text in quotes."""
    from quoth.tools.lisp.reader import ReadError, read_one

    for bare in (text, f"{text}\n"):
        try:
            model: Any = read_one(f"(_ {bare})")
            if len(model) == 2 and isinstance(to_value(model[1]), Code):
                return bare
        except (ReadError, InvalidCallError):
            continue
    if "\n" in text and "]code]" not in text and text.replace("\n", "").replace("\t", "").isprintable():
        return f"#[code[\n{text}]code]"
    return print_string(text)


# Maximum number of hard keys in one dictionary or set. Python finds keys by their hash, and it is easy to
# construct numbers, and tuples of them, with equal hashes: twenty thousand such keys keep a process busy for
# a minute.
MAX_HARD_KEYS = 1000
HARD_KEYS = (
    f"A dictionary or set can have at most {MAX_HARD_KEYS} keys that are large numbers, fractions or"
    " tuples; make them texts."
)
MAX_EASY_KEY = 2**32
MAX_DEPTH = 100  # of nested data in one argument; more is not needed and could exhaust the stack


_SHORT = 2**63  # Python prints smaller numbers at once


def print_value(value: Value, depth: int = 0) -> str:
    """A value as Lisp text that reads back equal. Nesting deeper than a call may have is replaced by an
    ellipsis."""
    if type(value) is str:  # the most frequent type; every event of a transcript is printed here
        return print_string(value)
    if type(value) is int and -_SHORT < value < _SHORT:
        return str(value)
    if depth > 2 * MAX_DEPTH:
        return "…"
    if type(value) is dict:
        pairs = [f"{print_value(k, depth + 1)} {print_value(v, depth + 1)}" for k, v in value.items()]
        return "{" + "  ".join(pairs) + "}"
    if type(value) is list:
        return "[" + " ".join([print_value(item, depth + 1) for item in value]) + "]"
    if isinstance(value, Code):
        return str(value) if isinstance(value, DisplayText) else _print_code(str(value))
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return print_string(value)
    if isinstance(value, int):
        # Python refuses to print thousands of decimal digits, but a form must always have a text.
        return str(int(value)) if value.bit_length() < 10_000 else hex(value)
    if isinstance(value, float):
        text = repr(float(value))
        return _ODD.get(text, text)
    if isinstance(value, bytes):
        return _print_bytes(value)
    if isinstance(value, FormData):
        return f"'{value}"
    if isinstance(value, Mapping):
        return print_value(dict(value), depth)
    if isinstance(value, Sequence):
        return "[" + " ".join(print_value(item, depth + 1) for item in value) + "]"
    return print_string(str(value))


_ODD = {"nan": "NaN", "inf": "Inf", "-inf": "-Inf"}
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_COMMON = str.maketrans(_ESCAPES)


def print_string(text: str) -> str:
    """A double-quoted Lisp string; control characters and lone surrogates are escaped."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    escaped = str(text)  # the argument may be a Hy model
    for (
        char,
        written,
    ) in _ESCAPES.items():  # the backslash first; on long texts this is much faster than a table
        escaped = escaped.replace(char, written)
    if escaped.isprintable():
        return f'"{escaped}"'
    return '"' + "".join(char if char.isprintable() else escape(char) for char in escaped) + '"'


def _print_bytes(data: bytes) -> str:
    text = data.decode("latin-1").translate(_COMMON)
    return 'b"' + "".join(c if c.isprintable() and c.isascii() else escape(c) for c in text) + '"'


def to_value(model: Any) -> Value:
    """Plain data for a literal model, ``Code`` for a symbol or an expression. Raises InvalidCallError."""
    if isinstance(model, m.Keyword):
        return str(model.name)
    if isinstance(model, m.Symbol):
        name = str(model)
        return CONSTANTS[name] if name in CONSTANTS else Code(name)
    if isinstance(model, m.String):
        return str(model)
    if isinstance(model, m.Integer):
        return int(model)
    if isinstance(model, m.Float):
        return float(model)
    if isinstance(model, m.Dict):
        if len(model) % 2:
            raise InvalidCallError(f"{show(model)} is not a dictionary: it has a key without a value.")
        return _dictionary(model)
    if type(model) in (m.List, m.Tuple):
        return [to_value(item) for item in model]
    if isinstance(model, m.Expression) and len(model) == 2 and model[0] == m.Symbol("quote"):
        inner = _quoted(model[1])
        return _code(model, inner) if isinstance(inner, list) else inner
    if isinstance(model, m.Expression) and model and model[0] == m.Symbol("list"):
        return _code(model, [to_value(item) for item in model[1:]])
    return Code(show(model))


def _code(model: Any, data: list[Any]) -> Code:
    code = Code(show(model))
    code.data = data
    return code


def _quoted(model: Any) -> Value:
    """The data in a quoted form, as in Common Lisp: ``'(1 2)`` is a list, ``'name`` is a text."""
    if isinstance(model, m.Expression):
        return [_quoted(item) for item in model]
    value = to_value(model)
    return str(value) if isinstance(value, Code) else value


def _dictionary(model: Any) -> dict[Any, Value]:
    items, hard = list(model), 0
    data: dict[Any, Value] = {}
    for key_model, value in zip(items[::2], items[1::2], strict=True):
        key = _key(key_model)
        hard += is_hard_key(key)
        if hard > MAX_HARD_KEYS:
            raise InvalidCallError(HARD_KEYS)
        data[key] = to_value(value)
    return data


def _key(model: Any) -> Any:
    key = to_value(model)
    if isinstance(key, (dict, list)):
        raise InvalidCallError(f"{show(model)} cannot be a key of a dictionary.")
    return str(key) if isinstance(key, Code) else key


def is_hard_key(key: Any) -> bool:
    """Whether hash collisions can be constructed for a dictionary key of this type (see MAX_HARD_KEYS)."""
    return isinstance(key, (float, tuple)) or (isinstance(key, int) and abs(key) >= MAX_EASY_KEY)


def show(model: Any) -> str:
    """A model as Lisp text, without Hy's leading quote. It recurses; the reader bounds the depth."""
    if isinstance(model, m.Keyword):
        return f":{model.name}"
    if isinstance(model, m.Symbol):
        return str(model)
    if isinstance(model, m.Bytes):
        return _print_bytes(bytes(model))
    if isinstance(model, m.FString):
        return 'f"' + "".join(_fpart(part) for part in model) + '"'
    if isinstance(model, m.Complex):
        return repr(complex(model)).strip("()")
    if isinstance(model, m.Expression):
        return _show_expression(model)
    if type(model) in _BRACKETS:
        opening, closing = _BRACKETS[type(model)]
        return opening + " ".join(map(show, model)) + closing
    return print_value(model)


_BRACKETS = {m.List: ("[", "]"), m.Dict: ("{", "}"), m.Set: ("#{", "}"), m.Tuple: ("#(", ")")}
_SUGAR = {
    "quote": "'",
    "quasiquote": "`",
    "unquote": "~",
    "unquote-splice": "~@",
    "unpack-iterable": "#* ",
    "unpack-mapping": "#** ",
}


def _show_expression(model: Any) -> str:
    head = str(model[0]) if model and isinstance(model[0], m.Symbol) else ""
    if len(model) == 2 and head in _SUGAR:
        return _SUGAR[head] + show(model[1])
    if head == "." and len(model) > 2 and all(isinstance(item, m.Symbol) for item in model[1:]):
        names = [str(item) for item in model[1:]]
        return "." + ".".join(names[1:]) if names[0] == "None" else ".".join(names)
    return "(" + " ".join(show(item) for item in model) + ")"


def _fpart(part: Any) -> str:
    if not isinstance(part, m.FComponent):
        return print_string(str(part))[1:-1].replace("{", "{{").replace("}", "}}")
    conversion = f" !{part.conversion}" if part.conversion else ""
    spec = " :" + "".join(_fpart(item) for item in part[1:]) if len(part) > 1 else ""
    return "{" + show(part[0]) + conversion + spec + "}"


def pretty(model: Any, width: int = 100, indent: int = 0) -> str:
    """A model as Lisp text; forms wider than ``width`` columns are split into indented lines."""
    line = show(model)
    if len(line) + indent <= width or not isinstance(model, m.Sequence) or isinstance(model, m.FString):
        return line
    if isinstance(model, m.Expression):
        opening, closing, step = "(", ")", 2
    else:
        opening, closing, step = *_BRACKETS[type(model)], 1
    pieces: list[str] = []
    items = list(model)
    while items:
        item = items.pop(0)
        if isinstance(item, m.Keyword) and items and pieces:
            label = show(item) + " "
            pieces.append(label + pretty(items.pop(0), width, indent + step + len(label)))
        else:
            pieces.append(pretty(item, width, indent + step))
    pad = "\n" + " " * (indent + step)
    head = pieces[:2] if step == 2 and len(pieces) > 1 and "\n" not in pieces[1] else pieces[:1]
    return opening + " ".join(head) + "".join(pad + piece for piece in pieces[len(head) :]) + closing
