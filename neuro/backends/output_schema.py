"""The JSON Schemas of an answer and of tools, as the providers take them.

Knows what they have in common of JSON Schema; it checks no answer, that is for whoever wants it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from quoth.neuro.backends.messages import to_json

# Not every provider enforces these, some refuse them: they are told to the model in words.
LIMITS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
    "minLength": "characters: at least",
    "maxLength": "characters: at most",
    "pattern": "matches",
    "minItems": "items: at least",
    "maxItems": "items: at most",
}
NAMED = ("properties", "$defs", "definitions")  # what they hold is named by the user, not by JSON Schema
DATA = ("enum", "const", "required", "description")
LEFT_OUT = ("title", "default", "examples", "discriminator", "uniqueItems")


def portable_schema(node: Any) -> Any:
    """The schema without what a provider may refuse: its objects are closed, its limits are words."""
    if isinstance(node, list):
        return [portable_schema(one) for one in node]
    if not isinstance(node, Mapping):
        return node
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key in NAMED and isinstance(value, Mapping):
            made[key] = {name: portable_schema(one) for name, one in value.items()}
        elif key in DATA:
            made[key] = value
        elif key not in LIMITS and key not in LEFT_OUT:
            made["anyOf" if key == "oneOf" else key] = portable_schema(value)
    told = ", ".join(f"{words} {node[key]}" for key, words in LIMITS.items() if key in node)
    if told:
        made["description"] = " ".join(filter(None, [made.get("description"), f"({told})"]))
    if "properties" in made:
        made["additionalProperties"] = False
    if "$ref" in made and len(made) > 1:  # it must stand alone
        made["anyOf"] = [{"$ref": made.pop("$ref")}]
    return made


def is_strict(schema: Any) -> bool:
    """Whether OpenAI can enforce a portable schema: objects are closed and none of their fields may be
    missing."""
    return all(
        node.get("additionalProperties") is False and set(node.get("required", ())) == set(node["properties"])
        if "properties" in node
        else node.get("type") != "object"
        for node in _nodes(schema)
    )


def _nodes(node: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(node, list):
        for one in node:
            yield from _nodes(one)
    elif isinstance(node, Mapping):
        yield node
        for key, value in node.items():
            if key in NAMED:
                yield from _nodes(list(value.values()))
            elif key not in DATA:
                yield from _nodes(value)


@lru_cache(maxsize=8)
def tools_without(tools: bytes, keys: frozenset[str]) -> bytes:
    """The tools of a request without these keys of their schemas."""
    return to_json(_without(json.loads(tools), keys)) if keys else tools


def _without(node: Any, keys: frozenset[str]) -> Any:
    if isinstance(node, list):
        return [_without(item, keys) for item in node]
    if not isinstance(node, dict):
        return node
    left: dict[str, Any] = {}
    for key, value in node.items():
        if key in NAMED and isinstance(value, dict):
            left[key] = {name: _without(item, keys) for name, item in value.items()}
        elif key == "type" and "type" in keys and isinstance(value, list):
            left[key] = next((kind for kind in value if kind != "null"), "string")
        elif key in DATA and key not in keys:
            left[key] = value
        elif key not in keys or key == "type":
            left[key] = _without(value, keys)
        elif key == "const":
            left["enum"] = [value]
        elif key in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
            branches = [_without(one, keys) for one in value if one != {"type": "null"}]
            left |= branches[0] if len(branches) == 1 or (branches and key == "allOf") else {}
    return left
