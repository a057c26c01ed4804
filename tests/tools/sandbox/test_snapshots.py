"""What a store keeps of programs: read again, also where an older version wrote it, and never unseen."""

from __future__ import annotations

import json
import time
import zlib
from base64 import b64encode
from pathlib import Path

import pytest

from quoth.tools.call.context import SavedValues
from quoth.tools.sandbox import snapshots
from quoth.tools.sandbox.snapshots import SnapshotError, StoreSnapshots, sandbox_version
from quoth.tools.storage.database import Store

STATE, LISTING = bytes(range(256)) * 8, [{"name": "x", "type": "int", "length": None}]
ROW = "SELECT state FROM snapshots"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "s.sqlite")


def test_values_are_read_again_by_whoever_wrote_them_and_by_others(store: Store) -> None:
    mine, other = StoreSnapshots(lambda: store), StoreSnapshots(lambda: store)
    assert mine.keep_values("s", "ann", SavedValues(STATE, LISTING))() == ""
    for one in (mine, other, other):
        found = one.values("s", "ann")
        assert found is not None
        assert (found.state, found.listing) == (STATE, LISTING)


def test_values_that_an_older_version_wrote_are_read(store: Store) -> None:
    kept = {"state": b64encode(STATE).decode(), "listing": LISTING, "generation": "g"}
    text = json.dumps({**kept, "sandbox": sandbox_version()})
    key, name, packed = snapshots._secret(), snapshots._place("s", "ann"), zlib.compress(text.encode(), 1)
    sealed = snapshots._key_name(key) + snapshots._mac(key, name, packed) + packed
    store.execute("INSERT INTO snapshots VALUES (?, 's', 0, ?)", (name, sealed))
    assert StoreSnapshots(lambda: store).values("s", "ann") == SavedValues(STATE, LISTING, "g")


def test_a_row_is_opened_once_and_one_with_other_bytes_is_looked_at(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[bytes] = []
    really = snapshots._unpacked
    monkeypatch.setattr(snapshots, "_unpacked", lambda data: opened.append(data) or really(data))  # type: ignore[func-returns-value]
    StoreSnapshots(lambda: store).keep_values("s", "ann", SavedValues(STATE, LISTING))()
    one = StoreSnapshots(lambda: store)
    assert one.values("s", "ann") == one.values("s", "ann")
    assert len(opened) == 1
    ((state,),) = store.execute(ROW)
    store.execute("UPDATE snapshots SET state = ?", (bytes(state)[:-1] + b"!",))
    with pytest.raises(SnapshotError):
        one.values("s", "ann")


def test_what_another_agent_wrote_meanwhile_is_not_what_was_remembered(store: Store) -> None:
    one, two = StoreSnapshots(lambda: store), StoreSnapshots(lambda: store)
    one.keep_values("s", "ann", SavedValues(STATE, LISTING))()
    seen = two.values("s", "ann")
    assert seen is not None
    two.keep_values("s", "ann", SavedValues(b"new", [], seen.generation))()
    again = one.values("s", "ann")
    assert again is not None
    assert again.state == b"new"
    store.execute("DELETE FROM snapshots")
    assert one.values("s", "ann") is None


def test_what_is_too_old_is_removed_now_and_then(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    one = StoreSnapshots(lambda: store)
    now = time.time()

    def keep(key: str, at: float) -> list[str]:
        monkeypatch.setattr(time, "time", lambda: at)
        one.keep(key, "s", "d", {})
        return [name for (name,) in store.execute("SELECT name FROM snapshots ORDER BY at")]

    assert keep("a", now) == ["call a"]
    assert keep("b", now + 60) == ["call a", "call b"]
    assert keep("c", now + snapshots.KEPT_SECONDS + 30) == ["call b", "call c"]
