"""A type that is known only by its JSON Schema: the class of a tool on another machine.

The schema is untrusted. It may contain only a closed set of keywords, and pydantic-core checks values by it
strictly; it runs nothing.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping
from itertools import repeat
from typing import Any, ClassVar

from quoth.tools.errors import DefinitionError, ToolError
from quoth.tools.lisp.printer import print_value
from quoth.tools.safe_regex import compiled
from quoth.tools.text import short

# Keywords for readers, or checked by the class itself on its own machine.
TOLD = frozenset(
    ("description", "default", "examples", "format", "deprecated", "readOnly", "writeOnly", "uniqueItems",
     "contentEncoding", "contentMediaType", "contentSchema", "patternProperties", "propertyNames")
)  # fmt: skip
# The bounds for each type, and pydantic-core's names for them.
SIZES = {"minLength": "min_length", "maxLength": "max_length"}
_LIMITS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}
BOUNDS: dict[str, dict[str, str]] = {
    "string": {**SIZES, "pattern": ""},
    "integer": _LIMITS,
    "number": _LIMITS,
    "boolean": {},
    "null": {},
    "array": {"minItems": "min_length", "maxItems": "max_length", "items": "", "prefixItems": ""},
    "object": dict.fromkeys(("properties", "required", "additionalProperties"), "")
    | {"minProperties": "min_length", "maxProperties": "max_length"},
}
LARGEST = 2**31  # of a size
MATCH_SECONDS = 0.5  # for a pattern


KNOWN = (
    "use str, int, float, bool, list, dict, tuple, set, frozenset, bytes, date, datetime, time, timedelta, "
    "Decimal, UUID, an Enum, Literal, a dataclass, a TypedDict, a pydantic model"
)
HINT = f"{KNOWN}, path, form, (get list str) or (| str None)"  # what a parameter may be


class JsonType:
    """The base of such types; ``schema`` is inline (without ``$ref``) and has been checked."""

    schema: ClassVar[dict[str, Any]] = {}
    core: ClassVar[Any] = None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return as_given(cls.core)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> Any:
        return copy.deepcopy(cls.schema)


def as_given(core: Any) -> Any:
    """A schema of pydantic-core that checks a value and returns it unchanged."""
    return {"type": "function-wrap", "function": {"type": "no-info", "function": _as_given}, "schema": core}


def _as_given(value: Any, check: Callable[[Any], Any]) -> Any:
    check(value)
    return value


PATHS = ("path", "workspace-path")  # the formats of pathlib's Path and of WorkspacePath
_INNER = ("items", "prefixItems", "anyOf", "oneOf", "additionalProperties", "propertyNames")


def nodes(schema: Any) -> Iterator[Mapping[str, Any]]:
    """A JSON Schema and all schemas in it."""
    if isinstance(schema, Mapping):
        yield schema
        schema = [*map(schema.get, _INNER), *(schema.get("properties") or {}).values()]
    for inner in schema if isinstance(schema, list) else ():
        yield from nodes(inner)


def with_texts(schema: Any, value: Any, formats: Container[str], change: Callable[[str], str]) -> Any:
    """``value`` with ``change`` applied to each text that has one of the formats by its schema."""
    for branch in branches(schema):
        if not _excludes(branch, value):
            value = with_texts(branch, value, formats, change)
    if isinstance(value, str) and schema.get("format") in formats:
        return change(value)
    if isinstance(value, list):
        first, rest = schema.get("prefixItems") or (), schema.get("items") or {}
        kinds = (*first, *repeat(rest, len(value) - len(first)))
        return [with_texts(kind, item, formats, change) for kind, item in zip(kinds, value, strict=False)]
    if isinstance(value, Mapping):
        more = schema.get("additionalProperties")
        known = defaultdict(lambda: more if isinstance(more, dict) else {}, schema.get("properties") or {})
        return {name: with_texts(known[name], item, formats, change) for name, item in value.items()}
    return value


def branches(schema: Mapping[str, Any]) -> list[Any]:
    """The schemas of a union; none of any other schema."""
    return [*schema.get("anyOf", ()), *schema.get("oneOf", ())]


def _excludes(branch: Mapping[str, Any], value: Any) -> bool:
    """Whether a field of a value differs from the constant in a branch of a union."""
    if not isinstance(value, Mapping):
        return False
    fields = (branch.get("properties") or {}).items()
    return any(
        known and value.get(name, known[0]) not in known for name, node in fields if (known := values(node))
    )


def clash(one: Any, other: Any, tagged: bool = False) -> bool:
    """Whether a text may be a path in one branch of a union and another text in the other. A constant in a
    field that both require distinguishes them, like the field of a ``tagged`` union."""
    if one == other or not (has_path(one) or has_path(other)):
        return False
    if inner := branches(one):
        return any(clash(branch, other, tagged) for branch in inner)
    if branches(other):
        return clash(other, one, tagged)
    kinds = {_kind(one), _kind(other)}
    if kinds != {"object"}:
        return len(kinds) == 1 or "any" in kinds
    first, second = one.get("properties") or {}, other.get("properties") or {}
    shared = first.keys() & second.keys()
    sure = (
        shared
        if tagged
        else shared.intersection(one.get("required", ())).intersection(other.get("required", ()))
    )
    for name in sure:
        left, right = values(first[name]), values(second[name])
        if left and right and not any(value in right for value in left):
            return False
    is_open = one.get("additionalProperties") or other.get("additionalProperties")
    return bool(is_open) or any(clash(first[name], second[name]) for name in shared)


def has_path(schema: Any) -> bool:
    """Whether a text in a value of the schema is a path."""
    return any(node.get("format") in PATHS for node in nodes(schema))


def _kind(schema: Mapping[str, Any]) -> str:
    if any(isinstance(value, str) for value in values(schema)):
        return "string"
    return str(schema.get("type", "any"))


def json_type(schema: dict[str, Any]) -> type[JsonType]:
    """The type with this JSON Schema. Raises DefinitionError for a schema that cannot be checked here."""
    from pydantic_core import SchemaError, SchemaValidator

    core = core_of(schema)
    try:
        SchemaValidator(core)
    except SchemaError as error:
        why = short(str(error).splitlines()[-1].strip(), 200)
        raise DefinitionError(f"the JSON Schema {in_short(schema)} cannot be checked ({why}).") from None
    return type("JsonType", (JsonType,), {"schema": schema, "core": core})


def inline(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON Schema of pydantic without ``$ref`` and titles. Raises DefinitionError for a type that contains
    itself."""
    definitions = schema.pop("$defs", {})

    def tidied(node: Any, within: tuple[str, ...] = ()) -> Any:
        if isinstance(node, list):
            return [tidied(item, within) for item in node]
        if not isinstance(node, dict):
            return node
        tidy = {}
        if "$ref" in node:
            name = node["$ref"].rsplit("/", 1)[1]
            if name in within:
                raise DefinitionError(f"the type {name} contains itself, which cannot be shown.")
            tidy = tidied(definitions[name], (*within, name))
        for key, value in node.items():
            if key == "properties":  # its keys are names, not words of JSON Schema
                tidy[key] = {name: tidied(item, within) for name, item in value.items()}
            elif key in ("default", "const", "enum", "examples"):
                tidy[key] = value
            elif key not in ("title", "discriminator", "$ref"):
                tidy[key] = tidied(value, within)
        return tidy

    tidy: dict[str, Any] = tidied(schema)
    return tidy


