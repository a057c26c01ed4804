"""The values of a call as its tool declares them, where a model wrote them in another type: ``"5"`` for 5.

Done once, when a model's reply is read, before a rule or a person sees the call. Knows parameters and types;
it checks nothing, the door does. A value is changed only if one member of the declared type takes it, and
printing it gives the same text again; free types, secrets and destinations never.
"""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Callable, Iterator, Mapping
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
EXACT: Final = 2**53  # up to here each whole number is one float
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17})\Z", re.ASCII).match
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)\.\d+\Z", re.ASCII).match
_WORDS: dict[Any, dict[str, Any]] = {
    bool: {"true": True, "false": False, "True": True, "False": False},
    type(None): {"null": None, "None": None},
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


def _members_read(hint: Any, value: Any) -> Iterator[Any]:
    """For each member of a type the value that it reads in another one."""
    if _is_free(hint):
        return
    for member in typing.get_args(hint) if typing.get_origin(hint) in UNIONS else (hint,):
        read = _READERS.get(typing.get_origin(member) or member, _json if is_json(member) else _nothing)
        found = read(member, value)
        if found is not _NONE and (is_json(member) or _takes(member, found)):
            yield found


def _is_free(hint: Any) -> bool:
    """Whether a type takes any value, or a program, by itself or as a member."""
    members = typing.get_args(hint) if typing.get_origin(hint) in UNIONS else (hint,)
    return Any in members or Code in members


def _nothing(hint: Any, value: Any) -> Any:
    return _NONE


def _integer(hint: Any, value: Any) -> Any:
    if isinstance(value, str):
        return int(value) if _WHOLE(value) and str(int(value)) == value else _NONE
    whole = isinstance(value, float) and value.is_integer() and abs(value) < EXACT
    return int(value) if whole and str(value) != "-0.0" else _NONE


def _decimal(hint: Any, value: Any) -> Any:
    if isinstance(value, str) and _NUMBER(value) and repr(float(value)) == value:
        return float(value)
    return _integer(hint, value) if isinstance(value, str) else _NONE


def _word(hint: Any, value: Any) -> Any:
    return _WORDS[hint].get(value, _NONE) if isinstance(value, str) else _NONE


def _list(hint: Any, value: Any) -> Any:
    items = _decoded(value, list) if isinstance(value, str) else value
    if not isinstance(items, list):
        return _NONE
    (kind,) = typing.get_args(hint) or (Any,)
    return _all(items, [_fit(kind, item) for item in items])


def _dict(hint: Any, value: Any) -> Any:
    fields = _decoded(value, dict) if isinstance(value, str) else value
    if not isinstance(fields, Mapping):
        return _NONE
    _, kind = typing.get_args(hint) or (Any, Any)
    found = _all(fields, [_fit(kind, item) for item in fields.values()])
    return found if found is _NONE else dict(zip(fields, found, strict=True))


def _json(hint: Any, value: Any) -> Any:
    """The value of a type that is known by its JSON Schema, if that allows one kind of value."""
    kind = _KINDS.get(hint.schema.get("type"))
    if kind in (list, dict):
        found = _decoded(value, kind) if isinstance(value, str) else _NONE
    else:
        found = _READERS[kind](kind, value) if kind is not None else _NONE
    if found is _NONE:
        return _NONE
    from pydantic_core import SchemaValidator, ValidationError

    try:
        SchemaValidator(hint.core).validate_python(found)
    except ValidationError:
        return _NONE
    return found


def _fit(hint: Any, item: Any) -> Any:
    return item if _takes(hint, item) else _one(_members_read(hint, item))


def _all(items: Any, found: list[Any]) -> Any:
    return _NONE if any(one is _NONE for one in found) else found


def _decoded(text: str, kind: type) -> Any:
    """The list or object that is the whole of a text of JSON; _NONE if a key is in it twice."""

    def pairs(given: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(given)) < len(given):
            raise ValueError
        return dict(given)

    try:
        found = json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return _NONE
    return found if isinstance(found, kind) and not too_deep(found) else _NONE


_READERS: dict[Any, Callable[[Any, Any], Any]] = {
    int: _integer,
    float: _decimal,
    bool: _word,
    type(None): _word,
    list: _list,
    dict: _dict,
}


_KINDS: dict[Any, type] = {"integer": int, "number": float, "boolean": bool, "object": dict, "array": list}


def _takes(hint: Any, value: Any) -> bool:
    """Whether a type takes a value as it is, so far as that is plain; a program takes part in no reading."""
    if isinstance(value, Code) or hint in (Any, Code):
        return True
    if is_json(hint):
        kind = _KINDS.get(hint.schema.get("type"))
        return (
            kind is None
            or not isinstance(value, str | float)
            or (kind is float and not isinstance(value, str))
        )
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
    return type(value) is hint or hint not in _READERS
