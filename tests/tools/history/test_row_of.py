"""An audit row made from the two events of its call is the stored one, however the call came and ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from words import Desk, Spy, desk, form, scripted, tool

from quoth import Agent
from quoth.tools.call.call import VOICES, ask, deny
from quoth.tools.errors import ToolError
from quoth.tools.history.audit import COLUMNS, StoreAudit, row_of_host
from quoth.tools.history.event import (
    TOLD,
    differences,
    digest_of_texts,
    event_form,
    row_of,
    usual_row,
    words_of,
    written_form,
)
from quoth.tools.history.receipts import StoreCallLog
from quoth.tools.history.transcript import Transcript
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

Row = dict[str, Any]
RULES = RulesPolicy([parse_layer("user", b"(deny (probe))", "policy.hy")], counted=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(store_path(tmp_path))
    yield opened
    opened.close()


def both(store: Store) -> tuple[list[Row], list[Row | None]]:
    """The stored rows of calls, without what a person decided, and those that their events tell of."""
    rows = [row for row in StoreAudit(lambda: store).select() if row["route"] != "decision"]
    told = store.execute(f"SELECT session, {', '.join(TOLD)} FROM audit WHERE event ORDER BY seq")
    return [{name: row[name] for name in COLUMNS} for row in rows], [row_of(*texts) for texts in told]


def faults(store: Store) -> list[str]:
    return [fault.what for fault in StoreAudit(lambda: store).verify().faults]


# Calls of all kinds


def at_desk(store: Store, *tools: Any, **parts: Any) -> Desk:
    return desk(store, *tools, log=StoreCallLog(Transcript(lambda: store)), **parts)


def late() -> None:
    time.sleep(0.05)


WORK: dict[str, Any] = {
    "ok": (tool(), {}),
    "ok, with an effect": (tool(body=lambda ctx: ctx.effect("wrote:a.txt")), {}),
    "ok, with details": (tool(body=lambda ctx: ctx.audit.update(score=0.7, hits=["a", None])), {}),
    "error": (tool(body=Spy(ToolError("no pears are left"))), {}),
    "error, of a guard that asks": (tool(body=Spy(ToolError("no")), guard=lambda: ask("now?")), {}),
    "timeout": (tool(body=late, timeout=0.001), {}),
    "denied by the guard": (tool(guard=lambda: deny("not\ntoday")), {}),
    "denied by the policy": (tool(), {"policy": RULES}),
    "denied by a gate": (tool(gate=True), {"gate": lambda *_: False}),
    "pending": (tool(guard=lambda: ask("may I?")), {}),
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_the_row_of_a_call(store: Store, work: tuple[Any, Mapping[str, Any]]) -> None:
    probe, parts = work
    here = at_desk(store, probe, **parts)
    marks: Row = {"session": "s", "user": "ann", "route": "call"}
    here.pass_through("(probe)", **marks)
    here.pass_through("(probe)", **marks, round=3, order=2, confidence=0.5, repairs=("one", "two"))
    here.pass_through("(prob :x {})", **marks)
    here.pass_through("(probe :x 1)", **marks)
    stored, made = both(store)
    assert len(stored) == 4
    assert made == stored
    assert faults(store) == []


def test_the_rows_of_an_edited_call_and_of_one_that_a_person_denies(store: Store) -> None:
    probe = tool(body=lambda x: x, params={"x": {"type": int}}, guard=lambda: ask("may I?"))
    here = at_desk(store, probe)
    for number, kind in enumerate(("once", "edit", "deny")):
        marks: Row = {"session": "s", "user": "ann", "key": f"s/k{number}"}
        here.pass_through(f"(probe {number})", **marks, resumed=False)
        here.decide(kind, form=form("(probe 9)") if kind == "edit" else None)
        here.pass_through(f"(probe {number})", **marks)
    stored, made = both(store)
    assert [row["status"] for row in stored] == ["pending", "ok", "pending", "ok", "ok", "pending", "denied"]
    assert stored[3]["form"] == "(probe :x 9)"
    assert made == stored
    assert faults(store) == []


RUN = (
    '(echo :text "Two pears.")',
    '(write-file :path "a.txt" :content "one")',
    '(eval (do (echo :text "x") (read-file :path "a.txt")))',
    '(read-file :path "../b.txt")',
    '(echo :text "a"]',
    '(read-file :path "a.txt"',
    '(echo :text "b")\n(echo :text "b")',
    "Done.",
)


def test_the_rows_of_a_run(tmp_path: Path) -> None:
    """Programs, what could not be read or was mended, repetitions, and a person's call after it."""
    with Agent(workspace=tmp_path, session="s", user="ann", model=scripted(*RUN), consent="yes") as one:
        assert one.run("Count.").text == "Done."
        one.call('(echo :text "mine")')
        one.call("(echo")
    store = Store(store_path(tmp_path))
    stored, made = both(store)
    assert {row["stage"] for row in stored} == {"body", "guard", "reader", "receipt"}
    assert {row["route"] for row in stored} == {"reply", "program", "python"}
    assert any(row["repairs"] for row in stored)
    assert made == stored
    assert faults(store) == []
    store.close()


