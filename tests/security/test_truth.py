"""The audit says what counted, and a transcript that was tampered with, or cannot be read, is told of."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sentences import CANNOT_BE_READ, NO_REQUESTS_ARE_WAITING, WAS_CHANGED_AFTER_IT_WAS
from words import PausableClock, desk, scripted, tool

from quoth import Agent
from quoth.agent.cli import main as cli
from quoth.agent.flight.approval import record
from quoth.agent.plan.org_reader import read_plan
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent.broker import Broker
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import StoreError, UsageError
from quoth.tools.history.audit import StoreAudit
from quoth.tools.history.event import TranscriptError
from quoth.tools.history.transcript import Transcript
from quoth.tools.registry.table import ToolTable
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

# A decision


@pytest.mark.parametrize(
    "kinds",
    [("once", "deny"), ("deny", "once"), ("duration", "deny"), ("once", "once"), ("deny", "deny")],
    ids="-".join,
)
def test_of_two_who_decide_at_once_the_audit_names_the_one_whose_word_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinds: tuple[Any, Any]
) -> None:
    path, clock, both = tmp_path / "s.sqlite", PausableClock(), threading.Barrier(2)
    stores = [Store(path), Store(path)]
    here = desk(stores[0], tool("probe", effects=["writes"]), clock=clock)
    here.pass_through("(probe)", session="s1")
    (asked,) = here.waiting
    true_preview = Broker.preview

    def preview(self: Broker, request: str, decision: Decision) -> Decision:
        found = true_preview(self, request, decision)
        both.wait(10)  # both have seen that it is open
        return found

    monkeypatch.setattr(Broker, "preview", preview)
    said: dict[str, str] = {}

    def decides(name: str, store: Store, kind: Any) -> None:
        broker = Broker(
            lambda: store,
            here.door.table,
            Workspace("."),
            audit=StoreAudit(lambda: store),
            clock=clock,
        )
        try:
            broker.decide(asked.id, Decision(kind, name))
            said[name] = "counts"
        except UsageError as error:
            said[name] = str(error)

    people = [
        threading.Thread(target=decides, args=one) for one in zip(("ann", "bob"), stores, kinds, strict=True)
    ]
    for person in people:
        person.start()
    for person in people:
        person.join(20)
    found = here.broker.find(asked.id)
    rows = [row for row in StoreAudit(lambda: stores[0]).rows() if row["route"] == "decision"]
    assert [row["user"] for row in rows] == [found.decider]
    assert (rows[0]["status"] == "denied") == (found.decision == "deny")
    assert said[found.decider] == "counts"
    other = ({"ann", "bob"} - {found.decider}).pop()
    assert "before, by" in said[other]
    grants = stores[0].execute("SELECT granter FROM grants")
    assert grants == ([(found.decider,)] if found.decision == "duration" else [])
    for store in stores:
        store.close()


PLAN = """* PLAN Build: all of it
** PLAN Write
:PROPERTIES:
:ID: write
:END:
#+begin_src hy
(+ 1 1)
#+end_src
"""


def test_what_is_decided_of_a_step_and_cannot_be_kept_is_not_in_the_audit(store: Store) -> None:
    _, plan = read_plan(PLAN.encode(), "p.org")
    (step,) = plan.steps
    audit = StoreAudit(lambda: store)
    store.execute("CREATE TRIGGER full BEFORE INSERT ON plan_steps BEGIN SELECT RAISE(ABORT, 'full'); END")
    with pytest.raises(Exception, match="full"):
        record(store, audit, plan, "/p.org", step, ToolTable(), Decision("once", "ann"))
    assert audit.rows() == []
    store.execute("DROP TRIGGER full")
    record(store, audit, plan, "/p.org", step, ToolTable(), Decision("deny", "ann"))
    assert [row["consent"] for row in audit.rows()] == ["step denied by ann"]


def test_a_decision_that_the_audit_refuses_does_not_count(store: Store) -> None:
    class Full(MemoryAudit):
        def write(self, row: Any) -> None:
            if row["route"] == "decision":
                raise StoreError("The store is full", "no room")
            super().write(row)

    here = desk(store, tool("probe", effects=["writes"]), audit=Full())
    here.pass_through("(probe)", session="s1")
    with pytest.raises(StoreError):
        here.decide()
    assert [one.state for one in here.broker.requests(every=True)] == ["pending"]


# A transcript


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store of a workspace in which session s1 has a run, and s2 another."""
    (tmp_path / "a.txt").write_text("one\n")
    for session in ("s1", "s2"):
        model = scripted('(read-file :path "a.txt")', "Done.")
        with Agent(workspace=tmp_path, model=model, session=session, user="ann") as quoth:
            assert quoth.run("Look.").text == "Done."
    monkeypatch.chdir(tmp_path)
    store = Store(store_path(tmp_path))
    yield store
    store.close()


