"""A connection to one MCP server: begun at first use, by the SDK; one task owns it.

Every wait has a deadline. A server that ends answers every open request with a failure, and is started again
at the next use, with a growing pause. Nothing a server sends is trusted or shown here: see entries.py.

Must not check arguments, effects or results; the door and the table do.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from quoth.tools.call.redaction import redact
from quoth.tools.errors import UsageError
from quoth.tools.mcp.config import ServerConfig, expand
from quoth.tools.mcp.failures import LoginNeeded as LoginNeeded
from quoth.tools.mcp.failures import McpError as McpError
from quoth.tools.mcp.failures import McpTimeout as McpTimeout
from quoth.tools.mcp.failures import RestartedError as RestartedError
from quoth.tools.mcp.relay import RELAY
from quoth.tools.mcp.server_log import log_path
from quoth.tools.text import short
from quoth.tools.visible import visible

if TYPE_CHECKING:
    import httpx2
    import mcp_types as types
    from mcp import Client
    from mcp.client.session import ElicitationFnT, ListRootsFnT, SamplingFnT
    from mcp.shared.dispatcher import ProgressFnT as Progress

MAX_PAGES = 200  # of one list
MAX_ITEMS = 5_000  # of one list
LONGEST_ERROR = 2_000  # characters of a server's error
PAUSES = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)  # seconds after N failures in a row
MOMENT = 0.5  # seconds for the owner to notice that a connection has ended
CLOSING = 10.0  # seconds for the owner to end a server

Listener = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Deadlines:
    """Seconds."""

    connect: float = 30.0
    list: float = 30.0
    """All pages of a list."""
    call: float = 300.0
    idle: float = 60.0
    """Without an answer or progress."""


@dataclass(frozen=True)
class Callbacks:
    """Answers the requests of a server. A kind of request without a function is not offered to it."""

    elicit: ElicitationFnT | None = None
    sample: SamplingFnT | None = None
    roots: ListRootsFnT | None = None


@dataclass(frozen=True)
class Listed:
    """A server's tools, and what it says of itself: data, not to be trusted."""

    tools: list[types.Tool]
    server: types.Implementation | None
    instructions: str | None
    version: str
    """The negotiated revision of the protocol."""
    more: tuple[str, ...] = ()
    """What else it offers, of MORE in pins.py."""


DEADLINES = Deadlines()
NO_CALLBACKS = Callbacks()


