"""``quoth mcp proxy``: one server of MCP for a client of MCP, behind the door.

Lists, results, logs and announcements pass as they are, and the instructions as they were trusted. Each call
is the form ``(SERVER--TOOL …)``, under the rules, limits, pins and audit of the project. A resource is read
by ``(SERVER--read-resource …)``, a prompt by ``(SERVER--get-prompt …)``.

A tool that differs from its trusted form is not listed, and a call of it is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from importlib.metadata import version
from typing import Any, TypeVar, cast

import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.shared.exceptions import MCPError
from mcp_types import LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from quoth.agent.client import AsyncAgent
from quoth.agent.serve.mcp_asking import seal
from quoth.agent.serve.mcp_calls import ClientCalls, Context, McpClient, Resumed
from quoth.agent.serve.mcp_changes import AnnouncingServer
from quoth.agent.serve.mcp_server import page_of
from quoth.agent.serve.mcp_shape import failed, form_of, result_of, tools_of
from quoth.tools.call.call import ToolResult
from quoth.tools.errors import QuothError, ToolFailure, did_you_mean
from quoth.tools.lisp.forms import CallForm
from quoth.tools.mcp.connection import Connection
from quoth.tools.mcp.entries import entry_name
from quoth.tools.mcp.pins import GET_PROMPT, READ_RESOURCE, ServerPins
from quoth.tools.mcp.relay import RELAY, Relay, kept_answer
from quoth.tools.mcp.servers import LiveServer

INSTRUCTIONS = (
    "The tools of {name}, through quoth. Each call is judged by its owner's rules. A call that waits for a "
    "decision names its request: repeat the call once it is decided."
)
REPEAT = "This was answered already. Repeat the request without its state."
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


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
        self._levels: dict[McpClient, str] = {}  # of the logs that clients with a handshake want
        self._requests: list[tuple[McpClient, Context]] = []  # in progress, whose logs pass
        self._ended = asyncio.Event()  # set when one of them ends
        handlers: dict[str, Any] = {}
        if pins.resources:
            handlers |= {
                "on_list_resources": self._listing("resources", types.ListResourcesResult),
                "on_list_resource_templates": self._listing(
                    "resource_templates", types.ListResourceTemplatesResult
                ),
                "on_read_resource": self._read_resource,
            }
        if pins.prompts:
            handlers |= {
                "on_list_prompts": self._listing("prompts", types.ListPromptsResult),
                "on_get_prompt": self._get_prompt,
            }
        if handlers or "completions" in pins.more:
            handlers["on_completion"] = self._complete
        self.server = AnnouncingServer(
            self.name,
            client_of=client_of,
            subscribe=self._follow if pins.resources and "subscriptions" in pins.more else None,
            version=version("quoth"),
            instructions="\n\n".join(filter(None, (INSTRUCTIONS.format(name=self.name), pins.instructions))),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            **handlers,
        )
        if "logging" in pins.more:
            self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        seal(self.server, lambda ctx: client_of(ctx).name, secret, f"{place} {self.name}")

    async def aclose(self) -> None:
        """Stop the calls in progress, and end the servers behind. What waits stays in the store."""
        await self._calls.aclose()
        await self.server.aclose()

    async def idle(self) -> None:
        """Wait until no request is in progress that passes the door."""
        while self._requests:
            await self._ended.wait()
            self._ended.clear()

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
            client = self._calls.client_of(ctx)
            found.on_change(self.server.announce)
            found.on_message(lambda message: self._pass_on(client, message))
        return found

    async def _asked(self, ctx: Context, use: Callable[[Connection], Awaitable[T]]) -> T:
        return await _answer_of(self._behind(ctx).ask(use))

    # Logs and changes of resources

    def _pass_on(self, client: McpClient, message: Any) -> None:
        """Send a client what its server says: a message of the log on the stream of a request in progress."""
        if isinstance(message, types.ResourceUpdatedNotification):
            self.server.announce_resource(client, message)
        elif (ctx := next((one for whose, one in self._requests[::-1] if whose == client), None)) is None:
            self.server.notify(client, message)
        elif message.params.level in allowed_log_levels(ctx.protocol_version, ctx.meta):
            self.server.start(ctx.session.send_notification(message, ctx.request_id))

    @contextlib.contextmanager
    def _relayed(self, ctx: Context) -> Iterator[Relay]:
        """What passes between client and server while a request is in progress."""
        client = self._calls.client_of(ctx)
        level = (ctx.meta or {}).get(LOG_LEVEL_META_KEY) or ""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            level = self._levels.get(client, "")
        RELAY.set(relay := Relay(ctx.session.report_progress, str(level)))
        self._requests.append(request := (client, ctx))
        try:
            yield relay
        finally:
            self._requests.remove(request)
            self._ended.set()

    async def _set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        self._levels[self._calls.client_of(ctx)] = params.level
        await self._asked(ctx, lambda one: one.log_from(params.level))
        return types.EmptyResult()

    async def _follow(self, ctx: Context, uri: str, begins: bool) -> None:
        """Begin or end to follow a resource. Raises MCPError."""
        await self._asked(ctx, lambda one: one.subscribe(uri) if begins else one.unsubscribe(uri))

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
        with self._relayed(ctx) as relay:
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
        if (answer := self._earlier(ctx, result, types.CallToolResult)) is not None:
            return answer
        agent = self._calls.agent(ctx)  # its answer is not stored any more
        [tool] = tools_of(agent.table.where(lambda one: one.name == name)).values()
        return result_of(result, tool.shown, agent.host.pages)

    # Lists, resources and prompts

    def _listing(self, kind: str, result: type[Any]) -> Callable[[Context, Any], Awaitable[Any]]:
        """The handler of a list, whose pages are ``result``s."""

        async def listed(ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
            page, more = page_of(await self._asked(ctx, lambda one: getattr(one, kind)()), params)
            return result(**{kind: page}, next_cursor=more)

        return listed

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        return cast(
            "types.ReadResourceResult | types.InputRequiredResult",
            await self._read(ctx, READ_RESOURCE, {"uri": str(params.uri)}, params),
        )

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
        with self._relayed(ctx) as relay:
            try:
                form = CallForm(entry_name(self.name, tool), given)
                result = await self._calls.decided(ctx, form, params)
            except QuothError as error:
                raise MCPError(types.INVALID_PARAMS, str(error)) from None
        if isinstance(result, types.InputRequiredResult):
            return result
        kind = types.ReadResourceResult if tool == READ_RESOURCE else types.GetPromptResult
        if result.ok and (answer := relay.answer or self._earlier(ctx, result, kind)) is not None:
            return answer
        raise MCPError(types.INVALID_PARAMS, result.message or REPEAT)

    def _earlier(self, ctx: Context, result: ToolResult, kind: type[M]) -> M | None:
        """The server's answer to an earlier attempt, whose receipt is the result."""
        text = kept_answer(result, self._calls.agent(ctx).host.pages)
        return None if text is None else kind.model_validate_json(text)

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        return await self._asked(ctx, lambda one: one.complete(params))


async def _answer_of(asking: Awaitable[T]) -> T:
    """What a server answers. Raises MCPError, also where it may not be asked."""
    try:
        return await asking
    except (QuothError, ToolFailure) as error:
        raise MCPError(types.INTERNAL_ERROR, str(error)) from None
