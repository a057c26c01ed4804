"""Python types without JSON values, such as a date or a class: their JSON Schema, and their values created
from JSON data.

pydantic does both; this file is imported when the first such type is defined, because that import takes twice
as long as starting Python.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticSerializationError, SchemaValidator, core_schema, to_json
from typing_extensions import is_typeddict

from quoth.tools.errors import DefinitionError
from quoth.tools.lisp.printer import print_value
from quoth.tools.registry.annotations import UNIONS, Mark, WorkspacePath, unnamed
from quoth.tools.registry.json_type import HINT, PATHS, clash, inline, nodes, with_texts
from quoth.tools.registry.values import plain
from quoth.tools.text import short

_NO_SCHEMA = (PydanticUserError, PydanticUndefinedAnnotation, PydanticSerializationError)
Mode = typing.Literal["validation", "serialization"]
CONFIG: dict[str, Any] = {"strict": True, "val_json_bytes": "base64"}  # of a class without its own settings


class PythonType:
    """Creates the values of a type from JSON data, strictly: a date from a text, but not a number from a
    text."""

    def __init__(self, hint: Any) -> None:
        self._hint = hint
        core = _with_config(TypeAdapter(hint).core_schema)
        try:
            self._validator = SchemaValidator(core, CONFIG, _use_prebuilt=False)  # type: ignore[arg-type]
        except TypeError:  # pydantic before 2.12 has no such parameter
            self._validator = SchemaValidator(core, CONFIG)  # type: ignore[arg-type]

    def value_of(self, data: Any, root: Path | None = None) -> Any:
        """The value for JSON data; each Path in it is below ``root``, if given. Raises pydantic's
        ValidationError."""
        if root is not None:
            data = with_texts(self._schema, data, ("path",), lambda path: str(root / path))
        return self._validator.validate_json(to_json(data))

    @cached_property
    def _schema(self) -> dict[str, Any]:
        return schema_of(self._hint, "validation")


class _Schemas(GenerateJsonSchema):
    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:
        return {"type": "string", "contentEncoding": "base64"}  # its bounds count bytes, not letters

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        return {**super().decimal_schema(schema), "format": "decimal"}

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return _closed(schema, super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return _closed(schema, super().typed_dict_schema(schema))

    def encode_default(self, dft: Any) -> Any:
        return plain(dft)


def _closed(core: Any, schema: JsonSchemaValue) -> JsonSchemaValue:
    """The JSON Schema of a class; as in Python, without extra fields unless the class allows them."""
    says = "extra_fields_behavior" in core.get("config", {}) or "extra_behavior" in core
    return schema if says else {**schema, "additionalProperties": False}


def schema_of(hint: Any, mode: Mode) -> dict[str, Any]:
    """The JSON Schema of a type, inline. Raises DefinitionError for a type without a schema, naming it and
    its field, and for a mark in it that only a parameter can have."""
    try:
        core, schema = _schemas(hint, mode)
        schema = inline(schema)
    except _NO_SCHEMA as error:
        place, kind = _without_schema(hint, mode)
        name = print_value(kind) if isinstance(kind, str) else getattr(kind, "__name__", str(kind))
        code = getattr(error, "code", None)
        if code == "typed-dict-version":
            raise DefinitionError(
                f"{name}{place} is a TypedDict of typing; this Python needs the one of typing_extensions: "
                "from typing_extensions import TypedDict."
            ) from None
        if code in ("undefined-annotation", "class-not-fully-defined"):
            why = short(str(error).splitlines()[0], 200).rstrip(".")
            raise DefinitionError(f"{name}{place} names a type that is not defined ({why}).") from None
        raise DefinitionError(f"values of type {name}{place} cannot be written as JSON; {HINT}.") from None
    for place, part in _all_parts(hint) if mode == "validation" else ():
        _require_own(part, place)
    if mode == "validation" and (found := [node for node in _deep(schema) if _is_judged(node)]):
        seen = [*map(id, nodes(schema))]
        why = "" if all(id(node) in seen for node in found) else "of a pattern or within a text"
        if why := why or _other_reading(core) or _two_texts(schema):
            raise DefinitionError(
                f"a path or secret in {_named(hint)} would not be judged as the body receives it: {why}."
            )
    return schema


def _named(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _is_judged(node: Mapping[str, Any]) -> bool:
    """Whether values of a JSON Schema are judged before the body: a path by rules, a secret is hidden."""
    return node.get("format") in PATHS or bool(node.get("writeOnly"))


def _deep(node: Any) -> Iterator[Mapping[str, Any]]:
    """Every dictionary in plain data."""
    if isinstance(node, Mapping):
        yield node
        node = [*node.values()]
    for inner in node if isinstance(node, (list, tuple)) else ():
        yield from _deep(inner)


_READS_OTHERWISE = {
    **dict.fromkeys(("validate_by_name", "populate_by_name"), "a field may be given by two names"),
    **dict.fromkeys(("str_strip_whitespace", "strip_whitespace"), "blanks are cut from texts"),
    **dict.fromkeys(("str_to_lower", "to_lower", "str_to_upper", "to_upper"), "the case of texts is changed"),
}


def _other_reading(core: Any) -> str:
    """Why pydantic would accept data that a type's JSON Schema does not describe; empty if it would not."""
    for node in _deep(core):
        for word, why in _READS_OTHERWISE.items():
            if node.get(word) is True:
                return why
        if isinstance(node.get("validation_alias"), list):
            return "a field may be given by several names"
    return ""


