"""Consent: what a person is asked and decides, for which call a decision counts, and how often."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    A_GRANT_LASTS_AT_MOST,
    A_PERSON_CHANGED_THE_CALL,
    AN_EDITED_CALL_KEEPS_ITS,
    CANNOT_BE_READ,
    IS_NEVER_CLOSED,
    IT_IS_CALLED_AS,
    IT_USES_THE_NETWORK,
    IT_WRITES_FILES,
    QUOTH_PENDING_LISTS_WHAT_IS,
    THE_PERSON_SAID_NO,
    THERE_IS_NO_REQUEST,
)
from words import Desk, PausableClock, SharedStore, Spy, complaint, desk, files, form, gateway, shipped, tool

from quoth.tools.call.call import ALLOW, Call, EditedCall, ValueOrigin, Verdict, ask, deny, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import BEGUN_BEFORE, MemoryAudit, NobodyToAsk
from quoth.tools.consent.broker import EDITED_SECONDS, Broker
from quoth.tools.consent.decisions import (
    APPROVAL_SECONDS,
    DURATION_SECONDS,
    LONGEST_SECONDS,
    SCOPE_SECONDS,
)
from quoth.tools.consent.requests import Decision, SayYes
from quoth.tools.consent.rows import KEPT_SECONDS, PENDING_SECONDS, StoreRequests
from quoth.tools.door.door import Door
from quoth.tools.errors import UsageError
from quoth.tools.history.audit import StoreAudit
from quoth.tools.history.receipts import StoreReceipts
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.limits import StoreLimits
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.storage.database import Store

WAITS = f"probe waits for a person's approval: {IT_WRITES_FILES} (request {{}})."
DAY = 86400.0


def probe(body: Any = None, **options: Any) -> CognitiveTool:
    """A tool that is asked about, for it writes; it may be given an x and a path."""
    options.setdefault("params", {"x": {"type": int, "default": 0}, "path": {"default": "."}})
    options.setdefault("effects", ["writes"])
    return tool("probe", body or Spy("done"), **options)


def keeps(x: int, path: str) -> list[Any]:
    """A body that says what it was given."""
    return [x, path]


def rules(text: str) -> RulesPolicy:
    return RulesPolicy([parse_layer("user", text.encode(), "policy.hy")], counted=True)


def raw(store: Store) -> str:
    """All that stands in the tables that concern consent, as it is on disk."""
    tables = ("requests", "grants", "audit")
    rows = [str(row) for name in tables for row in store.execute(f"SELECT * FROM {name}")]
    return "\n".join(rows + (store.raw() if isinstance(store, SharedStore) else []))


# What a person is asked


def test_a_call_that_is_asked_about_waits_as_a_request(store: Store, tmp_path: Path) -> None:
    here = desk(store, probe(), workspace=files(tmp_path, {"src/a.txt": ""}))
    marks = {"user": "bob", "session": "s1", "route": "reply", "message": "Write it."}
    result = here.pass_through('(probe 7 :path "src/a.txt")', **marks)
    (asked,) = here.waiting
    assert (result.status, result.message) == ("pending", WAITS.format(asked.id))
    assert asked.to_json() == {
        "id": asked.id,
        "tool": "probe",
        "form": '(probe :path "src/a.txt" :x 7)',
        "reason": IT_WRITES_FILES,
        "touches": ["src/a.txt"],
        "user": "bob",
        "session": "s1",
        "route": "reply",
        "call": result.id,
        "parent": None,
        "message": "Write it.",
        "rule": '(allow (probe :path (under "src") :x 7 :only))',
        "asked": "2026-03-10T12:00:00+00:00",
        "expires": "2026-03-17T12:00:00+00:00",
        "state": "pending",
        "decision": "",
        "decided": None,
        "decider": "",
        "why": "",
        "kind": "approval",
        "origin": {"channel": "", "chat": "s1", "user": "bob"},
        "origins": [],
    }


def test_a_call_that_is_made_again_waits_as_the_same_request(store: Store) -> None:
    here = desk(store, probe())
    first, second = (here.pass_through(text).message for text in ("(probe 1)", "(PROBE :x 1)"))
    assert first == second
    here.pass_through("(probe 2)")
    assert [one.form for one in here.waiting] == ["(probe :x 1)", "(probe :x 2)"]


def test_requests_are_listed_by_session_and_when_they_are_over(store: Store) -> None:
    here = desk(store, probe())
    here.pass_through("(probe)", session="a")
    here.pass_through("(probe)", session="b")
    assert [one.session for one in here.broker.requests(session="b")] == ["b"]
    here.decide("deny", here.waiting[0].id)
    assert [one.session for one in here.waiting] == ["b"]
    assert [one.state for one in here.broker.requests(every=True)] == ["decided", "pending"]


def test_all_that_made_the_call_a_question_is_told(store: Store) -> None:
    here = desk(store, probe(guard=Spy(ask("the guard wonders."))))
    here.pass_through("(probe)")
    (asked,) = here.waiting
    assert (asked.reason, asked.rule) == (f"{IT_WRITES_FILES}; the guard wonders", "")


class Told:
    """The origins of a session: what was said is in the task, and all else in a text, if there is one."""

    def __init__(self, *said: str, text: str = "") -> None:
        self.said = [*said]
        self.text = text
        self.asked: list[Any] = []

    def intended(self, call: Call) -> bool | None:
        return None

    def find(self, value: Any, call: Call) -> ValueOrigin:
        self.asked.append(value)
        return ValueOrigin(in_task=str(value) in self.said, text=self.text)


def test_a_request_keeps_where_its_arguments_came_from(store: Store) -> None:
    told = Told("5")
    here = desk(store, probe(), given={"origins": told})
    here.pass_through('(probe :path "a.txt" :x 5)', route="reply")
    before = here.waiting[0].to_json()["origins"]
    assert before == [
        {"argument": "path", "origin": "model", "words": "the model's own", "known": False, "aims": False},
        {"argument": "x", "origin": "task", "words": "in your task", "known": True, "aims": False},
    ]
    told.said.append("a.txt")  # days later the person has named it; what was asked stays what it was
    here.pass_through('(probe :path "a.txt" :x 5)', route="reply")
    assert [one.to_json()["origins"] for one in here.waiting] == [before]
    here.decide("deny")
    assert [one.to_json()["origins"] for one in here.broker.requests(every=True)] == [before]


def test_what_a_body_asks_for_keeps_the_origins_of_its_call(store: Store) -> None:
    async def body(x: int, ctx: ToolContext) -> str:
        await ctx.permission.request("https://y.example", "it was sent on to https://y.example")
        return "done"

    here = desk(store, probe(body, effects=["reads"]), given={"origins": Told("5")})
    here.pass_through("(probe :x 5)", route="reply")
    (asked,) = here.waiting
    assert [(one.argument, one.words) for one in asked.origins] == [("x", "in your task")]


def test_nothing_is_looked_up_where_nobody_is_shown_anything(store: Store) -> None:
    told = Told()
    quick = desk(store, probe(), person=SayYes(), given={"origins": told})
    assert quick.pass_through("(probe 1)", route="reply").ok
    here = desk(store, probe(), given={"origins": told})
    here.pass_through("(probe 2)", route="reply")
    looked_up = len(told.asked)
    here.decide("once")
    assert here.pass_through("(probe 2)", route="reply").ok
    assert (looked_up, len(told.asked)) == (1, 1)


def test_a_call_inside_of_a_program_says_so(store: Store, tmp_path: Path) -> None:
    shipped_tools = shipped(tmp_path).door.table.tools()
    here = desk(store, *shipped_tools, probe(), workspace=tmp_path)
    result = here.pass_through("(eval (+ 1 (probe)))", route="eval")
    (asked,) = here.waiting
    assert result.status == "pending"
    assert (asked.parent, asked.route, asked.form) == (result.id, "program", "(probe)")


# Once


def test_an_approval_is_for_one_call(store: Store) -> None:
    body = Spy("done")
    here = desk(store, probe(body))
    assert here.pass_through("(probe)").status == "pending"
    assert here.decide().decision == "once"
    statuses = [here.pass_through("(probe)").status for _ in range(3)]
    assert (statuses, body.calls) == (["ok", "pending", "pending"], 1)


def test_the_audit_says_who_approved_what(store: Store) -> None:
    here = desk(store, probe())
    first = here.pass_through("(probe)", session="s")
    asked = here.decide()
    second = here.pass_through("(probe)", session="s")
    rows = {row["id"]: row for row in here.rows}
    assert rows[first.id]["consent"] == "pending"
    assert rows[second.id]["consent"] == f"allow: approved by ann (request {asked.id})"
    (decided,) = [row for row in here.rows if row["route"] == "decision"]
    assert (decided["user"], decided["parent"], decided["session"]) == ("ann", first.id, "s")
    assert (decided["consent"], decided["status"], decided["form"]) == (
        f"approved once by ann (request {asked.id})",
        "ok",
        "(probe)",
    )


OTHERS: list[tuple[str, str, dict[str, Any]]] = [
    ("another user", "(probe 1)", {"user": "eve"}),
    ("no user", "(probe 1)", {"user": ""}),
    ("another session", "(probe 1)", {"session": "t"}),
    ("another argument", "(probe 2)", {}),
    ("one argument less", "(probe)", {}),
    ("the default spelt out", '(probe 1 :path ".")', {}),
    ("a float", "(probe 1.0)", {}),
]


@pytest.mark.parametrize(
    ("text", "marks"), [other[1:] for other in OTHERS], ids=[other[0] for other in OTHERS]
)
@pytest.mark.parametrize("kind", ["once", "duration", "edit", "deny"])
def test_a_decision_is_for_that_call_alone(store: Store, text: str, marks: dict[str, Any], kind: str) -> None:
    body = Spy("done")
    here = desk(
        store, probe(body, params={"x": {"type": float | int, "default": 0}, "path": {"default": "."}})
    )
    own = {"user": "ann", "session": "s"}
    here.pass_through("(probe 1)", **own)
    here.decide(kind, form=form("(probe 9)") if kind == "edit" else None)
    assert here.pass_through(text, **{**own, **marks}).status == "pending"
    assert body.calls == 0
    assert here.pass_through("(probe 1)", **own).status == ("denied" if kind == "deny" else "ok")


@pytest.mark.parametrize("kind", ["once", "duration", "scope"])
def test_a_tool_that_was_changed_is_asked_about_again_and_that_is_said(store: Store, kind: str) -> None:
    before, after = Spy(), Spy()
    here = desk(store, probe(before, source="one"))
    here.pass_through("(probe 1)")
    here.decide(kind)
    now = desk(store, probe(after, source="two"))
    assert now.pass_through("(probe 1)").status == "pending"
    assert now.waiting[0].reason == f"{IT_WRITES_FILES}; the tool has changed since it was approved"
    assert (before.calls, after.calls) == (0, 0)
    assert here.pass_through("(probe 1)").ok


def test_of_two_calls_that_come_together_one_uses_the_approval(store: Store) -> None:
    ran: list[int] = []

    async def body() -> None:
        ran.append(1)
        await asyncio.sleep(0.01)

    here = desk(store, probe(body))
    here.pass_through("(probe)")
    here.decide()

    async def together() -> list[str]:
        return [r.status for r in await asyncio.gather(*(here.enter("(probe)") for _ in range(8)))]

    statuses = asyncio.run(together())
    assert (len(ran), sorted(statuses)) == (1, ["ok"] + ["pending"] * 7)
    assert len(here.waiting) == 1


def test_of_calls_in_many_threads_one_uses_the_approval(tmp_path: Path) -> None:
    stores = [Store(tmp_path / "s.sqlite") for _ in range(2)]
    body, statuses = Spy(), list[str]()
    desks = [desk(store, probe(body)) for store in stores]
    desks[0].pass_through("(probe)")
    desks[0].decide()
    work = [lambda n=n: statuses.append(desks[n % 2].pass_through("(probe)").status) for n in range(12)]
    threads = [threading.Thread(target=one) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (body.calls, sorted(statuses)) == (1, ["ok"] + ["pending"] * 11)
    for store in stores:
        store.close()


def test_each_of_two_approvals_is_used_once(store: Store) -> None:
    body = Spy()
    here = desk(store, probe(body))
    for _ in range(2):
        here.pass_through("(probe)", session="a")
        here.pass_through("(probe)", session="b")
    for one in here.waiting:
        here.decide(request=one.id)
    marks = [{"session": name} for name in ("a", "b", "a", "b")]
    assert [here.pass_through("(probe)", **mark).status for mark in marks] == [
        "ok",
        "ok",
        "pending",
        "pending",
    ]
    assert body.calls == 2


# For a while


def test_a_duration_is_for_that_call_as_often_as_it_comes(store: Store) -> None:
    here = desk(store, probe())
    here.pass_through("(probe 1)", session="s")
    here.decide("duration", seconds=60)
    assert [here.pass_through("(probe 1)", session="s").status for _ in range(3)] == ["ok"] * 3
    here.clock.wait(59)
    assert here.pass_through("(probe 1)", session="s").ok
    here.clock.wait(1)
    assert here.pass_through("(probe 1)", session="s").status == "pending"


def test_a_duration_that_was_never_used_is_over_like_any(store: Store) -> None:
    here = desk(store, probe())
    here.pass_through("(probe)")
    here.decide("duration", seconds=60)
    here.clock.wait(60)
    assert here.pass_through("(probe)").status == "pending"


def test_what_was_granted_is_told_in_the_audit(store: Store) -> None:
    here = desk(store, probe())
    here.pass_through("(probe 1)")
    asked = here.decide("scope", seconds=3600, rule="(allow (probe :x (< 5)))")
    result = here.pass_through("(probe 2)")
    row = next(row for row in here.rows if row["id"] == result.id)
    assert row["consent"] == f"allow: granted until 2026-03-10 13:00 UTC by ann (request {asked.id})"
    (decided,) = [row for row in here.rows if row["route"] == "decision"]
    assert (decided["rule"], decided["consent"]) == (
        "(allow (probe :x (< 5)))",
        f"granted a scope by ann (request {asked.id})",
    )


# Times


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [
        ("once", APPROVAL_SECONDS),
        ("edit", APPROVAL_SECONDS),
        ("deny", PENDING_SECONDS),
        ("duration", DURATION_SECONDS),
        ("scope", SCOPE_SECONDS),
    ],
)
def test_a_decision_is_over_after_its_time(store: Store, kind: str, seconds: float) -> None:
    used = {"deny": "denied"}.get(kind, "ok")
    here = desk(store, probe())
    edited = form("(probe 9)") if kind == "edit" else None
    for early, status in [(1.0, used), (0.0, "pending")]:
        here.pass_through("(probe)")
        here.decide(kind, form=edited)
        here.clock.wait(seconds - early)
        assert here.pass_through("(probe)").status == status
        here.clock.wait(LONGEST_SECONDS)


def test_a_request_is_over_after_a_week(store: Store) -> None:
    here = desk(store, probe())
    old = here.pass_through("(probe)").message
    here.clock.wait(PENDING_SECONDS - 1)
    assert here.pass_through("(probe)").message == old
    here.clock.wait(1)
    assert here.waiting == []
    new = here.pass_through("(probe)").message
    assert new != old
    assert new.startswith("probe waits")


def test_what_is_long_over_is_forgotten(store: Store) -> None:
    here = desk(store, probe())
    here.pass_through("(probe)")
    here.decide("scope")
    here.clock.wait(KEPT_SECONDS + SCOPE_SECONDS + 1)
    here.pass_through("(probe 2)")
    assert [one.form for one in here.broker.requests(every=True)] == ["(probe :x 2)"]
    assert store.execute("SELECT count(*) FROM grants") == [(0,)]


# No


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("use src instead.", "probe was denied: the person said: use src instead."),
        ("", f"probe was denied: {THE_PERSON_SAID_NO}."),
    ],
)
def test_a_no_is_the_result_of_the_call_with_its_reason(store: Store, why: str, said: str) -> None:
    body = Spy()
    here = desk(store, probe(body))
    here.pass_through("(probe)")
    assert here.decide("deny", why=why).why == why
    result = here.pass_through("(probe)")
    assert (result.status, result.message) == ("denied", said)
    assert not body.ran
    assert here.pass_through("(probe)").status == "pending"


def test_a_no_with_a_scope_is_a_rule_of_its_session(store: Store) -> None:
    body = Spy("done")
    here = desk(store, probe(body))
    own = {"user": "bob", "session": "s"}
    here.pass_through("(probe 1)", **own)
    with pytest.raises(UsageError, match="does not cover the requested call"):
        here.decide("deny", rule="(allow (probe :x 2))")
    here.decide("deny", rule="(allow (probe :x (< 5)))")
    said = "probe was denied: the person said: (deny (probe :x (< 5))) is a rule of this session."
    for _ in range(2):
        for number in (1, 2):
            result = here.pass_through(f"(probe {number})", **own)
            assert (result.status, result.message) == ("denied", said)
    assert here.broker.requests() == []
    for text, more in [("(probe 7)", {}), ("(probe 2)", {"session": "t"}), ("(probe 2)", {"user": "eve"})]:
        assert here.pass_through(text, **{**own, **more}).status == "pending"
    here.clock.wait(LONGEST_SECONDS + 1)
    assert here.pass_through("(probe 2)", **own).status == "pending"
    assert not body.ran


@pytest.mark.parametrize(
    ("kind", "rule", "during"),
    [("scope", "(probe)", "ok"), ("duration", "", "ok"), ("deny", "(allow (probe))", "denied")],
)
def test_what_a_person_granted_or_denied_for_a_while_can_be_revoked(
    store: Store, kind: Any, rule: str, during: str
) -> None:
    here = desk(store, probe())
    own = {"user": "bob", "session": "s"}
    here.pass_through("(probe)", **own)
    asked = here.decide(kind, rule=rule)
    assert here.pass_through("(probe)", **own).status == during
    assert [one.id for one in here.broker.granted("s", "bob")] == [asked.id]
    assert not here.broker.granted("s", "eve")
    assert here.broker.revoke(asked.id, "eve").decision == kind
    assert not here.broker.granted()
    assert here.pass_through("(probe)", **own).status == "pending"
    with pytest.raises(UsageError, match=f"{asked.id} grants nothing"):
        here.broker.revoke(asked.id, "eve")
    said = [row["consent"] for row in here.rows if row["route"] == "decision"]
    assert said[-1] == f"revoked by eve (request {asked.id})"


# A scope


def test_a_scope_is_for_every_call_it_covers_in_its_session(store: Store, tmp_path: Path) -> None:
    here = desk(store, probe(), workspace=files(tmp_path, {"src/a/x": "", "doc/y": ""}))
    own = {"user": "bob", "session": "s"}
    here.pass_through('(probe :path "src/a/x")', **own)
    here.decide("scope", rule='(probe :path (under "src"))')
    for text, more, status in [
        ('(probe :path "src/new" :x 3)', {}, "ok"),
        ('(probe :path "src/a/x")', {"route": "reply"}, "ok"),
        ('(probe :path "doc/y")', {}, "pending"),
        ('(probe :path "src/../doc/y")', {}, "pending"),
        ("(probe)", {}, "pending"),
        ('(probe :path "src/a/x")', {"session": "t"}, "pending"),
        ('(probe :path "src/a/x")', {"user": "eve"}, "pending"),
    ]:
        assert here.pass_through(text, **{**own, **more}).status == status, text


def test_a_link_that_leads_out_leads_out_of_a_scope(store: Store, tmp_path: Path) -> None:
    here = desk(store, probe(), workspace=files(tmp_path, {"src/a": "", "doc/y": ""}))
    here.pass_through('(probe :path "src/a")')
    here.decide("scope")
    (tmp_path / "src/a").unlink()
    (tmp_path / "src/a").symlink_to(tmp_path / "doc/y")
    assert here.pass_through('(probe :path "src/a")').status == "pending"


def test_a_scope_is_no_key_to_other_tools(store: Store) -> None:
    here = desk(store, probe(), tool("other", effects=["writes"]))
    here.pass_through("(probe)")
    here.decide("scope", rule="(allow (probe))")
    assert here.pass_through("(other)").status == "pending"


@pytest.mark.parametrize("kind", ["once", "duration", "scope"])
@pytest.mark.parametrize(
    ("parts", "options"),
    [
        ({"policy": "(deny (probe))"}, {}),
        ({}, {"guard": Spy(False)}),
        ({}, {"guard": Spy(deny("not today"))}),
    ],
)
def test_what_is_denied_stays_denied_whatever_a_person_granted(
    store: Store, kind: str, parts: dict[str, Any], options: dict[str, Any]
) -> None:
    body = Spy()
    given = {"rule": "(allow (probe))"} if kind == "scope" else {}
    here = desk(store, probe())
    here.pass_through("(probe)")
    here.decide(kind, **given)
    made = {name: rules(text) for name, text in parts.items()}
    strict = desk(store, probe(body, **options), **made)
    assert strict.pass_through("(probe)").status == "denied"
    assert not body.ran
    assert here.pass_through("(probe)").ok  # and nothing was used up


# An edit


def test_an_edited_call_is_made_in_place_of_the_one_that_was_asked_for(store: Store) -> None:
    here = desk(store, probe(keeps))
    here.pass_through("(probe 1)")
    asked = here.decide("edit", form=form('(probe 2 "src")'))
    result = here.pass_through("(probe 1)")
    assert (result.status, result.value) == ("ok", [2, "src"])
    assert result.message == f'{A_PERSON_CHANGED_THE_CALL} (probe :path "src" :x 2).'
    inner, outer = here.rows[-2:]
    assert outer["consent"] == f"edited by ann (request {asked.id}): made as call {inner['id']}"
    assert (inner["form"], inner["stage"]) == ('(probe :path "src" :x 2)', "body")
    assert here.waiting == []
    assert here.pass_through("(probe 1)").status == "pending"
    assert here.pass_through('(probe 2 "src")').status == "pending"


def test_an_edit_that_changes_nothing_is_an_approval(store: Store) -> None:
    here = desk(store, probe(keeps))
    here.pass_through("(probe 1)")
    here.decide("edit", form=form("(probe 1)"))
    assert [here.pass_through("(probe 1)").status for _ in range(2)] == ["ok", "pending"]


@pytest.mark.parametrize(
    ("policy", "guard", "said"),
    [
        ("(deny (probe :x 2))", None, "policy.hy:1 says (deny (probe :x 2))."),
        ("", lambda x: deny("two is bad") if x == 2 else True, "two is bad."),
    ],
)
def test_an_edited_call_passes_the_whole_door(store: Store, policy: str, guard: Any, said: str) -> None:
    body = Spy()
    here = desk(store, probe(body, guard=guard), policy=rules(policy))
    here.pass_through("(probe 1)")
    here.decide("edit", form=form("(probe 2)"))
    result = here.pass_through("(probe 1)")
    assert (result.status, result.message) == (
        "denied",
        f"{A_PERSON_CHANGED_THE_CALL} (probe :x 2). probe was denied: {said}",
    )
    assert not body.ran


def test_an_edited_call_is_counted_once(store: Store) -> None:
    clock = PausableClock()
    limits = StoreLimits(lambda: store, clock=clock)
    here = desk(store, probe(daily_limit=2), clock=clock, limits=limits)
    here.pass_through("(probe 1)")
    here.decide("edit", form=form("(probe 2)"))
    assert here.pass_through("(probe 1)").message.endswith("1 of 2 left today")
    assert store.execute("SELECT count(*) FROM uses") == [(1,)]


def test_the_approval_of_an_edit_is_for_no_other_call(store: Store) -> None:
    body = Spy()
    here = desk(store, probe(body), policy=rules("(deny (probe :x 2))"))
    here.pass_through("(probe 1)")
    here.decide("edit", form=form("(probe 2)"))
    assert here.pass_through("(probe 1)").status == "denied"  # the approval of (probe 2) was not used
    here.door.policy = rules("")
    assert here.pass_through("(probe 2)").status == "pending"
    assert not body.ran


def test_an_edited_call_takes_no_decision_that_is_for_another(store: Store) -> None:
    here = desk(store, probe(keeps))
    for text in ("(probe 1)", "(probe 2)"):
        here.pass_through(text)
    first, second = here.waiting
    here.decide("once", second.id)
    here.decide("edit", first.id, form=form("(probe 2)"))
    texts = ["(probe 1)", "(probe 2)", "(probe 2)"]
    assert [here.pass_through(text).status for text in texts] == ["ok", "ok", "pending"]


def test_an_edited_call_that_is_not_made_at_once_is_not_made(store: Store) -> None:
    clock = PausableClock()

    class Slow:
        async def check(self, *_: Any) -> Verdict:
            clock.wait(EDITED_SECONDS)
            return ALLOW

    body = Spy()
    here = desk(store, probe(body, gate=True), clock=clock, gate=Slow())
    here.pass_through("(probe 1)")
    here.decide("edit", form=form("(probe 2)"))
    assert here.pass_through("(probe 1)").status == "pending"
    assert not body.ran


# A person who is there


@dataclass
class Answers:
    """A person who gives these answers, one for each question, and remembers what was asked."""

    answers: list[Any]

    def __post_init__(self) -> None:
        self.asked: list[str] = []

    async def request(self, _: CognitiveTool, call: Call, reason: str) -> Any:
        self.asked.append(f"{call.form} because {reason}")
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        (ALLOW, "ok", ""),
        (Decision("once", "ann"), "ok", ""),
        (Decision("duration", "ann", seconds=9), "ok", ""),
        (Decision("scope", "ann"), "ok", ""),
        (Decision("edit", "ann", form=form("(probe 2)")), "ok", f"{A_PERSON_CHANGED_THE_CALL} (probe :x 2)."),
        (deny("not now."), "denied", "probe was denied: the person said: not now."),
        (Decision("deny", "ann"), "denied", f"probe was denied: {THE_PERSON_SAID_NO}."),
        (None, "pending", WAITS),
        (ask("later"), "pending", WAITS),
        (True, "denied", "probe was denied: consent could not be asked (TypeError)."),
        (OSError("gone"), "denied", "probe was denied: consent could not be asked (OSError)."),
        (
            Decision("scope", "ann", rule="(allow (probe :x 5))"),
            "pending",
            WAITS[:-1] + ". (allow (probe :x 5)) does not cover the requested call, (probe :x 1).",
        ),
        (
            Decision("edit", "ann", form=form("(probe :y 2)")),
            "pending",
            WAITS[:-1] + f". probe: :y is unknown (it takes :x, :path). {IT_IS_CALLED_AS} "
            '(probe [:x int = 0] [:path str = "."]).',
        ),
        (
            Decision("for-ever", "ann"),  # type: ignore[arg-type]
            "pending",
            WAITS[:-1] + ". A decision must be once, duration, scope, edit, deny; not for-ever.",
        ),
    ],
)
def test_a_person_who_is_there_is_asked_at_once(store: Store, answer: Any, status: str, message: str) -> None:
    person, body = Answers([answer]), Spy()
    here = desk(store, probe(body), person=person)
    result = here.pass_through("(probe 1)")
    names = [one.id for one in here.broker.requests(every=True)]
    assert (result.status, result.message) == (status, message.format(*names[:1]))
    assert person.asked == [f"(probe :x 1) because {IT_WRITES_FILES}"]
    assert body.ran is (status == "ok")
    assert bool(here.waiting) is (status == "pending")


def test_who_decided_without_a_name_is_somebody(store: Store) -> None:
    here = desk(store, probe(), person=Answers([ALLOW]))
    here.pass_through("(probe)")
    assert "approved by somebody (request" in here.rows[-1]["consent"]


def test_a_question_that_waited_is_the_one_that_is_asked(store: Store) -> None:
    """What was left open without a terminal is decided at the terminal, and nothing of it stays open."""
    desk(store, probe()).pass_through("(probe)")
    person = Answers([None, ALLOW])
    here = desk(store, probe(), person=person)
    assert here.pass_through("(probe)").status == "pending"
    assert here.pass_through("(probe)").ok
    assert here.waiting == []
    assert [one.state for one in here.broker.requests(every=True)] == ["used"]


async def test_two_equal_questions_are_two_decisions(store: Store) -> None:
    asked, answer, body = asyncio.Event(), asyncio.Event(), Spy()

    class Slow:
        def __init__(self) -> None:
            self.count = 0

        async def request(self, *_: Any) -> Verdict:
            self.count += 1
            mine = self.count
            if mine == 2:
                asked.set()
            await answer.wait()
            return ALLOW if mine == 1 else deny("once is enough")

    here = desk(store, probe(body), person=Slow())
    both = asyncio.gather(here.enter("(probe)"), here.enter("(probe)"))
    await asked.wait()
    assert len(here.waiting) == 2
    answer.set()
    assert [result.status for result in await both] == ["ok", "denied"]
    assert body.calls == 1


class Slow:
    """A person who never answers, and tells when the question is taken back."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.told: list[str] = []

    async def request(self, *_: Any) -> None:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.told.append("taken back")


