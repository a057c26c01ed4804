"""How a request to an MCP server fails."""

from __future__ import annotations

from quoth.tools.errors import ToolError


class McpError(ToolError):
    """A request to a server has failed. ``sent``: it was sent and got no answer, so the server may have
    executed it."""

    def __init__(self, sentence: str, *, sent: bool = False) -> None:
        super().__init__(sentence)
        self.sent = sent


class McpTimeout(McpError):
    """A server did not answer in time; a call may still have been executed."""


class LoginNeeded(McpError):
    """A server requires a login, which only a person starts."""


class RestartedError(McpError):
    """A server was started again, so its tools must be compared with the pins again; nothing was sent."""
