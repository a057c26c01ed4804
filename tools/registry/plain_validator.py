"""The strict check of a call's arguments as its input model makes it (parameters.build_model), without that.

Its errors are the model's own, for pydantic-core makes both. pydantic itself, whose import takes most of the
time of a first check, is not imported. Must not know tools or calls.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from quoth.tools.lisp.printer import Code
from quoth.tools.registry.param_types import UNIONS, WorkspacePath
from quoth.tools.registry.parameters import Param

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import SchemaValidator

Check = Callable[[Mapping[str, Any]], Mapping[str, Any]]  # raises pydantic's ValidationError

_TYPES: dict[Any, dict[str, Any]] = {
    str: {"type": "str"},
    Code: {"type": "str"},
    WorkspacePath: {"type": "str"},
    int: {"type": "int"},
    float: {"type": "float"},
    bool: {"type": "bool"},
    list: {"type": "list", "items_schema": {"type": "any"}},
    dict: {"type": "dict", "keys_schema": {"type": "any"}, "values_schema": {"type": "any"}},
    Any: {"type": "any"},
}
_EXACT = {str: str, Code: str, WorkspacePath: str, int: int, bool: bool}


def check_of(params: Sequence[Param], model: Callable[[], type[BaseModel]]) -> Check:
    """What checks arguments by name, and gives the values by the names of the model's fields; by the
    ``model`` where a type has rules of its own."""
    fields = {param.field: _field(param) for param in params}
    if any(field is None for field in fields.values()):
        made = model()
        return lambda data: vars(made.model_validate(data))

    @cache
    def strict() -> SchemaValidator:
        from pydantic_core import SchemaValidator  # here: the arguments of most calls are plain

        schema: Any = {"type": "model-fields", "fields": fields, "extra_behavior": "forbid"}
        return SchemaValidator(schema, {"strict": True, "extra_fields_behavior": "forbid"})

    def check(data: Mapping[str, Any]) -> Mapping[str, Any]:
        made = as_they_are(params, data)
        return strict().validate_python(data)[0] if made is None else made

    return check


def as_they_are(params: Sequence[Param], data: Mapping[str, Any]) -> dict[str, Any] | None:
    """The values by the names of fields, where pydantic-core would take each of them as it is; else None."""
    made: dict[str, Any] = {}
    for param in params:
        if param.name in data:
            value: Any = data[param.name]
            if param.choices or type(value) is not _EXACT.get(param.type):
                return None
            made[param.field] = value
            if isinstance(value, str) and not value.isascii():  # it may hold half a character
                return None
            number: Any = data[param.name]  # only numbers have bounds
            if (param.min is not None and number < param.min) or (
                param.max is not None and number > param.max
            ):
                return None
        elif param.required or isinstance(param.default, (list, dict)):
            return None
        else:
            made[param.field] = param.default
    return made if len(data) == sum(param.name in data for param in params) else None


def _field(param: Param) -> dict[str, Any] | None:
    bounds = {word: limit for word, limit in (("ge", param.min), ("le", param.max)) if limit is not None}
    made = _literal(param.choices) if param.choices else _type(param.type)
    if made is None or (bounds and param.type not in (int, float)):
        return None
    made = {**made, **bounds}
    if param.default is None and made["type"] != "nullable":
        made = {"type": "nullable", "schema": made}
    if not param.required:
        made = {"type": "default", "schema": made, "default": param.default}
        if isinstance(param.default, (list, dict)):
            made["copy_default"] = True
    return {"type": "model-field", "schema": made, "validation_alias": param.name}


def _literal(choices: Sequence[Any]) -> dict[str, Any]:
    return {"type": "literal", "expected": list(choices)}


def _type(hint: Any) -> dict[str, Any] | None:
    if (known := _TYPES.get(hint)) is not None:
        return known
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        inner = _type(args[0])
        return inner and {"type": "list", "items_schema": inner}
    if origin is dict:
        keys, values = map(_type, args)
        return keys and values and {"type": "dict", "keys_schema": keys, "values_schema": values}
    if origin in UNIONS and len(args) == 2 and args[1] is type(None):
        inner = _type(args[0])
        return inner and {"type": "nullable", "schema": inner}
    return None
