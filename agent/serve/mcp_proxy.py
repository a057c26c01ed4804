"""``quoth mcp proxy``: one server of MCP for a client of MCP, behind the door.

Lists, results and announcements pass as they are. Each call is the form ``(SERVER--TOOL …)``, under the
rules, limits, pins and audit of the project. A resource is read by ``(SERVER--read-resource …)``, a prompt by
``(SERVER--get-prompt …)``.

A tool that differs from its trusted form is not listed, and a call of it is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any, TypeVar, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError

from quoth.agent.client import AsyncAgent
from quoth.agent.serve.mcp_asking import seal
from quoth.agent.serve.mcp_calls import ClientCalls, Context, McpClient, Resumed
from quoth.agent.serve.mcp_changes import AnnouncingServer
from quoth.agent.serve.mcp_server import page_of
from quoth.agent.serve.mcp_shape import failed, form_of, result_of, tools_of
from quoth.tools.errors import QuothError, ToolFailure, did_you_mean
from quoth.tools.lisp.forms import CallForm
from quoth.tools.mcp.connection import Connection
from quoth.tools.mcp.entries import GET_PROMPT, READ_RESOURCE, entry_name
from quoth.tools.mcp.pins import ServerPins
from quoth.tools.mcp.relay import RELAY, Relay
from quoth.tools.mcp.servers import LiveServer

INSTRUCTIONS = (
    "The tools of {name}, through quoth. Each call is judged by its owner's rules. A call that waits for a "
    "decision names its request: repeat the call once it is decided."
)
REPEAT = "This was answered already. Repeat the request without its state."
T = TypeVar("T")


class McpProxy:
    """The server of one connection, or of many over HTTP, in front of the trusted server of these ``pins``.

    ``opening`` opens the agent of a client, with the tools of that server alone; the other arguments are
    those of McpServer."""

    def __init__(
        self,
        opening: Callable[[McpClient], AsyncAgent],
        client_of: Callable[[Context], McpClient],
        pins: ServerPins,
        *,
        secret: bytes,
        place: str,
    ) -> None:
        self.name = pins.server
        self._calls = ClientCalls(opening, client_of, tells=False)
        self._heard: set[AsyncAgent] = set()  # the agents whose servers are listened to
        handlers: dict[str, Any] = {}
        if pins.resources:
            handlers |= {
                "on_list_resources": self._list_resources,
                "on_list_resource_templates": self._list_templates,
                "on_read_resource": self._read_resource,
            }
        if pins.prompts:
            handlers |= {"on_list_prompts": self._list_prompts, "on_get_prompt": self._get_prompt}
        if handlers:
            handlers["on_completion"] = self._complete
        self.server = AnnouncingServer(
            self.name,
            version=version("quoth"),
            instructions=INSTRUCTIONS.format(name=self.name),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            **handlers,
        )
        seal(self.server, lambda ctx: client_of(ctx).name, secret, f"{place} {self.name}")

    async def aclose(self) -> None:
        """Stop the calls in progress, and end the servers behind. What waits stays in the store."""
        await self._calls.aclose()
        await self.server.aclose()

    def _behind(self, ctx: Context) -> LiveServer:
        """The server behind, for the client of a request. Raises MCPError."""
        agent = self._calls.agent(ctx)
        servers = agent.host.parts.servers
        assert servers is not None, "an agent with the tools of a server"
        try:
            found = servers.find(self.name)
        except QuothError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from None
        if agent not in self._heard:
            self._heard.add(agent)
            found.on_change(self.server.announce)
        return found

    async def _asked(self, ctx: Context, use: Callable[[Connection], Awaitable[T]]) -> T:
        return await _answer_of(self._behind(ctx).ask(use))

    # Tools

    def _entries(self, ctx: Context) -> dict[str, str]:
        """The names in the table of the server's tools, by their names there."""
        served = ((tool.served, tool.name) for tool in self._calls.agent(ctx).table)
        return {one.tool: name for one, name in served if one is not None and one.tool}

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        tools = await _answer_of(self._behind(ctx).tools())
        known = self._entries(ctx)
        page, more = page_of([one for one in tools if one.name in known], params)
        return types.ListToolsResult(tools=page, next_cursor=more)

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        self._behind(ctx)
        known = self._entries(ctx)
        if (name := known.get(params.name)) is None:
            raise MCPError(
                types.INVALID_PARAMS, f"Unknown tool: {params.name}.{did_you_mean(params.name, known)}"
            )
        RELAY.set(relay := Relay(ctx.session.report_progress))
        try:
            result = await self._calls.decided(ctx, form_of(name, params.arguments or {}), params)
        except QuothError as error:
            return failed(str(error))
        if isinstance(result, types.InputRequiredResult):
            return result
        answer = cast("types.CallToolResult | None", relay.answer)
        if answer is not None and (answer.is_error or result.ok):
            return answer
        if not result.ok:
            return failed(result.message)
        agent = self._calls.agent(ctx)  # the result of an earlier attempt
        [tool] = tools_of(agent.table.where(lambda one: one.name == name)).values()
        return result_of(result, tool.shown, agent.host.pages)

    # Resources and prompts

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        page, more = page_of(await self._asked(ctx, lambda one: one.resources()), params)
        return types.ListResourcesResult(resources=page, next_cursor=more)

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        page, more = page_of(await self._asked(ctx, lambda one: one.resource_templates()), params)
        return types.ListResourceTemplatesResult(resource_templates=page, next_cursor=more)

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        return cast(
            "types.ReadResourceResult | types.InputRequiredResult",
            await self._read(ctx, READ_RESOURCE, {"uri": str(params.uri)}, params),
        )

    async def _list_prompts(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        page, more = page_of(await self._asked(ctx, lambda one: one.prompts()), params)
        return types.ListPromptsResult(prompts=page, next_cursor=more)

    async def _get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        given = {"name": params.name, "arguments": dict(params.arguments or {})}
        return cast(
            "types.GetPromptResult | types.InputRequiredResult",
            await self._read(ctx, GET_PROMPT, given, params),
        )

    async def _read(self, ctx: Context, tool: str, given: dict[str, Any], params: Resumed) -> Any:
        """The answer to a request that passes the door as a call. Raises MCPError with its sentence."""
        self._behind(ctx)
        RELAY.set(relay := Relay())
        try:
            form = CallForm(entry_name(self.name, tool), given)
            result = await self._calls.decided(ctx, form, params)
        except QuothError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        if isinstance(result, types.InputRequiredResult):
            return result
        if result.ok and relay.answer is not None:
            return relay.answer
        raise MCPError(types.INVALID_PARAMS, result.message or REPEAT)

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        return await self._asked(ctx, lambda one: one.complete(params))


async def _answer_of(asking: Awaitable[T]) -> T:
    """What a server answers. Raises MCPError, also where it may not be asked."""
    try:
        return await asking
    except (QuothError, ToolFailure) as error:
        raise MCPError(types.INTERNAL_ERROR, str(error)) from None
