"""Receipts: which call is answered by what came of an earlier one, and which is made again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sentences import COULD_NOT_BE_WRITTEN, THE_CALL_WAS_DONE_BUT, THE_PERSON_SAID_NO
from words import Desk, PausableClock, Spy, desk, form, gateway, shipped, tool

from quoth.tools.call.call import ALLOW, Verdict, ask, deny
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import NobodyToAsk, NoReceipts
from quoth.tools.history.receipts import KEPT_SECONDS, PRUNED_EVERY, WINDOW_SECONDS, StoreReceipts
from quoth.tools.policy.limits import by_effects
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.storage.database import Store

MODEL = {"route": "reply", "user": "bob", "session": "s", "message": "Look."}


def look(body: Any = None, **options: Any) -> CognitiveTool:
    """A tool that only reads."""
    options.setdefault("params", {"x": {"type": int, "default": 0}})
    return tool("look", body or Spy("seen"), effects=["reads"], **options)


def change(**options: Any) -> CognitiveTool:
    """A tool that changes something, and says so."""
    return tool("change", lambda ctx: ctx.effect("changed:it"), **options)


def window(store: Store, *tools: CognitiveTool, seconds: float = WINDOW_SECONDS, **parts: Any) -> Desk:
    return desk(store, *tools, window=seconds, **parts)


# A model that repeats itself


def test_a_model_that_repeats_itself_hears_what_it_heard_before(store: Store) -> None:
    body = Spy("seen")
    here = window(store, look(body))
    first, again = here.pass_through("(look 1)", **MODEL), here.pass_through("(LOOK :x 1)", **MODEL)
    assert (first.value, again.value, body.calls) == ("seen", "seen", 1)
    assert (again.status, again.id != first.id) == ("ok", True)
    assert [row["stage"] for row in here.rows] == ["body", "receipt"]
    assert here.rows[1]["message"] == f"answered by the receipt of call {first.id}"


def test_what_a_body_said_is_said_again(store: Store) -> None:
    made = tool("look", lambda ctx: ctx.say("Two hits."), effects=["reads"])
    here = window(store, made)
    assert [here.pass_through("(look)", **MODEL).message for _ in range(2)] == ["Two hits."] * 2
    chat = MODEL | {"route": "chat"}
    assert [here.pass_through("(look)", **chat).follow_up for _ in range(2)] == ["Two hits."] * 2


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("(look 2)", {}),
        ("(look)", {}),
        ("(look 1)", {"session": "t"}),
        ("(look 1)", {"user": "eve"}),
        ("(look 1)", {"message": "Look again."}),
        ("(look 1)", {"route": "call"}),
        ("(look 1)", {"route": "repl"}),
        ("(look 1)", {"route": "python"}),
    ],
)
def test_only_the_very_same_call_is_a_repetition(store: Store, text: str, marks: dict[str, Any]) -> None:
    body = Spy("seen")
    here = window(store, look(body))
    here.pass_through("(look 1)", **MODEL)
    assert here.pass_through(text, **{**MODEL, **marks}).ok
    assert body.calls == 2


@pytest.mark.parametrize("route", ["call", "eval", "repl", "python"])
def test_what_a_person_asks_for_twice_is_done_twice(store: Store, route: str) -> None:
    body = Spy("seen")
    here = window(store, look(body))
    for _ in range(2):
        here.pass_through("(look 1)", **{**MODEL, "route": route})
    here.pass_through("(look 1)", **MODEL)
    assert body.calls == 3


def test_calls_of_a_program_are_made_as_often_as_they_are_written(store: Store, tmp_path: Path) -> None:
    body = Spy("seen")
    here = window(store, *shipped(tmp_path).door.table.tools(), look(body), workspace=tmp_path)
    program = "(eval (do (look 1) (look 1)))"
    assert here.pass_through(program, **MODEL).value == "seen"
    assert body.calls == 2
    assert here.pass_through(program, **MODEL).value == "seen"
    assert body.calls == 2  # the program as a whole is a repetition


def test_another_version_of_the_tool_is_another_call(store: Store) -> None:
    before, after = Spy("old"), Spy("new")
    window(store, look(before, source="1")).pass_through("(look)", **MODEL)
    assert window(store, look(after, source="2")).pass_through("(look)", **MODEL).value == "new"


def test_a_tool_that_may_be_repeated_is(store: Store) -> None:
    body = Spy("seen")
    here = window(store, look(body, allow_repeat=True))
    for _ in range(2):
        here.pass_through("(look)", **MODEL)
    assert body.calls == 2


def test_a_repetition_is_one_within_its_window(store: Store) -> None:
    body = Spy("seen")
    here = window(store, look(body), seconds=10)
    for seconds, calls in [(0, 1), (9, 1), (1, 2), (9.5, 2)]:
        here.clock.wait(seconds)
        assert here.pass_through("(look)", **MODEL).value == "seen"
        assert body.calls == calls


@pytest.mark.parametrize("receipts", [None, NoReceipts()])
def test_without_a_window_nothing_is_a_repetition(store: Store, receipts: Any) -> None:
    body = Spy("seen")
    here = window(store, look(body), seconds=0 if receipts is None else 60)
    here.door.receipts = receipts or here.door.receipts
    for _ in range(2):
        here.pass_through("(look)", **MODEL)
    assert body.calls == 2


@pytest.mark.parametrize("body", [Spy(OSError("gone")), lambda: asyncio.sleep(5)])
def test_what_went_wrong_is_tried_again(store: Store, body: Any) -> None:
    begun = Spy()
    made = tool("look", lambda: (begun(), body())[1], effects=["reads"], timeout=0.05)
    here = window(store, made)
    for _ in range(2):
        assert here.pass_through("(look)", **MODEL).status in ("error", "timeout")
    assert begun.calls == 2


def test_a_receipt_is_bound_to_whom_the_rules_let_through(store: Store) -> None:
    """What one user may see is no answer to another, whose call the guard denies."""
    made = look(guard=lambda call: call.user == "bob")
    here = window(store, made)
    assert here.pass_through("(look)", **MODEL).ok
    assert here.pass_through("(look)", **{**MODEL, "user": "eve"}).status == "denied"


# What was changed in between


def then_look_again(here: Desk, change_it: Any) -> int:
    """How often the body ran for two looks with a change between them."""
    body = here.door.table.get("look")._body
    assert isinstance(body, Spy)
    here.pass_through("(look)", **MODEL)
    change_it()
    here.pass_through("(look)", **MODEL)
    return body.calls


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("(change)", MODEL),
        ("(change)", {**MODEL, "message": "Change it."}),
        ("(change)", {**MODEL, "route": "call"}),
        ("(change)", {**MODEL, "user": "eve"}),
        ("(eval (do (change) 1))", MODEL),
        ("(eval (try (do (change) (/ 1 0)) (except [] 0)))", {**MODEL, "route": "repl"}),
        ("(outer)", MODEL),
        ("(breaks)", MODEL),
        ("(hangs)", MODEL),
        ("(quiet)", MODEL),
        ("(runs)", MODEL),
    ],
)
def test_any_change_in_the_session_makes_every_receipt_old(
    store: Store, tmp_path: Path, text: str, marks: dict[str, Any]
) -> None:
    async def outer(ctx: ToolContext) -> None:
        assert ctx.dispatch is not None
        await ctx.dispatch(form("(change)"))

    def breaks(ctx: ToolContext) -> None:
        ctx.effect("wrote:half")
        raise OSError

    async def hangs() -> None:
        await asyncio.sleep(5)

    tools = [
        look(),
        change(),
        tool("outer", outer),
        tool("breaks", breaks),
        tool("hangs", hangs, effects=["writes"], timeout=0.05),
        tool("quiet", Spy(), effects=["writes"]),  # says nothing of what it did
        tool("runs", Spy(), effects=["runs", "reads"]),
    ]
    shipped_tools = shipped(tmp_path).door.table.tools()
    here = window(store, *shipped_tools, *tools, workspace=tmp_path, person=Yes())
    assert then_look_again(here, lambda: here.pass_through(text, **marks)) == 2


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("(change)", {**MODEL, "session": "t"}),
        ("(look 2)", MODEL),
        ("(look)", {**MODEL, "message": "Else."}),
        ("(fetch)", MODEL),
        ("(denied)", MODEL),
        ("(change 1)", MODEL),
        ("(echo :text 1)", MODEL),
    ],
)
def test_what_changes_nothing_here_leaves_receipts_as_they_are(
    store: Store, text: str, marks: dict[str, Any]
) -> None:
    tools = [tool("fetch", Spy(), effects=["net"]), tool("denied", effects=["writes"], guard=Spy(False))]
    here = window(store, look(), change(), *tools, person=Yes())
    body = here.door.table.get("look")._body
    own = 1 if text.startswith("(look") else 0
    assert then_look_again(here, lambda: here.pass_through(text, **marks)) == 1 + own
    assert isinstance(body, Spy)


def test_a_change_is_no_change_for_itself(store: Store) -> None:
    body = Spy("done")
    here = window(store, tool("put", body, effects=["writes"]), person=Yes())
    results = [here.pass_through("(put)", **MODEL) for _ in range(2)]
    assert (body.calls, [result.status for result in results]) == (1, ["ok", "ok"])


class Yes:
    """Allows what it is asked."""

    human = False

    async def request(self, *_: Any) -> Verdict:
        return ALLOW


# A person's no


def test_a_no_is_not_asked_for_again(store: Store) -> None:
    class No:
        asked = 0

        async def request(self, *_: Any) -> Any:
            self.asked += 1
            return deny("not today")

    person = No()
    here = window(store, look(guard=Spy(ask("may it?"))), person=person, seconds=60)
    first, again = (here.pass_through("(look)", **MODEL) for _ in range(2))
    assert (first.message, again.message) == ("look was denied: the person said: not today.",) * 2
    assert person.asked == 1
    here.pass_through("(look)", **{**MODEL, "route": "call"})
    assert person.asked == 2
    here.clock.wait(61)
    here.pass_through("(look)", **MODEL)
    assert person.asked == 3


def test_a_no_to_what_a_body_asks_is_not_asked_for_again(store: Store) -> None:
    class No:
        asked = 0

        async def request(self, *_: Any) -> Any:
            self.asked += 1
            return deny()

    async def body(ctx: ToolContext) -> None:
        await ctx.permission.request("more", "it is much")

    person = No()
    here = window(store, tool("look", body), person=person)
    for _ in range(2):
        assert here.pass_through("(look)", **MODEL).message == f"look was denied: {THE_PERSON_SAID_NO}."
    assert person.asked == 1


@pytest.mark.parametrize(
    ("person", "guard", "status"),
    [
        (None, Spy(ask("?")), "pending"),
        (Spy(OSError("gone")), Spy(ask("?")), "denied"),
        (None, Spy(deny("never")), "denied"),
    ],
)
def test_what_no_person_has_refused_is_looked_at_again(
    store: Store, person: Any, guard: Spy, status: str
) -> None:
    class Fails:
        async def request(self, *_: Any) -> Any:
            return person()

    here = window(store, look(guard=guard), person=Fails() if person else None)
    for _ in range(2):
        assert here.pass_through("(look)", **MODEL).status == status
    assert [row["stage"] for row in here.rows if row["route"] == "reply"][-1] != "receipt"


# A call that is carried on


def test_a_call_that_is_carried_on_is_made_once(store: Store) -> None:
    body = Spy("done")
    here = window(store, tool("put", body, effects=["writes"]), seconds=0)
    first = here.pass_through("(put)", session="s")
    here.decide()
    results = [here.pass_through("(put)", key=first.id, session="s") for _ in range(3)]
    assert ([result.value for result in results], body.calls) == (["done"] * 3, 1)
    assert here.waiting == []
    assert here.pass_through("(put)", key="another", session="s").status == "pending"


@pytest.mark.parametrize("text", ["(put 2)", "(look)"])
def test_a_key_is_no_answer_to_another_call(store: Store, text: str) -> None:
    here = window(store, tool("put", params={"x": {"type": int, "default": 0}}), look(), seconds=0)
    assert here.pass_through("(put)", key="k").ok
    assert here.pass_through(text, key="k").ok
    assert [row["stage"] for row in here.rows] == ["body", "body"]


def test_how_a_call_that_is_carried_on_went_wrong_is_kept_too(store: Store) -> None:
    body = Spy(OSError("disk full"))
    here = window(store, tool("put", body), seconds=0)
    results = [here.pass_through("(put)", key="k") for _ in range(2)]
    assert results[0].message == results[1].message
    assert results[0].message.startswith("put failed: OSError: disk full, at ")
    assert body.calls == 1


async def test_a_call_that_was_cancelled_is_not_answered(store: Store) -> None:
    begun, body = asyncio.Event(), Spy()

    async def hangs() -> None:
        body()
        begun.set()
        await asyncio.sleep(5)

    here = window(store, tool("put", hangs), seconds=0)
    first = asyncio.create_task(here.enter("(put)", key="k"))
    await begun.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(here.enter("(put)", key="k"))
    begun.clear()
    await begun.wait()
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert body.calls == 2


class Allow:
    """Allows these tools, and asks about any other that does more than to read."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def judge(self, made: CognitiveTool, *_: Any) -> Verdict:
        return ALLOW if made.name in self.names else by_effects(made)


