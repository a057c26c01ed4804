"""A JSON Schema of another system in the few words of json_type.py, as a model is shown it.

``$ref`` is inlined, ``type: [...]`` becomes ``anyOf``, ``allOf`` is merged, and keywords without meaning for
a model are dropped. What cannot be said in those words is left out, at worst all of it ("any"): the result
accepts what the schema accepts. whole_schema.py checks the rest. The schema is untrusted, and within bounds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from quoth.tools.errors import DefinitionError, ToolError
from quoth.tools.registry.json_type import (
    BOUNDS,
    LARGEST,
    PATHS,
    SIZES,
    JsonType,
    branches,
    json_type,
    values,
)
from quoth.tools.safe_regex import compiled
from quoth.tools.text import short
from quoth.tools.visible import visible

MAX_SHOWN: Final = 1000  # schemas in one plain schema, where each use of a reference is a copy
MAX_DEPTH: Final = 50  # of schemas in one another; also of references, each to the next
MAX_VALUES: Final = 500  # of an enum that is shown
MAX_CHARS: Final = 1000  # of a description or default that is shown
Schema = dict[str, Any]


class Applied(NamedTuple):
    """A schema that applies to a value, and the references that were followed to it."""

    node: Mapping[str, Any]
    within: tuple[str, ...] = ()


def plain_schema(node: Any, root: Mapping[str, Any]) -> Schema:
    """The schema ``node``, whose references are to parts of ``root``."""
    return _Plain(root).all_of([Applied(node)])


@lru_cache(1000)
def _type(text: str) -> type[JsonType]:
    return json_type(json.loads(text))


def plain_type(schema: Schema) -> type[JsonType]:
    """The type of a plain schema; any type if pydantic-core cannot check it."""
    try:
        return _type(json.dumps(schema))
    except DefinitionError:
        return _type("{}")


def root_names(root: Mapping[str, Any]) -> list[str]:
    """The names of the properties of the root of a schema."""
    properties, required = root.get("properties", {}), root.get("required", [])
    if not root.keys().isdisjoint(_APPLYING) or type(properties) is not dict or type(required) is not list:
        return [*RootProperties(root).names]
    more = [name for name in required if isinstance(name, str) and name not in properties]
    return [*properties, *sorted(set(more))] if more else [*properties]


class RootProperties:
    """The properties of the root of a schema. A property of only a branch is optional."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._plain = _Plain(root)
        parts = [Applied(root)] if root.keys().isdisjoint(_APPLYING) else self._plain.parts(root)
        self._sure: dict[str, list[Applied]] = {}
        self._perhaps: dict[str, list[list[Applied]]] = {}
        for node, within in parts:
            for name, inner in _mapping(node.get("properties")).items():
                self._sure.setdefault(name, []).append(Applied(inner, within))
        self.required = frozenset(
            name for node, _ in parts for name in _list(node.get("required")) if isinstance(name, str)
        )
        for part in parts:
            self._note_branches(part)
        self.names = (*self._sure, *self._perhaps, *sorted(self.required - {*self._sure, *self._perhaps}))

    def _note_branches(self, part: Applied, depth: int = 0) -> None:
        if depth == MAX_DEPTH or part.node.keys().isdisjoint(_APPLYING):
            return
        branches = [one for word in ("anyOf", "oneOf") for one in _list(part.node.get(word))]
        branches += [part.node[word] for word in ("if", "then", "else") if word in part.node]
        branches += _mapping(part.node.get("dependentSchemas")).values()
        for branch in branches:
            found: dict[str, list[Applied]] = {}
            for inner in self._plain.parts(branch, part.within):
                for name, node in _mapping(inner.node.get("properties")).items():
                    found.setdefault(name, []).append(Applied(node, inner.within))
                self._note_branches(inner, depth + 1)
            for name in (one for one in found if one not in self._sure):
                self._perhaps.setdefault(name, []).append(found[name])

    def plain(self) -> dict[str, Schema]:
        """The plain schema of each property."""
        sure = {name: self._plain.all_of(nodes) for name, nodes in self._sure.items()}
        perhaps = {
            name: any_of([self._plain.all_of(nodes) for nodes in branches])
            for name, branches in self._perhaps.items()
        }
        return {name: sure.get(name) or perhaps.get(name) or {} for name in self.names}


_APPLYING = frozenset(("$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas"))


