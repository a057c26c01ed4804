"""Types of parameters: their names, the paths in them, and the same types as plain data.

A type that is plain data can be shown and checked on a machine without the author's code: a class and its
bounds are known there by their JSON Schema.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from quoth.tools.errors import DefinitionError
from quoth.tools.lisp.printer import Code, print_value
from quoth.tools.registry.annotations import UNIONS as UNIONS
from quoth.tools.registry.annotations import WorkspacePath as WorkspacePath
from quoth.tools.registry.annotations import unnamed
from quoth.tools.registry.json_type import (
    PATHS,
    JsonType,
    has_path,
    in_short,
    json_type,
    nodes,
    with_texts,
    words,
)
from quoth.tools.text import file_name


def written(path: str | Path) -> str:
    """The path as it was originally written, for a sentence: a line feed in it is an escape."""
    return file_name(path.written if isinstance(path, WorkspacePath) else str(path))


PLAIN: dict[Any, str] = {kind: kind.__name__ for kind in (str, int, float, bool, list, dict)}
PLAIN |= {type(None): "None", None: "None", Any: "any", Code: "form", WorkspacePath: "path"}
_NAMED = {name: hint for hint, name in PLAIN.items() if hint is not None}
TEXTS = (str, WorkspacePath)  # types that a model writes as a text
Mode = typing.Literal["validation", "serialization"]


def takes_text(hint: Any) -> bool:
    """Whether a type takes any text, by its JSON Schema."""
    if is_json(hint):
        return any(node.get("type") == "string" for node in (hint.schema, *hint.schema.get("anyOf", ())))
    return hint in TEXTS


def has_paths(hint: Any) -> bool:
    """Whether a type is or contains a path."""
    if is_json(hint):
        return has_path(hint.schema)
    return hint in (WorkspacePath, Path) or any(map(has_paths, typing.get_args(hint)))


def hides_paths(hint: Any) -> bool:
    """Whether a portable type has unresolved paths: as keys of a dictionary."""
    if is_json(hint):
        names = (node.get("propertyNames") for node in nodes(hint.schema))
        return any(node.get("format") in PATHS for name in names for node in nodes(name))
    return any(map(hides_paths, typing.get_args(hint)))


def with_paths(hint: Any, value: Any, change: Callable[[str], str]) -> Any:
    """``value`` with ``change`` applied to each path in it that is not a WorkspacePath; ``hint`` is its
    type."""
    return _changed(hint, value, lambda path: path if isinstance(path, WorkspacePath) else change(path))


def paths_at(hint: Any, value: Any) -> list[str]:
    """The paths in a value; ``hint`` is its type."""
    found: dict[int, str] = {}  # by identity: branches of a union meet the same text
    _changed(hint, value, lambda path: found.setdefault(id(path), path))
    return list(found.values())


def _changed(hint: Any, value: Any, change: Callable[[str], str]) -> Any:
    if hint is WorkspacePath:
        return change(value) if isinstance(value, str) else value
    if is_json(hint):
        return with_texts(hint.schema, value, PATHS, change)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is list and isinstance(value, (list, tuple)):
        return [_changed(args[0], item, change) for item in value]
    if origin is dict and isinstance(value, Mapping):
        return {name: _changed(args[1], item, change) for name, item in value.items()}
    if origin in (*UNIONS, typing.Annotated):
        for arg in args:
            value = _changed(arg, value, change)
    return value


def type_name(hint: Any, path: str = "path", *, docs: bool = False) -> str:
    """A type in words: ``str``, ``list of int``, ``str or None``, ``form``; ``path`` is the word for a path.
    With ``docs``, including the descriptions of a class's fields."""
    if hint is WorkspacePath:
        return path
    if hint in PLAIN:
        return PLAIN[hint]
    if is_json(hint):
        return words(hint.schema, docs)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        return f"list of {type_name(args[0], path, docs=docs)}"
    if origin is dict:
        return f"dict of {type_name(args[1], path, docs=docs)}"
    if origin in UNIONS:
        return " or ".join(type_name(arg, path, docs=docs) for arg in args)
    if origin is typing.Literal:
        return " | ".join(print_value(arg) for arg in args)
    if origin is typing.Annotated:
        return type_name(args[0], path, docs=docs)
    return getattr(hint, "__name__", str(hint))


# Types of Python's library that Hy knows by name, and the modules they are from.
STOCK_TYPES = {
    "date": "datetime", "datetime": "datetime", "time": "datetime", "timedelta": "datetime",
    "Decimal": "decimal", "UUID": "uuid", "Path": "pathlib",
}  # fmt: skip


def stock_type(name: str, known: Mapping[str, Any]) -> Any:
    """The type of that name in ``known``, otherwise from Python's library."""
    own = known.get(name)
    is_own = isinstance(own, (type, typing.NewType)) or typing.get_origin(own) is not None
    return own if is_own else getattr(import_module(STOCK_TYPES[name]), name)