class Counted:
    """Tools that count: one that writes, one that fails, one that reads, one that a person is asked about."""

    def __init__(self) -> None:
        self.wrote, self.failed, self.read = Spy("wrote"), Spy(OSError("no")), Spy("read")
        self.asked = Spy("asked")
        self.tools = [
            tool("put", self.wrote, params={"x": {"type": int, "default": 0}}, effects=["writes"]),
            tool("fail", self.failed, effects=["writes"]),
            tool("look", self.read, effects=["reads"]),
            tool("send", self.asked, params={"to": {"default": ""}}, effects=["net"]),
        ]

    @property
    def counts(self) -> list[int]:
        return [self.wrote.calls, self.failed.calls, self.read.calls, self.asked.calls]


def carry_on(here: Desk, program: str, **marks: Any) -> list[Any]:
    """Make a program, decide what it asks, carry it on, until it ends; what came of each passage."""
    result = here.pass_through(program, **marks)
    key, seen = result.id, [result.status]
    while here.waiting:
        here.decide()
        result = here.pass_through(program, key=key, **marks)
        seen.append(result.status)
    return [*seen, result.value]


def at(store: Store, tmp_path: Path, counted: Counted) -> Desk:
    """A desk for these tools and those that ship, where only sending is asked about."""
    tools = [*shipped(tmp_path).door.table.tools(), *counted.tools]
    return desk(store, *tools, workspace=tmp_path, policy=Allow("put", "fail"))


