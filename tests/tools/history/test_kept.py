"""What stays of a call that ended, by how it ended: a receipt that answers it, or that it was begun."""

from __future__ import annotations

from typing import Any

import pytest
from sentences import MADE_AS_CALL
from words import PausableClock, form, tool

from quoth.tools.call.call import Call, EditedCall, ToolResult, ask, new_call
from quoth.tools.history.event import usual_row
from quoth.tools.history.long_results import StorePages
from quoth.tools.history.receipts import Logged, StoreCallLog, StoreReceipts, key_in, secrets_in
from quoth.tools.history.transcript import Transcript
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.storage.database import Store

READS, WRITES, RUNS = (tool("probe", effects=[effect]) for effect in ("reads", "writes", "runs"))
NET = tool("probe", effects=["reads", "net"])
EXPENSIVE = tool("probe", effects=["reads"], cost="expensive")


def receipts(store: Store, window: float = 60) -> StoreReceipts:
    return StoreReceipts(lambda: store, window=window, clock=PausableClock())


def made(**marks: Any) -> Call:
    return new_call(form("(probe)"), **{"key": "k", "session": "s", "resumed": False, **marks})


def end(
    kept: StoreReceipts, made_by: CognitiveTool, call: Call, status: Any, stage: str = "body", **more: Any
) -> None:
    """A call that was begun ends so."""
    effects, value = more.pop("effects", ()), more.pop("value", None)
    follow_up = more.pop("follow_up", None)
    result = ToolResult(call.id, "probe", status, value, "m", effects, {"stage": stage}, follow_up=follow_up)
    kept.keep(made_by, call, result, **{"decided": False, **more})


TOP, AGAIN, INNER, REPLY = {}, {"resumed": True}, {"parent": "p"}, {"route": "reply"}


@pytest.mark.parametrize(
    ("made_by", "marks", "status", "stage", "more", "answered", "begun"),
    [
        (WRITES, TOP, "ok", "body", {}, False, False),  # it is over, and nobody resumes it
        (WRITES, TOP, "cancelled", "body", {}, False, True),  # it may have done anything
        (WRITES, TOP, "timeout", "body", {}, False, False),
        (WRITES, TOP, "pending", "body", {}, False, False),  # where it stands is known
        (WRITES, TOP, "pending", "body", {"again": True}, False, True),
        (WRITES, TOP, "pending", "consent", {}, False, True),  # a question before it tells nothing
        (WRITES, TOP, "denied", "guard", {}, False, True),
        (WRITES, AGAIN, "ok", "body", {}, True, False),
        (WRITES, AGAIN, "error", "body", {}, True, False),
        (WRITES, AGAIN, "timeout", "body", {}, True, False),
        (WRITES, AGAIN, "cancelled", "body", {}, False, True),
        (WRITES, AGAIN, "error", "guard", {}, False, True),
        (WRITES, AGAIN, "denied", "consent", {}, False, True),
        (WRITES, AGAIN, "denied", "consent", {"decided": True}, True, False),
        (READS, AGAIN, "ok", "body", {}, True, False),
        (WRITES, INNER, "ok", "body", {}, True, False),
        (RUNS, INNER, "error", "body", {}, True, False),
        (NET, INNER, "ok", "body", {}, True, False),
        (EXPENSIVE, INNER, "ok", "body", {}, True, False),
        (READS, INNER, "ok", "body", {}, False, False),
        (READS, INNER, "ok", "body", {"asked": True}, True, False),
        (READS, INNER, "ok", "body", {"effects": ("looked",)}, True, False),
        (READS, INNER, "denied", "consent", {"decided": True}, True, False),
        (READS, INNER, "denied", "guard", {}, False, False),
        (READS, REPLY, "ok", "body", {}, True, False),
        (READS, REPLY, "error", "body", {}, False, False),
        (READS, REPLY, "denied", "consent", {"decided": True}, True, False),
    ],
)
def test_a_call_that_ended_is_answered_or_was_begun(
    store: Store,
    made_by: CognitiveTool,
    marks: dict[str, Any],
    status: str,
    stage: str,
    more: dict[str, Any],
    answered: bool,
    begun: bool,
) -> None:
    kept, call = receipts(store), made(**marks)
    kept.begins(made_by, call)
    end(kept, made_by, call, status, stage, **more)
    again = made(**{**marks, "resumed": True})
    found = kept.find(made_by, again)
    assert (found is not None, kept.begun(made_by, again)) == (answered, begun)
    assert found is None or (found.call, found.status, found.message) == (call.id, status, "m")


