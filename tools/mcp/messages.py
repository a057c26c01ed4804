"""What both transports do with a server's messages."""

from __future__ import annotations

import re
from typing import Any, Self

from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCResponse
from pydantic import ValidationError

MAX_MESSAGE = 16_000_000  # bytes of one message
NOT_SENT, UNANSWERED = -32098, -32099  # codes of errors that our side of a connection answers a request with
_EDGE = 300  # bytes at each end of a message, in which its id is
_VERSION = re.compile(rb'"jsonrpc"\s*:\s*"2\.0"')
_ID = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*[,}]')


def unreadable(line: bytes, error: ValueError) -> JSONRPCError | None:
    """The failure of the request that a line would answer, if it could be read; None if it names none. An
    answer that is nested too deeply, or cut, then fails its request at once."""
    head, tail = line[:_EDGE], line[-_EDGE:]
    found = _ID.search(head) or _ID.search(tail)
    if found is None or not (_VERSION.search(head) or _VERSION.search(tail)) or b'"method"' in head:
        return None
    why = "it is not a message of JSON-RPC"
    if isinstance(error, ValidationError):
        said = [one["msg"] for one in error.errors(include_input=False) if one["type"] == "json_invalid"]
        why = said[0] if said else why
    return JSONRPCError(
        jsonrpc="2.0",
        id=int(found[1]),
        error=ErrorData(code=PARSE_ERROR, message=f"its answer cannot be read: {why}"),
    )


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