PROGRAM = """(eval (do (put 1) (put 1) (setv got (try (fail) (except [] "failed")))
                       (setv seen (look)) (send "a") (put 2) (send "b") [got seen (look)]))"""


@pytest.mark.parametrize("route", ["reply", "eval"])
def test_a_program_that_is_run_again_is_answered_by_the_receipts_of_what_it_had_done(
    store: Store, tmp_path: Path, route: str
) -> None:
    counted = Counted()
    here = at(store, tmp_path, counted)
    ended = carry_on(here, PROGRAM, session="s", route=route, message="Go.")
    assert ended == ["pending", "pending", "ok", ["failed", "read", "read"]]
    # Twice (put 1), once (put 2); the look before the first question once, and once the last one.
    assert counted.counts == [3, 1, 2, 2]


def test_a_program_that_is_run_again_goes_the_way_it_went(store: Store, tmp_path: Path) -> None:
    values = iter([1, 2])
    counted = Counted()
    here = at(store, tmp_path, counted)
    dice = tool("dice", lambda: next(values), effects=["reads"])
    here.door.table.register(dice)
    assert carry_on(here, '(eval (do (put (dice)) (send "a")))')[:-1] == ["pending", "ok"]
    assert counted.counts == [1, 0, 0, 1]


def test_a_no_inside_of_a_program_is_kept_for_it(store: Store, tmp_path: Path) -> None:
    counted = Counted()
    here = at(store, tmp_path, counted)
    program = '(eval (do (setv a (try (send "a") (except [] "no"))) (send "b") a))'
    key = here.pass_through(program).id
    # A call that waits is no failure to be caught: the program stands still at it.
    (first,) = here.waiting
    here.decide("deny", first.id)
    assert here.pass_through(program, key=key).status == "pending"
    here.decide("once")
    result = here.pass_through(program, key=key)
    assert (result.value, counted.counts) == ("no", [0, 0, 0, 1])
    assert here.pass_through(program, key=key).value == "no"
    assert counted.counts == [0, 0, 0, 1]


