"""Opens the memory that the host or a person chose: SQLite, or PostgreSQL for a URL.

It knows the stores there are; it must not know what they do.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from quoth.tools.call.services import Embedder
from quoth.tools.errors import UsageError
from quoth.tools.memory.sqlite import SqliteMemory
from quoth.tools.storage.database import Store
from quoth.tools.text import excerpt

POSTGRES = ("postgresql", "postgres")


def open_memory(
    url: str | None,
    store: Callable[[], Store],
    agent_id: str,
    *,
    user: str = "",
    embedder: Embedder | None = None,
    older: Callable[[str], Embedder | None] = lambda name: None,
    person: bool = False,
) -> Any:
    """The memory of an agent, which is MemoryStore, Search and SharedBlocks: in the store of the workspace,
    or in the database that ``url`` names. Conversations are searched in ``store`` either way. ``older`` gives
    the embedder of vectors that another one than ``embedder`` made."""
    if not url:
        return SqliteMemory(store, agent_id, user=user, embedder=embedder, older=older, person=person)
    scheme, colon, _ = url.partition("://")
    if not colon or scheme not in POSTGRES:
        shown = f"{excerpt(scheme)}://" if colon else "a text without ://"
        raise UsageError(
            "The memory is in PostgreSQL, postgresql://USER:PASSWORD@HOST/DATABASE (or postgres://…), or,"
            f" when no URL is given, in the workspace; {shown} is neither."
        )
    postgres = import_module("quoth.tools.memory.postgres")
    return postgres.PostgresMemory(url, agent_id, store=store, user=user, embedder=embedder, person=person)