class HearsOfOthers(Slow):
    """One who is told, too, what somebody else has answered."""

    def withdraw(self, call: Call, outcome: str) -> None:
        self.told.append(f"{call.form} was {outcome}")


@pytest.mark.parametrize(
    ("decision", "status", "outcome"),
    [
        ({"kind": "once"}, "ok", "approved once by ann"),
        ({"kind": "duration"}, "ok", "approved for a while by ann"),
        ({"kind": "scope"}, "ok", "granted a scope by ann"),
        ({"kind": "edit", "form": form("(probe :x 7)")}, "ok", "approved with other arguments by ann"),
        ({"kind": "deny", "why": "not today"}, "denied", "denied by ann: not today"),
    ],
)
async def test_a_question_that_is_answered_elsewhere_goes_away(
    store: Store, decision: dict[str, Any], status: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.tools.consent.broker.ELSEWHERE_SECONDS", 0.01)
    person = HearsOfOthers()
    here = desk(store, probe(), person=person)
    call = asyncio.ensure_future(here.enter("(probe)"))
    await person.asked.wait()
    here.decide(**decision)
    assert (await call).status == status
    assert person.told == [f"(probe) was {outcome}", "taken back"]
    assert here.waiting == []


async def test_a_question_that_is_cancelled_is_taken_back(store: Store) -> None:
    person = Slow()
    here = desk(store, probe(), person=person)
    call = asyncio.ensure_future(here.enter("(probe)"))
    await person.asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert person.told == ["taken back"]
    assert len(here.waiting) == 1


async def test_what_is_decided_elsewhere_while_a_person_is_asked_counts(store: Store) -> None:
    class Elsewhere:
        def __init__(self) -> None:
            self.decide: Callable[[], Any] = lambda: None

        async def request(self, *_: Any) -> Verdict:
            self.decide()
            return ALLOW

    person = Elsewhere()
    here = desk(store, probe(), person=person)
    person.decide = lambda: here.decide("deny", why="I was first")
    result = await here.enter("(probe)")
    assert result.message == "probe was denied: the person said: I was first."
    assert here.waiting == []

    def decide_and_use() -> None:
        here.decide()
        twin = threading.Thread(target=lambda: desk(store, probe(), clock=here.clock).pass_through("(probe)"))
        twin.start()
        twin.join()

    person.decide = decide_and_use
    result = await here.enter("(probe)")
    assert result.status == "denied"
    assert "was approved before, by ann at 2026-03-10 12:00 UTC" in result.message


class Nobody:
    """Decides without being a human."""

    human = False

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def request(self, *_: Any) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (ALLOW, "ok"),
        (Decision(), "ok"),
        (Decision("scope"), "ok"),
        (Decision("deny", why="no"), "denied"),
        (deny("no"), "denied"),
        (None, "pending"),
        (Decision("edit", form=form("(probe 2)")), "denied"),
        ("yes", "denied"),
    ],
)
def test_who_is_no_human_leaves_no_requests(store: Store, answer: Any, status: str) -> None:
    body = Spy()
    here = desk(store, probe(body), person=Nobody(answer))
    assert here.pass_through("(probe 1)").status == status
    assert body.ran is (status == "ok")
    assert here.broker.requests(every=True) == []