def _two_texts(schema: Any) -> str:
    """Whether a text may be a path or another thing, in a union; then it would be taken as a path."""
    for node in nodes(schema):
        for key in ("anyOf", "oneOf"):
            if any(clash(*pair, tagged=key == "oneOf") for pair in combinations(node.get(key) or (), 2)):
                return "a text there may be a path or not; tell the types apart by a Literal in a field"
    return ""


def _schemas(hint: Any, mode: Mode) -> tuple[Any, dict[str, Any]]:
    """The schema of a type in pydantic-core's words, and in JSON's."""
    if isinstance(hint, (str, typing.TypeVar)):
        raise PydanticUserError("it is the name of a type", code=None)
    adapter = TypeAdapter(hint)
    if _is_lazy(adapter.core_schema):
        raise PydanticUserError("it is not checked before the body", code=None)
    return adapter.core_schema, adapter.json_schema(mode=mode, schema_generator=_Schemas)


def _without_schema(hint: Any, mode: Mode, place: str = "") -> tuple[str, Any]:
    """In a type without a JSON Schema, the innermost part without one, and its field."""
    for where, kind in _parts(hint, place):
        try:
            _schemas(kind, mode)
        except _NO_SCHEMA:
            return _without_schema(kind, mode, where)
    return place, hint


def _parts(hint: Any, place: str) -> Iterator[tuple[str, Any]]:
    """The types and notes in a type, each with its field."""
    hint = unnamed(hint)
    yield from ((place, arg) for arg in typing.get_args(hint) if not isinstance(arg, list))
    for name, kind in _fields(hint):
        yield f" (the field {name} of {hint.__name__})", kind


def _fields(hint: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a class with their types; none of any other type."""
    if not isinstance(hint, type):
        return
    if issubclass(hint, BaseModel):
        for name, info in hint.model_fields.items() if hint.__pydantic_complete__ else ():
            yield (
                name,
                typing.Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation,
            )
    elif dataclasses.is_dataclass(hint) or is_typeddict(hint) or issubclass(hint, tuple):
        with contextlib.suppress(NameError, TypeError):
            yield from typing.get_type_hints(hint, include_extras=True).items()


def _all_parts(hint: Any, place: str = "", within: tuple[Any, ...] = ()) -> Iterator[tuple[str, Any]]:
    """A type, and all types and notes in it, each with its field."""
    yield place, hint
    for where, part in _parts(hint, place):
        if not any(part is one for one in within):
            yield from _all_parts(part, where, (*within, part))


def _require_own(hint: Any, place: str) -> None:
    """Raise DefinitionError for marks and bounds that cannot be a part of a parameter's type."""
    if isinstance(hint, Mark) and not hasattr(hint, "__get_pydantic_json_schema__"):
        mark = type(hint).__name__
        raise DefinitionError(
            f"{mark}{place} is a part of the type; only a whole parameter has such a mark, as in "
            f'Annotated[str, {mark}("…")].'
        )
    notes = hint.__metadata__ if typing.get_origin(hint) is typing.Annotated else ()
    bounds = [note for note in notes if not isinstance(note, str) and getattr(note, "metadata", True)]
    if bounds and _is_path(hint.__origin__):  # a Field without metadata only describes
        raise DefinitionError(f"a path{place} has no bounds of its own; check it in the guard.")


def _is_path(hint: Any) -> bool:
    hint = unnamed(hint)
    members = typing.get_args(hint) if typing.get_origin(hint) in UNIONS else ()
    return hint in (Path, WorkspacePath) or any(map(_is_path, members))


_NO_SCHEMAS = ("default", "metadata", "expected", "serialization", "config")


def _with_config(node: Any) -> Any:
    """A schema of pydantic-core in which each class is strict, takes bytes as base64 and, unless it is a
    pydantic model, accepts only its own fields, unless it says otherwise."""
    if isinstance(node, (list, tuple)):
        return type(node)(map(_with_config, node))
    if not isinstance(node, dict):
        return node
    kind = node.get("type")  # of a mapping of names to schemas it is none, or a schema
    kept = _NO_SCHEMAS if isinstance(kind, str) else ()
    made = {key: value if key in kept else _with_config(value) for key, value in node.items()}
    if kind in ("model", "dataclass", "typed-dict"):
        extra = {} if kind == "model" else {"extra_fields_behavior": "forbid"}
        made["config"] = {**CONFIG, **extra, **node.get("config", {})}
    return made


def _is_lazy(node: Any) -> bool:
    """Whether a schema of pydantic-core has a part that takes no JSON, or checks it later."""
    if isinstance(node, (list, tuple)):
        return any(map(_is_lazy, node))
    if not isinstance(node, dict):
        return False
    kind = node.get("type")
    if not isinstance(kind, str):
        return any(map(_is_lazy, node.values()))
    if kind in ("generator", "is-subclass"):
        return True
    if kind == "json-or-python":
        return _is_lazy(node["json_schema"])
    return any(_is_lazy(value) for key, value in node.items() if key not in _NO_SCHEMAS)