class Connection:
    """One server. Its owner must call ``aclose``. For one event loop."""

    def __init__(
        self,
        config: ServerConfig,
        root: Path,
        *,
        callbacks: Callbacks = NO_CALLBACKS,
        deadlines: Deadlines = DEADLINES,
        auth: Callable[[ServerConfig], httpx2.Auth] | None = None,
        withheld: Collection[str] = (),
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """``withheld`` are the variables with keys of model providers, which no server receives; ``auth``
        replaces the stored login at a URL."""
        self.config = config
        self.log = log_path(config.name)
        self._root, self._callbacks, self._deadlines, self._auth = root, callbacks, deadlines, auth
        self._withheld, self._environ = withheld, environ
        self._owner: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Client] | None = None
        self._stop = asyncio.Event()
        self._reason = ""  # why the server has ended
        self._failure: Exception | None = None  # why the connection has ended, if the server did not
        self._starts = 0
        self._failures = 0  # in a row
        self._not_before = 0.0  # time of the loop
        self._closed = False
        self._listeners: list[Listener] = []
        self._hearers: list[Callable[[Any], None]] = []
        self._level = ""  # the lowest level of log messages that a server with a handshake was asked for
        self._uris: set[str] = set()  # of the resources whose changes it announces
        self._streams: dict[str, asyncio.Task[None]] = {}  # of announcements, by URI; "" for those of lists
        self._timeouts: set[asyncio.Timeout] = set()  # of the open requests

    # Requests

    async def started(self) -> int:
        """The number of the server's present start; it is started if it does not run."""
        await self._client()
        return self._starts

    async def tools(self, start: int | None = None) -> Listed:
        """All tools of the server. Raises RestartedError if ``start`` is not its present start."""
        client = await self._client(start)
        tools = await self._list(client, client.session.list_tools, "tools")
        return Listed(tools, client.server_info, client.instructions, client.protocol_version, _more(client))

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        deadline: float | None = None,
        idle: float | None = None,
        on_progress: Progress | None = None,
        state: str | None = None,
        answers: Mapping[str, Any] | None = None,
        start: int | None = None,
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Call the tool with this name on the wire. ``answers`` are those to an earlier InputRequiredResult,
        with its ``state``. Raises McpError, and RestartedError if ``start`` is not its present start."""
        import mcp_types as types

        client = await self._client(start)
        params = types.CallToolRequestParams(
            name=name,
            arguments=dict(arguments),
            input_responses=None if answers is None else dict(answers),
            request_state=state,
            _meta=await self._log_wish(client),
        )
        return await self._timed(
            partial(self._called, client, types.CallToolRequest(params=params)), deadline, idle, on_progress
        )

    async def resources(self) -> list[types.Resource]:
        client = await self._client()
        return await self._list(client, client.session.list_resources, "resources")

    async def resource_templates(self) -> list[types.ResourceTemplate]:
        client = await self._client()
        return await self._list(client, client.session.list_resource_templates, "resource_templates")

    async def prompts(self) -> list[types.Prompt]:
        client = await self._client()
        return await self._list(client, client.session.list_prompts, "prompts")

    async def complete(self, params: types.CompleteRequestParams) -> types.CompleteResult:
        import mcp_types as types

        client, given = await self._client(), params.context.arguments if params.context else None
        if client.server_capabilities.completions is None:
            return types.CompleteResult(completion=types.Completion(values=[]))
        named = {"name": params.argument.name, "value": params.argument.value}
        return await self._timed(
            lambda progress: client.session.complete(params.ref, named, context_arguments=given)
        )

    async def read_resource(
        self, uri: str, *, state: str | None = None, answers: Mapping[str, Any] | None = None
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        client = await self._client()
        wish = await self._log_wish(client)

        async def read(progress: Progress) -> types.ReadResourceResult | types.InputRequiredResult:
            return await client.session.read_resource(
                uri,
                meta=wish,
                input_responses=None if answers is None else dict(answers),
                request_state=state,
                allow_input_required=True,
            )

        return await self._timed(read)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str],
        *,
        state: str | None = None,
        answers: Mapping[str, Any] | None = None,
    ) -> types.GetPromptResult | types.InputRequiredResult:
        client = await self._client()
        wish = await self._log_wish(client)

        async def get(progress: Progress) -> types.GetPromptResult | types.InputRequiredResult:
            return await client.session.get_prompt(
                name,
                dict(arguments),
                meta=wish,
                input_responses=None if answers is None else dict(answers),
                request_state=state,
                allow_input_required=True,
            )

        return await self._timed(get)

    async def log_from(self, level: str) -> None:
        """Ask a server with a handshake for its log, from this level on; later servers are asked in each
        request. Raises McpError."""
        import mcp_types as types

        client = await self._client()
        if not _is_modern(client) and "logging" in _more(client):
            asked: Any = types.SetLevelRequestParams(level=level)  # type: ignore[arg-type]
            await self._timed(
                lambda progress: client.session.send_request(
                    types.SetLevelRequest(params=asked), types.EmptyResult
                )
            )
            self._level = level

    async def _log_wish(self, client: Client) -> Any:
        """What a request says of the log that the client in front of us wants."""
        from mcp_types import LOG_LEVEL_META_KEY

        relay = RELAY.get()
        if relay is None or not relay.level:
            return None
        if _is_modern(client):
            return {LOG_LEVEL_META_KEY: relay.level}
        if relay.level != self._level:
            await self.log_from(relay.level)
        return None

    async def subscribe(self, uri: str) -> None:
        """Let the server announce changes of a resource, also once it is started again. Raises McpError."""
        import mcp_types as types

        client = await self._client()
        if _is_modern(client):
            if uri not in self._streams and self._ready is not None:
                opened = self._stream(client, uri, self._ready)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(opened.wait(), MOMENT)
        else:
            asked = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
            await self._timed(lambda progress: client.session.send_request(asked, types.EmptyResult))
        self._uris.add(uri)

    async def unsubscribe(self, uri: str) -> None:
        """The opposite of ``subscribe``. Raises McpError."""
        import mcp_types as types

        self._uris.discard(uri)
        client = await self._client()
        if (stream := self._streams.pop(uri, None)) is not None:
            stream.cancel()
        elif not _is_modern(client):
            asked = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
            await self._timed(lambda progress: client.session.send_request(asked, types.EmptyResult))

    def on_message(self, hearer: Callable[[Any], None]) -> None:
        """Call ``hearer`` with each message of the log and each change of a resource."""
        self._hearers.append(hearer)

    def on_change(self, listener: Listener) -> None:
        """Call ``listener`` with ``tools``, ``resources`` or ``prompts`` when the server announces that this
        list has changed, or it may have changed unnoticed."""
        self._listeners.append(listener)

    async def aclose(self) -> None:
        """End the server with all its processes. A later request is refused."""
        self._closed = True
        if self._owner is not None:
            self._reason = self._reason or "was closed"
            self._stop.set()
            await asyncio.wait({self._owner}, timeout=CLOSING)

    # The owner

    async def _client(self, start: int | None = None) -> Client:
        """The connected client; starts the server if it does not run. Raises McpError, and RestartedError if
        ``start`` is not its present start."""
        if self._closed:
            raise McpError(f"The connection to the MCP server {self.config.name} is closed.")
        if self._owner is None or self._owner.done() or self._stop.is_set():
            if self._owner is not None:
                await asyncio.wait({self._owner}, timeout=CLOSING)
            if self._owner is None or self._owner.done():
                self._begin()
        assert self._ready is not None
        present = self._starts
        client = await asyncio.shield(self._ready)
        if start not in (None, present):
            raise RestartedError(f"The MCP server {self.config.name} was started again.")
        return client

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        if (pause := self._not_before - loop.time()) > 0:
            raise McpError(
                f"The MCP server {self.config.name} {self._reason}. It failed {self._failures} times in a "
                f"row; quoth starts it again in {pause:.0f} seconds at the earliest. {self._where()}"
            )
        self._stop, self._reason = asyncio.Event(), ""
        self._starts += 1
        self._ready = loop.create_future()
        self._owner = loop.create_task(self._own(self._ready, self._stop))

    async def _own(self, ready: asyncio.Future[Client], stop: asyncio.Event) -> None:
        """Start the server, keep the connection until it ends or ``stop`` is set, and end the server."""
        self._failure = None
        try:
            async with AsyncExitStack() as stack:
                await self._watched(await self._connected(stack), ready, stop)
        except asyncio.CancelledError:
            self._reason = self._reason or "was closed"
            raise
        except Exception as error:  # the transports of the SDK raise errors of many kinds
            self._failure = _cause(error)
        finally:
            stop.set()
            if not self._closed and not isinstance(self._failure, UsageError | McpError):
                self._failures += 1
                pause = PAUSES[min(self._failures, len(PAUSES)) - 1]
                self._not_before = asyncio.get_running_loop().time() + pause
            if not ready.done():
                ready.set_exception(self._unconnected(self._failure))
                ready.exception()  # its caller may be gone

    async def _connected(self, stack: AsyncExitStack) -> Client:
        """A client that has agreed on a revision of the protocol."""
        from mcp import Client
        from mcp_types import Implementation

        own = Implementation(name="quoth", version=version("quoth"))
        async with asyncio.timeout(self._deadlines.connect):
            client = Client(
                self._transport(),
                client_info=own,
                cache=None,
                elicitation_callback=self._unhurried(self._callbacks.elicit),
                sampling_callback=self._unhurried(self._callbacks.sample),
                list_roots_callback=self._callbacks.roots,
                message_handler=self._heard,
            )
            return await stack.enter_async_context(client)

    def _transport(self) -> Any:
        _quiet()
        config = expand(self.config, self._environ, self._withheld)
        if config.url:
            from quoth.tools.mcp.http import http
            from quoth.tools.mcp.oauth import StoredLogin

            own = any(name.lower() == "authorization" for name in config.headers)
            return http(config, self._auth(config) if self._auth else None if own else StoredLogin(config))
        from quoth.tools.mcp.stdio import log_of, stdio

        return stdio(config, self._root, self._environ, log_of(config, self.log), self._ended)

    async def _watched(self, client: Client, ready: asyncio.Future[Client], stop: asyncio.Event) -> None:
        """Until ``stop`` is set, listen for changes: if the server is quick, before anything is listed."""
        self._level = ""
        opened, again = self._stream(client, "", ready), None
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(opened.wait(), MOMENT)
            if not stop.is_set():
                ready.set_result(client)
                again = asyncio.create_task(self._subscribe_again())
                await stop.wait()
        finally:
            streams = {*self._streams.values(), *([again] if again is not None else [])}
            self._streams.clear()
            for stream in streams:
                stream.cancel()
            await asyncio.wait(streams)

    async def _subscribe_again(self) -> None:
        """Subscribe to the resources as before the server was started again."""
        for uri in sorted(self._uris):
            with contextlib.suppress(McpError):  # it offers them no more
                await self.subscribe(uri)

    def _stream(self, client: Client, uri: str, ready: asyncio.Future[Client]) -> asyncio.Event:
        opened = asyncio.Event()
        self._streams[uri] = asyncio.create_task(self._listen(client, uri, ready, opened))
        return opened

    async def _listen(
        self, client: Client, uri: str, ready: asyncio.Future[Client], opened: asyncio.Event
    ) -> None:
        """Since 2026-07-28, changes are announced on a stream that is requested: those of one resource, or of
        the lists. Changes of resources reach ``_heard`` as well. ``opened`` is set once the first stream is
        open or refused, or the server has none."""
        from mcp.client.subscriptions import ListenNotSupportedError

        offered = client.server_capabilities
        kinds = {"tools": offered.tools, "prompts": offered.prompts, "resources": offered.resources}
        wanted = [kind for kind, offer in kinds.items() if offer and offer.list_changed and not uri]
        if not wanted and not uri:
            opened.set()
            return
        for pause in PAUSES[1:]:
            try:
                async with client.listen(
                    tools_list_changed="tools" in wanted,
                    prompts_list_changed="prompts" in wanted,
                    resources_list_changed="resources" in wanted,
                    resource_subscriptions=[uri] if uri else [],
                ) as events:
                    for kind in wanted if ready.done() else ():  # a change may have gone unnoticed
                        self._tell(kind)
                    opened.set()
                    async for event in events:
                        if uri:
                            continue
                        self._tell(type(event).__name__.removesuffix("ListChanged").lower())
            except ListenNotSupportedError:
                opened.set()
                return  # an older revision
            except Exception:
                opened.set()  # refused: it is opened again later
            await asyncio.sleep(pause)
            for kind in wanted:
                self._tell(kind)

    async def _heard(self, message: Any) -> None:
        """A notification: on every connection those of resources and of the log, and in the revisions before
        2026-07-28 those of lists."""
        name = type(message).__name__
        if name in ("LoggingMessageNotification", "ResourceUpdatedNotification"):
            for hearer in tuple(self._hearers):
                hearer(message)
        kinds = {"ToolList": "tools", "PromptList": "prompts", "ResourceList": "resources"}
        if kind := kinds.get(name.removesuffix("ChangedNotification")):
            self._tell(kind)

    def _tell(self, kind: str) -> None:
        for listener in tuple(self._listeners):
            listener(kind)

    def _ended(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._stop.set()

    # Requests and their failures

    async def _called(
        self, client: Client, request: types.CallToolRequest, progress: Progress
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Not the SDK's ``call_tool``, which compiles a server's patterns to check a result."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import HEADER_MISMATCH

        try:
            return await client.session.send_request(request, _call_results(), progress_callback=progress)
        except MCPError as error:
            if error.code != HEADER_MISMATCH:
                raise
            await self._list(
                client, client.session.list_tools, "tools"
            )  # the SDK learns its headers from the list
            return await client.session.send_request(request, _call_results(), progress_callback=progress)

    async def _list(self, client: Client, fetch: Callable[..., Awaitable[Any]], kind: str) -> list[Any]:
        """All pages of a list; empty if the server has no such list."""
        import mcp_types as types
        from mcp.shared.exceptions import MCPError

        async def pages(progress: Progress) -> list[Any]:
            found: list[Any] = []
            cursor, seen = None, set[str]()
            for _ in range(MAX_PAGES):
                try:
                    page = await fetch(params=types.PaginatedRequestParams(cursor=cursor) if cursor else None)
                except MCPError as error:
                    if error.code == types.METHOD_NOT_FOUND and not found:
                        return []
                    raise
                found += getattr(page, kind)
                cursor = page.next_cursor
                if not cursor:
                    return found
                if cursor in seen or len(found) > MAX_ITEMS:
                    break
                seen.add(cursor)
            name = self.config.name
            raise McpError(
                f"The list of {kind} of the MCP server {name} does not end: quoth reads at most {MAX_ITEMS} "
                f"entries on {MAX_PAGES} pages."
            )

        found = await self._timed(pages, self._deadlines.list, self._deadlines.list)
        if len(found) > MAX_ITEMS:
            raise McpError(
                f"The MCP server {self.config.name} lists {len(found)} {kind}; the maximum is {MAX_ITEMS}."
            )
        return found

    async def _timed(
        self,
        request: Callable[[Progress], Awaitable[T]],
        deadline: float | None = None,
        idle: float | None = None,
        on_progress: Progress | None = None,
    ) -> T:
        """The answer to a request. Progress resets the idle deadline, never the total."""
        from mcp.shared.exceptions import MCPError
        from pydantic import ValidationError

        name, loop = self.config.name, asyncio.get_running_loop()
        most = self._deadlines.call if deadline is None else deadline
        pause = self._deadlines.idle if idle is None else idle
        try:
            async with asyncio.timeout(most) as whole, asyncio.timeout(pause) as quiet:

                async def progressed(progress: float, total: float | None, message: str | None) -> None:
                    if quiet.when() is not None and not quiet.expired():
                        quiet.reschedule(loop.time() + pause)
                    if on_progress is not None:
                        await on_progress(progress, total, message)

                self._timeouts |= {whole, quiet}
                try:
                    answer = await request(progressed)
                finally:
                    self._timeouts -= {whole, quiet}
        except TimeoutError:
            limit = f"{most:g} seconds" if whole.expired() else f"{pause:g} seconds without progress"
            raise McpTimeout(f"The MCP server {name} did not answer within {limit}.", sent=True) from None
        except MCPError as error:
            raise await self._failed(error) from None
        except ValidationError as error:
            what = "a result that is not valid: " + _first(error)
            if _is_task(error):
                what = "a task instead of a result. quoth does not wait for tasks."
            raise McpError(f"The MCP server {name} sent {what}", sent=True) from None
        except RuntimeError as error:
            raise McpError(
                f"The MCP server {name} sent a result that is not valid: {_quoted(error)}"
            ) from None
        self._failures = 0
        return answer

    def _unhurried(self, answer: Callable[..., Awaitable[Any]] | None) -> Any:
        """``answer``, which may ask a person: meanwhile the deadlines of the open requests are paused."""
        if answer is None:
            return None

        async def answered(*args: Any) -> Any:
            loop = asyncio.get_running_loop()
            begun = loop.time()
            held = [(one, when) for one in self._timeouts if (when := one.when()) is not None]
            for timeout, _ in held:
                timeout.reschedule(None)
            try:
                return await answer(*args)
            finally:
                for timeout, when in held:
                    if timeout in self._timeouts and not timeout.expired():
                        timeout.reschedule(when + loop.time() - begun)

        return answered

    async def _failed(self, error: Any) -> Exception:
        from mcp_types import CONNECTION_CLOSED, PARSE_ERROR

        from quoth.tools.mcp.messages import NOT_SENT, UNANSWERED

        name, said = self.config.name, _quoted(error)
        lost = error.code == CONNECTION_CLOSED  # servers use this code, too
        if self._stop.is_set() or (lost and said == "Connection closed"):
            if self._owner is not None and self.config.url:
                await asyncio.wait({self._owner}, timeout=MOMENT)  # it knows why
            if isinstance(self._failure, UsageError | McpError):
                return self._failure
            failed = "" if self._failure is None else f"failed: {_quoted(self._failure)}"
            reason = self._reason or failed or "closed the connection"
            return McpError(f"The MCP server {name} {reason} before it answered. {self._where()}", sent=True)
        if error.code in (NOT_SENT, UNANSWERED, PARSE_ERROR) or (lost and said.startswith("SSE stream")):
            return McpError(f"The MCP server {name} gave no answer: {said}.", sent=error.code != NOT_SENT)
        self._failures = 0
        return McpError(f"The MCP server {name} answered with an error: {said}")

    def _unconnected(self, error: Exception | None) -> Exception:
        """Why a server could not be connected to."""
        name = self.config.name
        if isinstance(error, UsageError | McpError):
            return error
        if isinstance(error, TimeoutError):
            seconds = f"{self._deadlines.connect:g} seconds"
            self._reason = f"did not answer within {seconds}"
        elif isinstance(error, FileNotFoundError | NotADirectoryError):
            self._reason = "could not be started: its cwd is not a folder"
        elif isinstance(error, OSError):
            self._reason = f"could not be started: {error.strerror or error}"
        elif error is not None and not self._reason:
            self._reason = f"could not be connected to: {_quoted(error)}"
        return McpError(
            f"The MCP server {name} {self._reason or 'could not be connected to'}. {self._where()}"
        )

    def _where(self) -> str:
        return "" if self.config.url else f"Its log is {self.log}."


def _cause(error: Exception) -> Exception:
    """The first error of a group, and of the groups in it."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _quoted(error: Exception) -> str:
    """The words of a server, as data."""
    return visible(short(redact(str(error)), LONGEST_ERROR)) or type(error).__name__


