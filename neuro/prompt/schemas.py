"""The belt as JSON Schema: for OpenAI's two APIs, for Anthropic, for MCP, and one line a tool for a prompt.

Knows the table's public face. Every schema is inline (no ``$ref``). The APIs accept every tool name, unless
it is too long.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from quoth.tools.lisp.printer import Code
from quoth.tools.registry.openai_schema import openai_tool_dict, wire_name
from quoth.tools.registry.table import CognitiveTool


def openai_tools(tools: Iterable[CognitiveTool]) -> list[dict[str, Any]]:
    return [openai_tool_dict(tool.entry) for tool in tools]


def responses_tools(tools: Iterable[CognitiveTool]) -> list[dict[str, Any]]:
    """As for OpenAI's chat, with the fields of the function in the tool itself."""
    return [{**tool.pop("function"), **tool} for tool in openai_tools(tools)]


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
    changes = bool(effects - {"reads", "asks"})
    return {
        "readOnlyHint": not changes,
        "destructiveHint": bool(effects & {"writes", "runs", "deletes", "pays"}),
        "openWorldHint": bool(effects & {"runs", "net", "messages", "pays"}),
    }
