"""The values of a call as its tool declares them, where a model wrote them in another type: ``"5"`` for 5.

Done once, when a model's reply is read, before a rule or a person sees the call. Knows parameters and types;
it checks nothing, the door does. A value is changed only if one member of the declared type takes it, and
printing it gives the same text again; free types, secrets and destinations never.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from quoth.tools.lisp.forms import CallForm, kebab, too_deep
from quoth.tools.lisp.printer import Code, print_value
from quoth.tools.registry.param_types import TEXTS, UNIONS, is_json
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.roles import destinations
from quoth.tools.registry.tool import CognitiveTool
from quoth.tools.text import short

SHOWN = 80  # characters of a value in a sentence
MOST: Final = 10**18  # of a whole number in a text
EXACT: Final = 2**53  # up to here each whole number is one float
_WORDS: Final = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_KINDS: Final[dict[str, type]] = {
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict,
    "array": list,
}


def fitted(form: CallForm, tool: CognitiveTool) -> tuple[CallForm, tuple[str, ...]]:
    """The call with values of the declared types, and a sentence for each that was written in another."""
    params = {param.name: param for param in tool.params}
    repairs: list[str] = []

    def fit(name: str, value: Any) -> Any:
        found = _reading(tool, params[name], value) if name in params else _NONE
        if found is _NONE:
            return value
        repairs.append(f":{name} {_shown(value)} was read as {_shown(found)}.")
        return found

    args = {name: fit(kebab(name), value) for name, value in form.args.items()}
    free = [one.name for one in tool.params if not one.hidden and one.name not in map(kebab, args)]
    positional = (*map(fit, free, form.positional), *form.positional[len(free) :])
    return (replace(form, args=args, positional=positional) if repairs else form), tuple(repairs)


def _shown(value: Any) -> str:
    return short(print_value(value), SHOWN)


_NONE: Final = object()  # for no reading, or more than one


def _reading(tool: CognitiveTool, param: Param, value: Any) -> Any:
    """The one value that was meant, as the parameter takes it; _NONE if it takes the value as it is, or if
    there is no such value, or more than one."""
    hint = param.type | None if param.default is None and isinstance(param.type, type) else param.type
    if _takes(hint, value) or param.secret or param.name in {one.name for one in destinations(tool)}:
        return _NONE
    found = _one(_members_read(hint, value))
    if param.choices:
        return found if any(type(one) is type(found) and one == found for one in param.choices) else _NONE
    if isinstance(found, int | float) and not isinstance(found, bool):
        low, high = param.min, param.max
        return _NONE if (low is not None and found < low) or (high is not None and found > high) else found
    return found


def _one(found: Iterator[Any]) -> Any:
    different = {(type(one), print_value(one)): one for one in found}
    return next(iter(different.values())) if len(different) == 1 else _NONE


def _members(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in UNIONS else (hint,)


def _members_read(hint: Any, value: Any) -> Iterator[Any]:
    """For each member of a type the value that it reads in another one; none for a type that takes any value,
    or a program."""
    members = _members(hint)
    if Any in members or Code in members:
        return
    for member in members:
        kind = _KINDS.get(member.schema.get("type")) if is_json(member) else member
        found = _NONE if kind is None else _converted(kind, value)
        if found is not _NONE and (_fits_schema(member, found) if is_json(member) else _takes(member, found)):
            yield found


def _converted(hint: Any, value: Any) -> Any:
    """The value of one type that another one spells."""
    kind, given = typing.get_origin(hint) or hint, value
    if isinstance(value, str):
        value = _decoded(value)
    if kind is list and isinstance(value, list):
        return _all(value, [_fit(one, item) for one in typing.get_args(hint) or (Any,) for item in value])
    if kind is dict and isinstance(value, Mapping):
        found = _all(value, [_fit((typing.get_args(hint) or (Any, Any))[1], item) for item in value.values()])
        return found if found is _NONE else dict(zip(value, found, strict=True))
    if value is not given:
        return value
    whole = isinstance(value, float) and value.is_integer() and abs(value) < EXACT and str(value) != "-0.0"
    return int(value) if whole and kind is int else _NONE


def _decoded(text: str) -> Any:
    """The data that a text of JSON is, if printing it gives that text again, and no key is in it twice."""

    def pairs(given: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(given)) < len(given):
            raise ValueError
        return dict(given)

    if text in _WORDS:
        return _WORDS[text]
    try:
        found = json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return _NONE
    if isinstance(found, int | float):
        return found if repr(found) == text and (isinstance(found, float) or abs(found) < MOST) else _NONE
    return found if isinstance(found, list | dict) and not too_deep(found) else _NONE


def _fits_schema(hint: Any, value: Any) -> bool:
    from pydantic_core import SchemaValidator, ValidationError

    try:
        SchemaValidator(hint.core).validate_python(value)
    except ValidationError:
        return False
    return True


def _fit(hint: Any, item: Any) -> Any:
    return item if _takes(hint, item) else _one(_members_read(hint, item))


def _all(items: Any, found: list[Any]) -> Any:
    return _NONE if any(one is _NONE for one in found) else found


def _takes(hint: Any, value: Any) -> bool:
    """Whether a type takes a value as it is, so far as that is plain; a program takes part in no reading."""
    if isinstance(value, Code) or hint in (Any, Code):
        return True
    if is_json(hint):
        kind = _KINDS.get(hint.schema.get("type"))
        return kind is None or not isinstance(value, str if kind is float else str | float)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in UNIONS:
        return any(_takes(one, value) for one in args)
    if origin is list:
        return isinstance(value, list) and all(_takes(args[0], one) for one in value)
    if origin is dict:
        return isinstance(value, Mapping) and all(_takes(args[1], one) for one in value.values())
    if hint in TEXTS:
        return isinstance(value, str)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is hint or hint not in (int, bool, type(None), list, dict)
