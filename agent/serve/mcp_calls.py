"""The calls of clients of the Model Context Protocol: the agent of each client, and its calls through the
door on the route ``mcp``, with the question to a client that may decide.

Each client has a session of its own, so that an approval for one decides nothing for another.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from quoth.agent.client import AsyncAgent
from quoth.agent.run.event_stream import EventStream
from quoth.agent.serve.mcp_asking import QUESTION, AskedRequest
from quoth.agent.terminal.requests import how_the_owner_decides
from quoth.tools.call.call import ToolResult
from quoth.tools.call.canonical import checked
from quoth.tools.errors import InvalidCallError, QuothError, UnknownToolError
from quoth.tools.history.event import content_of, read_form
from quoth.tools.lisp.forms import CallForm
from quoth.tools.text import one_line
from quoth.tools.visible import visible

LONGEST_NAME = 60  # characters of a client's name
ROUNDS = 50  # questions that one call asks its client
ANSWER_SECONDS = 600.0  # for the person at a client with a handshake; then the request waits in the store

Context = ServerRequestContext[Any, Any]


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


class Resumed(Protocol):
    """The parameters of a request that may be made again with answers."""

    request_state: str | None
    input_responses: Any


class ClientCalls:
    """The agents of clients, and their calls. ``opening`` opens the agent of a client, with a table of its
    tools alone; ``client_of`` gives the sender of a request. ``tells``: calls inside a call are its
    progress."""

    def __init__(
        self,
        opening: Callable[[McpClient], AsyncAgent],
        client_of: Callable[[Context], McpClient],
        *,
        tells: bool = True,
    ) -> None:
        self._opening, self.client_of, self._tells = opening, client_of, tells
        self._agents: dict[McpClient, AsyncAgent] = {}
        # The keys of the calls of each client that wait or were broken off, by their forms.
        self._open: dict[McpClient, dict[str, str]] = {}
        self._running: set[str] = set()  # the keys of the calls in progress

    async def aclose(self) -> None:
        """Stop the calls in progress and close the agents. What waits stays in the store."""
        for agent in self._agents.values():
            await agent.aclose()

    @property
    def agents(self) -> list[AsyncAgent]:
        """The agents of the clients so far."""
        return [*self._agents.values()]

    def agent(self, ctx: Context) -> AsyncAgent:
        """The agent of a client. Raises MCPError."""
        client = self.client_of(ctx)
        if client not in self._agents:
            try:
                self._agents[client] = self._opening(client)
            except QuothError as error:
                raise MCPError(types.INTERNAL_ERROR, str(error)) from None
        return self._agents[client]

    async def decided(
        self, ctx: Context, form: CallForm, params: Resumed
    ) -> ToolResult | types.InputRequiredResult:
        """Run a call, and ask its client about what waits, if it may decide. The same call made again resumes
        one that waits."""
        client, agent = self.client_of(ctx), self.agent(ctx)
        state: dict[str, str] = json.loads(params.request_state or "{}")
        if client not in self._open:
            found = _unfinished(agent).items()
            self._open[client] = {form: key for form, key in found if key not in self._running}
        unfinished = self._open[client]
        identity = _identity(agent, form) if unfinished else ""
        key = state.get("key") or unfinished.get(identity) or f"{agent.session}/{secrets.token_hex(5)}"
        if unfinished.get(identity) == key:  # the same call made meanwhile is another one
            del unfinished[identity]
        self._running.add(key)
        try:
            result = self._answer(client, agent, state, params) or await self._asked(ctx, agent, form, key)
        except BaseException:
            self._open.pop(client, None)  # the record knows whether the call has ended
            raise
        finally:
            self._running.discard(key)
        if not isinstance(result, ToolResult) or result.status == "pending":
            # Where there is none, it is read from the record.
            self._open.get(client, {})[identity or _identity(agent, form)] = key
        return result

    def _answer(
        self, client: McpClient, agent: AsyncAgent, state: dict[str, str], params: Resumed
    ) -> types.InputRequiredResult | None:
        """Decide a request by the client's answer. The question again, if it was another one."""
        if not state or not client.decides or (asked := _still_open(agent, state)) is None:
            return None
        answer = (params.input_responses or {}).get(QUESTION)
        if not asked.was_shown(state):
            return asked.input_required()
        if isinstance(answer, types.ElicitResult):
            asked.decided(agent.broker, answer, client.name)
        return None

    async def _asked(
        self, ctx: Context, agent: AsyncAgent, form: CallForm, key: str
    ) -> ToolResult | types.InputRequiredResult:
        client = self.client_of(ctx)
        for _ in range(ROUNDS):
            result = await self._made(ctx, agent, form, key)
            if result.status != "pending":
                return result
            if not client.decides or not _takes_forms(ctx):
                break
            asked = AskedRequest.of(agent.broker, result.request, key)
            if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                return asked.input_required()
            if not await _answered(ctx, asked, agent, client):
                break
        return replace(result, message=f"{result.message} {how_to_decide(agent, result.request)}")

    async def _made(self, ctx: Context, agent: AsyncAgent, form: CallForm, key: str) -> ToolResult:
        """Take the call through the door, and tell its client about the calls inside it."""
        count = 0
        stream = EventStream(agent.host.events.streams).of(lambda: agent.calls.again(form, "mcp", key))
        async with contextlib.aclosing(stream) as events:
            async for event in events:
                if event.kind == "call" and self._tells:
                    count += 1
                    await ctx.session.report_progress(count, message=str(event.data))
                elif event.kind == "end" and isinstance(event.data, ToolResult):
                    return event.data
        raise AssertionError("a call ends with its result")


def how_to_decide(agent: AsyncAgent, id: str) -> str:
    """The words that decide a request, for the owner of the tools."""
    return f"{how_the_owner_decides(agent.broker.find(id))}. Then repeat the call."


async def _answered(ctx: Context, asked: AskedRequest, agent: AsyncAgent, client: McpClient) -> bool:
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


def _still_open(agent: AsyncAgent, state: dict[str, str]) -> AskedRequest | None:
    """The request that an answer is for; None if it has been decided."""
    open_ones = {one.id for one in agent.broker.requests(session=agent.session)}
    id, key = state["request"], state["key"]
    return AskedRequest.of(agent.broker, id, key) if id in open_ones else None


def _takes_forms(ctx: Context) -> bool:
    """Whether the client shows questions with fields. In 2025-06-18 there were no other questions."""
    said = ctx.session.client_capabilities
    asks = said.elicitation if said is not None else None
    return asks is not None and (asks.form is not None or asks.url is None)


def _identity(agent: AsyncAgent, form: CallForm) -> str:
    """What the same call has again: the identity of its form as the door writes it."""
    with contextlib.suppress(InvalidCallError, UnknownToolError):  # the door reports it
        form, _ = checked(agent.table.get(form.tool), form, agent.workspace)
    return form.identity


def _unfinished(agent: AsyncAgent) -> dict[str, str]:
    """The keys of the calls of this session that wait or were broken off in an earlier process, by their
    forms."""
    calls = (one for one in agent.host.record.unfinished() if one.kind == "call")
    found = ((content_of(one.event.text)["form"], one.name) for one in calls)
    return {read_form(form).identity: f"{agent.session}/{name}" for form, name in found}
