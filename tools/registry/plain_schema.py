"""The JSON Schema of parameters as pydantic gives it (parameters.json_schema), with no model compiled for it.

A model takes a hundred times as long, and of the tools that are shown or hashed few are called. Types for
which pydantic has rules of its own are left to it. Must not know tools or models.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from quoth.tools.lisp.printer import Code
from quoth.tools.registry.param_types import UNIONS, WorkspacePath, is_json
from quoth.tools.registry.parameters import Param

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import SchemaValidator


_NULL = {"type": "null"}
_TYPES: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    Code: {"type": "string"},
    WorkspacePath: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    list: {"items": {}, "type": "array"},
    dict: {"additionalProperties": True, "type": "object"},
    type(None): _NULL,
    None: _NULL,
    Any: {},
}
_BOUNDED = (int, float)
_DATA = (str, int, float, bool, type(None), list, dict)
_CHOSEN = {str: "string", int: "integer", bool: "boolean"}


def plain_schema(params: Iterable[Param]) -> dict[str, Any] | None:
    """The schema with its words in pydantic's order; None where pydantic must say it. It is for reading only:
    parts of it are shared."""
    properties: dict[str, Any] = {}
    required = []
    for param in params:
        if (made := _property(param)) is None:
            return None
        properties[param.name] = made
        if param.required:
            required.append(param.name)
    schema = {"additionalProperties": False, "properties": properties}
    return {**schema, **({"required": required} if required else {}), "type": "object"}


def _property(param: Param) -> dict[str, Any] | None:
    hint, bounds = param.type, {"maximum": param.max, "minimum": param.min}
    bounds = {word: limit for word, limit in bounds.items() if limit is not None}
    if bounds and typing.get_args(hint)[1:] == (type(None),):  # they stand where the number does
        hint = typing.get_args(hint)[0]
    made = _choices(param.choices) if param.choices else _type(hint)
    if made is None or hint is None or (bounds and hint not in _BOUNDED):
        return None
    made = {**bounds, **made}
    if bounds:
        made = dict(sorted(made.items()))
    if param.default is None or hint is not param.type:
        made = {"anyOf": _or_null(made.get("anyOf", [made]))} if made != _NULL else made
    if param.doc:
        made["description"] = param.doc
    if not param.required:
        if type(param.default) not in _DATA:
            return None
        made["default"] = param.default
    return dict(sorted(made.items()))


def _or_null(branches: list[Any]) -> list[Any]:
    return branches if _NULL in branches else [*branches, _NULL]


def _choices(choices: tuple[Any, ...]) -> dict[str, Any] | None:
    kinds = {type(choice) for choice in choices}
    if len(set(choices)) != len(choices) or len(kinds) != 1 or (kind := kinds.pop()) not in _CHOSEN:
        return None
    if len(choices) == 1:
        return {"const": choices[0], "type": _CHOSEN[kind]}
    return {"enum": list(choices), "type": _CHOSEN[kind]}


def _type(hint: Any) -> dict[str, Any] | None:
    if (known := _TYPES.get(hint)) is not None:
        return known
    if is_json(hint):
        return _ordered(hint.schema)  # type: ignore[no-any-return]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return _choices(args)
    inner = [made for made in map(_type, args) if made is not None]
    if not inner or len(inner) < len(args):
        return None
    if origin is list:
        return {"items": inner[0], "type": "array"}
    if origin is dict and args[0] is str:
        return {"additionalProperties": inner[1] or True, "type": "object"}
    if origin in UNIONS and not any("anyOf" in one for one in inner):
        kept = [one for place, one in enumerate(inner) if one not in inner[:place]]
        return kept[0] if len(kept) == 1 else {"anyOf": kept}
    return None


def _ordered(node: Any, of: str = "") -> Any:
    """A copy whose words stand in pydantic's order; those of ``properties`` and defaults are names."""
    if isinstance(node, list):
        return [_ordered(one, of) for one in node]
    if not isinstance(node, dict):
        return node
    keys = node if of in ("properties", "default") else sorted(node)
    return {key: _ordered(node[key], key) for key in keys}


# The strict check of a call's arguments as its input model makes it (parameters.build_model), without that.
#
# Its errors are the model's own, for pydantic-core makes both. pydantic itself, whose import takes most of
# the time of a first check, is not imported. Must not know tools or calls.


Check = Callable[[Mapping[str, Any]], Mapping[str, Any]]  # raises pydantic's ValidationError

_CORE_TYPES: dict[Any, dict[str, Any]] = {
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
    made = _literal(param.choices) if param.choices else _core_type(param.type)
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


def _core_type(hint: Any) -> dict[str, Any] | None:
    if (known := _CORE_TYPES.get(hint)) is not None:
        return known
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        inner = _core_type(args[0])
        return inner and {"type": "list", "items_schema": inner}
    if origin is dict:
        keys, values = map(_core_type, args)
        return keys and values and {"type": "dict", "keys_schema": keys, "values_schema": values}
    if origin in UNIONS and len(args) == 2 and args[1] is type(None):
        inner = _core_type(args[0])
        return inner and {"type": "nullable", "schema": inner}
    return None
