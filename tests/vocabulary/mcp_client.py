"""A client of MCP for tests: that of the SDK, in front of our server, in this process or
as one of its own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import mcp_types as types
from commands import calls
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from quoth.agent.client import AsyncAgent
from quoth.agent.serve.mcp_calls import McpClient as Caller
from quoth.agent.serve.mcp_calls import client_named
from quoth.agent.serve.mcp_server import McpServer, exposing
from quoth.agent.serve.mcp_shape import name_at_client
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
    **settings: Any,
) -> AsyncIterator[Client]:
    """A client in front of a server in this process; ``settings`` are those of its agents."""

    def opening(caller: Caller) -> AsyncAgent:
        agent = AsyncAgent(workspace=folder, session=f"mcp-{caller.name}", **settings)
        agent.runs.use_tools(agent.table.where(exposing(patterns)))
        return agent

    made = McpServer(
        opening,
        lambda ctx: client_named(ctx, decides=decides),
        secret=secret,
        place=str(folder),
        named=named,
    )
    info = types.Implementation(name=name, version="1")
    asks = {} if person is None else {"elicitation_callback": person.answer}
    try:
        async with Client(made.server, mode=mode, client_info=info, **asks) as found:  # type: ignore[arg-type]
            yield found
    finally:
        await made.aclose()


@contextlib.asynccontextmanager
async def process(
    folder: Path, *options: str, person: Person | None = None, mode: str = "legacy", name: str = "editor"
) -> AsyncIterator[Client]:
    """A client in front of ``quoth mcp serve``, a process in a folder."""
    first, *rest = calls()
    parameters = StdioServerParameters(
        command=first, args=[*rest, "mcp", "serve", *options], env=dict(os.environ), cwd=folder
    )
    info = types.Implementation(name=name, version="1")
    asks = {} if person is None else {"elicitation_callback": person.answer}
    async with Client(stdio_client(parameters), mode=mode, client_info=info, **asks) as found:  # type: ignore[arg-type]
        yield found


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(one.text for one in result.content if isinstance(one, types.TextContent))