def test_what_is_hidden_in_the_events_is_known_of_the_row_alone(tmp_path: Path) -> None:
    """The digest is that of the true form; all else is the same."""
    with Agent(workspace=tmp_path, session="s", user="ann") as one:
        one.call('(echo :text "the password=hunter2-hunter2 of the house")')
    store = Store(store_path(tmp_path))
    ((stored,), (made,)) = both(store)
    assert made is not None
    assert [name for name in COLUMNS if made[name] != stored[name]] == ["digest"]
    assert faults(store) == []
    store.close()


def test_a_form_that_is_hidden_altogether_is_not_compared() -> None:
    result = '(receipt :seq 2 :at "2026-11-24T00:00:42.831+00:00" :id "a" :status "ok" :ms 1)'
    row = dict.fromkeys(COLUMNS, "") | {
        "session": "s",
        "ts": "2026-11-24T00:00:42.830+00:00",
        "duration_ms": 1,
    }
    assert differences(row, result, '(call :seq 1 :id "a" :form "[secret]")') == []
    assert differences(row, result, '(call :seq 1 :id "a" :form "no form")') == ["form"]


# A row that says otherwise is found


WRONG = {
    "id": "x",
    "ts": "2026-01-01T00:00:00.000+00:00",
    "user": "bob",
    "route": "chat",
    "parent": "p",
    "depth": 1,
    "round": 7,
    "place": 7,
    "tool": "other",
    "digest": "d",
    "status": "denied",
    "stage": "guard",
    "duration_ms": -1,
    "side_effects": ("wrote:b.txt",),
    **dict.fromkeys((*VOICES, "rule", "schema_hash", "repairs"), "what was not said"),
    "confidence": 0.25,
}


@pytest.mark.parametrize("column", WRONG)
def test_a_row_that_differs_from_its_event_is_a_fault(store: Store, column: str) -> None:
    class Mistaken(StoreAudit):
        def write(self, row: Mapping[str, Any]) -> None:
            super().write({**row, column: WRONG[column]})

    here = at_desk(store, tool(), audit=Mistaken(lambda: store))
    here.pass_through("(probe)", session="s", user="ann", route="reply", run="r1")
    (fault,) = faults(store)
    assert fault.startswith("differs from event s.2: ")
    assert column in fault.removeprefix("differs from event s.2: ").split(", ")
    assert faults(store)[0] == f"differs from event s.2: {column}" or column in ("duration_ms", "stage")


def test_events_from_before_tell_less_and_that_is_no_fault(store: Store) -> None:
    transcript = Transcript(lambda: store)
    call = transcript.add("s", "call", {"id": "a", "form": written_form(form("(probe)"))})
    end = transcript.append("s", "receipt", {"id": "a", "status": "ok"}, parent=call, status="ok")
    row = row_of_host("body", "", id="a", session="s", rule="(allow (probe))", duration_ms=3)
    said = digest_of_texts("(probe)", "")
    there = {"event": end.seq, "event_digest": end.digest, "said": said, "told_there": True}
    StoreAudit(lambda: store).write(row | there)
    assert both(store)[1] == [None]
    assert faults(store) == []


# Any row

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ROWS = st.fixed_dictionaries(
    {
        "duration_ms": st.integers(0, 10**9),
        "side_effects": st.lists(TEXTS, max_size=2),
        "details": st.dictionaries(TEXTS, st.floats(0, 1) | TEXTS | st.lists(TEXTS), max_size=2),
        **dict.fromkeys(
            (*VOICES, "rule", "repairs", "message", "form", "user", "tool", "schema_hash"), TEXTS
        ),
        **dict.fromkeys(("depth", "round", "place"), st.integers(0, 99)),
        "stage": st.sampled_from(["body", "guard", "receipt"]),
        "route": st.sampled_from(["reply", "program"]),
        "parent": st.none() | st.text("0123456789abcdef", min_size=10, max_size=10),
        "confidence": st.none() | st.floats(0, 1),
        "ts": st.datetimes(timezones=st.just(UTC)).map(lambda at: at.isoformat(timespec="milliseconds")),
    }
)
AT = "2026-11-24T00:00:42.831+00:00"


@given(ROWS, TEXTS)
def test_events_tell_any_row(given_row: Row, told: str) -> None:
    call = CallForm("probe", {"x": "y"})
    row = given_row | {"id": "a", "session": "s", "status": "ok", "digest": call.digest}
    words = words_of(row, AT, usual_row(call, told, row["stage"]))
    result = event_form("receipt", 2, AT, "", 1, "", {"id": "a", "status": "ok", "message": told} | words)
    first = event_form("call", 1, AT, "", 0, "", {"id": "a", "form": written_form(call)})
    assert row_of("s", result, first) == row
    assert differences(row, result, first) == []
    assert differences(row | {"round": 100}, result, first) == ["round"]