def test_a_body_that_calls_tools_and_is_carried_on_does_nothing_twice(store: Store) -> None:
    wrote = Spy("wrote")

    async def body(ctx: ToolContext) -> Any:
        assert ctx.dispatch is not None
        made = [(await ctx.dispatch(form("(put)"))).value for _ in range(2)]
        await ctx.permission.request("more", "it is much")
        return made

    here = desk(store, tool("probe", body), tool("put", wrote, effects=["writes"]), policy=Allow("put"))
    assert carry_on(here, "(probe)") == ["pending", "ok", ["wrote", "wrote"]]
    assert wrote.calls == 2


def test_a_body_that_waits_twice_is_not_taken_for_one_whose_end_is_not_known(store: Store) -> None:
    async def body(ctx: ToolContext) -> str:
        await ctx.permission.request("more", "it is much")
        await ctx.permission.request("all", "it is all")
        return "done"

    here = desk(store, tool("probe", body, effects=["writes"], asks_first=True), policy=Allow("probe"))
    assert carry_on(here, "(probe)") == ["pending", "pending", "ok", "done"]
    reasons = [request.reason for request in here.broker.requests(every=True)]
    assert not any("not known" in reason for reason in reasons)


# What is kept


def test_receipts_are_kept_for_a_month(store: Store) -> None:
    clock = PausableClock()
    receipts = StoreReceipts(lambda: store, window=1e9, clock=clock)
    body = Spy("seen")
    here = gateway(look(body), receipts=receipts)
    here.pass_through("(look)", **MODEL)
    clock.wait(KEPT_SECONDS)
    assert here.pass_through("(look)", **MODEL).ok
    assert body.calls == 1
    clock.wait(1)
    for number in range(PRUNED_EVERY):
        here.pass_through(f"(look {number + 1})", **MODEL)
    assert store.execute("SELECT count(*) FROM receipts WHERE call = ?", (here.rows[0]["id"],)) == [(0,)]
    here.pass_through("(look)", **MODEL)
    assert body.calls == 2 + PRUNED_EVERY


