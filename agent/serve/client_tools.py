"""The tools that a client of chat completions runs itself. A call of one is a request in the store, which the
client answers with the call's result: text of the client, which allows nothing.

In quoth such a tool is named ``client--NAME``, so that it is never taken for one of ours, and its results
have the client as their origin.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from quoth.tools.call.call import Call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.question import Question
from quoth.tools.consent.requests import Request
from quoth.tools.errors import DefinitionError, InvalidCallError, UsageError, did_you_mean
from quoth.tools.lisp.forms import from_model
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.registry.define import tool_from_schema
from quoth.tools.registry.schema_params import SchemaParams, own_name
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.text import short

PREFIX = "client--"
MOST_TOOLS = 128
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
NO_DESCRIPTION = "A tool of the client."
CHOICES = "tool_choice must be none, auto, required, or name a function of tools."


class ClientTool(NamedTuple):
    """A tool as the client describes it."""

    name: str
    description: str
    schema: Mapping[str, Any]

    @property
    def own(self) -> str:
        """Its name in quoth."""
        return f"{PREFIX}{own_name(self.name)}"


@dataclass(frozen=True)
class ClientTools:
    """The tools of a request, and the names ``offered`` to the model; with ``alone`` no tool of
    ours, and with ``must`` one of them at once."""

    tools: tuple[ClientTool, ...] = ()
    offered: frozenset[str] = frozenset()
    alone: bool = False
    must: bool = False

    def beside(self, ours: ToolTable, client: str) -> ToolTable:
        """The table of these tools and ours. Raises UsageError."""
        if not self.tools:
            return ours
        made = ours.copy()
        for tool in self.tools:
            if tool.own in made:
                raise UsageError(
                    f"tools: the name of {tool.name} is taken: here it is {tool.own}. Rename the tool."
                )
            made.register(_entry(tool, client))
        kept = {tool.own for tool in self.tools if tool.name in self.offered}
        ours_hidden = {*ours.names()} if self.alone else {*ours.hidden}
        return made.hiding({*ours_hidden, *(tool.own for tool in self.tools)} - kept)


NO_TOOLS = ClientTools()


def read_tools(said: Mapping[str, Any]) -> ClientTools:
    """The tools of a request, whose functions may be flat, as in responses; other kinds are ignored. Raises
    UsageError."""
    given = said.get("tools")
    if given is None:
        return NO_TOOLS
    if not isinstance(given, list):
        raise UsageError("tools must be a list.")
    if len(given) > MOST_TOOLS:
        raise UsageError(f"There are more than {MOST_TOOLS} tools.")
    functions = [(place, one) for place, one in enumerate(given) if _kind(one) == "function"]
    tools = tuple(
        _read_tool(one, f"tools[{place}]")
        if "name" in one
        else _read_tool(one.get("function"), f"tools[{place}].function")
        for place, one in functions
    )
    names = [tool.own for tool in tools]
    if twice := next((one for one in tools if names.count(one.own) > 1), None):
        raise UsageError(f"Two tools have the name {twice.name}, or nearly the same.")
    return _chosen(tools, said.get("tool_choice")) if tools else NO_TOOLS


def _kind(one: Any) -> Any:
    return one.get("type") if isinstance(one, dict) else None


def _read_tool(said: Any, place: str) -> ClientTool:
    if not isinstance(said, dict):
        raise UsageError(f"{place} is not an object.")
    name, about = said.get("name"), said.get("description") or NO_DESCRIPTION
    schema = said.get("parameters") or {"type": "object", "properties": {}}
    if not isinstance(name, str) or not NAME.fullmatch(name) or not own_name(name):
        raise UsageError(f"{place}.name must be 1 to 64 letters, digits, hyphens and underscores.")
    if not isinstance(about, str) or not isinstance(schema, dict):
        raise UsageError(f"{place}: description must be a text, and parameters a JSON Schema.")
    return ClientTool(name, about.strip() or NO_DESCRIPTION, {"type": "object", **schema})


def _chosen(tools: tuple[ClientTool, ...], choice: Any) -> ClientTools:
    """The tools with the model's choice among them."""
    every = frozenset(tool.name for tool in tools)
    match choice:
        case None | "auto":
            return ClientTools(tools, every)
        case "none":
            return ClientTools(tools)
        case "required":
            return ClientTools(tools, every, alone=True, must=True)
        case {"type": "function", "function": {"name": str(name)}} | {"type": "function", "name": str(name)}:
            return ClientTools(tools, frozenset([_known(name, every)]), alone=True, must=True)
        case {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [*some]}} | {
            "type": "allowed_tools",
            "mode": mode,
            "tools": [*some],
        }:
            named = [one.get("function", one)["name"] for one in some if _is_named(one)]
            offered = frozenset(_known(name, every) for name in named)
            return ClientTools(tools, offered, alone=True, must=mode == "required")
    raise UsageError(CHOICES)


def _is_named(one: Any) -> bool:
    function = one.get("function", one) if _kind(one) == "function" else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def _known(name: str, every: Iterable[str]) -> str:
    if name not in every:
        raise UsageError(f"tool_choice: tools has no function {short(name, 80)}.{did_you_mean(name, every)}")
    return name


def _entry(tool: ClientTool, client: str) -> CognitiveTool:
    """The tool in a table. Its body asks the client for the result."""

    async def body(arguments: dict[str, Any], call: Call, ctx: ToolContext) -> str:
        told = json.dumps(arguments, ensure_ascii=False)
        text = f"The client {client} runs {tool.name}, and sends its result. Arguments: {told}"
        return await ctx.permission.ask(Question(text, program=client))

    try:
        entry = tool_from_schema(
            tool.own,
            tool.description,
            lambda: tool.schema,  # the client may see all arguments: none is secret
            served=None,
            effects=("asks",),
            body=body,
            free_text=True,
            asks_first=True,
            allow_repeat=True,
            source=json.dumps(tool, sort_keys=True),
        )
        _ = entry.params[:], entry.version
    except DefinitionError as error:
        raise UsageError(f"tools: {tool.name}: {error}") from None
    return entry


# Calls


class ClientCall(NamedTuple):
    """A call that the client is to run: its request in the store, the client's name of the tool, and the
    arguments as JSON."""

    id: str
    name: str
    arguments: str


def is_for(request: Request, client: str) -> bool:
    """Whether this client answers a request with the result of its own tool."""
    asks = request.question is not None and request.question.program == client
    return asks and request.user == client


def client_call(request: Request, tools: Iterable[ClientTool]) -> ClientCall | None:
    """The call that a request asks its client to run; None if the client has not sent the tool."""
    tool = next((one for one in tools if one.own == request.tool), None)
    if tool is None:
        return None
    with contextlib.suppress(ReadError, InvalidCallError):
        sent = SchemaParams(lambda: tool.schema).sent(from_model(read_one(request.form)).args)
        return ClientCall(request.id, tool.name, json.dumps(sent, ensure_ascii=False))
    return None
