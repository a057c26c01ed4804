"""The MCP servers of an agent: their trusted tools as entries of its table, and the calls of these.

A server is started at the first call of one of its tools, and its present tools are compared with the pins
before that call; again after it has announced a change or was started again, and at the latest after
LIST_SECONDS. A tool that differs from its pin is quarantined: its calls are denied, from that moment on.
Nothing of the SDK is imported before the first call.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from quoth.tools.call.call import Call
from quoth.tools.call.context import ToolContext
from quoth.tools.errors import ToolFailure, UsageError, no_such
from quoth.tools.mcp.asking import Questions
from quoth.tools.mcp.config import OWN_NAME, ServerConfig
from quoth.tools.mcp.pins import Fields, ServerPins, ToolChange, changes, pin_file, read_pins
from quoth.tools.visible import visible

if TYPE_CHECKING:
    import mcp_types as types

    from quoth.tools.mcp.connection import Connection


@dataclass(frozen=True)
class ServerSetup:
    """How servers are opened: in the workspace ``root``, without the variables ``withheld``, which are keys
    of model servers. With ``sampling`` they may ask the agent's model."""

    root: Path
    withheld: frozenset[str] = frozenset()
    sampling: bool = False

    def connection(self, config: ServerConfig, questions: Questions | None = None) -> Connection:
        """The connection to a server, whose requests ``questions`` answers; it is begun at first use."""
        from quoth.tools.mcp.connection import NO_CALLBACKS, Callbacks, Connection  # imported at first use

        answers = NO_CALLBACKS
        if questions is not None:
            sample = questions.sample if self.sampling else None
            answers = Callbacks(questions.elicit, sample, questions.roots)
        return Connection(config, self.root, callbacks=answers, withheld=self.withheld)


LIST_SECONDS = 60.0  # after which a server's tools are compared with the pins again
MOST_LISTS = 5  # that a server may announce to have changed, one after the other
T = TypeVar("T")
# Sends a request on a connection of this start, with a server's state and the answers to its questions.
Send = Callable[["Connection", int, str | None, Mapping[str, Any] | None], Awaitable[Any]]


def pins_of(config: ServerConfig, root: Path) -> Path:
    """The file of a server's pins. A workspace's own server has other pins than one of the same name
    elsewhere."""
    source = root / OWN_NAME if config.source == OWN_NAME else os.path.expanduser(config.source)  # noqa: PTH111
    return pin_file(config.name, os.path.realpath(source))


def fields_of(tools: Iterable[Any]) -> list[Fields]:
    """The tools of the SDK as their fields on the wire."""
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]