def test_a_call_whose_receipt_cannot_be_written_is_not_acknowledged(store: Store) -> None:
    class Full(StoreReceipts):
        def keep(self, *_: Any, **__: Any) -> None:
            raise OSError("disk full")

    result = gateway(look(), receipts=Full(lambda: store)).pass_through("(look)", **MODEL)
    assert (result.status, result.message) == (
        "error",
        f"{THE_CALL_WAS_DONE_BUT} receipt {COULD_NOT_BE_WRITTEN}: OSError: disk full.",
    )


def test_texts_that_are_no_texts_are_kept(store: Store) -> None:
    body = Spy("seen \udcff")
    here = window(store, look(body))
    marks = {**MODEL, "message": "a\udcff"}
    results = [here.pass_through("(look)", **marks) for _ in range(2)]
    assert [result.value for result in results] == ["seen \\udcff"] * 2
    assert body.calls == 1


def test_nobody_to_ask_keeps_its_answer_too(store: Store) -> None:
    receipts = StoreReceipts(lambda: store)
    here = gateway(look(guard=Spy(ask("?"))), receipts=receipts, consent=NobodyToAsk())
    first, again = (here.pass_through("(look)", **MODEL) for _ in range(2))
    assert first.message == again.message
    assert [row["stage"] for row in here.rows] == ["consent", "receipt"]


def test_what_nobody_can_come_back_to_is_not_kept(store: Store) -> None:
    here = window(store, look(), seconds=0)
    for route in ("call", "eval", "repl", "python"):
        here.pass_through("(look)", route=route)
    assert store.execute("SELECT * FROM receipts") == []
