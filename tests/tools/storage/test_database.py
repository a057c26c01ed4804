"""The one SQLite file: where it lies, that it survives, and that what it cannot do is told."""

from __future__ import annotations

import errno
import os
import pwd
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest
from sentences import CANNOT_BE_OPENED
from words import Spy, complaint, gateway, tool

from quoth.tools.call.ports import MemoryAudit
from quoth.tools.errors import StoreError, UsageError
from quoth.tools.history.audit import COLUMNS, StoreAudit
from quoth.tools.storage import database
from quoth.tools.storage.database import FULL, MIGRATIONS, Store, newest
from quoth.tools.storage.paths import private_folder, state_dir, store_path


def row(number: int = 1, **more: Any) -> dict[str, Any]:
    """An audit row."""
    made: dict[str, Any] = dict.fromkeys(COLUMNS, "x")
    made |= {"id": str(number), "depth": 0, "round": 0, "place": number, "duration_ms": 3, "parent": None}
    made |= {"confidence": 0.5}
    return made | {"side_effects": ("wrote:a", "ran:é")} | more


def test_the_state_folder_is_named_by_the_environment(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert state_dir() == state
    monkeypatch.delenv("QUOTH_STATE")
    monkeypatch.setenv("XDG_DATA_HOME", str(state / "data"))
    assert state_dir() == state / "data" / "quoth"


def test_every_workspace_has_a_store_of_its_own_outside_of_it(tmp_path: Path, state: Path) -> None:
    (tmp_path / "a/home").mkdir(parents=True)
    (tmp_path / "b/home").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a/home")
    one, other = store_path(tmp_path / "a/home"), store_path(tmp_path / "b/home")
    assert one != other
    assert one.name.startswith("home-")
    assert one.parent == state / "workspaces"
    assert store_path(tmp_path / "link") == one
    assert store_path(tmp_path / "a/home/../home") == one
    assert store_path(Path("/")).name.startswith("root-")


def test_a_store_is_made_with_its_folders_and_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "deep/er/s.sqlite"
    Store(path).close()
    assert path.exists()
    assert path.parent.stat().st_mode & 0o077 == 0


def test_a_folder_is_closed_after_its_files(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between the two, the next process closes the files."""
    (state / "a").touch()
    (state / "a").chmod(0o644)
    state.chmod(0o755)
    closed: list[str] = []
    monkeypatch.setattr(Path, "chmod", lambda path, mode: closed.append(path.name))
    private_folder(state)
    assert closed == ["a", state.name]


def test_an_open_folder_is_closed_with_its_files_and_a_closed_one_is_not_looked_through(
    state: Path,
) -> None:
    (state / "workspaces").mkdir(parents=True, mode=0o700)
    for folder, mode in ((state, 0o755), (state / "workspaces", 0o700)):
        (folder / "a").touch()
        (folder / "a").chmod(0o644)
        folder.chmod(mode)
    private_folder(state / "workspaces")
    modes = [(state / name).stat().st_mode & 0o777 for name in (".", "a", "workspaces", "workspaces/a")]
    assert modes == [0o700, 0o600, 0o700, 0o644]


def test_what_was_written_is_there_after_closing_and_opening(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    store = Store(path)
    StoreAudit(lambda: store).write(row())
    store.close()
    again = Store(path)
    assert StoreAudit(lambda: again).rows() == [row() | {"side_effects": ["wrote:a", "ran:é"]}]
    assert again.execute("PRAGMA user_version") == [(newest(),)]
    again.close()


def test_what_was_written_survives_a_process_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from quoth.tools.storage.database import Store;"
        "s = Store(Path(sys.argv[1])); s.execute('CREATE TABLE t (x)');"
        "s.execute('INSERT INTO t VALUES (7)');"
        "os.kill(os.getpid(), 9)"
    )
    path = tmp_path / "s.sqlite"
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode == -9
    store = Store(path)
    assert store.execute("SELECT x FROM t") == [(7,)]
    store.close()


def test_a_second_store_of_a_process_does_not_give_up_the_locks_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    first = Store(path)
    first.execute("CREATE TABLE t (x)")
    Store(path).close()
    program = (  # the last to close a store deletes its write-ahead log
        "import sys; from pathlib import Path; from quoth.tools.storage.database import Store;"
        "s = Store(Path(sys.argv[1])); s.execute('SELECT * FROM t'); s.close()"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)
    first.execute("INSERT INTO t VALUES (7)")
    later = Store(path)
    assert later.execute("SELECT x FROM t") == [(7,)]
    later.close()
    first.close()


def test_rows_come_back_in_the_order_they_were_written(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite")
    audit = StoreAudit(lambda: store)
    for number in (3, 1, 2):
        audit.write(row(number))
    assert [found["place"] for found in audit.rows()] == [3, 1, 2]
    store.close()


def test_two_rows_of_one_call_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite")
    audit = StoreAudit(lambda: store)
    audit.write(row())
    with pytest.raises(StoreError):
        audit.write(row())
    assert len(audit.rows()) == 1
    store.close()


def test_two_connections_and_many_threads_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    stores = [Store(path), Store(path)]
    faults: list[BaseException] = []

    def write(first: int) -> None:
        try:
            for number in range(first, first + 10):
                store = stores[number % 2]
                StoreAudit(lambda store=store: store).write(row(number))
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=write, args=(start,)) for start in range(0, 60, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len(StoreAudit(lambda: stores[0]).rows()) == 60
    for store in stores:
        store.close()


def test_a_writer_waits_for_another_process_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store.db")
    other = apsw.Connection(str(tmp_path / "store.db"))
    other.execute("BEGIN IMMEDIATE")
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 60:
            other.execute("COMMIT")

    monkeypatch.setattr(database, "time", SimpleNamespace(sleep=wait))
    store.execute("CREATE TABLE notes (text TEXT)")
    assert len(waited) == 60
    assert waited[0] < 0.001
    assert max(waited) <= 0.005
    other.execute("BEGIN IMMEDIATE")
    told = complaint(StoreError, lambda: store.execute("DELETE FROM notes"))
    assert "another process keeps it locked" in told
    assert 9 < sum(waited[60:]) < 11
    other.execute("COMMIT")
    store.execute("DELETE FROM notes")


def test_a_store_is_opened_only_when_there_is_a_row(tmp_path: Path) -> None:
    opened: list[Store] = []

    def lazily() -> Store:
        if not opened:
            opened.append(Store(tmp_path / "s.sqlite"))
        return opened[0]

    here = gateway(tool(body=Spy("done")), audit=StoreAudit(lazily))
    assert opened == []
    result = here.pass_through("(probe)")
    assert [found["id"] for found in here.rows] == [result.id]
    opened[0].close()


def test_a_closed_store_makes_the_call_an_error_and_not_a_crash(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite")
    store.close()
    result = gateway(tool(), audit=StoreAudit(lambda: store)).pass_through("(probe)")
    assert result.status == "error"
    assert result.message.endswith("SQLite reports: The connection has been closed.")


def test_the_rows_of_memory_are_a_copy() -> None:
    audit = MemoryAudit()
    given = row()
    audit.write(given)
    given["id"] = "changed"
    audit.rows().clear()
    assert [found["id"] for found in audit.rows()] == ["1"]


def test_a_file_that_is_no_store_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    path.write_text("not a database, but somebody's letter" * 100)
    before = path.read_bytes()
    said = complaint(UsageError, lambda: Store(path))
    assert said.startswith(f"The store {path} {CANNOT_BE_OPENED}: ")
    assert path.read_bytes() == before


def test_a_place_where_no_file_can_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file/s.sqlite"):
        said = complaint(UsageError, lambda path=path: Store(path))
        assert said.startswith(f"The store {path} {CANNOT_BE_OPENED}: ")


@pytest.mark.parametrize(
    ("fault", "free", "why"),
    [
        (apsw.FullError, 10**9, FULL),
        (apsw.IOError, 0, FULL),  # where SQLite cannot make the files beside it
        (apsw.IOError, 10**9, "the disk has failed"),
        (lambda: OSError(errno.ENOSPC, "No space left on device"), 10**9, FULL),
    ],
    ids=["full", "no room beside it", "failed", "no file"],
)
def test_a_disk_that_fails_at_opening_is_nobodys_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Any, free: int, why: str
) -> None:
    def fail(store: Store) -> None:
        raise fault()

    monkeypatch.setattr(Store, "_write_ahead", fail)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=free))
    path = tmp_path / "s.sqlite"
    assert complaint(StoreError, lambda: Store(path)) == f"The store {path} {CANNOT_BE_OPENED}: {why}."


def test_a_read_only_place_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.sqlite"

    def fail(of: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(of))

    monkeypatch.setattr("quoth.tools.storage.database.private_file", fail)
    assert complaint(UsageError, lambda: Store(path)) == (
        f"The store {path} cannot be opened: Read-only file system. To continue: mount its disk so that it "
        "can be written, or: export QUOTH_STATE=DIR (a folder that you can write to)."
    )


def test_the_owner_of_a_store_of_another_user_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.sqlite"

    def fail(of: Path) -> None:
        raise OSError(errno.EACCES, "Permission denied", str(of))

    owner = pwd.getpwuid(os.geteuid()).pw_name
    monkeypatch.setattr("quoth.tools.storage.database.private_file", fail)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert complaint(UsageError, lambda: Store(path)) == (
        f"The store {path} cannot be opened: Permission denied. To continue: ask {owner}, who"
        f" owns {tmp_path}, for the right to write,"
        " or: export QUOTH_STATE=DIR (a folder that you can write to)."
    )


def test_a_store_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    store = Store(path)
    store.execute(f"PRAGMA user_version = {newest() + 1}")
    store.close()
    assert complaint(UsageError, lambda: Store(path)) == (
        f"A newer quoth wrote the store {path}; this one cannot read it."
    )


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.sqlite"
    Store(path).close()
    broken = (*MIGRATIONS, "CREATE TABLE half (x); CREATE TABLE audit (x);")
    monkeypatch.setattr("quoth.tools.storage.database.MIGRATIONS", broken)
    assert CANNOT_BE_OPENED in complaint(UsageError, lambda: Store(path))
    monkeypatch.undo()
    store = Store(path)
    assert store.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'half'") == [(0,)]
    store.close()


def test_a_later_migration_keeps_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.sqlite"
    store = Store(path)
    StoreAudit(lambda: store).write(row())
    store.close()
    monkeypatch.setattr("quoth.tools.storage.database.MIGRATIONS", (*MIGRATIONS, "CREATE TABLE later (x);"))
    store = Store(path)
    assert store.execute("SELECT * FROM later") == []
    assert len(StoreAudit(lambda: store).rows()) == 1
    store.close()


def test_a_store_in_memory_needs_no_file() -> None:
    store = Store(":memory:")
    StoreAudit(lambda: store).write(row())
    assert len(StoreAudit(lambda: store).rows()) == 1
    store.close()


def test_many_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    for number in range(20):
        together = threading.Barrier(6)

        def opened(together: threading.Barrier = together, number: int = number) -> None:
            together.wait()
            Store(tmp_path / f"{number}.sqlite").close()

        with ThreadPoolExecutor(6) as pool:
            for done in [pool.submit(opened) for _ in range(6)]:
                done.result()


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Store]:
    """A store with a table of notes."""
    store = Store(tmp_path / "s.sqlite")
    store.execute("CREATE TABLE notes (x UNIQUE)")
    yield store
    store.close()


def noted(notes: Store) -> list[Any]:
    """The notes as another connection sees them: what is committed, and no more."""
    other = apsw.Connection(str(notes.path))
    found = [x for (x,) in other.execute("SELECT x FROM notes ORDER BY rowid")]
    other.close()
    return found


def note(store: Store, what: str) -> None:
    with store.transaction() as run:
        run("INSERT INTO notes VALUES (?)", (what,))


def test_a_transaction_within_another_joins_it(notes: Store) -> None:
    with notes.transaction() as run:
        run("INSERT INTO notes VALUES ('outer')")
        note(notes, "inner")
        notes.execute("INSERT INTO notes VALUES ('by itself')")
        assert notes.execute("SELECT count(*) FROM notes") == [(3,)]
        assert noted(notes) == []
    assert noted(notes) == ["outer", "inner", "by itself"]


def test_joined_transactions_are_committed_and_synced_once(notes: Store) -> None:
    commits: list[str] = []
    notes._db.set_commit_hook(lambda: bool(commits.append("commit")))
    with notes.transaction(), notes.transaction():
        note(notes, "deep")
        note(notes, "deeper")
    assert commits == ["commit"]


def test_what_fails_within_undoes_all_of_it(notes: Store) -> None:
    def fail() -> None:
        with notes.transaction() as run:
            run("INSERT INTO notes VALUES ('outer')")
            with notes.transaction() as inner:
                inner("INSERT INTO notes VALUES ('inner')")
                raise KeyError("inner")

    with pytest.raises(KeyError):
        fail()
    assert noted(notes) == []
    note(notes, "later")
    assert noted(notes) == ["later"]


def test_what_fails_after_a_joined_one_undoes_that_too(notes: Store) -> None:
    def fail() -> None:
        with notes.transaction():
            note(notes, "inner")
            raise KeyError("outer")

    with pytest.raises(KeyError):
        fail()
    assert noted(notes) == []


def test_a_failed_part_that_somebody_caught_is_not_half_kept(notes: Store) -> None:
    said = "A part of this transaction has failed, so all of it is rolled back."

    def begin(go_on: bool) -> None:
        with notes.transaction() as run:
            run("INSERT INTO notes VALUES ('outer')")
            with suppress(KeyError), notes.transaction():
                raise KeyError
            if go_on:
                run("INSERT INTO notes VALUES ('more')")

    for go_on in (False, True):
        with pytest.raises(RuntimeError) as raised:
            begin(go_on)
        assert str(raised.value) == said
        assert noted(notes) == []
    note(notes, "later")
    assert noted(notes) == ["later"]


def test_a_statement_that_is_refused_may_be_caught_and_the_rest_is_kept(notes: Store) -> None:
    with notes.transaction() as run:
        run("INSERT INTO notes VALUES ('once')")
        for again in (run, notes.execute):
            with pytest.raises(apsw.ConstraintError):
                again("INSERT INTO notes VALUES ('once')")
        run("INSERT INTO notes VALUES ('more')")
    assert noted(notes) == ["once", "more"]


def test_another_thread_waits_until_the_outermost_has_ended(notes: Store) -> None:
    tried = threading.Event()

    def other(write: Callable[[], Any]) -> None:
        tried.set()
        write()

    writes: dict[str, Callable[[], Any]] = {
        "by transaction": lambda: note(notes, "by transaction"),
        "by statement": lambda: notes.execute("INSERT INTO notes VALUES ('by statement')"),
    }
    for name, write in writes.items():
        tried.clear()
        with ThreadPoolExecutor(1) as pool:
            with notes.transaction():
                note(notes, f"before {name}")
                done = pool.submit(other, write)
                tried.wait()
                note(notes, f"after {name}")
                assert not done.done()
            done.result()
        assert noted(notes)[-3:] == [f"before {name}", f"after {name}", name]


def test_another_threads_failure_is_not_mine(notes: Store) -> None:
    with pytest.raises(RuntimeError), notes.transaction(), suppress(KeyError), notes.transaction():
        raise KeyError
    with ThreadPoolExecutor(1) as pool:
        pool.submit(note, notes, "other").result()
    assert noted(notes) == ["other"]


def test_a_statement_outside_of_a_transaction_is_one_by_itself(notes: Store) -> None:
    notes.execute("INSERT INTO notes VALUES ('alone')")
    assert noted(notes) == ["alone"]
    with pytest.raises(StoreError):
        notes.execute("INSERT INTO notes VALUES ('alone')")
    notes.execute("INSERT INTO notes VALUES ('again')")
    assert noted(notes) == ["alone", "again"]


def test_every_commit_is_synced_and_logged_ahead(notes: Store) -> None:
    asked = [
        notes.execute(f"PRAGMA {name}")[0][0] for name in ("journal_mode", "synchronous", "secure_delete")
    ]
    assert asked == ["wal", 2, 1]


HOLD_CHECKPOINTS = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    fcntl.lockf(file, fcntl.LOCK_EX, 1, 121)  # as SQLite does while it brings a log into its store
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_commit_stands_while_somebody_else_shortens_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store.db")
    monkeypatch.setattr("quoth.tools.storage.database.LONG", 0)
    store.execute("INSERT INTO imported VALUES ('a', 1)")
    held = [sys.executable, "-c", HOLD_CHECKPOINTS, str(tmp_path / "store.db-shm")]
    with subprocess.Popen(held, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        store.execute("INSERT INTO imported VALUES ('b', 1)")
        assert other.stdin is not None
        other.stdin.close()
    assert store.execute("SELECT count(*) FROM imported") == [(2,)]
    store.close()
