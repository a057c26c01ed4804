"""New stores are copies of one that the schema and all migrations have made. Knows no test."""

from __future__ import annotations

import contextlib
import threading

import apsw

from quoth.tools.storage import database as store_module
from quoth.tools.storage.database import MIGRATIONS, Store


def copied() -> Store:
    """From now on a new store of this process, and of those forked off it, is a copy of this one."""
    real = Store._migrate
    made, one_at_a_time = Store(":memory:"), threading.Lock()

    def migrate(self: Store) -> None:
        usual = type(self._db) is apsw.Connection and store_module.MIGRATIONS is MIGRATIONS
        with one_at_a_time, contextlib.suppress(apsw.BusyError):  # another process makes it just now
            if usual and not self._looking and not self.execute("SELECT 1 FROM sqlite_schema"):
                with self._db.backup("main", made._db, "main") as copy:
                    copy.step()
        real(self)

    Store._migrate = migrate  # type: ignore[method-assign]
    return made
