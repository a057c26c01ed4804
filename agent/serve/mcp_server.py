"""The tools of quoth for a client of the Model Context Protocol. A call is a form that passes the door on the
route ``mcp``; the SDK speaks the protocol.

Sources: the revisions 2025-11-25 and 2026-07-28 of https://modelcontextprotocol.io.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import version
from typing import Any, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError

from quoth.agent.client import AsyncAgent
from quoth.agent.serve import mcp_offers as offers
from quoth.agent.serve.mcp_asking import seal
from quoth.agent.serve.mcp_calls import ClientCalls, Context, McpClient
from quoth.agent.serve.mcp_changes import AnnouncingServer
from quoth.agent.serve.mcp_shape import RUN, ShownTool, failed, form_of, name_at_client, result_of, tools_of
from quoth.agent.terminal.output import complain
from quoth.tools.call.call import PROGRAMS
from quoth.tools.errors import QuothError, did_you_mean
from quoth.tools.policy.limits import only_reads
from quoth.tools.registry.table import CognitiveTool, ToolTable

WATCH_SECONDS = 2.0  # between two looks for changed lists
PAGE = 100  # entries of one page of a list
INSTRUCTIONS = (
    "Tools of quoth. Each call is judged by its owner's rules. A call that waits for a decision names its "
    "request: repeat the call once it is decided."
)

T = TypeVar("T")


def exposing(patterns: Sequence[str]) -> Callable[[CognitiveTool], bool]:
    """The condition on the tools that clients see: those whose names match one of the patterns; without
    patterns, tools that only read, and programs of them."""
    known = [PROGRAMS if one == RUN else one for one in patterns]
    if known:
        return lambda tool: any(fnmatchcase(tool.name, one) for one in known)
    return lambda tool: tool.name == PROGRAMS or only_reads(tool)


class McpServer:
    """The server of one connection, or of many over HTTP.

    ``opening`` opens the agent of a client, with a table of the exposed tools alone; ``client_of`` gives the
    sender of a request. ``secret``, at least 32 bytes, seals what clients send back with an answer, and
    ``place`` names the project that it is good for. ``named`` gives each tool its name at clients, none
    twice."""

    def __init__(
        self,
        opening: Callable[[McpClient], AsyncAgent],
        client_of: Callable[[Context], McpClient],
        *,
        secret: bytes,
        place: str,
        named: Callable[[CognitiveTool], str] = name_at_client,
    ) -> None:
        self._calls, self._named = ClientCalls(opening, client_of), named
        self._shown: dict[McpClient, tuple[ToolTable | None, str, Mapping[str, ShownTool]]] = {}
        self.server = AnnouncingServer(
            "quoth",
            client_of=client_of,
            version=version("quoth"),
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
        )
        seal(self.server, lambda ctx: client_of(ctx).name, secret, place)
        self._watching: asyncio.Task[None] | None = None
        self._seen: dict[AsyncAgent, Mapping[str, Hashable]] = {}  # its lists when last looked at

    async def aclose(self) -> None:
        """Stop the calls in progress and close the agents. What waits stays in the store."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
        await self._calls.aclose()
        await self.server.aclose()

    def _agent(self, ctx: Context) -> AsyncAgent:
        agent = self._calls.agent(ctx)
        if agent not in self._seen:  # before anything of it is listed
            with contextlib.suppress(Exception):  # the watch reports it
                self._seen[agent] = offers.marks_of(agent)
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())
        return agent

    async def _watch(self) -> None:
        """Announce the lists that have changed."""
        seen = self._seen
        told = ""  # why the lists cannot be looked at, as it was last reported
        while True:
            changed: set[str] = set()
            for agent in self._calls.agents:
                try:
                    now = offers.marks_of(agent)
                except QuothError:  # a store that cannot be read is looked at again
                    continue
                except Exception as error:
                    if (why := f"{type(error).__name__}: {error}") != told:
                        complain(f"Changes of lists cannot be announced to MCP clients now. {why}")
                        told = why
                    continue
                before = seen.get(agent, now)
                changed |= {kind for kind, mark in now.items() if before[kind] != mark}
                seen[agent] = now
            for kind in sorted(changed):
                self.server.announce(kind)
            await asyncio.sleep(WATCH_SECONDS)

    def _tools(self, ctx: Context) -> Mapping[str, ShownTool]:
        """The tools of a client as it sees them; made again for another table, or if its schemas changed."""
        client, table = self._calls.client_of(ctx), self._agent(ctx).table
        made_for, digest, tools = self._shown.get(client, (None, "", {}))
        if made_for is not table or digest != table.schema_hash:
            tools = tools_of(table, self._named)
            self._shown.pop(client, None)
            self._shown[client] = table, table.schema_hash, tools
            self.server.get_tool_input_schema = self._schema_of
        return tools

    def _schema_of(self, name: str) -> dict[str, Any] | None:
        """The latest schema of a tool's arguments, with which the SDK compares headers; without it, the SDK
        lists all tools at each call."""
        found = (tools[name] for _, _, tools in reversed(self._shown.values()) if name in tools)
        return next((one.shown.input_schema for one in found), None)

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        shown = [one.shown for one in self._tools(ctx).values()]
        page, more = page_of(shown, params)
        return types.ListToolsResult(tools=page, next_cursor=more)

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        page, more = page_of(await offers.resources_of(self._agent(ctx)), params)
        return types.ListResourcesResult(resources=page, next_cursor=more)

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=offers.TEMPLATES)

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await offers.read_resource(self._agent(ctx), str(params.uri))

    async def _list_prompts(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        page, more = page_of(await offers.prompts_of(self._agent(ctx)), params)
        return types.ListPromptsResult(prompts=page, next_cursor=more)

    async def _get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await offers.prompt_of(self._agent(ctx), params.name)

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        return await offers.completed(self._agent(ctx), params)

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        known = self._tools(ctx)
        if (tool := known.get(params.name)) is None:
            raise MCPError(
                types.INVALID_PARAMS, f"Unknown tool: {params.name}.{did_you_mean(params.name, known)}"
            )
        try:
            result = await self._calls.decided(ctx, form_of(tool.name, params.arguments or {}), params)
        except QuothError as error:
            return failed(str(error))
        if isinstance(result, types.InputRequiredResult):
            return result
        return result_of(result, tool.shown, self._calls.agent(ctx).host.pages)


def page_of(entries: list[T], params: types.PaginatedRequestParams | None) -> tuple[list[T], str | None]:
    """A page of a list, and the cursor of the next one. Raises MCPError for an unknown cursor."""
    cursor = params.cursor if params is not None and params.cursor else "0"
    if not cursor.isdecimal() or len(cursor) > 9:
        raise MCPError(types.INVALID_PARAMS, "Unknown cursor.")
    end = int(cursor) + PAGE
    return entries[end - PAGE : end], str(end) if end < len(entries) else None