def place(store: Store, kind: str) -> int:
    found = store.execute("SELECT min(seq) FROM events WHERE session = 's1' AND kind = ?", (kind,))
    return int(found[0][0])


TAMPERED = [
    ("UPDATE events SET form = replace(form, 'one', 'two') WHERE {}", "receipt", "was changed after"),
    ("UPDATE events SET form = replace(form, 'a.txt', 'b.txt') WHERE {}", "call", "was changed after"),
    ("UPDATE events SET digest = 'x' WHERE {}", "reply", "was changed after"),
    ("UPDATE events SET status = 'denied' WHERE {}", "receipt", "was changed after"),
    ("UPDATE events SET kind = 'fault' WHERE {}", "receipt", "was changed after"),
    ("UPDATE events SET run = '' WHERE {}", "call", "was changed after"),
    ("UPDATE events SET key = 'r1/9' WHERE {}", "call", "was changed after"),
    ("UPDATE events SET parent = 1 WHERE {}", "receipt", "was changed after"),
    ("UPDATE events SET at = '2020-01-01T00:00:00.000+00:00' WHERE {}", "call", "was changed after"),
    ("DELETE FROM events WHERE {}", "call", "is missing"),
]


@pytest.mark.parametrize(("change", "kind", "sentence"), TAMPERED)
def test_a_log_says_that_its_session_was_tampered_with(
    told: Store, capsys: pytest.CaptureFixture[str], change: str, kind: str, sentence: str
) -> None:
    assert cli.main(["log", "s1"]) == 0
    assert capsys.readouterr().err == ""
    seq = place(told, kind)
    told.execute(change.format(f"session = 's1' AND seq = {seq}"))
    for more in ([], ["--json"], ["--org"], ["--hy"]):
        assert cli.main(["log", "s1", *more]) == 0
        said = capsys.readouterr().err
        assert said.startswith(f"quoth: Session s1 {WAS_CHANGED_AFTER_IT_WAS}. Event ")
        assert f"{seq} " in said
        assert sentence in said
    assert cli.main(["log", f"s1.{seq + 1}"]) == 0
    assert f"Session s1 {WAS_CHANGED_AFTER_IT_WAS}." in capsys.readouterr().err
    assert cli.main(["log", "s2"]) == 0
    assert capsys.readouterr().err == ""
    with pytest.raises(TranscriptError):
        Transcript(lambda: told).verify("s1")


UNREADABLE = ["(((", "(call :seq 1)", "(1 2 3)\\"]


@pytest.mark.parametrize("kind", ["session", "stimulus", "request", "call", "receipt", "end"])
def test_an_event_that_cannot_be_read_is_named_and_left_out(
    told: Store, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    seq = place(told, kind)
    for form in UNREADABLE:
        told.execute("UPDATE events SET form = ? WHERE session = 's1' AND seq = ?", (form, seq))
        for more in (["--json"], ["--org"]):
            assert cli.main(["log", "s1", *more]) == 0
            said = capsys.readouterr()
            assert "Done." in said.out
            assert f"Event s1.{seq}" in said.err
        for words in (["sessions", "--json"], ["audit"]):
            assert cli.main(words) == 0
            assert "s2" in capsys.readouterr().out
    assert cli.main(["pending"]) == 0
    assert cli.main(["log", "s2"]) == 0
    assert capsys.readouterr().err == f"quoth: {NO_REQUESTS_ARE_WAITING}.\n"


def test_a_session_of_which_an_event_cannot_be_read_is_listed_all_the_same(
    told: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    seq = place(told, "call")
    for change in ("(((", "(call :seq 1)"):
        told.execute("UPDATE events SET form = ? WHERE session = 's1' AND kind = 'stimulus'", (change,))
        assert cli.main(["sessions", "--all"]) == 0
        said = capsys.readouterr()
        assert [line.split()[0] for line in said.out.splitlines()] == ["s1", "s2"]
        assert f"Event s1.2 {CANNOT_BE_READ}" in said.err
        assert "It was skipped." in said.err
    assert cli.main(["log", f"s1.{seq}"]) == 0
    assert cli.main(["log", "s1.2"]) == 2
    assert f"Event s1.2 {CANNOT_BE_READ}" in capsys.readouterr().err
