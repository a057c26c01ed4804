"""A server of the SDK that announces changes of its lists: on the connections of revisions with a handshake,
and on the streams that clients of 2026-07-28 request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
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


class AnnouncingServer(Server[Any]):
    """Its handlers are those of the SDK's. Its owner must call ``aclose``."""

    def __init__(self, name: str, **handlers: Any) -> None:
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus)
        self._sessions: list[ServerSession] = []
        self._tasks: set[asyncio.Task[None]] = set()
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
        self, ctx: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        wanted = params.notifications.model_copy(update={"resource_subscriptions": None})
        return await self._listening(ctx, params.model_copy(update={"notifications": wanted}))

    async def _met(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Keep the session of a connection with a handshake until it closes. The text of an exception goes to
        the log and not to the client."""
        if ctx.method == "notifications/initialized":
            session = ctx.session
            self._sessions.append(session)
            session._connection.exit_stack.callback(
                self._sessions.remove, session
            )  # the SDK has no other end
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
        self._start(self._bus.publish(event))
        self.notify(notification())

    def notify(self, notification: Any) -> None:
        """Send a notification to every client with a handshake."""
        for session in self._sessions:
            self._start(session.send_notification(notification))

    def _start(self, sending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(_sent(sending))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        self._listening.close()
        if self._tasks:
            await asyncio.wait(self._tasks)


async def _sent(sending: Coroutine[Any, Any, None]) -> None:
    try:
        async with asyncio.timeout(SECONDS):
            await sending
    except Exception:  # noqa: S110  the client has gone, or reads nothing: it lists again when it returns
        pass
