"""The story of a delegated call, with both ends in one process: what comes back, what is asked, what is
given up, and what becomes of a call when something in between is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from machines import KEY, ByHand, Machines, ended, two_machines, until
from sentences import CANNOT_BE_USED, IT_IS_NOT_A_MESSAGE_OF, IT_WRITES_FILES
from words import desk, tool

from quoth.tools.call.call import deny
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import BEGUN_BEFORE
from quoth.tools.catalog.connection import redis_url
from quoth.tools.errors import CatalogStale
from quoth.tools.lisp.forms import CallForm
from quoth.tools.remote import line, wire
from quoth.tools.remote.wire import Asks, Begin, Begins, Cancel, Nested, NestedAnswer, ProgressReport, Stale
from quoth.tools.storage.database import Store

FRUIT = {"fruit": {"type": str}}


@pytest_asyncio.fixture
async def machines(redis: str) -> AsyncIterator[Machines]:
    async with two_machines(redis) as made:
        yield made


async def count(fruit: str, ctx: ToolContext) -> int:
    ctx.say(f"{fruit} are ripe")
    ctx.effect(f"counted:{fruit}")
    ctx.audit["boxes"] = [1, 2]
    return 30


async def test_a_call_is_made_by_a_worker_and_recorded_on_both_sides(machines: Machines) -> None:
    await machines.start_worker(tool("count-fruit", count, params=FRUIT))
    result = await machines.call('(count-fruit :fruit "pears")', session="s1")
    assert (result.status, result.value) == ("ok", 30)
    assert result.message == "pears are ripe"
    assert result.side_effects == ("counted:pears",)
    assert result.audit["boxes"] == [1, 2]
    assert machines.progress == ["pears are ripe"]
    (here,), (there,) = machines.here.rows(), machines.there.rows()
    assert (there["route"], there["user"], there["session"]) == ("remote", "ann", "s1")
    for same in ("id", "digest", "status", "form", "side_effects", "details"):
        assert here[same] == there[same]


@pytest.mark.parametrize("arrived", [[], ["half"], ["half", "all"], ["all"]])
@pytest.mark.parametrize("status", ["ok", "error"])
async def test_a_progress_message_that_the_result_overtook_is_still_shown_once(
    machines: Machines, arrived: list[str], status: str
) -> None:
    hand = ByHand(machines, tool("bake"))
    calling = asyncio.create_task(machines.call("(bake)"))
    said = await hand.takes()
    progress = [ProgressReport(said.grant, text) for text in arrived]
    await hand.tells(said, *progress, ended(said, told=["half", "all"], status=status), *progress)
    assert (await calling).status == status
    assert sorted(machines.progress) == ["all", "half"]


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_clock_that_is_wrong_is_no_matter(
    machines: Machines, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await machines.start_worker(tool("count-fruit", lambda fruit: 30, params=FRUIT))
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600 * hours)
    assert (await machines.call('(count-fruit :fruit "pears")')).status == "ok"
    monkeypatch.setattr(time, "time", lambda: real() - 3600 * hours)  # somebody sets it
    assert (await machines.call('(count-fruit :fruit "plums")')).status == "ok"


async def test_a_guard_of_the_worker_is_asked_there(machines: Machines) -> None:
    body = tool("count-fruit", count, lambda fruit: deny("no durian here"), FRUIT)
    await machines.start_worker(body)
    result = await machines.call('(count-fruit :fruit "durian")')
    assert (result.status, result.message) == ("denied", "count-fruit was denied: no durian here.")
    assert [row["guard"] for row in (*machines.here.rows(), *machines.there.rows())] == [
        "",
        "deny: no durian here",
    ]


async def test_calls_of_a_body_come_back_through_the_callers_door(machines: Machines) -> None:
    async def stock(ctx: ToolContext) -> Any:
        assert ctx.dispatch is not None
        results = [await ctx.dispatch(CallForm("own", {"n": n})) for n in (1, 2, 3)]
        return [[result.status, result.value or result.message] for result in results]

    tool("own", lambda n: n * 10, lambda n: n != 2 or deny("not two"), {"n": {"type": int}}, machines.own)
    await machines.start_worker(tool("stock", stock))
    result = await machines.call("(stock)")
    assert result.value == [["ok", 10], ["denied", "own was denied: not two."], ["ok", 30]]
    assert [(row["tool"], row["depth"]) for row in machines.here.rows()] == [("own", 1)] * 3 + [("stock", 0)]
    assert [row["tool"] for row in machines.there.rows()] == ["stock"]


async def test_a_result_that_is_too_long_for_a_body_is_an_error_there(machines: Machines) -> None:
    async def long(ctx: ToolContext) -> Any:
        assert ctx.dispatch is not None
        return (await ctx.dispatch(CallForm("own"))).message

    tool("own", lambda: "x" * 5_000_000, table=machines.own)
    await machines.start_worker(tool("long", long))
    said = (await machines.call("(long)")).value
    assert said.startswith("Its result cannot be sent to the worker. It has 5,000,")


async def test_what_a_worker_must_ask_is_asked_at_the_caller(machines: Machines) -> None:
    begun = []

    async def sell(ctx: ToolContext) -> str:
        begun.append("sell")
        await ctx.permission.request("sell", "the last ones are sold")
        return "sold"

    await machines.start_worker(tool("sell", sell, effects=["writes"]))
    result = await machines.call("(sell)")
    assert (result.status, result.value) == ("ok", "sold")
    # The door here asks by the tool's effects, the worker's door does too, and then the body does.
    assert machines.person.asked == [IT_WRITES_FILES, IT_WRITES_FILES, "the last ones are sold"]
    assert begun == ["sell"]

    machines.person.answer = deny("not today")
    assert (await machines.call("(sell)")).status == "denied"


async def test_a_person_may_take_longer_than_a_worker_asks_again(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.tools.remote.away.ASKED_AGAIN_SECONDS", 0.1)
    asked = machines.person.request

    async def slowly(tool: Any, call: Any, reason: str) -> Any:
        if reason == "the last ones are sold":
            await asyncio.sleep(0.6)
        return await asked(tool, call, reason)

    monkeypatch.setattr(machines.person, "request", slowly)

    async def sell(ctx: ToolContext) -> str:
        await ctx.permission.request("sell", "the last ones are sold")
        return "sold"

    await machines.start_worker(tool("sell", sell, effects=["writes"]))
    assert (await machines.call("(sell)")).value == "sold"
    assert machines.person.asked.count("the last ones are sold") == 1


async def test_an_approval_outlives_the_caller_that_asked(machines: Machines, store: Store) -> None:
    begun = []

    async def sell(ctx: ToolContext) -> str:
        begun.append("sell")
        await ctx.permission.request("sell", "the last ones are sold")
        return "sold"

    await machines.start_worker(tool("sell", sell, effects=["memory"]))
    here = desk(store, *map(machines.remote, machines.table))
    assert (await here.enter("(sell)", key="k1", resumed=False, session="s1")).status == "pending"
    here.decide()
    await machines.restart_caller()
    # Its body had begun, and whether it had done anything before it asked is not known.
    assert BEGUN_BEFORE in (await here.enter("(sell)", key="k1", session="s1")).message
    assert begun == ["sell"]
    here.decide()
    assert (await here.enter("(sell)", key="k1", session="s1")).value == "sold"
    assert begun == ["sell", "sell"]


async def test_a_body_that_asks_first_begins_again_without_another_question(
    machines: Machines, store: Store
) -> None:
    async def sell(ctx: ToolContext) -> str:
        await ctx.permission.request("sell", "the last ones are sold")
        return "sold"

    await machines.start_worker(tool("sell", sell, effects=["memory"], asks_first=True))
    here = desk(store, *map(machines.remote, machines.table))
    assert (await here.enter("(sell)", key="k1", resumed=False, session="s1")).status == "pending"
    here.decide()
    await machines.restart_caller()
    assert (await here.enter("(sell)", key="k1", session="s1")).value == "sold"


async def test_a_resumed_call_is_answered_by_the_result_that_is_kept(machines: Machines) -> None:
    begun = []
    await machines.start_worker(tool("write", lambda: begun.append("write"), effects=["memory"]))
    first = await machines.call("(write)", key="k1", resumed=False)
    await machines.restart_caller()
    again = await machines.call("(write)", key="k1")
    assert (first.status, again.status, begun) == ("ok", "ok", ["write"])


async def test_another_schema_is_told_and_nothing_is_run(machines: Machines) -> None:
    body = tool("count-fruit", count, params=FRUIT)
    await machines.start_worker(body)
    machines.schema_hash = "of yesterday"
    result = await machines.call('(count-fruit :fruit "pears")')
    assert result.status == "error"
    assert result.message == (
        "count-fruit was not run (CATALOG_STALE): the workers' tools have changed."
        " Look at its parameters again before the next call."
    )


@pytest.mark.parametrize(("background", "ends"), [(False, "stopped"), (True, "ended")])
async def test_a_caller_that_gives_up_stops_what_may_not_go_on(
    machines: Machines, background: bool, ends: str
) -> None:
    story, leave = [], asyncio.Event()

    async def long() -> str:
        story.append("begun")
        try:
            await leave.wait()
        except asyncio.CancelledError:
            story.append("stopped")
            raise
        story.append("ended")
        return "done"

    worker = await machines.start_worker(tool("long", long, no_background=not background))
    call = asyncio.create_task(machines.call("(long)", key="k1", resumed=False))
    await until(lambda: story == ["begun"])
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    if background:
        leave.set()
    await until(lambda: not worker.running)
    assert story == ["begun", ends]
    assert machines.here.rows()[0]["status"] == "cancelled"
    if background:
        assert (await machines.call("(long)", key="k1")).value == "done"
        assert story == ["begun", "ended"]


async def test_a_call_that_is_given_up_early_is_begun_by_nobody(machines: Machines) -> None:
    begun = []
    hand = ByHand(machines, tool("late", lambda: begun.append("late")))
    call = asyncio.create_task(machines.call("(late)"))
    said = await hand.takes(takes_grant=False)
    await asyncio.sleep(0.05)  # until the caller knows that it was sent
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await machines.sender.aclose()
    assert await machines.redis.get(wire.grant(machines.prefix, said.grant)) == b"revoked"
    assert await machines.redis.xlen(wire.queue(machines.prefix)) == 0
    await machines.redis.xadd(wire.queue(machines.prefix), {wire.FIELD: said.pack(KEY)})
    await machines.start_worker()
    while await machines.redis.xlen(wire.queue(machines.prefix)):
        await asyncio.sleep(0.01)
    assert begun == []


# What is lost, doubled or forged in between


async def test_the_first_of_two_results_counts(machines: Machines) -> None:
    hand = ByHand(machines, tool("probe"))
    call = asyncio.create_task(machines.call("(probe)"))
    said = await hand.takes()
    await hand.tells(said, ended(said, "first"), ended(said, "second"))
    assert (await call).value == "first"
    call = asyncio.create_task(machines.call("(probe)"))
    said = await hand.takes()
    await hand.tells(said, ended(said, "third"))
    assert (await call).value == "third"
    assert machines.sender.refused == 0


async def test_a_reply_that_is_not_of_a_worker_is_not_believed(machines: Machines) -> None:
    hand = ByHand(machines, tool("probe"))
    call = asyncio.create_task(machines.call("(probe)"))
    said = await hand.takes()
    other = asyncio.create_task(machines.call("(probe :x 1)"))
    foreign = type(KEY)(b"another key, of 32 bytes as well")
    good = ended(said, "good").pack(KEY)
    await hand.tells(
        said,
        b"",
        b"\xc1 no message",
        ended(said, "of another key").pack(foreign),
        good[:-1],
        good.replace(b"good", b"evil"),
        NestedAnswer(said.grant, 1, {}).pack(KEY),
        ended(said, "of another call", key="k2"),
        good,
    )
    assert (await call).value == "good"
    assert (await other).status == "invalid"
    assert machines.sender.refused == 7
    (row,) = [row for row in machines.here.rows() if row["stage"] == "reply"]
    assert (row["status"], row["route"]) == ("denied", "remote")
    assert row["message"] == (f"A reply from Redis was rejected (1 in total): {IT_IS_NOT_A_MESSAGE_OF}.")


async def test_a_lost_reply_is_asked_for_again(machines: Machines) -> None:
    hand = ByHand(machines, tool("write", effects=["memory"]))
    call = asyncio.create_task(machines.call("(write)"))
    first = await hand.takes()
    await hand.done()
    second = await hand.takes()  # the worker answers by the result that it kept under the key
    assert (second.key, second.digest) == (first.key, first.digest)
    assert second.grant != first.grant
    await hand.tells(second, ended(second, "written"))
    assert (await call).value == "written"
    assert machines.person.asked == []


async def test_a_lost_request_is_sent_again_where_it_only_reads(machines: Machines) -> None:
    hand = ByHand(machines, tool("look", effects=["reads"]))
    call = asyncio.create_task(machines.call("(look)"))
    first = await hand.takes(takes_grant=False)
    await hand.done()
    second = await hand.takes()
    assert (second.key, second.digest) == (first.key, first.digest)
    assert second.grant != first.grant
    await hand.tells(second, ended(second, 1))
    assert (await call).value == 1
    assert machines.person.asked == []


async def test_a_person_is_asked_before_a_lost_request_is_made_again(machines: Machines) -> None:
    hand = ByHand(machines, tool("write", effects=["memory"]))
    call = asyncio.create_task(machines.call("(write)"))
    await hand.takes(takes_grant=False)
    await hand.done()
    second = await hand.takes()
    assert machines.person.asked == ["Redis lost the request, and whether a worker had begun it is not known"]
    await hand.tells(second, ended(second, 1))
    assert (await call).value == 1


async def test_a_lost_connection_loses_no_call(machines: Machines) -> None:
    hand = ByHand(machines, tool("probe"))
    call = asyncio.create_task(machines.call("(probe)"))
    said = await hand.takes()
    await machines.redis.client_kill_filter(_type="normal", skipme=True)
    await hand.tells(said, ended(said, "here"))
    assert (await call).value == "here"


async def test_a_call_of_a_body_is_made_once_whoever_asks_again(machines: Machines) -> None:
    made = []
    tool("own", lambda: made.append("own"), table=machines.own)
    hand = ByHand(machines, tool("stock"))
    call = asyncio.create_task(machines.call("(stock)"))
    said = await hand.takes()
    for _ in range(2):  # a worker that took the call over begins the body again
        await hand.tells(said, Nested(said.grant, 1, {"tool": "own", "args": {}}, "n1", False))
        answer = await hand.hears(said, NestedAnswer)
        assert (answer.number, answer.result["status"]) == (1, "ok")
    assert made == ["own"]
    await hand.tells(said, ended(said))
    await call
    await hand.tells(said, Nested(said.grant, 2, {"tool": "own", "args": {}}, "n2", False))
    await asyncio.sleep(0.1)
    assert made == ["own"]  # a call that is over makes none


async def test_a_person_is_told_a_reason_on_one_line_whatever_a_worker_says(machines: Machines) -> None:
    hand = ByHand(machines, tool("probe"))
    call = asyncio.create_task(machines.call("(probe)"))
    said = await hand.takes()
    await hand.tells(said, Asks(said.grant, "q", "it looks\r\nquoth: approved \x1b[2J" + "x" * 9000))
    said = await hand.takes()
    await hand.tells(said, ended(said))
    assert (await call).status == "ok"
    assert machines.person.asked == ["it looks quoth: approved [2J" + "x" * 971 + "…"]


async def test_a_worker_cannot_ask_for_what_only_its_caller_asks(machines: Machines) -> None:
    hand = ByHand(machines, tool("probe"))
    call = asyncio.create_task(machines.call("(probe)"))
    said = await hand.takes()
    await hand.tells(said, Asks(said.grant, "send it again", "harmless"))
    assert (await call).status == "denied"
    assert machines.person.asked == []


async def test_nothing_waits_because_a_worker_says_so(machines: Machines) -> None:
    hand = ByHand(machines, tool("probe"))
    call = asyncio.create_task(machines.call("(probe)"))
    said = await hand.takes()
    await hand.tells(said, ended(said, status="pending", message="quoth approve zzz"))
    assert (await call).status == "error"


async def test_a_question_is_not_asked_for_ever(machines: Machines) -> None:
    hand = ByHand(machines, tool("sell"))
    call = asyncio.create_task(machines.call("(sell)"))
    for approved in ([], ["sell"]):
        said = await hand.takes()
        assert said.approved == approved
        await hand.tells(said, Asks(said.grant, "sell", "the last ones are sold"))
    assert (await call).message == "The worker asked again after an approval: the last ones are sold."


# Failures in words


async def test_no_worker_is_there(machines: Machines) -> None:
    ByHand(machines, tool("probe"))
    result = await machines.call("(probe)")
    assert result.status == "error"
    assert result.message == "probe was not run: no worker offers these tools now. Start one: quoth worker."
    assert await machines.redis.xlen(wire.queue(machines.prefix)) == 0


async def test_a_worker_that_comes_in_the_last_moment_is_not_stopped(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    monkeypatch.setattr(line.BrokerLine, "_judge", lambda *_: looks.append("nobody") or "nobody")
    hand = ByHand(machines, tool("probe"))
    call = asyncio.create_task(machines.call("(probe)"))
    said = await hand.takes()
    await until(lambda: len(looks) > 2)
    assert await machines.redis.llen(wire.inbox(machines.prefix, said.grant)) == 0
    await hand.tells(said, ended(said, "in time"))
    assert (await call).value == "in time"


@pytest.mark.parametrize(
    ("taken", "message"),
    [
        (False, "probe was not run: no worker was free within 0.3 s."),
        (True, "probe was begun by a worker and did not end within 0.3 s; the worker was asked to stop."),
    ],
)
async def test_the_deadline_passes(machines: Machines, taken: bool, message: str) -> None:
    hand = ByHand(machines, tool("probe", timeout=0.1))
    machines.patience = 0.4
    await hand.lives()
    call = asyncio.create_task(machines.call("(probe)"))
    said = await hand.takes(takes_grant=taken)
    result = await call
    assert (result.status, result.message) == ("timeout", message)
    if taken:
        assert await hand.hears(said, Cancel)


async def test_what_cannot_travel(machines: Machines) -> None:
    returns = {"long": "x" * 10_000_000, "huge": 2**80}
    await machines.start_worker(
        tool("give", lambda what: returns[what], params={"what": {"type": str}}, timeout=10)
    )
    said = [(await machines.call(f'(give :what "{what}")')).message for what in returns]
    assert said == [
        "give was done, but its result cannot be sent. It has 10,000,188 bytes; at most 4,194,304"
        " can be sent.",
        "give was done, but its result cannot be sent. It cannot be sent: Integer value out of range.",
    ]
    result = await machines.call(f'(give :what "{"x" * 4_500_000}")')
    assert result.status == "error"
    assert result.message.startswith("The call of give was not sent. It has 4,500,")


async def test_redis_is_away(machines: Machines, tmp_path: Any) -> None:
    ByHand(machines, tool("probe", params={"password": {"type": str, "secret": True}}))
    machines.url = redis_url(f"unix://{tmp_path}/none", typed=False)
    machines.sender = machines.new_sender()
    result = await machines.call('(probe :password "hush-hush")')
    assert result.status == "error"
    assert result.message == f"The Redis at unix://{tmp_path}/none cannot be used: no server answers there."


async def test_too_many_calls_wait(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_WAITING", 1)
    hand = ByHand(machines, tool("probe"))
    call = asyncio.create_task(machines.call("(probe)"))
    said = await hand.takes()
    result = await machines.call("(probe)")
    assert result.status == "error"
    assert result.message == "The queue is full: 10,000 calls already wait for workers. Try again later."
    await hand.tells(said, ended(said))
    assert (await call).ok


async def test_redis_refuses_the_caller(machines: Machines) -> None:
    await machines.redis.execute_command("ACL", "SETUSER", "reader", "on", ">hush", "~*", "+@all", "-evalsha")
    ByHand(machines, tool("probe"))
    machines.url = redis_url(machines.url.full.replace("unix://", "unix://reader:hush@"), typed=False)
    machines.sender = machines.new_sender()
    result = await machines.call("(probe)")
    assert result.status == "error"
    assert result.message.endswith(f"{CANNOT_BE_USED}: its user may not use the command evalsha (ACL).")
    assert "hush" not in str(machines.raised)


async def test_a_listener_that_fails_is_no_matter_of_the_call(machines: Machines) -> None:
    machines.progress = None  # type: ignore[assignment]
    await machines.start_worker(tool("count-fruit", count, params=FRUIT))
    assert (await machines.call('(count-fruit :fruit "pears")')).value == 30


async def test_a_closed_sender_ends_its_calls(machines: Machines) -> None:
    hand = ByHand(machines, tool("probe"))
    call = asyncio.create_task(machines.call("(probe)"))
    said = await hand.takes()
    await machines.sender.aclose()
    result = await call
    assert (result.status, result.message) == ("cancelled", "probe was given up: this agent was closed.")
    assert await hand.hears(said, Cancel)
    assert [task.get_name() for task in asyncio.all_tasks() if "quoth call" in task.get_name()] == []


def test_a_sender_serves_one_event_loop_after_another(redis: str) -> None:
    async def story(machines: Machines) -> None:
        hand = ByHand(machines, tool("probe"))
        call = asyncio.create_task(machines.call("(probe)"))
        said = await hand.takes()
        await hand.tells(said, ended(said))
        assert (await call).ok

    async def twice() -> None:
        async with two_machines(redis) as machines:
            await story(machines)
            sender = machines.sender
            machines.sender = machines.new_sender()
        keep.append(sender)

    keep: list[Any] = []
    asyncio.run(twice())
    (sender,) = keep

    async def later() -> None:
        async with two_machines(redis) as machines:
            machines.prefix, machines.sender = sender.prefix, sender
            await story(machines)

    asyncio.run(later())


async def test_stale_is_for_the_table_to_know(machines: Machines) -> None:
    hand = ByHand(machines, tool("probe"))
    call = asyncio.create_task(machines.call("(probe)"))
    said = await hand.takes()
    await hand.tells(said, Stale(said.grant, "of today"))
    assert (await call).status == "error"
    assert isinstance(machines.raised, CatalogStale)
    assert machines.raised.schema_hash == "of today"
    assert str(machines.raised).startswith("probe was not run (CATALOG_STALE)")


async def test_of_one_that_a_worker_was_let_begin_nobody_says_that_it_was_not_run(machines: Machines) -> None:
    hand = ByHand(machines, tool("probe"))
    call = asyncio.create_task(machines.call("(probe)"))
    said = await hand.takes()
    await hand.tells(said, Begins(said.grant, "first"))
    assert (await hand.hears(said, Begin)).first
    await hand.tells(said, Stale(said.grant, "of today"))  # of another, after Redis has lost the record
    assert "was begun by a worker that ended; whether it ran to its end is unknown" in (await call).message
