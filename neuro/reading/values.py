"""The values of a call as its tool declares them, where a model wrote them in another type: ``"5"`` for 5.

Done once, when a model's reply is read, before a rule or a person sees the call. Knows parameters and types;
it checks nothing, the door does. A value is changed only if one member of the declared type takes it, and
printing it gives the same text again; free types, secrets and destinations never.
"""

from __future__ import annotations

import contextlib
import json
import typing
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import CallForm, kebab, too_deep
from quoth.tools.lisp.printer import Code, print_value
from quoth.tools.registry.arguments import own_names
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
    if any(param.wire for param in tool.params):
        with contextlib.suppress(InvalidCallError):  # the door says what is wrong with it
            form = replace(form, args=own_names(tool.name, tool.params, form.args))
    repairs: list[str] = []

    def fit(name: str, value: Any) -> Any:
        found = _readings(tool, params[name], value) if name in params else []
        if len(found) != 1:
            return value
        given, meant = (short(print_value(one), SHOWN) for one in (value, found[0]))
        repairs.append(f":{name} {given} was read as {meant}.")
        return found[0]

    args = {name: fit(kebab(name), value) for name, value in form.args.items()}
    free = [one.name for one in tool.params if not one.hidden and one.name not in map(kebab, args)]
    positional = (*map(fit, free, form.positional), *form.positional[len(free) :])
    return (replace(form, args=args, positional=positional) if repairs else form), tuple(repairs)


def _readings(tool: CognitiveTool, param: Param, value: Any) -> list[Any]:
    """The values that may be meant, as the parameter takes them; none if it takes the value as it is."""
    hint = param.type | None if param.default is None and isinstance(param.type, type) else param.type
    if _takes(hint, value) or param.secret or param.name in {one.name for one in destinations(tool)}:
        return []
    found = _members_read(hint, value)
    if len(found) != 1:
        return []
    if param.choices:
        return found if (type(found[0]), found[0]) in [(type(one), one) for one in param.choices] else []
    if isinstance(found[0], int | float) and not isinstance(found[0], bool):
        low, high = param.min, param.max
        return found if (low is None or found[0] >= low) and (high is None or found[0] <= high) else []
    return found


def _members_read(hint: Any, value: Any) -> list[Any]:
    """The different values that the members of a type read in one of another; none for a type that takes any
    value, or a program."""
    members = typing.get_args(hint) if typing.get_origin(hint) in UNIONS else (hint,)
    found: dict[tuple[type, str], Any] = {}
    if Any in members or Code in members:
        return []
    for member in members:
        kind = _KINDS.get(member.schema.get("type")) if is_json(member) else member
        if kind is None:
            continue
        with suppress(ValueError, RecursionError):  # this member has no reading of it
            one = _converted(kind, value)
            if _fits_schema(member, one) if is_json(member) else _takes(member, one):
                found[type(one), print_value(one)] = one
    return list(found.values())


def _converted(hint: Any, value: Any) -> Any:
    """The value of one type that another one spells. Raises ValueError."""
    kind, args, given = typing.get_origin(hint) or hint, typing.get_args(hint), value
    if isinstance(value, str):
        value = _decoded(value)
    if kind is list and isinstance(value, list):
        return [_fit(one, item) for one in args or (Any,) for item in value]
    if kind is dict and isinstance(value, Mapping):
        return {key: _fit((args or (Any, Any))[1], item) for key, item in value.items()}
    if value is not given:
        return value
    whole = isinstance(value, float) and value.is_integer() and abs(value) < EXACT and str(value) != "-0.0"
    if not whole or kind is not int:
        raise ValueError
    return int(value)


def _fits_schema(hint: Any, value: Any) -> bool:
    from pydantic_core import SchemaValidator

    return bool(SchemaValidator(hint.core).isinstance_python(value))


def _fit(hint: Any, item: Any) -> Any:
    if _takes(hint, item):
        return item
    (found,) = _members_read(hint, item)  # a ValueError unless it is one
    return found


def _decoded(text: str) -> Any:
    """The data that a text of JSON is, if printing it gives that text again, and no key is in it twice.
    Raises ValueError."""

    def pairs(given: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(given)) < len(given):
            raise ValueError
        return dict(given)

    if text in _WORDS:
        return _WORDS[text]
    found = json.loads(text, object_pairs_hook=pairs)
    if isinstance(found, int | float):
        same = repr(found) == text and (isinstance(found, float) or abs(found) < MOST)
    else:
        same = isinstance(found, list | dict) and not too_deep(found)
    if not same:
        raise ValueError
    return found


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
