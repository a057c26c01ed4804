"""The tools of quoth for a client of the Model Context Protocol. A call is a form that passes the door on the
route ``mcp``; the SDK speaks the protocol.

Each client has a session of its own, so that an approval for one decides nothing for another. Sources: the
revisions 2025-11-25 and 2026-07-28 of https://modelcontextprotocol.io.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from importlib.metadata import version
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from quoth.agent.client import AsyncAgent
from quoth.agent.run.event_stream import EventStream
from quoth.agent.serve import mcp_offers as offers
from quoth.agent.serve.mcp_asking import QUESTION, AskedRequest
from quoth.agent.serve.mcp_shape import RUN, ShownTool, failed, form_of, name_at_client, result_of, tools_of
from quoth.tools.call.call import PROGRAMS, ToolResult
from quoth.tools.call.canonical import checked
from quoth.tools.consent.rows import PENDING_SECONDS
from quoth.tools.errors import InvalidCallError, QuothError, did_you_mean
from quoth.tools.history.event import content_of, read_form
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.limits import only_reads
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.text import one_line
from quoth.tools.visible import visible

LONGEST_NAME = 60  # characters of a client's name
PAGE = 100  # entries of one page of a list
ROUNDS = 50  # questions that one call asks its client
ANSWER_SECONDS = 600.0  # for the person at a client with a handshake; then the request waits in the store
INSTRUCTIONS = (
    "Tools of quoth. Each call is judged by its owner's rules. A call that waits for a decision names its "
    "request: repeat the call once it is decided."
)

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class McpClient:
    """The client of a connection: its name, whether its person may decide what waits, and the user that it
    acts for, by default the one who serves."""

    name: str
    decides: bool = False
    user: str | None = None


def client_named(ctx: Context, *, decides: bool) -> McpClient:
    """The client of a connection, by the name that it gives itself."""
    said = ctx.session.client_params
    name = one_line(visible(said.client_info.name), LONGEST_NAME).strip() if said is not None else ""
    return McpClient(name or "client", decides)


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
        self._opening, self._client_of, self._named = opening, client_of, named
        self._agents: dict[McpClient, AsyncAgent] = {}
        self._shown: dict[McpClient, tuple[ToolTable | None, str, Mapping[str, ShownTool]]] = {}
        self._asked: dict[
            tuple[McpClient, str], str
        ] = {}  # the keys of calls whose clients wait for a decision
        self.server: Server[Any] = Server(
            "quoth",
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
        sealed = RequestStateSecurity(
            keys=[secret], ttl=PENDING_SECONDS, audience=place, bind_principal=lambda ctx: client_of(ctx).name
        )
        self.server.middleware.append(RequestStateBoundary(sealed, default_audience=place))

    async def aclose(self) -> None:
        """Stop the calls in progress and close the agents. What waits stays in the store."""
        for agent in self._agents.values():
            await agent.aclose()

    def _agent(self, ctx: Context) -> AsyncAgent:
        client = self._client_of(ctx)
        if client not in self._agents:
            try:
                self._agents[client] = self._opening(client)
            except QuothError as error:
                raise MCPError(types.INTERNAL_ERROR, str(error)) from None
        return self._agents[client]

    def _tools(self, ctx: Context) -> Mapping[str, ShownTool]:
        """The tools of a client as it sees them; made again for another table, or if its schemas changed."""
        client, table = self._client_of(ctx), self._agent(ctx).table
        made_for, digest, tools = self._shown.get(client, (None, "", {}))
        if made_for is not table or digest != table.schema_hash:
            tools = tools_of(table, self._named)
            self._shown[client] = table, table.schema_hash, tools
        return tools

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
        agent = self._agent(ctx)
        known = self._tools(ctx)
        if (tool := known.get(params.name)) is None:
            raise MCPError(
                types.INVALID_PARAMS, f"Unknown tool: {params.name}.{did_you_mean(params.name, known)}"
            )
        try:
            form = form_of(tool.name, params.arguments or {})
        except InvalidCallError as error:
            return failed(str(error))
        try:
            result = await self._decided(ctx, agent, form, params)
        except QuothError as error:
            return failed(str(error))
        if isinstance(result, types.InputRequiredResult):
            return result
        return result_of(result, tool.shown, agent.host.pages)

    async def _decided(
        self, ctx: Context, agent: AsyncAgent, form: CallForm, params: types.CallToolRequestParams
    ) -> ToolResult | types.InputRequiredResult:
        """Run a call, and ask its client about what waits, if it may decide."""
        client = self._client_of(ctx)
        state: dict[str, str] = json.loads(params.request_state or "{}")
        made = (client, form.identity)
        key = (
            state.get("key")
            or self._asked.get(made)
            or _waiting(agent, form)
            or f"{agent.session}/{secrets.token_hex(5)}"
        )
        if state and client.decides and (asked := self._still_open(agent, state)) is not None:
            answer = (params.input_responses or {}).get(QUESTION)
            if not asked.was_shown(state):
                return asked.input_required()
            if isinstance(answer, types.ElicitResult):
                asked.decided(agent.broker, answer, client.name)
        for _ in range(ROUNDS):
            result = await self._made(ctx, agent, form, key)
            if result.status != "pending":
                self._asked.pop(made, None)
                return result
            self._asked[made] = key
            if not client.decides or not _takes_forms(ctx):
                break
            asked = AskedRequest.of(agent.broker, result.request, key)
            if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                return asked.input_required()
            if not await self._answered(ctx, asked, agent, client):
                break
        return replace(result, message=f"{result.message} {how_to_decide(agent, result.request)}")

    def _still_open(self, agent: AsyncAgent, state: dict[str, str]) -> AskedRequest | None:
        """The request that an answer is for; None if it has been decided."""
        open_ones = {one.id for one in agent.broker.requests(session=agent.session)}
        id, key = state["request"], state["key"]
        return AskedRequest.of(agent.broker, id, key) if id in open_ones else None

    async def _answered(
        self, ctx: Context, asked: AskedRequest, agent: AsyncAgent, client: McpClient
    ) -> bool:
        """Ask the person at a client with a handshake."""
        if not ctx.session.can_send_request:
            return False
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await ctx.session.elicit_form(
                    asked.text, asked.schema, related_request_id=ctx.request_id
                )
        except (MCPError, TimeoutError, ValidationError):
            return False
        return asked.decided(agent.broker, answer, client.name)

    async def _made(self, ctx: Context, agent: AsyncAgent, form: CallForm, key: str) -> ToolResult:
        """Take the call through the door, and tell its client about the calls inside it."""
        count = 0
        stream = EventStream(agent.host.events.streams).of(lambda: agent.calls.again(form, "mcp", key))
        async with contextlib.aclosing(stream) as events:
            async for event in events:
                if event.kind == "call":
                    count += 1
                    await ctx.session.report_progress(count, message=str(event.data))
                elif event.kind == "end" and isinstance(event.data, ToolResult):
                    return event.data
        raise AssertionError("a call ends with its result")


def how_to_decide(agent: AsyncAgent, id: str) -> str:
    """The words that decide a request, for the owner of the tools."""
    if agent.broker.find(id).question is not None:
        return f"Its owner answers with: quoth answer {id}. Then repeat the call."
    return f"Its owner decides with: quoth approve {id}, or quoth deny {id}. Then repeat the call."


def page_of(entries: list[T], params: types.PaginatedRequestParams | None) -> tuple[list[T], str | None]:
    """A page of a list, and the cursor of the next one. Raises MCPError for an unknown cursor."""
    cursor = params.cursor if params is not None and params.cursor else "0"
    if not cursor.isdecimal() or len(cursor) > 9:
        raise MCPError(types.INVALID_PARAMS, "Unknown cursor.")
    end = int(cursor) + PAGE
    return entries[end - PAGE : end], str(end) if end < len(entries) else None


def _takes_forms(ctx: Context) -> bool:
    """Whether the client shows questions with fields. In 2025-06-18 there were no other questions."""
    said = ctx.session.client_capabilities
    asks = said.elicitation if said is not None else None
    return asks is not None and (asks.form is not None or asks.url is None)


def _waiting(agent: AsyncAgent, form: CallForm) -> str:
    """The key of the same call of this session that waits or was broken off, also in an earlier process."""
    with contextlib.suppress(InvalidCallError):  # the door reports it
        form, _ = checked(agent.table.get(form.tool), form, agent.workspace)
    calls = (one for one in agent.host.record.unfinished() if one.kind == "call")
    made = ((one.name, read_form(content_of(one.event.text)["form"])) for one in calls)
    return next((name for name, recorded in made if recorded.identity == form.identity), "")
