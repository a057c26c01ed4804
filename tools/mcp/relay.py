"""What passes between a server and a client of MCP in front of us, beside the value of a call: the answer as
it is on the wire, its progress, and the log that the client asks for.

The answer is stored, too, so that the same call made again returns it as the server gave it.
"""

from __future__ import annotations

import json
import re
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quoth.tools.call.call import Call, ToolResult
from quoth.tools.call.context import ToolContext
from quoth.tools.call.redaction import SENT
from quoth.tools.errors import ToolError
from quoth.tools.history.long_results import StorePages, Texts

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT as Progress


@dataclass
class Relay:
    """Of one call. ``answer`` is the server's, once it has come, also one that is an error. ``level`` is the
    lowest level of log messages that the client wants; empty for none."""

    progress: Progress | None = None
    level: str = ""
    answer: Any = None


# Of the call that this context makes for a client.
RELAY: ContextVar[Relay | None] = ContextVar("RELAY", default=None)


KEPT = '(more :id "{}") is the answer as the server gave it.'
_KEPT = re.compile(re.escape(KEPT).replace(r"\{\}", "([a-z2-7]+)"))


def relayed(answer: Any, call: Call, ctx: ToolContext, *, secret: bool = False) -> None:
    """Keep a server's answer for the client of the call, if it has one, without what the server was given.
    An answer to a call with ``secret`` arguments may repeat them, and is not stored."""
    relay = RELAY.get()
    if relay is None and call.route != "mcp":
        return
    told = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    said = SENT.data(told)
    if relay is not None:
        relay.answer = answer if said == told else type(answer).model_validate(said)
    if secret or getattr(answer, "is_error", False) or not isinstance(ctx.pages, StorePages):
        return
    if id := ctx.pages.keep(json.dumps(said), synced=False):  # the receipt's write syncs it
        ctx.say(KEPT.format(id))


def kept_answer(result: ToolResult, pages: Texts | None) -> str | None:
    """The server's answer to a call that has a receipt, as JSON; None if it is not stored any more."""
    found = _KEPT.findall(result.message)
    if not found or not isinstance(pages, StorePages):
        return None
    try:
        return pages.text(found[-1])
    except ToolError:
        return None