def words(schema: Mapping[str, Any], docs: bool = False) -> str:
    """The type in words: ``str``, ``list of int``, ``{"name" str  ["age" int = 1]}``; with ``docs`` the
    fields have their own, ``{"name" str (In full)}``."""
    if constants := values(schema):
        return " | ".join(map(print_value, constants))
    if name := FORMATS.get(schema.get("format") or schema.get("contentEncoding")):  # type: ignore[arg-type]
        return name
    if members := branches(schema):
        return " or ".join(words(one, docs) for one in members)
    kind = schema.get("type", "any")
    if kind == "array":
        if "prefixItems" in schema:
            return f"[{' '.join(words(one, docs) for one in schema['prefixItems'])}]"
        return f"list of {words(schema['items'], docs)}" if schema.get("items") else "list"
    if kind == "object":
        if "properties" in schema:
            required = schema.get("required", ())
            fields = (
                _field(name, node, name in required, docs) for name, node in schema["properties"].items()
            )
            return "{" + "  ".join(fields) + "}"
        inner = schema.get("additionalProperties")
        return f"dict of {words(inner, docs)}" if isinstance(inner, dict) and inner else "dict"
    return _NAMES.get(kind, str(kind))


_NAMES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


FORMATS = {
    "date": "date", "date-time": "datetime", "time": "time", "duration": "timedelta", "uuid": "UUID",
    "decimal": "Decimal", "base64": "base64", **dict.fromkeys(PATHS, "path"),
}  # fmt: skip


def _field(name: str, schema: Mapping[str, Any], required: bool, docs: bool) -> str:
    text = f"{print_value(name)} {words(schema, docs)}"
    doc = " ".join(str(schema.get("description", "")).split()) if docs else ""
    doc = f" ({doc})" if doc else ""
    if required:
        return text + doc
    default = schema.get("default")
    return f"[{text}]{doc}" if default is None else f"[{text} = {print_value(default)}]{doc}"


def values(schema: Mapping[str, Any]) -> list[Any]:
    """The constants of a schema."""
    return [schema["const"]] if "const" in schema else schema.get("enum", [])


# The same in the words of pydantic-core


def core_of(schema: Any) -> Any:
    """The schema for pydantic-core. Raises DefinitionError for one with other words or values."""
    if not isinstance(schema, dict):
        raise _wrong(schema, "is not valid")
    if "const" in schema or "enum" in schema:
        _only(schema, {"const", "enum", "type"})
        constants = values(schema)
        if not isinstance(constants, list) or not constants or not all(map(_is_scalar, constants)):
            raise _wrong(schema, "has values other than texts and numbers")
        from pydantic_core import core_schema

        return core_schema.literal_schema(constants)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            _only(schema, {key, "type", *_LIMITS})  # pydantic adds the type of the branches
            if not isinstance(schema[key], list) or not schema[key]:
                raise _wrong(schema, f"has no list in {key}")
            return _union(schema[key], schema)
    kind = schema.get("type")
    if kind is None:
        _only(schema, set())
        return {"type": "any"}
    if not isinstance(kind, str) or kind not in BOUNDS:
        raise _wrong(schema, "has an unknown type")
    _only(schema, {"type", *BOUNDS[kind]})
    given = {core: _bound(schema, key) for key, core in BOUNDS[kind].items() if core and key in schema}
    return _MAKERS[kind](schema, given)


