"""A server of the SDK that announces changes of its lists and resources: on the connections of revisions with
a handshake, and on the streams that clients of 2026-07-28 request."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from contextlib import AsyncExitStack
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

SECONDS = 10.0  # for a client to take an announcement
EVENTS: dict[str, tuple[ServerEvent, type[Any]]] = {
    "tools": (ToolsListChanged(), types.ToolListChangedNotification),
    "resources": (ResourcesListChanged(), types.ResourceListChangedNotification),
    "prompts": (PromptsListChanged(), types.PromptListChangedNotification),
}
CHANGES = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)


MOST_URIS = 100  # resources whose changes one client follows
Context = ServerRequestContext[Any, Any]
Subscribe = Callable[[Context, str, bool], Awaitable[object]]


class AnnouncingServer(Server[Any]):
    """Its handlers are those of the SDK's. Its owner must call ``aclose``.

    ``client_of`` names the client of a request. ``subscribe`` begins to follow a resource for it at its first
    subscription, and ends at its last."""

    def __init__(
        self,
        name: str,
        *,
        client_of: Callable[[Context], Hashable],
        subscribe: Subscribe | None = None,
        **handlers: Any,
    ) -> None:
        self._client_of, self._subscribe = client_of, subscribe
        self._streams: dict[Hashable, tuple[InMemorySubscriptionBus, ListenHandler]] = {}  # by client
        self._sessions: dict[Any, tuple[Hashable, ServerSession]] = {}  # by connection
        self._uris: dict[Any, dict[str, AsyncExitStack]] = {}  # by connection
        self._followed: Counter[tuple[Hashable, str]] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        if subscribe is not None:
            handlers |= {"on_subscribe_resource": self._begin, "on_unsubscribe_resource": self._end}
        super().__init__(name, on_subscriptions_listen=self._listen, **handlers)
        self.middleware.append(self._met)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        return super().create_initialization_options(
            notification_options or CHANGES, experimental_capabilities, extensions
        )

    def get_capabilities(self, *args: Any, **more: Any) -> types.ServerCapabilities:
        found = super().get_capabilities(*args, **more)
        if found.resources is not None:  # the SDK infers it from announcements
            found.resources.subscribe = "resources/subscribe" in self._request_handlers
        return found

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        uris = {*(params.notifications.resource_subscriptions or ())} if self._subscribe is not None else ()
        wanted = params.notifications.model_copy(update={"resource_subscriptions": sorted(uris) or None})
        async with AsyncExitStack() as following:
            for uri in sorted(uris):
                await self._follow(ctx, uri, following)
            _, listening = self._stream_of(self._client_of(ctx))
            return await listening(ctx, params.model_copy(update={"notifications": wanted}))

    def _stream_of(self, client: Hashable) -> tuple[InMemorySubscriptionBus, ListenHandler]:
        if client not in self._streams:
            bus = InMemorySubscriptionBus()
            self._streams[client] = bus, ListenHandler(bus)
        return self._streams[client]

    async def _begin(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        connection, uri = ctx.session._connection, str(params.uri)
        followed = self._uris.setdefault(connection, {})
        if uri not in followed:
            followed[uri] = AsyncExitStack()  # before it is followed: the first change may come at once
            try:
                await self._follow(ctx, uri, followed[uri])
            except BaseException:
                followed.pop(uri, None)
                raise
        return types.EmptyResult()

    async def _end(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        if (stack := self._uris.get(ctx.session._connection, {}).pop(str(params.uri), None)) is not None:
            await stack.aclose()
        return types.EmptyResult()

    async def _follow(self, ctx: Context, uri: str, stack: AsyncExitStack) -> None:
        """Follow a resource for a client until the stack is closed. Raises MCPError."""
        assert self._subscribe is not None, "the caller looks"
        which = client, _ = self._client_of(ctx), uri
        if sum(1 for one, _ in +self._followed if one == client) >= MOST_URIS and not self._followed[which]:
            raise MCPError(types.INVALID_PARAMS, f"Subscribe to at most {MOST_URIS} resources.")
        self._followed[which] += 1
        try:
            if self._followed[which] == 1:
                await self._subscribe(ctx, uri, True)
        except BaseException:
            self._followed[which] -= 1
            raise
        stack.push_async_callback(self._leave, ctx, which)

    async def _leave(self, ctx: Context, which: tuple[Hashable, str]) -> None:
        self._followed[which] -= 1
        if not self._followed[which] and self._subscribe is not None:
            del self._followed[which]
            await _sent(self._subscribe(ctx, which[1], False))

    async def _gone(self, connection: Any) -> None:
        """A connection with a handshake has closed."""
        self._sessions.pop(connection, None)
        for stack in self._uris.pop(connection, {}).values():
            await stack.aclose()

    async def _met(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Keep the session of a connection with a handshake until it closes. The text of an exception goes to
        the log and not to the client."""
        if ctx.method == "notifications/initialized":
            connection = ctx.session._connection
            self._sessions[connection] = self._client_of(ctx), ctx.session
            connection.exit_stack.push_async_callback(self._gone, connection)  # the SDK has no other end
        try:
            return await call_next(ctx)
        except (MCPError, ValidationError):
            raise
        except Exception:
            logging.getLogger("quoth").exception("A request of an MCP client failed: %s", ctx.method)
            raise MCPError(types.INTERNAL_ERROR, f"{ctx.method} failed inside quoth.") from None

    def announce(self, kind: str) -> None:
        """Announce that a list, ``tools``, ``resources`` or ``prompts``, has changed."""
        event, notification = EVENTS[kind]
        for bus, _ in self._streams.values():
            self.start(bus.publish(event))
        for _, session in self._sessions.values():
            self.start(session.send_notification(notification()))

    def announce_resource(self, client: Hashable, changed: types.ResourceUpdatedNotification) -> None:
        """Announce to a client that a resource has changed, where it follows that."""
        uri = str(changed.params.uri)
        self.start(self._stream_of(client)[0].publish(ResourceUpdated(uri)))
        for connection, (whose, session) in self._sessions.items():
            if whose == client and uri in self._uris.get(connection, {}):
                self.start(session.send_notification(changed))

    def notify(self, client: Hashable, notification: Any) -> None:
        """Send a notification on the connections with a handshake of a client."""
        for whose, session in self._sessions.values():
            if whose == client:
                self.start(session.send_notification(notification))

    def start(self, sending: Coroutine[Any, Any, None]) -> None:
        """Begin to send something to a client."""
        task = asyncio.create_task(_sent(sending))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        for _, listening in self._streams.values():
            listening.close()
        if self._tasks:
            await asyncio.wait(self._tasks)


async def _sent(sending: Awaitable[object]) -> None:
    try:
        async with asyncio.timeout(SECONDS):
            await sending
    except Exception:  # noqa: S110  the client has gone, or reads nothing: it lists again when it returns
        pass
