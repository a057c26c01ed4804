"""A store that an earlier version wrote is listed, shown and gone on with by this one."""

from __future__ import annotations

import time
from pathlib import Path

import apsw
import pytest
from sentences import NOTHING_WAITS_IN_SESSION
from words import complaint, scripted

from quoth import Agent, ToolResult, UsageError
from quoth.agent.cli.main import main
from quoth.agent.reply import Reply
from quoth.tools.consent.requests import Decision
from quoth.tools.history.audit import StoreAudit
from quoth.tools.history.transcript import Transcript
from quoth.tools.storage.database import MIGRATIONS, Store
from quoth.tools.storage.paths import store_path

FLAT = Path(__file__).parents[2] / "tools" / "data" / "store-13.sql"


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


def approved(agent: Agent) -> Reply | ToolResult:
    """What the one thing that waits in the session comes to when its one request is approved."""
    (request,) = agent.broker.requests(session=agent.session)
    agent.broker.decide(request.id, Decision())
    (result,) = agent.resume()
    return result


def test_an_older_store_opens_whole(older: Path) -> None:
    opened = Store(store_path(older))
    assert opened.execute("PRAGMA user_version") == [(len(MIGRATIONS),)]
    audit = StoreAudit(lambda: opened).verify()
    transcript = Transcript(lambda: opened)
    for session in ("apples", "pears", "plums"):
        transcript.verify(session)
    opened.close()
    assert (audit.ok, audit.rows) == (True, 6)


def test_its_requests_have_an_origin_without_a_channel(older: Path) -> None:
    with ann(older, "apples") as agent:
        origins = [request.origin for request in agent.broker.requests(every=True)]
    assert origins
    assert {(origin["channel"], origin["user"]) for origin in origins} == {("", "ann")}


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
        "2 ▶ r1, 2026-11-22 18:26 UTC: How many apples are there?",
        '5 → (read-file :path "notes.txt")',
        "6 ← ok: Three apples.",
        "8 ‹ There are three apples.",
        "9 ■ done in 2 steps",
    ]
    assert "\n5   → (write-file " in said("log", "plums")
    waiting = [line for line in said("pending").splitlines() if "(" in line]
    assert [line.split(maxsplit=1)[1] for line in waiting] == [
        r'(write-file :path "pears.txt" :content "Two pears.\n")',
        r'(write-file :path "plums.txt" :content "Three apples.\nOne plum.\n")',
    ]


# An approval is bound to the tool as it was. Its file is another now, so the person is asked once more.


def test_its_run_goes_on_with_what_it_had(older: Path) -> None:
    with ann(older, "pears", "It is written down.") as it:
        assert [approved(it).status, (older / "pears.txt").exists()] == ["pending", False]
        reply = approved(it)
        assert isinstance(reply, Reply)
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
    with ann(older, "plums") as it:
        assert [approved(it).status, (older / "plums.txt").exists()] == ["pending", False]
        result = approved(it)
        assert isinstance(result, ToolResult)
        assert (result.status, result.value) == ("ok", len("Three apples.\n"))
        assert (older / "plums.txt").read_text() == "Three apples.\nOne plum.\n"


def test_its_conversation_goes_on(older: Path) -> None:
    with ann(older, "apples", "Three, as I said.") as it:
        reply = it.follow("How many?")
    assert (reply.status, reply.text) == ("done", "Three, as I said.")
