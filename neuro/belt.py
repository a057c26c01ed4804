"""The tool belt: views of the table for a model. Each is deterministic and the same for an equal table.

Knows the table's public face; it neither calls a tool nor reads a reply. The wording "AVAILABLE TOOLS:", the
line of each tool and its "Parameters:" are the first seed's (001).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tools.errors import UsageError, did_you_mean
from tools.form import plist, print_string, print_value
from tools.schema import Param, type_name
from tools.table import CognitiveTool, ToolTable

LISP_HEAD = (
    "AVAILABLE TOOLS:\n"
    "You can call a tool by writing a Lisp form on a line of its own: (<name> :<parameter> <value> …)"
)
PLIST_HEAD = (
    "AVAILABLE TOOLS:\n"
    "You can call tools by returning a Lisp plist: (:target :tool :action :call :tool <name> :args (...))"
)


def belt(table: ToolTable, view: str = "lisp") -> str:
    """The belt as text. Raises UsageError for a view there is not."""
    if view not in VIEWS:
        raise UsageError(
            f"There is no view {view}; the views are {', '.join(VIEWS)}." + did_you_mean(view, VIEWS)
        )
    return VIEWS[view](table)


def lisp_view(table: ToolTable) -> str:
    return "\n\n".join([LISP_HEAD, *(_lisp_tool(tool) for tool in table)]) + "\n"


def plist_view(table: ToolTable) -> str:
    return "\n\n".join([PLIST_HEAD, *(_plist_tool(tool) for tool in table)]) + "\n"


VIEWS: dict[str, Callable[[ToolTable], str]] = {"lisp": lisp_view, "plist": plist_view}


def belt_json(table: ToolTable, view: str) -> dict[str, Any]:
    """A view with the hash of the table it shows."""
    return {"view": view, "schema_hash": table.schema_hash, "tools": table.names(), "belt": belt(table, view)}


def _lisp_tool(tool: CognitiveTool) -> str:
    lines = [f"- {tool.name}: {' '.join(tool.description.split())}"]
    lines.append("  Parameters: " + (", ".join(_lisp_param(param) for param in tool.params) or "none"))
    lines += [f"  Example: {example}" for example in tool.examples]
    return "\n".join(lines)


def _lisp_param(param: Param) -> str:
    kind = " | ".join(print_value(choice) for choice in param.choices) or type_name(param.type)
    default = "" if param.required else f" = {print_value(param.default)}"
    doc = f" ({param.doc})" if param.doc else ""
    return f":{param.name} {kind}{default}{doc}"


def _plist_tool(tool: CognitiveTool) -> str:
    lines = [f"- {tool.name}: {' '.join(tool.description.split())}"]
    lines.append("  Parameters: (" + " ".join(_plist_param(param) for param in tool.params) + ")")
    lines += [f"  Example: {plist(example)}" for example in tool.examples if not example.positional]
    return "\n".join(lines)


def _plist_param(param: Param) -> str:
    kind = " | ".join(print_value(choice) for choice in param.choices) or type_name(param.type)
    kind = f":{kind}" if kind.isalpha() else print_string(kind)
    doc = f" :description {print_string(param.doc)}" if param.doc else ""
    default = "" if param.required else f" :default {print_value(param.default)}"
    return f"({param.name} :type {kind}{doc}{default})"
