"""quoth mcp serve and quoth mcp proxy: serve tools to a client of the Model Context Protocol on standard
input and output: those of quoth, or those of a server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from quoth.agent.cli.common import agent_of
from quoth.agent.cli.options import DONE, Options, RunOptions, argument, option, switch
from quoth.agent.config.loading import load_config
from quoth.agent.run.crowd import search_seldom
from quoth.agent.run.servers import configured
from quoth.agent.terminal.output import results_only
from quoth.tools.errors import UsageError
from quoth.tools.installing import install_extra
from quoth.tools.storage.paths import state_dir

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.agent.serve.mcp_calls import Context, McpClient
    from quoth.agent.serve.mcp_proxy import McpProxy
    from quoth.agent.serve.mcp_server import McpServer
    from quoth.tools.mcp.config import Servers
    from quoth.tools.mcp.pins import ServerPins
    from quoth.tools.registry.table import CognitiveTool

    ClientOf = Callable[[Context], McpClient]
    Opening = Callable[[McpClient], AsyncAgent]


EXPOSE = option(
    "--expose",
    "PATTERN",
    "serve the tools with such names, such as '*-file'; may be repeated (default: tools that only read, and "
    "run, which takes a program of them)",
    action="append",
    default=(),
)


MAY_DECIDE = switch("--may-decide", "the person at the client may approve and answer what waits")


class McpServeOptions(RunOptions):
    """Options of ``quoth mcp serve``."""

    expose: Sequence[str] = EXPOSE
    may_decide: bool = MAY_DECIDE


class McpProxyOptions(RunOptions):
    """Options of ``quoth mcp proxy``."""

    name: str = argument("SERVER", "the name of a server")
    may_decide: bool = MAY_DECIDE


def mcp_serve(options: McpServeOptions) -> int:
    def make(client_of: ClientOf) -> McpServer:
        from quoth.agent.serve.mcp_server import McpServer

        opening = opening_tools(options, options.expose)
        return McpServer(opening, client_of, secret=serving_key(), place=str(options.folder.resolve()))

    return _on_stdio(options, make, decides=options.may_decide)


def mcp_proxy(options: McpProxyOptions) -> int:
    pins = pins_named(options, options.name)
    return _on_stdio(options, lambda of: proxy_of(options, pins, of), decides=options.may_decide)


def _on_stdio(options: RunOptions, make: Callable[[ClientOf], McpServer | McpProxy], *, decides: bool) -> int:
    """Serve one client on standard input and output, until it leaves."""
    try:
        from mcp.server.stdio import stdio_server
    except ImportError:
        raise UsageError(f"quoth mcp serve needs the package mcp: {install_extra('mcp')}") from None
    if options.remote:
        raise UsageError("An MCP client is served no remote tools. Leave out --remote.")
    from quoth.agent.serve.mcp_calls import client_named

    async def serve() -> None:
        made = make(lambda ctx: client_named(ctx, decides=decides))
        try:
            async with stdio_server() as (reader, writer):
                with results_only():  # what a tool prints must not get among the messages
                    await made.server.run(reader, writer, made.server.create_initialization_options())
        finally:
            await made.aclose()

    search_seldom()
    asyncio.run(serve())
    return DONE


def proxy_of(
    options: RunOptions,
    pins: ServerPins,
    client_of: ClientOf,
    around: Callable[[Opening], Opening] = lambda opening: opening,
) -> McpProxy:
    """The proxy of the server with these pins. ``around`` changes how agents are opened."""
    from quoth.agent.serve.mcp_proxy import McpProxy

    def is_its(tool: CognitiveTool) -> bool:
        return tool.served is not None and tool.served.server == pins.server

    opening = around(_opening(options, is_its, f"{pins.server} "))
    return McpProxy(opening, client_of, pins, secret=serving_key(), place=str(options.folder.resolve()))


def proxy_named(
    options: RunOptions, name: str, client_of: ClientOf, around: Callable[[Opening], Opening]
) -> tuple[McpProxy, Path]:
    """The proxy of a configured server, and the file of its pins. Raises UsageError if it is not trusted."""
    from quoth.tools.mcp.servers import pins_of

    pins = pins_named(options, name)
    return proxy_of(options, pins, client_of, around), pins_of(servers_of(options).find(name), options.folder)


def pins_named(options: Options, name: str) -> ServerPins:
    """The trusted tools of a configured server. Raises UsageError if it is not trusted."""
    from quoth.tools.mcp.pins import read_pins
    from quoth.tools.mcp.servers import pins_of

    config = servers_of(options).find(name)
    pins = read_pins(pins_of(config, options.folder))
    if pins is None:
        raise UsageError(f"{config.name} is not trusted yet. Type: quoth mcp trust {config.named}")
    return pins


def servers_of(options: Options) -> Servers:
    """The servers that are configured for the workspace. Raises UsageError."""
    from quoth.tools.mcp.config import NO_SERVERS

    return configured(options.folder, options.mcp, load_config(options.folder)) or NO_SERVERS


def opening_tools(options: RunOptions, expose: Sequence[str]) -> Opening:
    """What opens the agent of a client, with the exposed tools alone, in a session of the client's own."""
    from quoth.agent.serve.mcp_server import exposing

    return _opening(options, exposing(expose))


def _opening(options: RunOptions, shown: Callable[[CognitiveTool], bool], before: str = "") -> Opening:
    """The same, for the tools that are shown. ``before`` is put before a client's name in its session."""
    from quoth.agent.session.index import session_of

    def opening(client: McpClient) -> AsyncAgent:
        user, session = client.user or options.user, session_of("mcp", f"{before}{client.name}")
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
