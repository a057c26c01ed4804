"""A store of the schema of release 0.1.0, written by quoth at 55d1289a, is read, shown and continued; older
ones are refused."""

from __future__ import annotations

import time
from pathlib import Path

import apsw
import pytest
from sentences import NOTHING_WAITS_IN_SESSION
from words import complaint, scripted

from quoth import Agent, UsageError
from quoth.agent.cli.main import main
from quoth.agent.reply import Reply
from quoth.tools.consent.requests import Decision
from quoth.tools.history.audit import StoreAudit
from quoth.tools.history.transcript import Transcript
from quoth.tools.storage.database import UPGRADER, Store, newest
from quoth.tools.storage.paths import store_path
from quoth.tools.storage.schema import FIRST, SCHEMA

FLAT = Path(__file__).parents[2] / "tools" / "data" / "store-29.sql"


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A workspace with that store. It has no notes.txt, which was read then: who reads it again fails."""
    path = store_path(tmp_path)
    path.parent.mkdir(parents=True)
    old = apsw.Connection(str(path))
    old.execute(FLAT.read_text())
    old.execute("UPDATE requests SET expires = ?", (time.time() + 3600,))  # a week had gone by
    old.close()
    return tmp_path


def ann(older: Path, session: str, *replies: str) -> Agent:
    return Agent(workspace=older, session=session, user="ann", model=scripted(*replies))


def approved(agent: Agent) -> Reply:
    """The reply of the run that waits in the session, once each of its requests is approved. A tool whose
    file has changed since then is asked about again."""
    while True:
        (request,) = agent.broker.requests(session=agent.session)
        agent.broker.decide(request.id, Decision())
        (result,) = agent.resume()
        assert isinstance(result, Reply)
        if result.status != "pending":
            return result


def test_an_older_store_opens_whole(older: Path) -> None:
    opened = Store(store_path(older))
    assert opened.execute("PRAGMA user_version") == [(newest(),)]
    audit = StoreAudit(lambda: opened).verify()
    transcript = Transcript(lambda: opened)
    for session in ("apples", "pears", "plums"):
        transcript.verify(session)
    opened.close()
    assert (audit.ok, audit.rows) == (True, 6)


def tables(*statements: str) -> list[tuple[str, ...]]:
    """The columns of each table, and the other parts of a schema without their white space."""
    store = apsw.Connection(":memory:")
    for one in statements:
        store.execute(one)
    parts = list(store.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"))
    columns = [
        (name, *map(str, store.execute(f"PRAGMA table_xinfo({name})")))
        for kind, name, _ in parts
        if kind == "table"
    ]
    others = [(kind, name, "".join((sql or "").split())) for kind, name, sql in parts if kind != "table"]
    return columns + others


def test_the_first_schema_is_never_edited() -> None:
    assert tables(SCHEMA) == tables(FLAT.read_text())


def test_a_store_from_before_the_first_release_is_refused(older: Path) -> None:
    path = store_path(older)
    old = apsw.Connection(str(path))
    old.execute(f"PRAGMA user_version = {FIRST - 1}")
    old.close()
    said = complaint(UsageError, lambda: Store(path))
    assert said == (
        f"The store {path} was written before quoth 0.1.0: its schema is 28, and the oldest readable one is "
        f"29. Open it once with quoth at {UPGRADER}, which upgrades it, or move it away."
    )


def test_its_requests_have_an_origin(older: Path) -> None:
    with ann(older, "apples") as agent:
        origins = [request.origin for request in agent.broker.requests(every=True)]
    assert origins
    assert {(origin["channel"], origin["user"]) for origin in origins} == {("python", "ann")}


def test_its_sessions_are_listed_and_shown(
    older: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(older)

    def said(*words: str) -> str:
        assert main(words) == 0
        return capsys.readouterr().out

    assert [line.split()[0] for line in said("sessions", "--all").splitlines()] == [
        "apples",
        "pears",
        "plums",
    ]
    assert said("log", "apples").splitlines()[1:] == [
        "2 ▶ r1, 2026-11-29 16:00 UTC: How many apples are there?",
        '5 → (read-file :path "notes.txt")',
        "6 ← ok: Three apples.",
        "8 ‹ There are three apples.",
        "9 ■ done in 2 steps",
    ]
    assert "   → (write-file " in said("log", "plums")
    waiting = [line for line in said("pending").splitlines() if "  (write-file" in line]
    assert [line.split(maxsplit=1)[1] for line in waiting] == [
        r'(write-file :path "pears.txt" :content "Two pears.\n")',
        r'(write-file :path "plums.txt" :content "Three apples.\nOne plum.\n")',
    ]


def test_its_run_goes_on_with_what_it_had(older: Path) -> None:
    with ann(older, "pears", "It is written down.") as it:
        reply = approved(it)
        assert (reply.status, reply.text) == ("done", "It is written down.")
        assert [call.result.value for call in reply.calls] == [
            "Three apples.\n",
            "Created pears.txt, 11 bytes.",
        ]
        assert (older / "pears.txt").read_text() == "Two pears.\n"
        assert complaint(UsageError, it.resume) == f"{NOTHING_WAITS_IN_SESSION} pears."
    whole = Store(store_path(older))
    Transcript(lambda: whole).verify("pears")
    assert StoreAudit(lambda: whole).verify().ok
    whole.close()


def test_its_program_goes_on_with_what_it_had(older: Path) -> None:
    with ann(older, "plums", "A plum is added.") as it:
        reply = approved(it)
    assert (reply.status, reply.text) == ("done", "A plum is added.")
    assert [call.result.value for call in reply.calls] == [len("Three apples.\n")]
    assert (older / "plums.txt").read_text() == "Three apples.\nOne plum.\n"


def test_its_conversation_goes_on(older: Path) -> None:
    with ann(older, "apples", "Three, as I said.") as it:
        reply = it.follow("How many?")
    assert (reply.status, reply.text) == ("done", "Three, as I said.")
