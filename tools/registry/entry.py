"""Entries: tools as plain data, which may come from another machine, and their one hash.

An entry shows all that its tool shows, so that a table made of entries prints the same views and refuses the
same arguments. It may be anybody's: what it holds is checked, and nothing in it is run. Must not know tables,
catalogues or doors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from quoth.tools.errors import DefinitionError, QuothError, did_you_mean
from quoth.tools.registry.arguments import example_of
from quoth.tools.registry.json_type import core_of, in_short
from quoth.tools.registry.param_types import type_of
from quoth.tools.registry.parameters import NAME, Param, make_param
from quoth.tools.registry.returns import returns_of_data
from quoth.tools.registry.tool import CognitiveTool, line_of

# The fields of an entry and what each holds; one in square brackets is a list of such.
FIELDS: dict[str, Any] = {
    "name": str, "description": str, "effects": [str], "cost": str, "guarded": bool, "gate": bool,
    "gate_failure": str, "cooldown": float, "daily_limit": int, "timeout": float, "tag": (str, dict),
    "allow_repeat": bool, "no_background": bool, "ends_turn": bool, "shown": bool, "examples": [str],
    "params": [dict], "parameters": dict, "version": str, "users": [str], "returns": dict,
    "free_text": object,
}  # fmt: skip
_NEEDED = tuple(key for key in FIELDS if key not in ("users", "returns", "free_text"))
PARAM_FIELDS: dict[str, Any] = {
    "name": str, "type": (str, dict), "doc": str, "default": object, "choices": [object], "min": float,
    "max": float, "secret": bool, "hidden": bool, "named": bool, "role": str, "outside": bool, "wire": str,
}  # fmt: skip
_NAMES: dict[Any, str] = {
    str: "a text", bool: "True or False", float: "a number", int: "a whole number", dict: "a dictionary",
    (str, dict): "a text or a dictionary",
}  # fmt: skip
MAX_NAME = 200  # characters
MAX_VALUES = 20_000  # in one entry
MAX_DEPTH = 60  # of lists and dictionaries in one another


def schema_hash(entries: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 over all that the tools show: equal tools have equal hashes, in any order. The version of a
    tool, which changes with its code, is none of it."""
    # One by one: with all of thousands at hand, Python looks for garbage more than anything else.
    return lines_hash(map(line_of, sorted(entries, key=lambda entry: str(entry["name"]))))


def lines_hash(lines: Iterable[bytes]) -> str:
    """The same of the lines of the entries, sorted by name."""
    hashed = hashlib.sha256()
    for line in lines:
        hashed.update(line + b"\n")
    return hashed.hexdigest()


def tool_of(entry: Any, body: Callable[..., Any], *, remote: str = "", patience: float = 0) -> CognitiveTool:
    """The tool that an entry shows, with this body. ``users`` in the entry are for the table. Raises
    QuothError that names the tool and what is wrong with its entry."""
    name: Any = entry.get("name") if isinstance(entry, dict) else None
    if not _is_name(name):
        raise QuothError(f"An entry of a catalogue has a tool's name, and this has none: {in_short(entry)}.")
    try:
        return _tool_of(entry, body, remote, patience)
    except QuothError as error:
        said = str(error).removeprefix(name).removeprefix(",").removeprefix(":").lstrip()
        raise QuothError(f"The entry of the tool {name}: {said}") from None


def _tool_of(entry: dict[str, Any], body: Callable[..., Any], remote: str, patience: float) -> CognitiveTool:
    from quoth.tools.registry.returns import declared_free_text  # here: most tools are of this machine

    _check_data(entry)
    _check_fields(entry, FIELDS, _NEEDED)
    name = entry["name"]
    params = tuple(_param_of(name, data) for data in entry["params"])
    core_of(entry["parameters"])
    if set(entry["parameters"].get("properties", "?")) != {one.shown for one in params if not one.hidden}:
        raise DefinitionError("parameters has other properties than its params.")
    returns = returns_of_data(entry["returns"]) if "returns" in entry else None
    tool = CognitiveTool(
        params=params,
        effects=tuple(entry["effects"]),
        examples=tuple(example_of(name, params, text) for text in entry["examples"]),
        returns=returns,
        free_text=declared_free_text(name, entry.get("free_text"), returns),
        guarded_there=entry["guarded"],
        remote=remote,
        patience=patience,
        _body=body,
        **{key: entry[key] for key in _AS_THEY_ARE},
    )
    # As it was shown there: made here again it would be the same, but its code is not here.
    shown = {key: value for key, value in entry.items() if key != "users"}
    version = entry["version"]
    vars(tool).update(entry=shown, schema=entry["parameters"], version=version, outline=version[:16])
    return tool


_MADE = ("params", "effects", "examples", "guarded", "parameters", "version", "users", "returns", "free_text")
_AS_THEY_ARE = tuple(key for key in FIELDS if key not in _MADE)


def _param_of(tool: str, data: dict[str, Any]) -> Param:
    if not _is_name(data.get("name")):
        raise DefinitionError(f"{in_short(data.get('name'))} is no name of a parameter.")
    try:
        _check_fields(data, PARAM_FIELDS, ("name", "type"))
        spec = {key: value for key, value in data.items() if key != "name"}
        spec["type"] = type_of(spec["type"])
    except DefinitionError as error:
        raise DefinitionError(f"parameter {data['name']}: {error}") from None
    return make_param(tool, data["name"], spec)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and len(name) <= MAX_NAME and NAME.match(name) is not None


def _check_fields(data: Mapping[str, Any], fields: Mapping[str, Any], needed: Iterable[str]) -> None:
    for key, value in data.items():
        kind = fields.get(key)
        if type(value) is kind or kind is object:
            continue
        if kind is None:
            raise DefinitionError(f"there is no field {in_short(key)}.{did_you_mean(str(key), fields)}")
        if not _is(value, kind):
            raise DefinitionError(f"{key} is {_meaning(kind)}, not {in_short(value)}.")
    for key in needed:
        if key not in data:
            raise DefinitionError(f"the field {key} is missing.")


def _is(value: Any, kind: Any) -> bool:
    if isinstance(kind, list):
        return isinstance(value, list) and all(_is(item, kind[0]) for item in value)
    if kind is float:
        return isinstance(value, int) and not isinstance(value, bool)
    return kind is object or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool)))


def _meaning(kind: Any) -> str:
    if isinstance(kind, list):
        return "a list" if kind[0] is object else f"a list, each item {_NAMES[kind[0]]}"
    return _NAMES[kind]


def _check_data(entry: dict[str, Any]) -> None:
    """An entry is JSON data, and none so large, or so deep, that to read it is work."""
    level: list[Any] = [entry]
    count = 0
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        keys: set[type] = set()
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
                keys.update(map(type, item))
            else:
                inner += item
        count += len(inner)
        if count > MAX_VALUES:
            raise DefinitionError(f"it holds more than {MAX_VALUES:,} values.")
        kinds = set(map(type, inner))
        if not keys <= {str} or not kinds <= _DATA:
            raise DefinitionError("it holds what is no JSON data.")
        if kinds.isdisjoint(_HOLDING):
            return
        level = [item for item in inner if type(item) in _HOLDING]
    raise DefinitionError(f"it is nested deeper than {MAX_DEPTH}.")


_HOLDING = {list, dict}
_DATA = {str, int, float, bool, type(None), *_HOLDING}
