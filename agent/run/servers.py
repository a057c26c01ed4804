"""The MCP servers of an agent: which are configured, and their trusted tools in its table.

Nothing of this is imported or read where no server is configured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quoth.agent.config.config import Config
from quoth.neuro.backends.providers import PROVIDERS
from quoth.tools.registry.table import ToolTable
from quoth.tools.storage.paths import is_missing, user_servers

if TYPE_CHECKING:
    from quoth.tools.mcp.config import Servers
    from quoth.tools.mcp.servers import LiveServers, ServerSetup
    from quoth.tools.policy.model import EffectsOf


def configured(root: Path, given: Iterable[str | Path], config: Config) -> Servers | None:
    """The servers that are configured for a workspace; None if no file names any. Raises UsageError."""
    files = [*given, *(config.mcp or ())]
    if not files and is_missing(user_servers()) and is_missing(root / ".mcp.json"):
        return None
    from quoth.tools.mcp.config import load_servers  # here: most agents have none

    return load_servers(root, files)


def setup_of(root: Path, config: Config, *, sampling: bool = False) -> ServerSetup:
    """How the servers of an agent are opened: in its workspace, without the keys of its model servers. With
    ``sampling`` they may ask its model."""
    from quoth.tools.mcp.servers import ServerSetup  # here: most agents have none

    providers = {**PROVIDERS, **config.providers}
    return ServerSetup(root, frozenset(one.key for one in providers.values() if one.key), sampling)


def served(
    table: ToolTable,
    root: Path,
    given: Iterable[str | Path],
    config: Config,
    effects: Callable[[], Mapping[str, Sequence[EffectsOf]]],
    *,
    sampling: bool = False,
) -> tuple[ToolTable, LiveServers | None]:
    """The table with the trusted tools of the configured servers; and the servers, to be closed, with notes
    about what cannot be used. None if no server is configured. ``effects`` are the effects that the person's
    rules state. Raises UsageError."""
    found = configured(root, given, config)
    if found is None:
        return table, None
    from quoth.tools.mcp.entries import with_servers  # here: most agents have none
    from quoth.tools.mcp.servers import LiveServers

    setup = setup_of(root, config, sampling=sampling or bool(config.mcp_sampling))
    servers = LiveServers(found.configs, setup, found.notes)
    return with_servers(table, servers, effects()), servers
