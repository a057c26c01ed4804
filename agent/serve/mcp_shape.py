"""What a client of the Model Context Protocol is shown: tools with their schemas, and results of calls. The
parts of results that tools/mcp/results.py turned into values become content again."""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types

from quoth.agent.run.spec import images_message
from quoth.neuro.prompt.belt import WRAPPED, belt_data
from quoth.tools.call.call import PROGRAMS, ToolResult
from quoth.tools.call.images import images_in
from quoth.tools.errors import ToolError
from quoth.tools.history.long_results import StorePages, Texts
from quoth.tools.lisp.forms import CallForm, from_json
from quoth.tools.registry.table import CognitiveTool, ToolTable

BLOB = "quoth://blob/"  # the URI of data that came without one
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
RUN = "run"  # the name at clients of the tool that takes a program
_PROGRAM = {
    "type": "object",
    "properties": {"program": {"type": "string", "description": "The program, in Hy"}},
    "required": ["program"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class ShownTool:
    """A tool as clients see it, and its name in the table."""

    shown: types.Tool
    name: str


def name_at_client(tool: CognitiveTool) -> str:
    """The name of a tool at clients: its own, but for the tool that takes a program."""
    return RUN if tool.name == PROGRAMS else tool.name


def tools_of(
    table: ToolTable, named: Callable[[CognitiveTool], str] = name_at_client
) -> dict[str, ShownTool]:
    """The tools of a table by their names at clients, as ``tools/list`` answers them."""
    found = [(named(table.get(one["name"])), one) for one in belt_data(table, "mcp")]
    return {
        name: ShownTool(types.Tool.model_validate(_as_run(one) | {"name": name}), one["name"])
        for name, one in found
    }


def _as_run(said: dict[str, Any]) -> dict[str, Any]:
    return {**said, "inputSchema": _PROGRAM} if said["name"] == PROGRAMS else said


def form_of(name: str, arguments: dict[str, Any]) -> CallForm:
    """The call of a tool, by its name in the table, that a client asks for. Raises InvalidCallError."""
    if name == PROGRAMS:
        arguments = {"form" if key == "program" else f"{key}": value for key, value in arguments.items()}
    return from_json({"tool": name, "args": arguments})


def result_of(result: ToolResult, tool: types.Tool, pages: Texts | None) -> types.CallToolResult:
    """The result of a call. Any other status than ok is an error with its sentence."""
    if result.status != "ok":
        return failed(result.message)
    fields = None if tool.output_schema is None else _fields(result.value, tool.output_schema)
    return types.CallToolResult(content=content_of(result.value, pages), structured_content=fields)


def content_of(value: Any, pages: Texts | None) -> list[types.ContentBlock]:
    """A value as content: texts and parts of results as they are, anything else as JSON, with its images."""
    parts = value if isinstance(value, list) else [value]
    blocks = [_text(one) if isinstance(one, str) else _block(one, pages) for one in parts]
    found = [one for one in blocks if one is not None]
    is_content = isinstance(value, str) or any(one.type != "text" for one in found)
    if is_content and len(found) == len(parts):
        return found
    return [_text(json.dumps(value, ensure_ascii=False)), *_images(value, pages)]


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _images(value: Any, pages: Texts | None) -> list[types.ImageContent]:
    return [
        types.ImageContent(type="image", data=one.data, mime_type=one["media"])
        for *_, images in images_message([value], pages)
        for one in images
        if one.data
    ]


def _block(one: Any, pages: Texts | None) -> types.ContentBlock | None:
    """A part of a result as content; None for any other value, and for a part that is not stored."""
    if images_in(one) == [one]:
        return next(iter(_images(one, pages)), None)
    if _has(one, {"blob": str, "name": str, "type": str, "bytes": int}):
        return _media(one, pages)
    if _has(one, {"resource": str, "text": str}, {"type": str}) and URI.fullmatch(one["resource"]):
        text = types.TextResourceContents(uri=one["resource"], text=one["text"], mime_type=one.get("type"))
        return types.EmbeddedResource(type="resource", resource=text)
    if _has(one, {"resource": str, "name": str}, {"type": str}) and URI.fullmatch(one["resource"]):
        return types.ResourceLink(
            type="resource_link", uri=one["resource"], name=one["name"], mime_type=one.get("type")
        )
    return None


def _has(one: Any, fields: Mapping[str, type], more: Mapping[str, type] | None = None) -> bool:
    """Whether a value is an object with these fields, perhaps ``more``, and no others."""
    known = {**fields, **(more or {})}
    return (
        isinstance(one, dict)
        and fields.keys() <= one.keys() <= known.keys()
        and all(isinstance(said, known[name]) for name, said in one.items())
    )


def _media(one: Mapping[str, Any], pages: Texts | None) -> types.ContentBlock | None:
    """Stored data: a sound or an image by its type, else a resource."""
    data = ""
    if isinstance(pages, StorePages):
        with contextlib.suppress(ToolError, ValueError):
            stored = pages.text(one["blob"])
            if len(base64.b64decode(stored, validate=True)) == one["bytes"]:  # the id may be untrusted text
                data = stored
    if not data:
        return None
    kind = one["type"]
    if kind.startswith("audio/"):
        return types.AudioContent(type="audio", data=data, mime_type=kind)
    if kind.startswith("image/"):
        return types.ImageContent(type="image", data=data, mime_type=kind)
    uri = one["name"] if URI.fullmatch(one["name"]) else f"{BLOB}{one['blob']}"
    blob = types.BlobResourceContents(uri=uri, blob=data, mime_type=kind or None)
    return types.EmbeddedResource(type="resource", resource=blob)


def _fields(value: Any, schema: dict[str, Any]) -> dict[str, Any] | None:
    """The value as the object that the schema of a result declares; None for any other value."""
    if schema.get(WRAPPED):
        return {"result": value}
    return value if isinstance(value, dict) else None


def failed(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[_text(sentence)], is_error=True)
