"""The event of a call is its record: audit and receipts point to it, and lose nothing by that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import WAS_CHANGED_AFTER_IT_WAS
from words import desk, scripted

from quoth import Agent
from quoth.tools.call.redaction import kept_text
from quoth.tools.history.audit import StoreAudit
from quoth.tools.history.event import content_of, event_form, texts_of, written_form
from quoth.tools.history.receipts import StoreCallLog
from quoth.tools.history.transcript import Transcript
from quoth.tools.lisp.forms import CallForm
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

EARLIER = Path(__file__).parents[1] / "data" / "store-24.sql"
WRITE_VERSION = "7abca0f33a27c9c3bf9b8f2e62075432b446ebbb20460f94d75c28bd95800049"  # of write-file in it
RUN = ('(echo :text "Two pears.")', '(write-file :path "a.txt" :content "one")', "Done.")


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """A workspace with a run of two calls."""
    with Agent(workspace=tmp_path, session="s", user="ann", model=scripted(*RUN), consent="yes") as agent:
        assert agent.run("Count.").text == "Done."
    return tmp_path


@pytest.fixture
def store(ran: Path) -> Iterator[Store]:
    opened = Store(store_path(ran))
    yield opened
    opened.close()


def told(store: Store) -> list[tuple[str, str]]:
    return [(row["form"], row["message"]) for row in StoreAudit(lambda: store).select()]


def faults(store: Store) -> list[str]:
    said = StoreAudit(lambda: store).verify().faults
    return [re.sub(r"call \w+", "call x", str(fault)) for fault in said]


# The audit


def test_texts_are_stored_once(store: Store) -> None:
    texts = [form for form, _ in told(store)]
    assert texts == ['(echo :text "Two pears.")', '(write-file :content "one" :path "a.txt")']
    assert store.execute("SELECT count(*) FROM audit WHERE form != '' OR message != ''") == [(0,)]
    assert store.execute("SELECT count(*) FROM receipts WHERE result != ''") == [(0,)]
    assert store.execute("SELECT status, repeats, changed FROM receipts ORDER BY seq") == [
        ("ok", 1, 0),
        ("ok", 1, 1),
    ]
    assert faults(store) == []


ALTERED = [
    (
        "UPDATE events SET form = replace(form, 'Two', 'Ten') WHERE kind = 'receipt'",
        [f"Event s.6 {WAS_CHANGED_AFTER_IT_WAS}."],
    ),
    (
        "UPDATE events SET digest = 'x' WHERE seq = 6",
        [
            f"Row 1 (call x) refers to event s.6, which {WAS_CHANGED_AFTER_IT_WAS}.",
            f"Event s.6 {WAS_CHANGED_AFTER_IT_WAS}.",
            f"Event s.7 {WAS_CHANGED_AFTER_IT_WAS}.",
        ],
    ),
    ("DELETE FROM events WHERE seq > 10", ["Row 2 (call x) refers to event s.{last}, which is missing."]),
    (
        "DELETE FROM events WHERE seq = 6",
        ["Row 1 (call x) refers to event s.6, which is missing.", "Event 6 of session s is missing."],
    ),
    ("UPDATE audit SET event = 5 WHERE seq = 1", [f"Row 1 (call x) {WAS_CHANGED_AFTER_IT_WAS}."]),
    (
        "UPDATE audit SET form = '(echo 1)' WHERE seq = 1",
        [f"Row 1 (call x) {WAS_CHANGED_AFTER_IT_WAS}."],
    ),
]


@pytest.mark.parametrize(("sql", "found"), ALTERED)
def test_the_audit_finds_what_was_done_to_a_transcript(store: Store, sql: str, found: list[str]) -> None:
    ((last,),) = store.execute("SELECT event FROM audit WHERE seq = 2")
    store.execute(sql)
    assert faults(store) == [fault.format(last=last) for fault in found]


def test_a_removed_session_leaves_its_texts_in_the_audit(store: Store) -> None:
    before = list(StoreAudit(lambda: store).select())
    Transcript(lambda: store).remove("s")
    assert store.execute("SELECT count(*) FROM events") == [(0,)]
    assert list(StoreAudit(lambda: store).select()) == before
    assert faults(store) == []
    store.execute("UPDATE audit SET message = 'Nothing was written.' WHERE seq = 2")
    assert faults(store) == [f"Row 2 (call x) {WAS_CHANGED_AFTER_IT_WAS}."]


def test_a_removed_session_with_a_secret_is_no_fault(tmp_path: Path) -> None:
    """Its row holds its texts itself, for its events hide more; also where the name is used again."""
    with Agent(workspace=tmp_path, session="s", user="ann") as agent:
        agent.call('(echo :text "the password=hunter2-hunter2 of the house")')
    store = Store(store_path(tmp_path))
    assert store.execute("SELECT count(*) FROM audit WHERE event AND form != ''") == [(1,)]
    Transcript(lambda: store).remove("s")
    assert faults(store) == []
    store.close()
    with Agent(workspace=tmp_path, session="s", user="ann") as agent:
        agent.call('(echo :text "again")')
    store = Store(store_path(tmp_path))
    assert faults(store) == []
    store.execute("UPDATE audit SET message = 'Nothing.' WHERE seq = 1")
    assert faults(store) == [f"Row 1 (call x) {WAS_CHANGED_AFTER_IT_WAS}."]
    store.close()


def test_a_call_with_half_a_character_has_its_row(ran: Path, store: Store) -> None:
    with Agent(workspace=ran, session="s", user="ann") as agent:
        said = agent.call('(echo :text "\ud83d")')
    assert said.status == "invalid"
    assert "half of a surrogate pair" in said.message
    assert told(store)[2] == (r'(echo :text "\ud83d")', said.message)
    assert faults(store) == []


def test_texts_that_were_taken_out_of_a_row_are_missed(ran: Path, store: Store) -> None:
    """Where the events hide more than the row, or hold no call."""
    with Agent(workspace=ran, session="s", user="ann") as agent:
        agent.call("(other")
    transcript = Transcript(lambda: store)
    transcript.hide("s", ["pears"])
    here = desk(store, log=StoreCallLog(transcript))
    here.pass_through('(other :text "Two pears.")', session="s", user="ann")
    assert faults(store) == []
    store.execute("UPDATE audit SET form = '', message = '' WHERE seq > 2")
    assert faults(store) == [f"Row {seq} (call x) {WAS_CHANGED_AFTER_IT_WAS}." for seq in (3, 4)]


WRONG = (
    "99999999999999999999",
    '"x"',
    "[1 2]",
    "nan",
    '"2026-11-24T00:00:42.831111000"',
    "(",
    '{"args" [1]}',
)
NAMES = ("at", "id", "status", "value", "ms", "began", "form", "user", "version", "parent")


@pytest.mark.parametrize("wrong", WRONG)
def test_an_event_that_says_anything_is_a_fault(store: Store, wrong: str) -> None:
    audit = StoreAudit(lambda: store)
    events = store.execute("SELECT seq, form FROM events WHERE kind IN ('call', 'receipt')")
    for seq, text in events:
        for name in NAMES:
            new = re.sub(rf' :{name} ("[^"]*"|[\w.]+|\([^)]*\))', rf" :{name} {wrong}", text)
            store.execute("UPDATE events SET form = ? WHERE seq = ?", (new, seq))
            assert (f"Event s.{seq} {WAS_CHANGED_AFTER_IT_WAS}." in faults(store)) == (new != text)
            assert len(list(audit.select())) == 2
        store.execute("UPDATE events SET form = ? WHERE seq = ?", (text, seq))


def test_a_status_that_was_given_to_a_call_is_a_fault(tmp_path: Path) -> None:
    """Its form may hold the same words."""
    with Agent(workspace=tmp_path, session="s", user="ann") as agent:
        agent.call('(job :status "ok")')
    store = Store(store_path(tmp_path))
    assert faults(store) == []
    store.execute("UPDATE events SET status = 'ok' WHERE kind = 'call'")
    assert faults(store) == [f"Event s.2 {WAS_CHANGED_AFTER_IT_WAS}."]
    store.close()


# Values and forms come back as they were

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@given(VALUES, TEXTS)
def test_an_event_gives_a_value_back(value: object, message: str) -> None:
    text = event_form("receipt", 1, "", "", 0, "", {"id": "a", "value": value, "message": message})
    said = content_of(text)
    assert (said["value"], said["message"]) == (value, message)
    assert repr(said["value"]) == repr(value)


@given(st.dictionaries(st.from_regex(r"[a-z][a-z-]{0,8}", fullmatch=True), VALUES, max_size=4), TEXTS)
def test_the_texts_of_a_row_are_those_of_its_events(args: dict[str, object], message: str) -> None:
    form = CallForm("probe", args)  # type: ignore[arg-type]
    call = event_form("call", 1, "", "", 0, "", {"id": "a", "form": written_form(form)})
    result = event_form("receipt", 2, "", "", 1, "", {"id": "a", "status": "ok", "message": message})
    assert texts_of(result, call) == (kept_text(form.canonical), kept_text(message))


def test_a_session_that_was_removed_under_a_call_is_not_a_changed_row(store: Store) -> None:
    """By a quoth of before the lock of sessions in use; today that is refused."""
    store.execute("DELETE FROM events WHERE kind = 'call' AND seq < 6")
    gone = "was not changed, but the events of its call x removed with session s."
    assert faults(store)[0] == f"Row 1 (call x) {gone}"
    store.execute("DELETE FROM events")
    assert faults(store) == [f"Row {seq} (call x) {gone}" for seq in (1, 2)]
    store.execute("UPDATE audit SET status = 'error' WHERE seq = 2")
    assert faults(store)[1] == f"Row 2 (call x) {WAS_CHANGED_AFTER_IT_WAS}."