def test_only_a_call_with_a_key_that_does_more_than_read_is_noted_as_begun(store: Store) -> None:
    kept = receipts(store)
    for made_by, call, logged in (
        (READS, made(), False),
        (WRITES, made(key=""), False),
        (WRITES, made(), True),  # its event tells
    ):
        kept.begins(made_by, call, logged=logged)
    assert store.execute("SELECT count(*) FROM receipts") == [(0,)]
    assert not kept.begun(WRITES, made())
    kept.begins(WRITES, made())
    assert kept.begun(WRITES, made())
    assert not kept.begun(READS, made())
    assert not kept.begun(WRITES, made(key=""))
    assert not kept.begun(WRITES, made(key="other"))
    assert not kept.begun(WRITES, made(user="eve"))


@pytest.mark.parametrize(("status", "found"), [("pending", True), ("ok", False), ("error", False)])
def test_what_was_read_inside_is_kept_where_the_call_around_it_waits(
    store: Store, status: str, found: bool
) -> None:
    kept, outer = receipts(store), made(key="outer")
    inner = made(parent=outer.id, key="inner")
    end(kept, READS, inner, "ok", value=7)
    end(kept, RUNS, outer, status)
    again = kept.find(READS, made(parent=outer.id, key="inner", resumed=True))
    assert (again is not None) == found
    assert again is None or again.value == 7
    assert kept._reads == {}


def test_a_call_that_changed_something_ends_what_was_read_before(store: Store) -> None:
    kept = receipts(store)

    def seen() -> bool:
        return kept.find(READS, made(**REPLY)) is not None

    end(kept, READS, made(**REPLY), "ok")
    assert seen()
    end(kept, NET, made(key="n"), "ok")
    end(kept, WRITES, made(key="w"), "denied", "guard")
    assert seen()
    end(kept, WRITES, made(key="w"), "error")
    assert not seen()
    end(kept, READS, made(**REPLY), "ok")
    end(kept, NET, made(key="n"), "ok", effects=("sent it",))
    assert not seen()


@pytest.mark.parametrize(("window", "found"), [(0, False), (1, True)])
def test_without_a_window_no_call_is_a_repetition(store: Store, window: float, found: bool) -> None:
    kept = receipts(store, window)
    end(kept, READS, made(**REPLY), "ok")
    assert (kept.find(READS, made(**REPLY)) is not None) == found


@pytest.mark.parametrize(
    ("status", "more", "in_event"),
    [
        ("ok", {"value": 1, "follow_up": "told"}, True),
        ("error", {}, True),
        ("error", {"follow_up": "told"}, False),
        ("error", {"value": 1}, False),
    ],
)
def test_a_result_that_its_event_holds_is_not_kept_twice(
    store: Store, status: str, more: dict[str, Any], in_event: bool
) -> None:
    logged = Logged(7, "digest", True)
    kept = receipts(store)
    end(kept, WRITES, made(**AGAIN), status, logged=logged, **more)
    end(kept, WRITES, made(**TOP), status, logged=logged, **more)
    rows = store.execute("SELECT event, result != '' FROM receipts ORDER BY seq")
    assert rows == [(7, 0) if in_event else (0, 1), (0, 0)]


# Events


class Logs:
    """Calls whose events are written, in one session."""

    def __init__(self, store: Store) -> None:
        self.transcript = Transcript(lambda: store)
        self.log = StoreCallLog(self.transcript)
        self.kept = receipts(store)

    def begin(self, made_by: CognitiveTool, call: Call, consent: Any = None) -> bool:
        return self.log.begins(made_by, call, consent)

    def end(self, made_by: CognitiveTool, call: Call, status: Any, stage: str = "body") -> Any:
        result = ToolResult(call.id, "probe", status, None, "m", (), {"stage": stage})
        row = usual_row(call.form, "m", stage) | {"stage": stage, "duration_ms": 1}
        return self.log.ends(made_by, call, result, None, row | {"ts": self.transcript.now()})

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.transcript.events("s")]


@pytest.fixture
def logs(store: Store) -> Logs:
    return Logs(store)


