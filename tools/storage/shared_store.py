"""One open store for all agents of a process that work in the same workspace.

A connection takes 200 to 450 KB, and data that one agent has written need not be read again by the others.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable
from contextlib import AbstractContextManager
from pathlib import Path

from quoth.tools.storage.database import Statement, Store
from quoth.tools.storage.paths import store_path

_Place = tuple[int, str, int]  # the process, the path and the file that is there
_OPEN: dict[_Place, SharedStore] = {}
_LOCK = threading.RLock()


class SharedStore(Store):
    """A store that is closed when the last of its users has closed it."""

    users = 0

    def close(self) -> None:
        with _LOCK:
            self.users -= 1
            if self.users > 0:
                return
            for place, store in list(_OPEN.items()):
                if store is self:
                    del _OPEN[place]
        super().close()


def shared_store(path: Path) -> Store:
    """The open store at this path, opened if it is not. Each who asks closes it. Raises as Store does."""
    with _LOCK:
        try:
            store = _OPEN.get(_place(path))
        except OSError:  # it is not there, or says so when it is opened
            store = None
        if store is None:
            store = SharedStore(path)
            _OPEN[_place(path)] = store
        store.users += 1
        return store


def _place(path: Path) -> _Place:
    return os.getpid(), str(path), path.stat().st_ino


class WorkspaceStore:
    """The store of a workspace, open from the first use on: calling this gives it. All parts of an agent have
    one of these."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self.opened: Store | None = None

    def __call__(self) -> Store:
        if self.opened is None:
            self.opened = shared_store(store_path(self._workspace))
        return self.opened

    def together(self) -> AbstractContextManager[Statement]:
        """A transaction that waits for no disk."""
        return self().transaction(synced=False)

    def on_disk(self, session: str) -> Awaitable[None]:
        """Waits until all writes of a session are on disk."""
        return self().on_disk(session)

    def close(self) -> None:
        """Close the store; the next use opens it again."""
        store, self.opened = self.opened, None
        if store is not None:
            store.close()
