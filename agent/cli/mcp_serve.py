"""quoth mcp serve: serve tools to a client of the Model Context Protocol on standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from quoth.agent.cli.common import agent_of, begin_to_serve
from quoth.agent.cli.options import DONE, RunOptions, option, switch
from quoth.agent.terminal.output import results_only
from quoth.tools.errors import UsageError
from quoth.tools.installing import install_extra
from quoth.tools.storage.paths import state_dir

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.agent.serve.mcp_calls import McpClient


EXPOSE = option(
    "--expose",
    "PATTERN",
    "serve the tools with such names, such as '*-file'; may be repeated (default: tools that only read, and "
    "run, which takes a program of them)",
    action="append",
    default=(),
)


class McpServeOptions(RunOptions):
    """Options of ``quoth mcp serve``."""

    expose: Sequence[str] = EXPOSE
    may_decide: bool = switch("--may-decide", "the person at the client may approve and answer what waits")


def mcp_serve(options: McpServeOptions) -> int:
    try:
        from mcp.server.stdio import stdio_server
    except ImportError:
        raise UsageError(f"quoth mcp serve needs the package mcp: {install_extra('mcp')}") from None
    if options.remote:
        raise UsageError("quoth mcp serve has no remote tools. Leave out --remote.")
    from quoth.agent.serve.mcp_calls import client_named
    from quoth.agent.serve.mcp_server import McpServer

    async def serve() -> None:
        made = McpServer(
            opening_tools(options, options.expose),
            lambda ctx: client_named(ctx, decides=options.may_decide),
            secret=serving_key(),
            place=str(options.folder.resolve()),
        )
        try:
            async with stdio_server() as (reader, writer):
                with results_only():  # what a tool prints must not get among the messages
                    await made.server.run(reader, writer, made.server.create_initialization_options())
        finally:
            await made.aclose()

    begin_to_serve()
    asyncio.run(serve())
    return DONE


def opening_tools(options: RunOptions, expose: Sequence[str]) -> Callable[[McpClient], AsyncAgent]:
    """What opens the agent of a client, with the exposed tools alone, in a session of the client's own."""
    from quoth.agent.serve.mcp_server import exposing
    from quoth.agent.session.index import session_of

    shown = exposing(expose)

    def opening(client: McpClient) -> AsyncAgent:
        user, session = client.user or options.user, session_of("mcp", client.name)
        own = replace(options, session=session, user=user, no_input=True)
        agent = agent_of(own, channel=f"mcp {client.name}")
        agent.deliver = None  # standard output is the client's
        agent.runs.use_tools(agent.table.where(shown))
        return agent

    return opening


def serving_key() -> bytes:
    """The key of this user that seals what clients send back. The first start makes it."""
    from quoth.tools.catalog.payload import new_key, read_key

    path = state_dir() / "serve.key"
    with contextlib.suppress(UsageError):  # there is one already
        return new_key(path).secret
    return read_key(path).secret