class _Plain:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MAX_SHOWN
        self._depth = 0

    def of(self, node: Any, within: tuple[str, ...] = ()) -> Schema:
        """The plain schema of a node."""
        return self.all_of([Applied(node, within)])

    def all_of(self, nodes: Sequence[Applied]) -> Schema:
        """The plain schema of a value to which all these apply."""
        parts = [part for node, within in nodes for part in self.parts(node, within)]
        return {**self._checked(parts), **_annotations(parts)}

    def parts(self, node: Any, within: tuple[str, ...] = ()) -> list[Applied]:
        """The schemas that all apply to a value: the node, the target of its reference, and its ``allOf``."""
        self._left -= 1
        if not isinstance(node, Mapping) or self._left < 0:
            return []
        found = [Applied(node, within)]
        ref = node.get("$ref")
        if isinstance(ref, str) and ref not in within and len(within) < MAX_DEPTH:
            found += self.parts(self._target(ref), (*within, ref))
        self._depth += 1
        for one in _list(node.get("allOf")) if self._depth < MAX_DEPTH else ():
            found += self.parts(one, within)
        self._depth -= 1
        return found

    def _target(self, ref: str) -> Any:
        """The schema at a JSON pointer in the root; None for any other reference."""
        if ref == "#":
            return self._root
        found: Any = self._root if ref.startswith("#/") else None
        for part in ref[2:].split("/"):
            part = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = found[int(part)] if part in map(str, range(len(found))) else None
            else:
                found = found.get(part) if isinstance(found, Mapping) else None
        return found

    def _checked(self, parts: Sequence[Applied]) -> Schema:
        """The keywords for a value to which all parts apply; none beyond the bounds."""
        if self._left < 0 or self._depth >= MAX_DEPTH:
            return {}
        self._depth += 1
        made = self._checks(parts)
        self._depth -= 1
        return made

    def _checks(self, parts: Sequence[Applied]) -> Schema:
        nullable = any(part.node.get("nullable") is True for part in parts)  # OpenAPI's
        if (constants := _constants(parts)) is not None:
            return _enum([*constants, *([None] if nullable and None not in constants else [])])
        for place, part in enumerate(parts):
            for word in ("anyOf", "oneOf"):
                if _is_told(branches := _list(part.node.get(word))):
                    others = {
                        key: value for key, value in part.node.items() if key not in (word, "$ref", "allOf")
                    }
                    rest = [*parts[:place], Applied(others, part.within), *parts[place + 1 :]]
                    rest = [one for one in rest if one.node.keys() - {"$ref", "allOf"}]
                    made = [self._branch(rest, one, part.within) for one in branches]
                    return any_of([*made, *([{"type": "null"}] if nullable else [])])
        kinds = _kinds(parts)
        if kinds is None:
            return {}
        made = [self._of_kind(kind, parts) for kind in kinds]
        return any_of([*made, *([{"type": "null"}] if nullable and "null" not in kinds else [])])

    def _branch(self, rest: Sequence[Applied], branch: Any, within: tuple[str, ...]) -> Schema:
        own = self.parts(branch, within)
        found = _annotations(own)
        return {
            **self._checked([*rest, *own]),
            **{key: found[key] for key in ("description",) if key in found},
        }

    def _of_kind(self, kind: str, parts: Sequence[Applied]) -> Schema:
        made: Schema = {"type": kind}
        if kind == "object":
            made |= self._object(parts)
        elif kind == "array":
            made |= self._array(parts)
        for word in (*(word for word, core in BOUNDS[kind].items() if core), *_PATTERN.get(kind, ())):
            given = next((part.node[word] for part in parts if word in part.node), None)
            if (bound := _bound(kind, word, given)) is not None:
                made[word] = bound
        for word in ("format", "contentEncoding") if kind == "string" else ():
            told = next((part.node[word] for part in parts if word in part.node), None)
            if isinstance(told, str) and _is_clear(told) and told not in PATHS:  # none of this workspace
                made[word] = told
        return made

    def _object(self, parts: Sequence[Applied]) -> Schema:
        known: dict[str, list[Applied]] = {}
        for part in parts:
            for name, node in _mapping(part.node.get("properties")).items():
                known.setdefault(name, []).append(Applied(node, part.within))
        required = {str(name): 0 for part in parts for name in _list(part.node.get("required"))}
        if not all(map(_is_clear, (*known, *required))):
            return {}
        properties = {name: self.all_of(nodes) for name, nodes in known.items()}
        properties |= {name: {} for name in required if name not in properties}
        closing = [part for part in parts if part.node.keys() & {"additionalProperties", "patternProperties"}]
        made: Schema = {"properties": properties} if properties else {}
        if required:
            made["required"] = [*required]
        if len(closing) == 1 and "patternProperties" not in closing[0].node:
            more = closing[0].node["additionalProperties"]
            own = _mapping(closing[0].node.get("properties"))
            if isinstance(more, Mapping):
                made["additionalProperties"] = {} if known.keys() - own else self.of(more, closing[0].within)
            elif isinstance(more, bool):
                made["additionalProperties"] = more or bool(known.keys() - own)
        return made

    def _array(self, parts: Sequence[Applied]) -> Schema:
        items = [Applied(part.node["items"], part.within) for part in parts if "items" in part.node]
        first = [part for part in parts if _list(part.node.get("prefixItems") or part.node.get("items"))]
        if not first:
            return {"items": self.all_of(items)} if items else {}
        node, within = first[0]
        prefix = _list(node.get("prefixItems") or node["items"])
        rest = node.get("items") if "prefixItems" in node else node.get("additionalItems")
        least = node.get("minItems", 0)
        if len(first) > 1 or not isinstance(least, int) or least < len(prefix):
            return {}  # as a tuple it would have to be complete
        made = {"prefixItems": [self.of(one, within) for one in prefix]}
        return {**made, "items": False if rest is False else self.of(rest, within)}


