"""A tool for OpenAI's API, from its entry; ``strict`` where the schema allows it.

Entries (tool.py) are plain data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from quoth.tools.lisp.printer import print_value

LONGEST_NAME = 64  # OpenAI's limit
# Keywords that a strict schema may contain, besides properties, required and additionalProperties (OpenAI's
# guide to structured outputs). Defaults are not allowed: the description mentions them.
STRICT_KEYS = frozenset(
    {"type", "description", "enum", "const", "anyOf", "items", "minimum", "maximum", "default"}
)


def wire_name(name: str) -> str:
    """The name of a tool for the APIs; one over 64 characters is shortened and ends in a part of its hash."""
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def openai_tool_dict(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The tool of an entry for OpenAI, ``strict`` where the schema allows it: then every property is
    required, and an optional one may be null. A tool with open arguments (any dict, any list) keeps its own
    schema."""
    schema = entry["parameters"]
    strict = strict_schema(schema)
    function = {
        "name": wire_name(entry["name"]),
        "description": entry["description"],
        "parameters": schema if strict is None else strict,
        "strict": strict is not None,
    }
    return {"type": "function", "function": function}


def strict_schema(schema: dict[str, Any]) -> dict[str, Any] | None:
    """An object's schema by OpenAI's strict rules, or None if they cannot express it."""
    if schema.get("additionalProperties") is not False:
        return None
    required = schema.get("required", [])
    properties = {}
    for name, node in schema.get("properties", {}).items():
        strict = _strict(node)
        if strict is None:
            return None
        properties[name] = strict if name in required else _nullable(strict)
    return {
        "type": "object",
        **({"description": schema["description"]} if "description" in schema else {}),
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _strict(node: dict[str, Any]) -> dict[str, Any] | None:
    if node.get("type") == "object":
        return strict_schema(node)
    if not ({"type", "anyOf", "enum", "const"} & set(node)) or not set(node) <= STRICT_KEYS:
        return None
    strict = {key: value for key, value in node.items() if key != "default"}
    if node.get("type") == "array":
        items = _strict(node.get("items", {}))
        if items is None:
            return None
        strict["items"] = items
    if "anyOf" in node:
        branches = [_strict(branch) for branch in node["anyOf"]]
        if None in branches:
            return None
        strict["anyOf"] = branches
    if node.get("default") is not None:
        told = f"(default {print_value(node['default'])})"
        strict["description"] = " ".join(filter(None, [node.get("description"), told]))
    return strict


def _nullable(node: dict[str, Any]) -> dict[str, Any]:
    """The same, or null."""
    if "anyOf" in node:
        null = {"type": "null"}
        return node if null in node["anyOf"] else {**node, "anyOf": [*node["anyOf"], null]}
    if "const" in node:
        node = {**{key: value for key, value in node.items() if key != "const"}, "enum": [node["const"]]}
    if "enum" in node:
        node = {**node, "enum": [*node["enum"], None]}
    kinds = node["type"] if isinstance(node.get("type"), list) else [node["type"]] if "type" in node else []
    return {**node, "type": [*kinds, "null"]} if kinds and "null" not in kinds else node