def _union(branches: list[Any], schema: dict[str, Any]) -> Any:
    from pydantic_core import core_schema

    null = {"type": "null"}
    if null in branches and len(branches) > 1:
        return core_schema.nullable_schema(_union([one for one in branches if one != null], schema))
    if len(branches) == 1:
        return core_of(branches[0])
    cores = [core_of(one) for one in branches]
    return core_schema.union_schema(
        cores,
        custom_error_type="json_union",
        custom_error_message=f"Input should be {short(words(schema), 400)}",
    )


def _string(schema: dict[str, Any], given: dict[str, Any]) -> Any:
    core: Any = {"type": "str", "strict": True, **given}
    if "pattern" not in schema:
        return core
    from pydantic_core import PydanticKnownError, core_schema

    text = schema["pattern"]
    if not isinstance(text, str):
        raise _wrong(schema, "has a pattern that is not a text")
    try:
        pattern = compiled(text)
    except ToolError as error:
        raise DefinitionError(str(error)) from None

    def match(value: str) -> str:
        try:
            found = pattern.search(value, timeout=MATCH_SECONDS)
        except TimeoutError:  # ends the whole check, because there may be many such texts
            raise ToolError(f"it takes too long to look for {text} in it") from None
        if found is None:
            raise PydanticKnownError("string_pattern_mismatch", {"pattern": text})
        return value

    return core_schema.no_info_after_validator_function(match, core)


def _array(schema: dict[str, Any], given: dict[str, Any]) -> Any:
    from pydantic_core import core_schema

    first = schema.get("prefixItems")
    if first is None:
        items = schema.get("items", {})
        return core_schema.list_schema(core_of(items), strict=True, **given)
    if not isinstance(first, list) or not first:
        raise _wrong(schema, "has no list in prefixItems")
    cores, place = [core_of(one) for one in first], None
    if schema.get("items") not in (None, False):
        place = len(cores)
        cores.append(core_of(schema["items"]))
    whole = core_schema.tuple_schema(cores, variadic_item_index=place, strict=False)
    return core_schema.chain_schema([core_schema.list_schema(strict=True, **given), whole])


def _object(schema: dict[str, Any], given: dict[str, Any]) -> Any:
    from pydantic_core import core_schema

    more = schema.get("additionalProperties", True)
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or not all(isinstance(name, str) for name in properties):
        raise _wrong(schema, "has properties that are not a dictionary")
    if not isinstance(required, list) or not all(map(properties.__contains__, map(str, required))):
        raise _wrong(schema, "requires an undeclared property")
    if not properties and more is not False:
        values = core_schema.any_schema() if more is True else core_of(more)
        text = core_schema.str_schema(strict=True)
        return core_schema.dict_schema(text, values, strict=True, **given)
    fields = {
        name: core_schema.typed_dict_field(core_of(node), required=name in required)
        for name, node in properties.items()
    }
    if isinstance(more, bool):
        extra: Any = {"extra_behavior": "allow" if more else "forbid"}
    else:
        extra = {"extra_behavior": "allow", "extras_schema": core_of(more)}
    return core_schema.typed_dict_schema(fields, strict=True, **extra)


def _number(kind: str) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    return lambda schema, given: {"type": kind, "strict": True, **given}


_MAKERS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "string": _string,
    "integer": _number("int"),
    "number": _number("float"),
    "boolean": _number("bool"),
    "null": lambda *_: {"type": "none"},
    "array": _array,
    "object": _object,
}


def _bound(schema: dict[str, Any], key: str) -> Any:
    value = schema[key]
    odd = isinstance(value, float) and not math.isfinite(value)
    if odd or isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(schema, f"has no number in {key}")
    if key not in _LIMITS and not (isinstance(value, int) and 0 <= value < LARGEST):
        raise _wrong(schema, f"has no size in {key}")
    if key == "multipleOf" and value <= 0:
        raise _wrong(schema, "has no multipleOf above 0")
    return value


def _only(schema: dict[str, Any], known: set[str]) -> None:
    for key in schema:
        if key not in known and key not in TOLD:
            raise _wrong(schema, f"has the keyword {short(print_value(key), 40)}, which is not supported")
    if not isinstance(schema.get("description", ""), str):
        raise _wrong(schema, "has a description that is not a text")


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def _wrong(schema: Any, what: str) -> DefinitionError:
    return DefinitionError(f"the JSON Schema {in_short(schema)} {what}.")


def in_short(value: Any) -> str:
    """A value for a sentence about it."""
    return short(print_value(value), 80)
