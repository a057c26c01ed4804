"""The belt as JSON Schema: for OpenAI, for Anthropic, for MCP, and one line a tool for a prompt.

Knows the table's public face. Every schema is inline (no ``$ref``). The APIs accept every tool name, unless
it is too long.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from quoth.tools.lisp.printer import Code, print_value
from quoth.tools.registry.table import CognitiveTool

LONGEST_NAME = 64  # OpenAI's limit
# What a strict schema may hold, beside properties, required and additionalProperties (OpenAI's guide to
# structured outputs). A default is not among it: it is told in the description.
STRICT_KEYS = frozenset(
    {"type", "description", "enum", "const", "anyOf", "items", "minimum", "maximum", "default"}
)


def wire_name(name: str) -> str:
    """The name of a tool for the APIs; one over 64 characters is shortened and ends in a part of its hash."""
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def openai_tools(tools: Iterable[CognitiveTool]) -> list[dict[str, Any]]:
    """The tools for OpenAI, ``strict`` where the schema allows it: then every property is required, and an
    optional one may be null. A tool with open arguments (any dict, any list) keeps its own schema."""
    return [{"type": "function", "function": _openai_function(tool)} for tool in tools]


def anthropic_tools(tools: Iterable[CognitiveTool]) -> list[dict[str, Any]]:
    return [
        {"name": wire_name(tool.name), "description": tool.description, "input_schema": tool.schema}
        for tool in tools
    ]


def mcp_tools(tools: Iterable[CognitiveTool]) -> list[dict[str, Any]]:
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.schema,
            "annotations": hints(tool),
        }
        for tool in tools
    ]


def json_lines(tools: Iterable[CognitiveTool]) -> list[str]:
    """One line of JSON for each tool: its name, description and schema."""
    return [
        json.dumps(
            {"name": tool.name, "description": tool.description, "parameters": tool.schema},
            ensure_ascii=False,
            separators=(",", ":"),
        )
        for tool in tools
    ]


def hints(tool: CognitiveTool) -> dict[str, bool]:
    """MCP's annotations, from the effects. A tool that takes a program may do all that any tool does."""
    effects = set(tool.effects)
    if any(param.type is Code for param in tool.offered):
        effects |= {"writes", "runs", "net"}
    changes = bool(effects - {"reads"})
    return {
        "readOnlyHint": not changes,
        "destructiveHint": bool(effects & {"writes", "runs"}),
        "openWorldHint": bool(effects & {"runs", "net", "messages"}),
    }


def _openai_function(tool: CognitiveTool) -> dict[str, Any]:
    strict = strict_schema(tool.schema)
    return {
        "name": wire_name(tool.name),
        "description": tool.description,
        "parameters": tool.schema if strict is None else strict,
        "strict": strict is not None,
    }


def strict_schema(schema: dict[str, Any]) -> dict[str, Any] | None:
    """An object's schema by OpenAI's strict rules, or None when they cannot express it."""
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
