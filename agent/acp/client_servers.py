"""The MCP servers that a client passes with a session. Each is kept as a file with ``mcpServers`` among the
user's own data, so that a person can look at its tools and trust them as those of any other server."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acp.schema import HttpMcpServer, McpServerStdio

from quoth.agent.session.index import session_of
from quoth.tools.errors import UsageError
from quoth.tools.mcp.config import KEY, read_servers
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.paths import private_folder, state_dir
from quoth.tools.visible import visible

KEPT_SECONDS = 90 * 86400.0


def keep_servers(client: str, servers: Sequence[Any]) -> list[Path]:
    """Write a file for each server of the client of this name, and return their paths; remove files that were
    not passed for KEPT_SECONDS. Raises UsageError."""
    folder = state_dir() / "client-servers" / session_of("acp", client)
    _remove_old(folder.parent)
    files = []
    passed = {server.name: _settings(server) for server in servers}
    if len(passed) < len(servers):
        raise UsageError(f"The client {client} passes two MCP servers of one name.")
    names = read_servers(passed, f"the client {client}").configs
    for slug, (name, settings) in zip(names, passed.items(), strict=True):
        path = folder / f"{slug}.json"
        data = json.dumps({KEY: {name: settings}}, indent=2).encode() + b"\n"
        try:
            if not path.exists() or path.read_bytes() != data:
                private_folder(folder)
                replace_file(path, [data], 0o600)  # the client may pass a token
            os.utime(path)
        except OSError as error:
            raise UsageError(f"The MCP server cannot be kept in {path}: {error.strerror}.") from None
        files.append(path)
    return files


def _remove_old(folder: Path) -> None:
    """Remove the files that no client has passed for KEPT_SECONDS; they may contain tokens."""
    for path in folder.glob("*/*.json"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < time.time() - KEPT_SECONDS:
                path.unlink()


def _settings(server: Any) -> dict[str, Any]:
    if isinstance(server, McpServerStdio):
        env = {one.name: one.value for one in server.env}
        return {"command": server.command, "args": server.args, "env": env}
    if isinstance(server, HttpMcpServer):
        return {"url": server.url, "headers": {one.name: one.value for one in server.headers}}
    raise UsageError(
        f"The MCP server {visible(server.name)} has a transport that quoth does not speak;"
        " it speaks stdio and http."
    )