def test_a_no_that_was_given_counts_for_who_says_yes_to_everything(store: Store) -> None:
    here = desk(store, probe())
    here.pass_through("(probe)")
    here.decide("deny", why="never")
    assert desk(store, probe(), person=SayYes()).pass_through("(probe)").status == "denied"


def test_a_question_can_be_taken_back(store: Store) -> None:
    class Interrupted:
        taken = False

        def interrupt(self) -> None:
            self.taken = True

    person = Interrupted()
    desk(store, probe(), person=person).broker.interrupt(["s"])
    desk(store, probe()).broker.interrupt(["s"])
    assert person.taken


def test_nobody_to_ask_is_an_error_at_once() -> None:
    body = Spy()
    result = gateway(probe(body), consent=NobodyToAsk()).pass_through("(probe)")
    assert (result.status, result.message) == (
        "denied",
        "probe was denied: a person's approval is needed (it writes files), and there is no person to ask.",
    )
    assert isinstance(Door().consent, NobodyToAsk)
    assert not body.ran


# Errors of those who decide


def opened(here: Desk) -> str:
    here.pass_through("(probe 1)")
    return here.waiting[0].id


BAD: list[tuple[str, Decision, str]] = [
    ("no time", Decision("duration", seconds=0), "A grant lasts at most 30 days, and longer than no time."),
    ("less", Decision("scope", seconds=-1), f"{A_GRANT_LASTS_AT_MOST} 30 days, and longer than no time."),
    (
        "too long",
        Decision("duration", seconds=LONGEST_SECONDS + 1),
        f"{A_GRANT_LASTS_AT_MOST} 30 days, and longer than no time.",
    ),
    (
        "nan",
        Decision("once", seconds=float("nan")),
        f"{A_GRANT_LASTS_AT_MOST} 30 days, and longer than no time.",
    ),
    (
        "no such kind",
        Decision("always"),  # type: ignore[arg-type]
        "A decision must be once, duration, scope, edit, deny; not always.",
    ),
    ("an edit of nothing", Decision("edit"), "An edit needs the new call."),
    (
        "an edit of another tool",
        Decision("edit", form=form("(other)")),
        f"{AN_EDITED_CALL_KEEPS_ITS}, probe; this one calls other.",
    ),
    (
        "an edit that is no call",
        Decision("edit", form=form('(probe :x "one")')),
        'probe: :x should be int, not "one". '
        f'{IT_IS_CALLED_AS} (probe [:x int = 0] [:path str = "."] [:pin str = ""]).',
    ),
    (
        "a scope that does not cover",
        Decision("scope", rule="(allow (probe :x 2))"),
        "(allow (probe :x 2)) does not cover the requested call, (probe :x 1).",
    ),
    (
        "a scope about another tool",
        Decision("scope", rule="(other)"),
        "A scope allows only calls of probe, the requested tool; not (allow (other)).",
    ),
    (
        "a scope about all tools",
        Decision("scope", rule="(allow _)"),
        "A scope allows only calls of probe, the requested tool; not (allow _).",
    ),
    (
        "a deny",
        Decision("scope", rule="(deny (probe))"),
        "A scope allows only calls of probe, the requested tool; not (deny (probe)).",
    ),
    (
        "a limit",
        Decision("scope", rule="(quota probe 3 :per :day)"),
        'A scope must be one rule, such as (allow (write-file :path (under "src"))).',
    ),
    (
        "two rules",
        Decision("scope", rule="(allow (probe)) (allow (probe))"),
        'A scope must be one rule, such as (allow (write-file :path (under "src"))).',
    ),
    (
        "an unknown argument",
        Decision("scope", rule="(allow (probe :z 1))"),
        "scope:1:15: probe has no argument :z.\n  (allow (probe :z 1))\n                ^",
    ),
    (
        "a secret",
        Decision("scope", rule='(allow (probe :pin "1234"))'),
        'scope:1:15: :pin is secret, and rules are readable; write :pin _.\n  (allow (probe :pin "1234"))\n'
        "                ^",
    ),
    (
        "no rule",
        Decision("scope", rule="(allow (probe"),
        f"scope:1:8: this ( {IS_NEVER_CLOSED}; add )) at the end\n  (allow (probe\n         ^",
    ),
]
PIN = {"x": {"type": int, "default": 0}, "path": {"default": "."}, "pin": {"default": "", "secret": True}}


