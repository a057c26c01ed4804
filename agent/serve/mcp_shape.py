"""What a client of the Model Context Protocol is shown: tools with their schemas, and results of calls."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types

from quoth.agent.run.spec import images_message
from quoth.neuro.prompt.belt import WRAPPED, belt_data
from quoth.tools.call.call import PROGRAMS, ToolResult
from quoth.tools.history.long_results import Texts
from quoth.tools.lisp.forms import CallForm, from_json
from quoth.tools.registry.table import ToolTable

RUN = "run"  # the name at clients of the tool that takes a program
_PROGRAM = {
    "type": "object",
    "properties": {"program": {"type": "string", "description": "The program, in Hy"}},
    "required": ["program"],
    "additionalProperties": False,
}


def tools_of(table: ToolTable) -> dict[str, types.Tool]:
    """The tools of a table by name, as ``tools/list`` answers them."""
    shown = (types.Tool.model_validate(_as_run(one)) for one in belt_data(table, "mcp"))
    return {one.name: one for one in shown}


def _as_run(said: dict[str, Any]) -> dict[str, Any]:
    return {**said, "name": RUN, "inputSchema": _PROGRAM} if said["name"] == PROGRAMS else said


def form_of(name: str, arguments: dict[str, Any]) -> CallForm:
    """The call that a client asks for. Raises InvalidCallError."""
    if name == RUN:
        name = PROGRAMS
        arguments = {"form" if key == "program" else f"{key}": value for key, value in arguments.items()}
    return from_json({"tool": name, "args": arguments})


def result_of(result: ToolResult, tool: types.Tool, pages: Texts | None) -> types.CallToolResult:
    """The result of a call. Any other status than ok is an error with its sentence."""
    if result.status != "ok":
        return failed(result.message)
    value = result.value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    for *_, images in images_message([value], pages):
        content += [
            types.ImageContent(type="image", data=one.data, mime_type=one["media"])
            for one in images
            if one.data
        ]
    fields = None if tool.output_schema is None else _fields(value, tool.output_schema)
    return types.CallToolResult(content=content, structured_content=fields)


def _fields(value: Any, schema: dict[str, Any]) -> dict[str, Any] | None:
    """The value as the object that the schema of a result declares; None for any other value."""
    if schema.get(WRAPPED):
        return {"result": value}
    return value if isinstance(value, dict) else None


def failed(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=sentence)], is_error=True)
