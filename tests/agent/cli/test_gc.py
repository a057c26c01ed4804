"""Sessions that ended long ago: listed among many, and removed once a person has said so."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sentences import SAY_SO_WITH_YES
from words import Agent, quoth, scripted

from quoth.agent.session.index import (
    find_session,
    fork_session,
    latest_session,
    old_sessions,
    remove_sessions,
    summaries,
    unfinished_sessions,
)
from quoth.agent.session.session import alone
from quoth.tools.history.long_results import StorePages
from quoth.tools.history.outline import Outline
from quoth.tools.history.transcript import Transcript
from quoth.tools.storage.database import Store
from quoth.tools.storage.file_lock import hold, is_held, sweep
from quoth.tools.storage.paths import state_dir, store_path

WRITE = '(write-file :path "a.txt" :content "x")'
NOW, LONG_AGO = "2026-01-01T00:00", "2020-01-01T00:00:00.000+00:00"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A workspace with a session that has ended, one that waits and one of a single call."""
    with Agent(workspace=tmp_path, session="done", user="ann", model=scripted("One.")) as agent:
        agent.run("Say one.")
    with Agent(workspace=tmp_path, session="waits", user="ann", model=scripted(WRITE, "It waits.")) as agent:
        agent.run("Write.")
    with Agent(workspace=tmp_path, session="single", user="ann") as agent:
        agent.call('(echo :text "a")')
    return tmp_path


def aged(store: Store, *sessions: str) -> None:
    """Let the events of these sessions be of long ago."""
    for session in sessions:
        store.execute("UPDATE events SET at = ? WHERE session = ?", (LONG_AGO, session))


@pytest.fixture
def store(here: Path) -> Any:
    opened = Store(store_path(here))
    yield opened
    opened.close()


def names(store: Store) -> list[str]:
    return [row.session for row in Outline(lambda: store).sessions()]


# Among many


def test_the_latest_twenty_are_listed_and_more_if_asked(here: Path, store: Store) -> None:
    for _ in range(24):
        fork_session(store, "done")
    few = quoth("sessions", cwd=here)
    assert len(few.out.splitlines()) == 20
    assert few.err == "quoth: These are the latest 20 of 26 sessions. To show all: --all\n"
    every = quoth("sessions", "--all", cwd=here)
    assert (len(every.out.splitlines()), every.err) == (27, "")
    assert every.out.endswith(few.out)
    three = quoth("sessions", "--last", "3", "--json", cwd=here)
    assert len(json.loads(three.out)) == 3


def test_listing_a_few_of_many_reads_no_more_than_of_few(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    execute = Store.execute

    def counted(self: Store, sql: str, values: Any = ()) -> Any:
        asked.append(sql)
        return execute(self, sql, values)

    def statements() -> int:
        asked.clear()
        rows = Outline(lambda: store).sessions(every=False)
        list(summaries(store, rows[-3:]))
        latest_session(store, "ann", "work")
        unfinished_sessions(store)
        return len(asked)

    for _ in range(3):
        fork_session(store, "done")
    monkeypatch.setattr(Store, "execute", counted)
    before = statements()
    for _ in range(20):
        fork_session(store, "done")
    assert statements() == before


def test_what_waits_is_found_among_what_has_ended(store: Store) -> None:
    Transcript(lambda: store).add("broken", "session", {"user": "ann"})
    Transcript(lambda: store).add("broken", "call", {"form": "(echo)", "user": "ann"}, key="c1")
    assert sorted(unfinished_sessions(store)) == [("broken", "ann"), ("waits", "ann")]
    assert find_session(store, "sing") == "single"


# What ended long ago


def test_only_what_has_ended_long_ago_is_old(store: Store) -> None:
    assert old_sessions(store, NOW) == []
    aged(store, "done", "waits")
    assert [row.session for row in old_sessions(store, NOW)] == ["done"]


def test_an_old_session_goes_with_all_that_is_kept_of_it(store: Store) -> None:
    page = StorePages(lambda: store, "done", "ann", 10).keep("a long text")
    aged(store, "done", "waits", "single")
    assert remove_sessions(store, ["done", "waits", "single"], NOW) == ["done", "single"]
    assert names(store) == ["waits"]
    assert page
    for table in ("texts", "receipts", "writes", "imported"):
        assert store.execute(f"SELECT count(*) FROM {table} WHERE session != 'waits'") == [(0,)], table
    assert store.execute("SELECT count(*) FROM audit WHERE session = 'single'") == [(1,)]


def test_a_session_that_somebody_drives_or_went_on_with_stays(here: Path, store: Store) -> None:
    aged(store, "done")
    with alone(store_path(here), "done"):
        assert remove_sessions(store, ["done"], NOW) == []
    assert remove_sessions(store, ["single"], NOW) == []  # its last event is of today
    assert set(names(store)) == {"done", "waits", "single"}


def test_nothing_is_removed_unasked(here: Path, store: Store) -> None:
    assert quoth("gc", cwd=here).err.endswith("There is nothing to remove.\n")
    aged(store, "done", "waits")
    shown = quoth("gc", "--dry-run", cwd=here)
    assert (shown.code, shown.out) == (0, "done  2020-01-01 00:00 UTC  5 events\n")
    assert shown.err.endswith("This would remove 1 session and 0 lock files.\n")
    refused = quoth("gc", "--no-input", cwd=here)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.endswith(f"Remove 1 session and 0 lock files? {SAY_SO_WITH_YES}.\n")
    assert len(names(store)) == 3
    early = quoth("gc", "--days", "9" * 20, cwd=here)  # from before there were computers
    assert (early.code, early.err.endswith("There is nothing to remove.\n")) == (0, True)
    inside = quoth("gc", "--yes", cwd=here, env={"QUOTH_INSIDE": "1"})
    assert inside.err == "quoth: A program that a tool runs cannot remove sessions.\n"
    removed = json.loads(quoth("gc", "--yes", "--json", cwd=here).out)
    assert (removed["sessions"], removed["dry_run"]) == (["done"], False)
    assert set(names(store)) == {"waits", "single"}


# Locks


def test_old_lock_files_go_and_those_that_are_held_stay() -> None:
    with hold("old", "no"), hold("held", "no"):
        pass
    for file in (state_dir() / "locks").iterdir():
        os.utime(file, (0, 0))
    with hold("new", "no"), hold("held", "no"):
        assert sweep(1, dry=True) == 1
        assert sweep(1) == 1
        assert is_held("held")
    assert len(list((state_dir() / "locks").iterdir())) == 2


def test_a_lock_whose_file_was_swept_away_is_taken_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    with hold("a", "no"):
        pass
    from quoth.tools.storage import file_lock

    taken, swept = file_lock.taken_within, []

    def late(seconds: float, take: Callable[[], bool]) -> bool:
        if not swept:
            swept.append(sweep(2**40))
        return taken(seconds, take)

    monkeypatch.setattr(file_lock, "taken_within", late)
    with hold("a", "no"):
        assert swept == [1]
        assert is_held("a")


def test_two_that_sweep_at_once_leave_a_lock_that_was_made_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    with hold("a", "no"):
        pass
    from quoth.tools.storage import file_lock

    taken = file_lock._tried
    with ExitStack() as meanwhile:

        def late(lock: int, how: int) -> bool:
            monkeypatch.setattr(file_lock, "_tried", taken)
            assert sweep(2**40) == 1
            meanwhile.enter_context(hold("a", "no"))
            return taken(lock, how)

        monkeypatch.setattr(file_lock, "_tried", late)
        assert sweep(2**40) == 0
        assert is_held("a")
