"""The store of the bench of large stores is as whole as one that calls have written."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoth.tools.history.audit import StoreAudit
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path
from tests.bench.sessions import fill


@pytest.mark.parametrize("rows", [7, 40])
def test_each_row_of_its_audit_has_the_events_of_a_call_of_its_own(tmp_path: Path, rows: int) -> None:
    (work := tmp_path / "work").mkdir()
    fill(work, sessions=20, rows=rows, steps=[])
    store = Store(store_path(work))
    found = StoreAudit(lambda: store).verify()
    assert (found.rows, found.faults) == (rows + 2, [])
    named = store.execute("SELECT DISTINCT session, event FROM audit")
    assert len(named) == found.rows
    store.close()