@pytest.mark.parametrize(
    ("made_by", "marks", "written"),
    [
        (READS, {}, False),
        (WRITES, {}, True),
        (WRITES, {"session": ""}, False),
        (tool("eval", effects=["reads"]), {}, True),  # a program, which may be suspended
        (tool("eval", effects=["reads"]), {"run": "r"}, False),
    ],
)
def test_the_event_of_a_call_is_written_before_its_body_where_it_matters(
    logs: Logs, made_by: CognitiveTool, marks: dict[str, Any], written: bool
) -> None:
    call = made(**marks)
    assert logs.begin(made_by, call) == written
    assert logs.kinds == (["call"] if written else [])
    assert (logs.log.running(call.id) == call) == bool(call.session)
    logged = logs.end(made_by, call, "ok")
    assert (logged is not None) == bool(call.session)
    assert logs.kinds == (["call", "receipt"] if call.session else [])
    assert (logs.log.running(call.id), logs.log.place(call.id), logs.log.place(None)) == (None, 0, 0)


@pytest.mark.parametrize(
    ("ends", "begun"),
    [
        ([], True),
        ([("ok", "body")], False),
        ([("cancelled", "body")], True),
        ([("denied", "consent")], False),
        ([("cancelled", "guard")], False),
        ([("ok", "body"), None], True),
        ([("cancelled", "body"), ("denied", "consent")], True),  # before the body: that tells nothing
        ([("cancelled", "body"), ("error", "body")], False),
    ],
)
def test_whether_a_call_was_begun_is_read_from_its_events(logs: Logs, ends: list[Any], begun: bool) -> None:
    for one in ends or [None]:
        call = made()
        logs.begin(WRITES, call)
        if one is not None:
            logs.end(WRITES, call, *one)
    assert logs.kept.begun(WRITES, made(resumed=True)) == begun
    assert not logs.kept.begun(WRITES, made(resumed=True).changed(form=form("(probe 1)")))
    assert not logs.kept.begun(WRITES, made(session="t"))


@pytest.mark.parametrize(
    ("consent", "said"),
    [(None, []), (ask("?"), []), (EditedCall(form("(probe)"), "ann", "c2"), [f"ann: {MADE_AS_CALL} c2"])],
)
def test_an_approval_is_an_event_and_a_question_is_none(logs: Logs, consent: Any, said: list[str]) -> None:
    logs.begin(WRITES, made(repairs=("Commas were dropped.",)), consent)
    events = [*logs.transcript.events("s")]
    assert [event.data.get("said") for event in events if event.kind == "approval"] == said
    assert [event.data.get("what") for event in events if event.kind == "repair"] == [
        ["Commas were dropped."]
    ]
    assert {event.parent for event in events if event.kind != "call"} <= {1}


@pytest.mark.parametrize(
    ("call", "names", "secrets"),
    [
        ('(login :pin "hunter2")', [], ["hunter2"]),
        ('(login :user "hunter2")', [], []),
        ('(login :user "hunter2")', ["pin"], []),
    ],
)
def test_the_secrets_of_a_call_are_those_it_declares(call: str, names: list[str], secrets: list[str]) -> None:
    login = tool("login", params={"pin": {"secret": True, "default": ""}, "user": {"default": ""}})
    assert secrets_in(form(call), login, names) == secrets
    assert secrets_in(form(call), None, []) == []
    assert secrets_in(form('(eval :form "(login :pin 1234)")'), None, []) == []


def test_a_key_is_named_without_its_session() -> None:
    assert [key_in(made(key=key)) for key in ("s/1", "t/1", "s")] == ["1", "t/1", "s"]


# Pages


@pytest.mark.parametrize(
    ("text", "chars", "start", "part", "end"),
    [
        ("abcdef", 6, 1, "abcdef", 6),
        ("abcdef", 5, 1, "abcde", 5),
        ("abcdef", 5, 6, "f", 6),
        ("abcdef", 0, 6, "f", 6),
        ("ab\ncdef", 5, 1, "ab\n", 3),  # a line that is more than half of the page
        ("ab\ncdefg", 6, 1, "ab\ncde", 6),
        ("ab\n", 3, 1, "ab\n", 3),
        ("", 3, 1, "", 0),
    ],
)
def test_a_page_is_so_long(store: Store, text: str, chars: int, start: int, part: str, end: int) -> None:
    pages = StorePages(lambda: store, "s", "ann", chars)
    id = pages.keep(text)
    where = f"Characters {start} to {end} of {len(text)}"
    more = f'; (more :id "{id}" :start {end + 1}) shows the next part.'
    assert pages.page(id, start) == (part, where + (": the end." if end == len(text) else more))