class LiveServer:
    """One trusted server of an agent. ``changed`` are the tools that differ from their pins, by name."""

    def __init__(self, config: ServerConfig, setup: ServerSetup) -> None:
        """Raises UsageError if the pins cannot be read."""
        self.config = config
        self._setup, self._path = setup, pins_of(config, setup.root)
        self._stamp = stamp_of(self._path)
        self._pins = read_pins(self._path)
        self._connection: Connection | None = None
        self._questions = Questions(config.name, setup.root, sampling=setup.sampling)
        self._compared = -1  # the start of the server whose tools were compared last
        self._compared_at = 0.0
        self._lock = asyncio.Lock()
        self._listed: list[Any] = []
        self._listeners: list[Callable[[str], None]] = []
        self._hearers: list[Callable[[Any], None]] = []
        self.changed: dict[str, ToolChange] = {}

    @property
    def pins(self) -> ServerPins | None:
        """The present pins; None if the server is not trusted. Raises UsageError if they cannot be read."""
        if (stamp := stamp_of(self._path)) != self._stamp:
            self._pins = None
            self._pins = read_pins(self._path)
            self._stamp, self._compared = stamp, -1
        return self._pins

    def refusal(self, tool: str, digest: str, *, compared: bool = False) -> str:
        """Why a tool, as the model was shown it, may not be called now; empty if it may. ``tool`` is its name
        at the server, empty for the entries that are not a tool there, and ``digest`` is empty for the server
        itself. ``compared``: the server's tools have just been compared with the pins."""
        config, name = self.config, self.config.name
        try:
            pins = self.pins
        except UsageError as error:
            return str(error)
        if pins is None:
            to_trust = f"quoth mcp trust {self.config.named}"
            return f"The MCP server {name} is not trusted. To see and trust its tools: {to_trust}"
        if pins.address != self.config.target:
            return (
                f"The MCP server {name} has another command or URL than when it was trusted. {_look(config)}"
            )
        if not tool:
            if not digest or digest in pins.offered.values():
                return ""
            return f"The MCP server {name} was trusted in another form; start quoth again."
        if (compared or self._is_current) and (change := self.changed.get(tool)) is not None:
            said = f"{visible(tool)} of the MCP server {name} {change.what}"
            return f"{said} since it was trusted. {_look(config)}"
        if (pin := pins.tools.get(tool)) is None or pin.digest != digest:
            return f"{visible(tool)} of the MCP server {name} was trusted in another form; start quoth again."
        return ""

    @property
    def _is_current(self) -> bool:
        """Whether the last comparison with the pins still counts, without asking the server."""
        return self._compared >= 0 and time.monotonic() < self._compared_at + LIST_SECONDS

    async def call(self, tool: str, digest: str, send: Send, call: Call, ctx: ToolContext) -> Any:
        """The server's result of a call, once all that it asks is answered. ``send`` sends the request.
        Raises ToolFailure for a tool that may not be called, and McpError."""

        async def sent(state: str | None, answers: Mapping[str, Any] | None) -> Any:
            return await self._with(tool, digest, lambda one, start: send(one, start, state, answers))

        return await self._questions.answered(sent, ctx=ctx, call=call, version=digest)

    async def ask(self, use: Callable[[Connection], Awaitable[T]]) -> T:
        """What ``use`` returns for the connection, for what is not a call of a tool. Raises ToolFailure for a
        server that is not trusted as it is, and McpError."""
        return await self._with("", "", lambda one, start: use(one))

    async def tools(self) -> list[types.Tool]:
        """The server's present tools that are as they were trusted. Raises ToolFailure and McpError."""
        await self._with("", "", _nothing)
        return [one for one in self._listed if one.name not in self.changed]

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Call ``listener`` with ``tools``, ``resources`` or ``prompts`` when that list may have changed."""
        self._listeners.append(listener)

    def on_message(self, hearer: Callable[[Any], None]) -> None:
        """Call ``hearer`` with each message of the server's log, and each announcement that a resource has
        changed, as the SDK reads them."""
        self._hearers.append(hearer)

    async def _with(self, tool: str, digest: str, use: Callable[[Connection, int], Awaitable[T]]) -> T:
        """What ``use`` returns for the connection and the number of the server's start, whose tools have been
        compared with the pins."""
        from quoth.tools.mcp.connection import RestartedError

        while True:
            if why := self.refusal(tool, digest):
                raise ToolFailure("denied", why)
            try:
                connection, start = await self._checked()
                if why := self.refusal(tool, digest, compared=True):
                    raise ToolFailure("denied", why)
                return await use(connection, start)
            except RestartedError:
                continue  # it ended in between: nothing was sent

    async def _checked(self) -> tuple[Connection, int]:
        """The connection, and the start of the server whose tools are known to be compared with the pins."""
        async with self._lock:
            if self._connection is None:
                self._connection = self._setup.connection(self.config, self._questions)
                self._connection.on_change(self._heard)
                self._connection.on_message(self._passed)
            connection = self._connection
            for _ in range(MOST_LISTS):
                start = await connection.started()
                if start == self._compared and self._is_current:
                    return connection, start
                # A change that is announced from here on counts.
                self._compared, self._compared_at = start, time.monotonic()
                await self._compare(connection, start)
        config = self.config
        said = f"The MCP server {config.name} does not stop changing its tools. {_look(config)}"
        raise ToolFailure("denied", said)

    async def _compare(self, connection: Connection, start: int) -> None:
        try:
            pins, listed = self.pins, await connection.tools(start)
        except BaseException:
            self._compared = -1
            raise
        self._listed = listed.tools
        if pins is not None:
            self.changed = changes(pins, self.config.target, fields_of(listed.tools))

    def _heard(self, kind: str) -> None:
        if kind == "tools":
            self._compared = -1
        for listener in self._listeners:
            listener(kind)

    def _passed(self, message: Any) -> None:
        for hearer in self._hearers:
            hearer(message)

    async def aclose(self) -> None:
        """End the server, if it was started."""
        if self._connection is not None:
            await self._connection.aclose()


async def _nothing(connection: Connection, start: int) -> None:
    """The connection alone is wanted."""


def _look(server: ServerConfig) -> str:
    return (
        f"To see the difference: quoth mcp diff {server.named}. To trust it: quoth mcp trust {server.named}"
    )


def stamp_of(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file is replaced; None if it cannot be examined."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


class LiveServers:
    """The servers of an agent. ``notes`` are sentences for the person about servers that cannot be used."""

    def __init__(
        self, configs: Mapping[str, ServerConfig], setup: ServerSetup, notes: Iterable[str] = ()
    ) -> None:
        self.servers: list[LiveServer] = []
        self.notes = [*notes]
        for config in configs.values():
            try:
                server = LiveServer(config, setup)
            except UsageError as error:
                self.notes.append(
                    f"{error} To look at its tools and trust them: quoth mcp trust {config.named}"
                )
                continue
            if server.pins is None:
                self.notes.append(server.refusal("", ""))
            else:
                self.servers.append(server)

    def find(self, name: str) -> LiveServer:
        """The trusted server of this name. Raises UsageError."""
        known = {one.config.name: one for one in self.servers}
        if name not in known:
            why = [note for note in self.notes if f"server {name} " in note]
            raise UsageError(" ".join(why) or no_such("MCP server", name, known))
        return known[name]

    async def aclose(self) -> None:
        async with AsyncExitStack() as ending:
            for server in self.servers:
                ending.push_async_callback(server.aclose)