def _first(error: Any) -> str:
    """The first fault that a check of the protocol has found."""
    found = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(map(str, found["loc"]))
    return visible(short(f"{place}: {found['msg']}", LONGEST_ERROR))


def _is_task(error: Any) -> bool:
    """Whether the result that is not valid is a task."""
    found = [one["input"] for one in error.errors(include_url=False) if isinstance(one["input"], dict)]
    return any("task" in one or one.get("resultType") == "task" for one in found)


def _is_modern(client: Client) -> bool:
    """Whether the connection has no handshake."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return client.protocol_version in MODERN_PROTOCOL_VERSIONS


def _more(client: Client) -> tuple[str, ...]:
    """What a server offers beside tools and lists."""
    said = client.server_capabilities
    offered = {
        "logging": said.logging is not None,
        "completions": said.completions is not None,
        "subscriptions": said.resources is not None and bool(said.resources.subscribe),
    }
    return tuple(name for name, is_offered in offered.items() if is_offered)


@cache
def _call_results() -> Any:
    """Reads the results of calls. A task, which quoth did not request, is not among them."""
    from mcp_types import CallToolResult, InputRequiredResult
    from pydantic import TypeAdapter

    return TypeAdapter(CallToolResult | InputRequiredResult)


@cache
def _quiet() -> None:
    """Keep the SDK's warnings off the terminal, unless the host's own logging is set up."""
    for name in ("mcp", "client", "httpx2"):
        logging.getLogger(name).addHandler(logging.NullHandler())
