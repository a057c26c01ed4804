"""What passes between a server and a client of MCP in front of us, beside the value of a call: the answer as
it is on the wire, and its progress."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT as Progress


@dataclass
class Relay:
    """Of one call. ``answer`` is the server's, once it has come, also one that is an error."""

    progress: Progress | None = None
    answer: Any = None


# Of the call that this context makes for a client.
RELAY: ContextVar[Relay | None] = ContextVar("RELAY", default=None)


def relayed(answer: Any) -> None:
    """Keep a server's answer for the client of the call, if it has one."""
    if (relay := RELAY.get()) is not None:
        relay.answer = answer
