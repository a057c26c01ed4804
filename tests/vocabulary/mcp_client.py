"""A client of MCP for tests: that of the SDK, in front of our server, in this process or
as one of its own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp_types as types
from commands import calls
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_house import House

from quoth.agent.client import AsyncAgent
from quoth.agent.serve.mcp_calls import McpClient as Caller
from quoth.agent.serve.mcp_calls import client_named
from quoth.agent.serve.mcp_proxy import McpProxy
from quoth.agent.serve.mcp_server import McpServer, exposing
from quoth.agent.serve.mcp_shape import name_at_client
from quoth.tools.mcp.pins import read_pins
from quoth.tools.registry.table import CognitiveTool

SECRET = b"s" * 32
ERAS = ("legacy", "2026-07-28")  # a revision with a handshake, and one without


class Person:
    """The person at a client: gives the next of its answers, and keeps what it was asked."""

    def __init__(self, *answers: types.ElicitResult) -> None:
        self.answers, self.asked = [*answers], list[str]()

    async def answer(self, ctx: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params.message)
        return self.answers.pop(0)


def says(action: str = "accept", **content: Any) -> types.ElicitResult:
    return types.ElicitResult(action=action, content=content or None)  # type: ignore[arg-type]


YES = says(allow=True)


@contextlib.asynccontextmanager
async def client(
    folder: Path,
    *patterns: str,
    person: Person | None = None,
    decides: bool = False,
    mode: str = "legacy",
    name: str = "editor",
    secret: bytes = SECRET,
    named: Callable[[CognitiveTool], str] = name_at_client,
    heard: Callable[[Any], Any] | None = None,
    opened: Callable[[AsyncAgent], Any] = lambda agent: None,
    **settings: Any,
) -> AsyncIterator[Client]:
    """A client in front of a server in this process; ``settings`` are those of its agents, which ``opened``
    receives; ``heard`` receives what the server announces."""

    def opening(caller: Caller) -> AsyncAgent:
        agent = AsyncAgent(workspace=folder, session=f"mcp-{caller.name}", **settings)
        agent.runs.use_tools(agent.table.where(exposing(patterns)))
        opened(agent)
        return agent

    made = McpServer(
        opening,
        lambda ctx: client_named(ctx, decides=decides),
        secret=secret,
        place=str(folder),
        named=named,
    )
    info = types.Implementation(name=name, version="1")
    asks: dict[str, Any] = {"message_handler": hearing(heard)}
    asks |= {} if person is None else {"elicitation_callback": person.answer}
    try:
        async with Client(made.server, mode=mode, client_info=info, **asks) as found:  # type: ignore[arg-type]
            yield found
    finally:
        await made.aclose()


@contextlib.asynccontextmanager
async def process(
    folder: Path, *options: str, act: str = "serve", person: Person | None = None, **more: Any
) -> AsyncIterator[Client]:
    """A client in front of ``quoth mcp serve``, or another action of it, a process in a folder."""
    async with behind([*calls(), "mcp", act, *options], folder, person=person, **more) as found:
        yield found


@contextlib.asynccontextmanager
async def behind(
    words: list[str],
    folder: Path,
    *,
    person: Person | None = None,
    mode: str = "legacy",
    name: str = "editor",
    **more: Any,
) -> AsyncIterator[Client]:
    """A client in front of any server, a process in a folder."""
    first, *rest = words
    parameters = StdioServerParameters(command=first, args=rest, env=dict(os.environ), cwd=folder)
    info = types.Implementation(name=name, version="1")
    asks = {} if person is None else {"elicitation_callback": person.answer}
    async with Client(
        stdio_client(parameters),
        mode=mode,  # type: ignore[arg-type]
        client_info=info,
        **asks,
        **more,
    ) as found:
        yield found


@contextlib.asynccontextmanager
async def proxied(
    house: House,
    *,
    person: Person | None = None,
    decides: bool = False,
    mode: str = "legacy",
    name: str = "editor",
    heard: Callable[[Any], Any] | None = None,
    level: str | None = None,
    **settings: Any,
) -> AsyncIterator[Client]:
    """A client in front of a proxy in this process, for the server of a house. ``level``: of the log that it
    wants with each request."""
    asks: dict[str, Any] = {} if person is None else {"elicitation_callback": person.answer}
    async with (
        proxy(house, decides=decides, **settings) as made,
        in_front(made, name, heard, mode=mode, log_level=level, **asks) as found,
    ):
        yield found


@contextlib.asynccontextmanager
async def proxy(house: House, *, decides: bool = False, **settings: Any) -> AsyncIterator[McpProxy]:
    """A proxy in this process, for the server of a house."""

    def opening(caller: Caller) -> AsyncAgent:
        agent = house.agent(session=f"mcp-{caller.name}", **{"consent": None, **settings})
        agent.runs.use_tools(agent.table.where(lambda tool: tool.served is not None))
        return agent

    pins = read_pins(house.pins)
    assert pins is not None
    made = McpProxy(
        opening, lambda ctx: client_named(ctx, decides=decides), pins, secret=SECRET, place=str(house.root)
    )
    try:
        yield made
    finally:
        await made.aclose()


def in_front(
    made: McpProxy, name: str, heard: Callable[[Any], Any] | None = None, **more: Any
) -> contextlib.AbstractAsyncContextManager[Client]:
    """A client of this name in front of a proxy."""
    info = types.Implementation(name=name, version="1")
    return Client(made.server, client_info=info, message_handler=hearing(heard), **more)


def hearing(heard: Callable[[Any], Any] | None) -> Callable[[Any], Awaitable[None]]:
    """What the client of the SDK calls with each announcement."""

    async def hear(message: Any) -> None:
        if heard is not None:
            heard(message)

    return hear


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(one.text for one in result.content if isinstance(one, types.TextContent))