# Types as plain data


def portable(hint: Any, mode: Mode = "validation") -> Any:
    """The type for another machine: each type that is not plain data is replaced by its JSON Schema, in
    pydantic's ``mode`` (validation or serialization). Raises DefinitionError for a type without a schema, or
    with a schema that cannot be checked."""
    hint = unnamed(hint)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Path:
        return WorkspacePath
    if origin is None and (hint in PLAIN or is_json(hint)):
        return hint
    if origin is list:
        return list[portable(args[0], mode)]  # type: ignore[misc]  # a type made as a value
    if origin is dict and unnamed(args[0]) in (str, Any):
        return dict[unnamed(args[0]), portable(args[1], mode)]  # type: ignore[misc]
    if origin in UNIONS:
        kinds = tuple(portable(arg, mode) for arg in args)
        if len({*kinds} - {type(None)}) > 1 and any(map(has_paths, kinds)) and mode == "validation":
            whole = _by_schema(hint, mode)  # refuses a text that may be a path or not
            return whole if sum(map(is_json, kinds)) > 1 else typing.Union[kinds]  # noqa: UP007
        return hint if kinds == args else typing.Union[kinds]  # noqa: UP007
    if origin is typing.Literal and all(map(_is_scalar, args)):
        return hint
    return _by_schema(hint, mode)


def _by_schema(hint: Any, mode: Mode) -> type[JsonType]:
    from quoth.tools.registry.python_types import schema_of  # here: it imports pydantic

    return json_type(schema_of(hint, mode))


def is_json(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, JsonType)


def schema_at(hint: Any, location: Sequence[int | str]) -> dict[str, Any]:
    """The JSON Schema at a location in a value of the type; empty for none, or for several."""
    while not is_json(hint):
        kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
        if not kinds:
            return {}
        hint, origin = kinds[-1], typing.get_origin(hint)
        location = location[1:] if origin in (list, dict) else location
    node: dict[str, Any] = hint.schema
    for part in (*location, None):
        some = [branch for branch in node.get("anyOf", ()) if branch != {"type": "null"}]
        node = some[0] if len(some) == 1 else node
        if part is not None:
            inner = node.get("items") if isinstance(part, int) else node.get("properties", {}).get(part)
            node = inner if isinstance(inner, dict) else {}
    return node


def has_json(hint: Any) -> bool:
    """Whether a portable type is, or contains, a type that is known by its JSON Schema."""
    return is_json(hint) or any(map(has_json, typing.get_args(hint)))


def hides_values(hint: Any) -> bool:
    """Whether a portable type is, or contains, a type with secret values: pydantic's SecretStr."""
    if is_json(hint):
        return any(node.get("writeOnly") is True for node in nodes(hint.schema))
    return any(map(hides_values, typing.get_args(hint)))


def has_values(hint: Any) -> bool:
    """Whether a type has Python values that are not JSON data."""
    hint = unnamed(hint)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (list, *UNIONS) or (origin is dict and unnamed(args[0]) in (str, Any)):
        return any(map(has_values, args))
    return not (hint in PLAIN or is_json(hint) or (bool(args) and all(map(_is_scalar, args))))


def has_form(hint: Any) -> bool:
    return hint is Code or any(map(has_form, typing.get_args(hint)))


def type_data(hint: Any) -> Any:
    """A portable type as JSON data: ``"str"``, ``{"list": "path"}``, ``{"schema": {…}}``."""
    if hint in PLAIN:
        return PLAIN[hint]
    if is_json(hint):
        return {"schema": hint.schema}
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return {"literal": list(args)}
    inner = [type_data(arg) for arg in args]
    if origin is list:
        return {"list": inner[0]}
    return {"dict": inner} if origin is dict else {"union": inner}


def type_of(data: Any) -> Any:
    """The type that such data, which is untrusted, describes. Raises DefinitionError."""
    if isinstance(data, str) and data in _NAMED:
        return _NAMED[data]
    if isinstance(data, dict) and len(data) == 1:
        ((kind, inner),) = data.items()
        if kind == "list":
            return list[type_of(inner)]  # type: ignore[misc]
        if kind == "schema" and isinstance(inner, dict):
            return json_type(inner)
        if isinstance(inner, list) and inner:
            if kind == "dict" and len(inner) == 2:
                return dict[type_of(inner[0]), type_of(inner[1])]  # type: ignore[misc]
            if kind == "union":
                return typing.Union[tuple(map(type_of, inner))]  # noqa: UP007
            if kind == "literal" and all(map(_is_scalar, inner)):
                return typing.Literal[tuple(inner)]
    raise DefinitionError(f"{in_short(data)} is not a type for a parameter.")


def _is_scalar(value: Any) -> bool:
    return type(value) in (str, int, bool, type(None))