def _is_clear(value: Any) -> bool:
    """Whether a value is short, and shows a model or person nothing that is invisible or misleading."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return len(text) <= MAX_CHARS and visible(text, lines=True) == text


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _annotations(parts: Sequence[Applied]) -> Schema:
    """The description, default and marks of a value, each by the first part that has it."""
    found: Schema = {}
    for node, _ in reversed(parts):
        if isinstance(text := node.get("description"), str):
            found["description"] = visible(short(text, MAX_CHARS), lines=True)
        found |= {
            word: node[word] for word in ("default", "examples") if word in node and _is_clear(node[word])
        }
        found |= {word: True for word in ("deprecated", "writeOnly") if node.get(word) is True}
    return found


def _is_told(branches: list[Any]) -> bool:
    """Whether branches of a union say more than which fields go together."""
    silent = {"required", "not", "title", "description"}
    return bool(branches) and not all(isinstance(one, Mapping) and one.keys() <= silent for one in branches)


def any_of(branches: list[Schema]) -> Schema:
    kept: list[Schema] = []
    for one in branches:
        inner = one["anyOf"] if one.keys() == {"anyOf"} else [one]
        kept += [each for each in inner if each not in kept]
    if any(not one.keys() & {"type", "anyOf", "enum", "const"} for one in kept):
        return {}  # one of them accepts anything
    return kept[0] if len(kept) == 1 else {"anyOf": kept} if kept else {}


def _kinds(parts: Sequence[Applied]) -> list[str] | None:
    """The types of JSON Schema that a value may have: as declared, otherwise as its keywords imply; None for
    any."""
    found: list[str] | None = None
    for node, _ in parts:
        given = node.get("type")
        kinds = [given] if isinstance(given, str) else _list(given)
        if not kinds:
            continue
        if not all(isinstance(kind, str) and kind in BOUNDS for kind in kinds):
            return None
        found = kinds if found is None else _shared(found, kinds)
    if found is None:
        implied = {kind for kind, words in _IMPLYING.items() for part in parts if words & part.node.keys()}
        found = [*implied] if len(implied) == 1 else None
    return found or None


def _shared(kinds: list[str], others: list[str]) -> list[str]:
    """The types that are in both lists; an integer is a number."""
    whole = {"integer", "number"}
    return [
        kind if kind in others else "integer"
        for kind in kinds
        if kind in others or (kind in whole and whole & {*others})
    ]


_PATTERN = {"string": ("pattern",)}
_IMPLYING: dict[str, set[str]] = {
    "object": {"properties", "additionalProperties", "patternProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems"},
    "string": {"minLength", "maxLength", "pattern"},
}


def _constants(parts: Sequence[Applied]) -> list[Any] | None:
    """The values that all parts allow; None if they list none, empty for values that cannot be listed."""
    lists = [
        [node["const"]] if "const" in node else _list(node["enum"])
        for node, _ in parts
        if node.keys() & _LISTING
    ]
    if not lists:
        return None
    if max(map(len, lists)) > MAX_VALUES:
        return []
    if not all(_is_scalar(value) and _is_clear(value) for values in lists for value in values):
        return []
    first, *others = [{(type(value) is bool, value): value for value in values} for values in lists]
    return [value for key, value in first.items() if all(key in other for other in others)]


_LISTING = {"const", "enum"}


def _is_scalar(value: Any) -> bool:
    return (
        value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))
    )


def _enum(values: list[Any]) -> Schema:
    if not values:
        return {}
    kinds = {_NAMES.get(type(value), "") for value in values}
    kind = kinds.pop() if len(kinds) == 1 else ""
    return {
        **({"enum": values} if len(values) > 1 else {"const": values[0]}),
        **({"type": kind} if kind else {}),
    }


_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def _bound(kind: str, word: str, value: Any) -> Any:
    """A bound as json_type.py takes it; None for one that it cannot take."""
    if word == "pattern":
        return value if _compiles(value) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    whole = int(value) if value == int(value) else None
    if word in SIZES:
        return whole if whole is not None and 0 <= whole < LARGEST else None
    if word == "multipleOf":
        return whole if kind == "integer" and whole and whole > 0 else None
    return whole if kind == "integer" else value


def _compiles(pattern: Any) -> bool:
    try:
        return isinstance(pattern, str) and _is_clear(pattern) and bool(compiled(pattern))
    except ToolError:
        return False


def takes_null(schema: Schema) -> bool:
    """Whether a plain schema accepts null."""
    if constants := values(schema):
        return None in constants
    if inner := branches(schema):
        return any(map(takes_null, inner))
    return bool(schema.get("type", "null") == "null")
