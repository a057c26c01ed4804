"""What both transports do with a server's messages."""

from __future__ import annotations

from typing import Any, Self

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

MAX_MESSAGE = 16_000_000  # bytes of one message
NOT_SENT, UNANSWERED = -32098, -32099  # codes of errors that our side of a connection answers a request with


def completed(item: SessionMessage | Exception) -> SessionMessage | Exception:
    """A result without ``resultType`` is complete, says the revision 2026-07-28; the SDK refuses it."""
    if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
        item.message.result.setdefault("resultType", "complete")
    return item


class Completed:
    """A stream of messages, each ``completed``."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @property
    def last_context(self) -> Any:
        return self._inner.last_context

    async def receive(self) -> SessionMessage | Exception:
        return completed(await self._inner.receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return completed(await self._inner.__anext__())

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        ended: bool | None = await self._inner.__aexit__(*error)
        return ended

    async def aclose(self) -> None:
        await self._inner.aclose()
