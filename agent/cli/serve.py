"""quoth serve: one server on loopback for clients of other protocols."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from quoth.agent.cli.common import agent_of
from quoth.agent.cli.mcp_serve import EXPOSE, opening_tools, proxy_named, serving_key
from quoth.agent.cli.options import DONE, INTERRUPTED, RunOptions, option
from quoth.agent.run.crowd import search_seldom
from quoth.agent.settings import ROWS
from quoth.agent.terminal.output import complain, results_only
from quoth.tools.errors import QuothError, UsageError
from quoth.tools.installing import install_extra
from quoth.tools.storage.paths import state_dir

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.agent.serve.keys import AccessKey
    from quoth.agent.view.running import ViewServer

PORT = 8420
P = ParamSpec("P")
T = TypeVar("T")


class ServeOptions(RunOptions):
    """Options of ``quoth serve``."""

    port: int = option(
        "--port",
        "N",
        f"listen on this port of 127.0.0.1; 0 takes a free one (default: {PORT})",
        PORT,
        type=int,
    )
    token_file: str | None = option(
        "--token-file",
        "FILE",
        "the keys of clients, a line NAME TOKEN RIGHTS for each (default: serve.keys in the data folder)",
    )
    allow_host: Sequence[str] = option(
        "--allow-host",
        "HOST",
        "also answer requests to this host, such as host.docker.internal; may be repeated",
        action="append",
        default=(),
    )
    allow_origin: Sequence[str] = option(
        "--allow-origin",
        "URL",
        "also answer pages of this origin, such as http://localhost:3000; may be repeated",
        action="append",
        default=(),
    )
    expose: Sequence[str] = EXPOSE


def serve(options: ServeOptions) -> int:
    return serve_until_stopped(options)


def need_serve(command: str) -> None:
    """Raise UsageError if the packages of the extra are missing."""
    try:
        import mcp  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        said = f"quoth {command} needs starlette, uvicorn and mcp: {install_extra('serve')}"
        raise UsageError(said) from None


def serve_until_stopped(
    options: ServeOptions, ready: Callable[[ViewServer], None] = lambda running: None
) -> int:
    """Serve; ``ready`` is called once, with where the pages are."""
    need_serve("serve")
    from quoth.agent.cli.desk import WorkspaceDesk
    from quoth.agent.config.agents import faults_of_agents
    from quoth.agent.config.loading import load_config
    from quoth.agent.serve.app import build_app
    from quoth.agent.serve.ending import EndingServer
    from quoth.agent.serve.keys import KeyFile, make_keys
    from quoth.agent.serve.mcp_http import client_of, mcp_part, proxies_part
    from quoth.agent.serve.mcp_server import McpServer
    from quoth.agent.serve.openai import MODEL, openai_part
    from quoth.agent.view.door import ViewDoor
    from quoth.agent.view.part import view_part
    from quoth.agent.view.places import PLACES
    from quoth.agent.view.running import ViewServer, known_as

    path = Path(options.token_file).expanduser() if options.token_file else state_dir() / "serve.keys"
    if make_keys(path):
        complain(f"The keys of clients are in {path}: me may ask and decide, chat may ask.")
    keys = KeyFile(path, complain)

    def opening_chats(key: AccessKey, model: str) -> AsyncAgent:
        named = options if model == MODEL else as_agent(options, model)
        own = replace(named, session=None, user=key.name, no_input=True)
        agent = agent_of(own, channel=f"serve {key.name}")
        agent.deliver = None
        return agent

    for fault in faults_of_agents(load_config(options.folder)):
        complain(f"An agent cannot be used: {fault}")
    chats = openai_part(telling_the_owner(opening_chats))
    opening = opening_tools(options, options.expose)
    tools = McpServer(
        telling_the_owner(opening), client_of, secret=serving_key(), place=str(options.folder.resolve())
    )
    desk, door = WorkspaceDesk(options), ViewDoor(state_dir(), secrets.token_hex(8), keys)
    view = view_part(door, desk, PLACES, stopping=lambda: server.should_exit)
    proxies = proxies_part(
        telling_the_owner(
            lambda name: proxy_named(options, name, client_of, telling_the_owner),
            "No MCP server with this name is served.",
        )
    )
    parts = [chats, mcp_part(tools), proxies, view]
    app = build_app(parts, keys, hosts=options.allow_host, origins=options.allow_origin)
    server = EndingServer(app, parts)

    async def run() -> None:
        with contextlib.closing(desk), listening(options.port) as sock, results_only():
            port = sock.getsockname()[1]
            running = ViewServer(port, door.server, str(path.resolve()))
            with known_as(options.folder, running):
                complain(f"quoth serves on http://127.0.0.1:{port}. The keys are in {path}.")
                ready(running)
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, server.handle_exit, 0, None)
                await server.serve(sockets=[sock])

    search_seldom()
    asyncio.run(run())
    return DONE if server.finished else INTERRUPTED


def telling_the_owner(opening: Callable[P, T], said: str = "This agent cannot be opened.") -> Callable[P, T]:
    """The same opening of an agent or a server, for clients: the error may show lines of the owner's files,
    so it is printed here, and the client gets a sentence."""

    def opened(*args: P.args, **given: P.kwargs) -> T:
        try:
            return opening(*args, **given)
        except QuothError as error:
            complain(str(error))
            raise UsageError(f"{said} The output of quoth serve says why.") from None

    return opened


def as_agent(options: ServeOptions, name: str) -> ServeOptions:
    """The options of the server for an agent of the configuration: what its file gives replaces them. Raises
    UsageError."""
    from quoth.agent.config.agents import load_agent
    from quoth.agent.config.loading import load_config

    own = load_agent(name, load_config(options.folder)).own
    given: dict[str, Any] = {
        one: None for one, row in ROWS.items() if row.group == "model" and getattr(own, one, None) is not None
    }
    if own.model is not None:
        given |= {"base_url": None, "api_key": None}
    given |= {one: min(most, vars(options)[one] or most) for one, most in own.budget.items()}
    return replace(options, agent=name, **given)


def listening(port: int) -> socket.socket:
    """A socket on loopback. Raises UsageError."""
    # asyncio sends small pieces at once only where TCP is named; else each answer may wait for 40 ms
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        sock.listen()  # a client that reads the address may connect at once
    except (OSError, OverflowError) as error:
        sock.close()
        why = getattr(error, "strerror", None) or "a port is a number from 0 to 65535"
        raise UsageError(f"Port {port} cannot be used: {why}. Choose another: --port N") from None
    return sock