@pytest.mark.parametrize(("decision", "said"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
@pytest.mark.parametrize("act", ["preview", "decide"])
def test_a_decision_that_cannot_be_is_told_and_changes_nothing(
    store: Store, act: str, decision: Decision, said: str
) -> None:
    here = desk(store, probe(params=PIN))
    name = opened(here)
    before = raw(store)
    told = complaint(UsageError, lambda: getattr(here.broker, act)(name, decision))
    assert told == said
    assert raw(store) == before


def test_a_request_there_is_not_is_told_with_the_nearest(store: Store) -> None:
    here = desk(store, probe())
    assert complaint(UsageError, lambda: here.broker.find("zzzzz")) == (
        f"{THERE_IS_NO_REQUEST} zzzzz. {QUOTH_PENDING_LISTS_WHAT_IS}."
    )
    name = opened(here)
    for act in (here.broker.find, lambda x: here.decide(request=x), lambda x: here.broker.offer(x)):
        assert complaint(UsageError, lambda act=act: act(f"{name}x")) == (
            f"{THERE_IS_NO_REQUEST} {name}x. Did you mean {name}?"
        )


@pytest.mark.parametrize(
    ("kind", "done"),
    [
        ("once", "approved"),
        ("duration", "approved"),
        ("scope", "approved"),
        ("edit", "edited"),
        ("deny", "denied"),
    ],
)
def test_a_request_is_decided_once(store: Store, kind: str, done: str) -> None:
    here = desk(store, probe())
    name = opened(here)
    here.decide(kind, name, form=form("(probe 2)") if kind == "edit" else None)
    said = f"Request {name} was {done} before, by ann at 2026-03-10 12:00 UTC."
    for again in ("once", "deny"):
        assert complaint(UsageError, lambda again=again: here.decide(again, name)) == said
    here.pass_through("(probe 1)")
    assert complaint(UsageError, lambda: here.decide("once", name)) == said


def test_a_request_that_is_over_is_told(store: Store) -> None:
    here = desk(store, probe())
    name = opened(here)
    here.clock.wait(PENDING_SECONDS)
    assert complaint(UsageError, lambda: here.decide(request=name)) == (
        f"Request {name} expired at 2026-03-17 12:00 UTC."
    )


def test_a_tool_that_is_not_loaded_can_be_approved_or_denied_as_it_is(store: Store) -> None:
    here = desk(store, probe())
    name = opened(here)
    elsewhere = desk(store)
    for kind in ("scope", "edit"):
        assert complaint(UsageError, lambda kind=kind: elsewhere.decide(kind, name)) == (
            "The tool probe is not loaded, so this cannot be checked; give its file: --tools FILE"
        )
    elsewhere.decide("once", name)
    assert here.pass_through("(probe 1)").ok


def test_a_call_that_cannot_be_read_back_is_told(store: Store) -> None:
    here = desk(store, probe(params={"x": {"type": int}}))
    here.pass_through(replace(form("(probe)"), args={"x": 10**2000}))
    (asked,) = here.waiting
    assert complaint(UsageError, lambda: here.decide()).startswith(
        f"The call of request {asked.id} {CANNOT_BE_READ} back: "
    )


def test_the_usual_times_and_the_suggested_rule_are_filled_in(store: Store) -> None:
    here = desk(store, probe())
    name = opened(here)
    assert here.broker.preview(name, Decision("duration")).seconds == DURATION_SECONDS
    full = here.broker.preview(name, Decision("scope"))
    assert (full.seconds, full.rule) == (SCOPE_SECONDS, "(allow (probe :x 1 :only))")
    edited = here.broker.preview(name, Decision("edit", form=form("(PROBE 3)")))
    assert str(edited.form) == "(probe :x 3)"
    assert [one.id for one in here.waiting] == [name]


# Secrets


LOGIN = {
    "user": {},
    "pin": {"secret": True},
    "code": {"type": int, "default": 0, "secret": True},
    "file": {"default": "."},
}


def login(**options: Any) -> CognitiveTool:
    return tool("login", Spy("in"), params=LOGIN, effects=["net"], **options)


@pytest.mark.parametrize("kind", ["once", "duration", "scope", "edit", "deny"])
def test_a_declared_secret_is_kept_only_while_a_person_is_asked(
    store: Store, tmp_path: Path, kind: str
) -> None:
    asks = login(guard=lambda pin, code: ask(f"{pin} is short, {code} is not"))
    here = desk(store, asks, workspace=tmp_path, given={"origins": Told(text="read-file hunter2")})
    text = '(login "ann" :pin "hunter2" :code 424242 :file "x/hunter2")'
    here.pass_through(text, message="Log in with hunter2.")
    (asked,) = here.waiting
    assert asked.form == '(login :pin "[secret]" :code "[secret]" :file "x/hunter2" :user "ann")'
    assert asked.reason == f"{IT_USES_THE_NETWORK}; [secret] is short, [secret] is not"
    assert asked.touches == ("x/[secret]",)
    assert asked.message == "Log in with [secret]."
    assert {one.words for one in asked.origins} == {"in the text of read-file [secret]"}
    shown = json.dumps(asked.to_json()).replace("x/hunter2", "")  # an argument that nobody declared
    assert "hunter2" not in shown
    assert "424242" not in shown
    edited = form('(login "bob" :pin "swordfish")')
    here.decide(kind, form=edited if kind == "edit" else None, why="hunter2 is no good")
    after = raw(store).replace("x/hunter2", "")
    assert "424242" not in after
    assert "hunter2" not in after
    result = here.pass_through(text)
    assert result.status == ("denied" if kind == "deny" else "ok")
    after = raw(store).replace("x/hunter2", "") + result.message
    for secret in ("hunter2", "424242", "swordfish"):
        assert secret not in after
    if kind == "deny":
        assert result.message == "login was denied: the person said: [secret] is no good."


def test_a_secret_of_a_request_that_is_over_goes_with_the_next_question(store: Store) -> None:
    here = desk(store, login())
    here.pass_through('(login "ann" "hunter2")')
    here.pass_through('(login "bob" "hunter2")')
    here.decide("edit", here.waiting[1].id, form=form('(login "bob" "swordfish")'))
    assert "hunter2" in raw(store)
    here.clock.wait(PENDING_SECONDS)
    here.pass_through('(login "eve" "abc123")')
    assert "hunter2" not in raw(store)
    assert "swordfish" not in raw(store)


def test_what_looks_like_a_secret_is_shown_to_who_decides_and_not_to_the_audit(store: Store) -> None:
    here = desk(store, tool("fetch", params={"page": {}}, effects=["net"]))
    url = "https://me:hunter2@example.org"
    here.pass_through(f'(fetch "{url}")')
    (asked,) = here.waiting
    assert url in asked.form
    here.decide("scope", why="token=hunter2")
    assert "hunter2" not in "\n".join(str(row) for row in store.execute("SELECT * FROM audit"))


def test_texts_that_are_no_texts_can_be_asked_about_and_answered(store: Store) -> None:
    here = desk(store, probe(guard=Spy(ask("\udcff is odd"))))
    assert here.pass_through("(probe)", message="\udcff").status == "pending"
    here.decide("deny", why="\udcff")
    assert here.pass_through("(probe)").message == "probe was denied: the person said: \\udcff."


# What a person is told of earlier approvals


def test_an_approval_whose_end_is_not_known_is_told(store: Store) -> None:
    class Killed(StoreAudit):
        def write(self, row: Any) -> None:
            if row["stage"] == "body":
                raise KeyboardInterrupt
            super().write(row)

    body = Spy()
    here = desk(store, probe(body), audit=Killed(lambda: store))
    here.pass_through("(probe)")
    here.decide()
    with pytest.raises(KeyboardInterrupt):
        here.pass_through("(probe)")
    again = desk(store, probe(body), clock=here.clock)
    again.pass_through("(probe)")
    (asked,) = again.waiting
    assert asked.reason == (
        "it writes files; approved and begun at 2026-03-10 12:00 UTC, and how that ended is not known"
    )
    person = Answers([None])
    desk(store, probe(body), clock=here.clock, person=person).pass_through("(probe)")
    assert person.asked == [f"(probe) because {asked.reason}"]
    assert body.calls == 1


def test_where_the_end_of_calls_is_kept_elsewhere_nothing_is_said_of_it(store: Store) -> None:
    here = desk(store, probe(), audit=MemoryAudit())
    for _ in range(2):
        here.pass_through("(probe)")
        assert here.waiting[0].reason == IT_WRITES_FILES
        here.decide()
        assert here.pass_through("(probe)").ok


# Offers


def approved(here: Desk, *texts: str, **marks: Any) -> list[str]:
    """What is offered after each of these calls was asked about and approved."""
    offers = []
    for text in texts:
        here.pass_through(text, **marks)
        asked = here.decide()
        offers.append(here.broker.offer(asked.id))
        assert here.pass_through(text, **marks).ok
    return offers


def test_after_three_equal_approvals_a_rule_is_offered_and_not_installed(
    store: Store, state: Path, tmp_path: Path
) -> None:
    here = desk(store, probe(), workspace=tmp_path)
    offers = approved(here, *(f'(probe :path "src/{name}")' for name in "abcd"), user="bob", session="s")
    assert offers == ["", "", *['(allow (probe :path (under "src") :only))'] * 2]
    assert here.pass_through('(probe :path "src/e")', user="bob", session="s").status == "pending"
    assert list(state.rglob("policy.hy")) == list(tmp_path.rglob("policy.hy")) == []


def test_approvals_in_other_sessions_count_and_those_of_others_do_not(store: Store) -> None:
    here = desk(store, probe())
    for session in ("a", "b"):
        assert approved(here, "(probe 1)", user="bob", session=session) == [""]
    assert approved(here, "(probe 1)", user="eve", session="c") == [""]
    assert approved(here, "(probe 2)", user="bob", session="c") == [""]
    assert approved(here, "(probe 1)", user="bob", session="c") == ["(allow (probe :x 1 :only))"]


@pytest.mark.parametrize(
    ("parts", "options"),
    [
        ({"policy": "(ask (probe))"}, {}),
        ({}, {"guard": Spy(ask("it asks"))}),
        ({}, {"guard": Spy(ask(IT_WRITES_FILES))}),
    ],
)
def test_what_a_rule_or_a_guard_asks_is_never_offered(
    store: Store, parts: dict[str, Any], options: dict[str, Any]
) -> None:
    made = {name: rules(text) for name, text in parts.items()}
    assert approved(desk(store, probe(**options), **made), *["(probe)"] * 4) == [""] * 4


@pytest.mark.parametrize("kind", ["duration", "scope", "deny", "edit"])
def test_only_approvals_of_the_call_itself_count(store: Store, kind: str) -> None:
    here = desk(store, probe())
    for session in "abcd":
        here.pass_through("(probe 1)", session=session)
        asked = here.decide(kind, form=form("(probe 2)") if kind == "edit" else None)
        assert here.broker.offer(asked.id) == ""
        here.pass_through("(probe 1)", session=session)
    assert approved(here, "(probe 1)", "(probe 2)", session="e") == ["", ""]


def test_who_says_yes_to_everything_teaches_nothing(store: Store) -> None:
    here = desk(store, probe(), person=SayYes())
    for _ in range(4):
        assert here.pass_through("(probe)").ok
    assert approved(desk(store, probe()), "(probe)") == [""]


# Rows


def test_the_rows_of_decisions_are_in_the_chain(store: Store) -> None:
    here = desk(store, probe())
    for number, kind in enumerate(["once", "duration", "scope", "edit", "deny"]):
        text = f"(probe {number})"
        here.pass_through(text)
        here.decide(kind, form=form("(probe 9)") if kind == "edit" else None, why="so")
        here.pass_through(text)
    decided = [row for row in here.rows if row["route"] == "decision"]
    assert [row["consent"].partition(" by ")[0] for row in decided] == [
        "approved once",
        "approved for a while",
        "granted a scope",
        "edited",
        "denied",
    ]
    assert [row["status"] for row in decided] == ["ok"] * 4 + ["denied"]
    assert StoreAudit(lambda: store).verify().ok
    store.execute("UPDATE audit SET consent = 'approved once by eve' WHERE route = 'decision'")
    assert not StoreAudit(lambda: store).verify().ok


def test_a_decision_that_cannot_be_recorded_does_not_hold(store: Store) -> None:
    class Full(MemoryAudit):
        def write(self, row: Any) -> None:
            if row["route"] == "decision":
                raise OSError("disk full")
            super().write(row)

    here = desk(store, probe(), audit=Full())
    here.pass_through("(probe)")
    with pytest.raises(OSError, match="disk full"):
        here.decide()
    assert [one.state for one in here.broker.requests(every=True)] == ["pending"]
    assert here.pass_through("(probe)").status == "pending"


def test_without_an_audit_decisions_are_kept_all_the_same(store: Store) -> None:
    here = desk(store, probe())
    name = opened(here)
    rows, place = here.broker._rows, here.broker._workspace
    Broker(lambda: store, ToolTable(), place, clock=here.clock, rows=rows).decide(name, Decision())
    assert here.pass_through("(probe 1)").ok


# What a body asks


def careful(done: Callable[[], Any], *wanted: str, **options: Any) -> CognitiveTool:
    """A tool whose body asks for permissions, and then acts."""

    async def body(ctx: ToolContext) -> Any:
        for what in wanted:
            await ctx.permission.request(what, f"{what} is not mine")
        return done()

    return tool("probe", body, params={"n": {"type": int, "default": 0}}, **options)


def test_a_permission_waits_is_given_once_and_the_call_goes_on(store: Store) -> None:
    done = Spy("edited")
    here = desk(store, careful(done, "persona"))
    result = here.pass_through("(probe 1)")
    (asked,) = here.waiting
    assert (result.status, asked.form, asked.reason) == (
        "pending",
        '(probe :n 1 :permission? "persona")',
        "persona is not mine",
    )
    here.decide()
    assert here.pass_through("(probe 2)").status == "pending"
    assert here.pass_through("(probe 1)").value == "edited"
    assert here.pass_through("(probe 1)").status == "pending"
    assert done.calls == 1


def test_a_call_that_needs_several_decisions_is_asked_about_each_of_them_once(store: Store) -> None:
    done = Spy("edited")
    here = desk(store, careful(done, "persona", "human", effects=["writes"], asks_first=True))
    key = here.pass_through("(probe)").id
    asked = []
    while here.waiting:
        asked.append(here.decide().form)
        result = here.pass_through("(probe)", key=key)
    assert asked == ["(probe)", '(probe :permission? "persona")', '(probe :permission? "human")']
    assert (result.value, done.calls) == ("edited", 1)
    assert here.pass_through("(probe)").status == "pending"


def test_an_approval_that_a_waiting_call_keeps_is_for_no_other_call(store: Store) -> None:
    here = desk(store, careful(Spy(), "persona", effects=["writes"]))
    first = here.pass_through("(probe)")
    here.decide()
    assert here.pass_through("(probe)", key=first.id).status == "pending"  # for the persona
    for marks in ({}, {"key": "0123456789"}, {"key": ""}):
        assert here.pass_through("(probe)", **marks).message.startswith(
            f"probe waits for a person's approval: {IT_WRITES_FILES}"
        )


def test_a_program_that_was_approved_is_asked_about_once_while_its_calls_wait(
    store: Store, tmp_path: Path
) -> None:
    shipped_tools = shipped(tmp_path).door.table.tools()
    here = desk(store, *shipped_tools, probe(), workspace=tmp_path, policy=rules("(ask (eval))"))
    key = here.pass_through("(eval (do (probe 1) (probe 2)))").id
    asked = []
    while here.waiting:
        asked.append(here.decide().tool)
        result = here.pass_through("(eval (do (probe 1) (probe 2)))", key=key)
    assert (result.status, asked) == ("ok", ["eval", "probe", "probe"])


def test_a_permission_granted_for_a_while_is_not_asked_again(store: Store) -> None:
    here = desk(store, careful(Spy("edited"), "persona"))
    here.pass_through("(probe)")
    here.decide("duration", seconds=60)
    assert [here.pass_through("(probe)").status for _ in range(2)] == ["ok", "ok"]
    assert here.pass_through("(probe 1)").status == "pending"


def test_a_permission_that_is_refused_is_the_result_of_the_call(store: Store) -> None:
    done = Spy()
    here = desk(store, careful(done, "persona"))
    here.pass_through("(probe)")
    here.decide("deny", why="hands off")
    assert here.pass_through("(probe)").message == "probe was denied: the person said: hands off."
    assert not done.ran


def test_no_scope_covers_what_a_body_asks(store: Store) -> None:
    here = desk(store, careful(Spy(), "persona", effects=["writes"]))
    here.pass_through("(probe)")
    here.decide("scope", rule="(allow (probe))")
    here.pass_through("(probe)")
    (asked,) = here.waiting
    assert (asked.form, asked.rule) == ('(probe :permission? "persona")', "")
    assert complaint(UsageError, lambda: here.decide("scope", rule="(allow (probe))")) == (
        'probe itself requests (probe :permission? "persona"); no scope covers that. '
        "Approve it once or for a while."
    )


def test_no_call_is_taken_for_a_permission(store: Store) -> None:
    """A tool may have a parameter ``permission``; an approval of its call allows its body nothing."""
    done = Spy("edited")

    async def body(ctx: ToolContext) -> Any:
        await ctx.permission.request("admin", "it is not mine")
        return done()

    made = tool("probe", body, params={"permission": {"default": ""}}, effects=["writes"])
    here = desk(store, made)
    here.pass_through('(probe :permission "admin")')
    here.decide()
    assert here.pass_through('(probe :permission "admin")').status == "pending"
    assert [one.form for one in here.waiting] == ['(probe :permission "admin" :permission? "admin")']
    assert here.pass_through('(probe :permission? "admin")').status == "invalid"
    assert not done.ran


def test_what_a_body_asks_is_shown_beside_its_secrets(store: Store) -> None:
    async def body(ctx: ToolContext) -> Any:
        await ctx.permission.request("read mail", "mail is private")

    here = desk(store, tool("probe", body, params={"pin": {"secret": True}, "file": {"default": "a"}}))
    here.pass_through('(probe "hunter2")')
    (asked,) = here.waiting
    assert asked.form == '(probe :pin "[secret]" :permission? "read mail")'
    assert (asked.reason, asked.touches) == ("mail is private", ("a",))


def test_a_call_instead_of_what_a_body_asks_is_made(store: Store) -> None:
    async def body(n: int, ctx: ToolContext) -> int:
        if n == 0:
            await ctx.permission.request("nought", "it is much")
        return n

    here = desk(store, tool("probe", body, params={"n": {"type": int, "default": 0}}))
    here.pass_through("(probe)")
    here.decide("edit", form=form("(probe 3)"))
    assert here.pass_through("(probe)").value == 3


def test_a_body_is_suspended_at_its_question_and_does_nothing_twice(store: Store) -> None:
    wrote, read = Spy("wrote"), Spy("read")

    async def body(ctx: ToolContext) -> Any:
        assert ctx.dispatch is not None
        ctx.say("Working.")
        made = [(await ctx.dispatch(form(text))).value for text in ("(write)", "(look)", "(write)")]
        await ctx.permission.request("more", "it is much")
        return made

    tools = [tool("write", wrote, effects=["writes"]), tool("look", read, effects=["reads"])]
    here = desk(store, tool("probe", body), *tools, person=Answers([ALLOW] * 3))
    result = here.pass_through("(probe)")
    assert (result.value, result.message) == (["wrote", "read", "wrote"], "Working.")
    assert (wrote.calls, read.calls) == (2, 1)


def acting(done: list[str], how: str) -> CognitiveTool:
    """A tool whose body acts, by an effect or by none that can be seen, then asks, and acts again."""

    async def body(ctx: ToolContext) -> str:
        done.append("before")
        if how == "effect":
            ctx.effect("sent:it")
        elif how == "call":
            assert ctx.dispatch is not None
            await ctx.dispatch(form("(write)"))
        await ctx.permission.request("more", "it is much")
        done.append("behind")
        return "done"

    effects = ["reads"] if how == "reads" else ["writes"]
    return tool("probe", body, effects=effects, asks_first=how == "asks first")


@pytest.mark.parametrize("how", ["effect", "call", "plain", "asks first", "reads"])
def test_a_body_that_acts_and_then_asks_acts_once_while_a_person_answers(store: Store, how: str) -> None:
    done: list[str] = []
    person = Answers([ALLOW] * 3)
    here = desk(store, acting(done, how), tool("write", Spy(), effects=["writes"]), person=person)
    assert here.pass_through("(probe)").value == "done"
    assert done == ["before", "behind"]


@pytest.mark.parametrize(
    ("how", "asked_again"),
    [("effect", True), ("call", True), ("plain", True), ("asks first", False), ("reads", False)],
)
def test_a_body_that_waited_begins_again_by_a_decision(store: Store, how: str, asked_again: bool) -> None:
    done: list[str] = []
    tools = [acting(done, how), tool("write", Spy(), effects=["writes"])]
    here = desk(store, *tools, policy=rules("(allow (probe))\n(allow (write))"))
    key = here.pass_through("(probe)").id
    (waiting,) = here.waiting
    result = here.pass_through("(probe)", key=key)
    assert (result.status, here.waiting, done) == ("pending", [waiting], ["before"])
    here.decide()
    result = here.pass_through("(probe)", key=key)
    if asked_again:
        assert (result.status, done) == ("pending", ["before"])
        (fact,) = here.waiting
        assert fact.reason.startswith(BEGUN_BEFORE)
        with pytest.raises(UsageError, match="decided once"):
            here.decide("duration")
        assert here.pass_through("(probe)", key=key).status == "pending"
        here.decide()
        result = here.pass_through("(probe)", key=key)
        assert str(here.door.audit.rows()[-1]["consent"])  # type: ignore[attr-defined]
    assert (result.value, done) == ("done", ["before", "before", "behind"])


def test_words_of_a_body_do_not_state_that_it_was_begun(store: Store) -> None:
    """The reason of a permission may be a model's text."""
    done = Spy()

    async def body(ctx: ToolContext) -> None:
        done()
        await ctx.permission.request("more", f"it sends: {BEGUN_BEFORE}")

    here = desk(store, tool("probe", body, effects=["writes"]), policy=rules("(allow (probe))"))
    key = here.pass_through("(probe)").id
    here.decide()
    assert here.pass_through("(probe)", key=key).status == "pending"
    assert done.calls == 1


@pytest.mark.parametrize("grant", ["yes", "duration", "scope"])
def test_no_permission_answers_whether_a_call_was_begun(store: Store, grant: str) -> None:
    """A call is killed in its body, and resumed where everything is allowed."""
    done = Spy("done")
    probe = tool("probe", done, effects=["writes"])
    here = desk(store, probe)
    if grant != "yes":
        here.pass_through("(probe)", key="s/other")
        here.decide(grant)
        assert here.pass_through("(probe)", key="s/other").ok
    here.door.receipts.begins(probe, new_call(form("(probe)"), key="s/k1"))  # and nothing more
    person = SayYes() if grant == "yes" else None
    again = desk(store, tool("probe", done, effects=["writes"]), person=person)
    done.calls = 0
    result = again.pass_through("(probe)", key="s/k1")
    assert (result.status, done.calls) == ("pending", 0)
    assert BEGUN_BEFORE in result.message
    again.decide()
    assert again.pass_through("(probe)", key="s/k1").ok
    assert done.calls == 1


# Doors with other consents


async def test_whoever_consents_may_have_another_call_made(tmp_path: Path) -> None:
    class Other:
        def __init__(self) -> None:
            self.asked = 0

        async def request(self, *_: Any) -> Verdict | EditedCall:
            self.asked += 1
            return EditedCall(form("(probe 2)")) if self.asked == 1 else ALLOW

    here = gateway(probe(keeps), consent=Other())
    result = await here.enter("(probe 1)")
    assert result.value == [2, "."]
    inner, outer = here.rows
    assert outer["consent"] == f"edited: made as call {inner['id']}"


def test_an_edit_is_kept_as_the_answer_to_the_call_it_replaced(store: Store) -> None:
    body = Spy("done")
    here = desk(store, probe(body), window=60)
    marks = {"route": "reply", "message": "Do it."}
    here.pass_through("(probe 1)", **marks)
    here.decide("edit", form=form("(probe 2)"))
    first, again = here.pass_through("(probe 1)", **marks), here.pass_through("(probe 1)", **marks)
    assert (first.message, first.value) == (again.message, again.value)
    assert body.calls == 1
    assert isinstance(here.door.receipts, StoreReceipts)


@pytest.mark.parametrize("few", ["id", "digest", "used_by", "program"])
def test_one_request_is_found_among_thousands_of_its_session(tmp_path: Path, few: str) -> None:
    store = Store(tmp_path / "s.sqlite")
    ways: list[str] = []

    def explained(sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        ways.extend(str(way) for *_, way in store.execute(f"EXPLAIN QUERY PLAN {sql}", values))
        return []

    rows: Any = StoreRequests(lambda: store, lambda: 0.0).look("monday", "ann")
    rows._run = explained
    rows.where(state="decided", **{few: "x"})
    assert ways
    assert not [way for way in ways if "requests_session" in way or "SCAN" in way]
    ways.clear()
    rows.where(tool="probe")  # what many have is searched for in the session
    assert "requests_session" in ways[0]
    store.close()
