"""The worker: what it makes, what it refuses, and what becomes of a call when a worker ends in its midst."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import time
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import msgpack
import pytest
from caller import KEY, TAKEOVER, Caller, at_work, calling, until, until_async
from redis.asyncio import Redis
from sentences import (
    CANNOT_BE_USED,
    IS_NOT_A_CALL,
    IS_NOT_SIGNED_WITH_THE,
    IT_IS_NOT_A_MESSAGE_OF,
    IT_RUNS_A_PROGRAM,
    IT_WAS_BEGUN_BEFORE_AND,
    THE_CONNECTION_WAS_LOST,
)
from words import Spy, form, table_of, tool

from quoth.tools.call.call import Call, deny
from quoth.tools.catalog.payload import Key
from quoth.tools.errors import ServerError, ToolError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.parameters import WorkspacePath
from quoth.tools.remote import away, wire
from quoth.tools.remote.away import SERVICES
from quoth.tools.remote.broker import CallBroker, Delivery
from quoth.tools.remote.shared_receipts import CallRecords, LostError
from quoth.tools.remote.wire import (
    Asks,
    Cancel,
    Delegated,
    Ended,
    Nested,
    NestedAnswer,
    ProgressReport,
    Stale,
)
from quoth.tools.remote.worker import MOST_ROWS

FRUIT = {"fruit": {"type": str}}
COUNT = '(count-fruit :fruit "pears")'
BEGUN = IT_WAS_BEGUN_BEFORE_AND


def count(body: Any = lambda fruit: 30, **options: Any) -> Any:
    return tool("count-fruit", body, params=FRUIT, **options)


# What it makes


async def test_a_call_sent_before_there_is_a_worker_is_made_and_answered_once(redis: str) -> None:
    async with calling(redis, count()) as caller:
        await caller.send(call := caller.call(COUNT))
        async with at_work(caller) as worker:
            said = await caller.reply()
            await caller.settled()
            rows = worker.door.audit.rows()
    assert said == Ended(call.grant, call.key, call.digest, "ok", 30, "", [], [])
    assert [(row["id"], row["user"], row["route"], row["status"], row["stage"]) for row in rows] == [
        (call.id, "ann", "remote", "ok", "body")
    ]


async def test_what_a_body_says_and_does_travels(redis: str) -> None:
    def body(fruit: str, ctx: Any) -> str:
        ctx.say("I look.")
        ctx.effect("wrote:list.txt")
        return f"{ctx.user} {ctx.user_message} {ctx.route}"

    async with calling(redis, count(body)) as caller, at_work(caller):
        await caller.send(caller.call(COUNT))
        said = [await caller.reply(), await caller.reply()]
    said.sort(key=lambda one: one.KIND)
    ended, progress = said
    assert isinstance(progress, ProgressReport)
    assert progress.text == "I look."
    assert (ended.value, ended.said, ended.side_effects) == (
        "ann Count them. remote",
        ["I look."],
        ["wrote:list.txt"],
    )


async def test_paths_are_those_of_the_worker(redis: str, tmp_path: Path) -> None:
    look = tool("look", lambda path: str(path), params={"path": {"type": WorkspacePath}}, effects=["reads"])
    rules = RulesPolicy([parse_layer("given", b'(deny (look :path (under "mine")))', "policy.hy")])
    async with calling(redis, look) as caller, at_work(caller, tmp_path, policy=rules):
        said = await caller.ask('(look :path "theirs/../mine/list.txt")')
        other = await caller.ask('(look :path "./list.txt")')
    assert (said.status, other.value) == ("denied", "list.txt")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"guard": lambda: deny("not today")}, "count-fruit was denied: not today."),
        (
            {"cooldown": 5},
            "count-fruit is limited: its :cooldown or :daily-limit cannot be counted here, so it is not run.",
        ),
    ],
)
async def test_its_own_guard_and_limits_hold(redis: str, options: Any, said: str) -> None:
    body = Spy()
    async with calling(redis, count(body, **options)) as caller, at_work(caller):
        ended = await caller.ask(COUNT)
    assert (ended.message, body.ran) == (said, False)


async def test_a_result_that_is_too_long_is_an_error_of_its_call(redis: str) -> None:
    async with calling(redis, count(lambda fruit: "x" * 10_000_000)) as caller, at_work(caller):
        ended = await caller.ask(COUNT)
    assert (ended.status, ended.value) == ("error", None)
    said = r"count-fruit was done, but its result cannot be sent\. It has 10,000,\d+ bytes;"
    assert re.fullmatch(rf"{said} at most 4,194,304 can be sent\.", ended.message)


@pytest.mark.parametrize(("effects", "seconds"), [(["reads"], 100), (["memory"], 86400)])
async def test_nothing_is_left_for_ever(redis: str, effects: list[str], seconds: int) -> None:
    def body(fruit: str, ctx: Any) -> int:
        ctx.say("I look.")
        return 30

    async with calling(redis, count(body, effects=effects)) as caller:
        async with at_work(caller):
            call = caller.call(COUNT)
            await caller.ask(call)
            await caller.settled()
        left = [key.decode() async for key in caller.redis.scan_iter(f"{caller.prefix}:*")]
        kept = {key: await caller.redis.ttl(key) for key in left}
    assert kept.pop(caller.broker.queue_name) == -1  # it is empty
    assert kept.pop(wire.server(caller.prefix)) == -1  # one for all calls
    assert set(kept) == {
        caller.replies,
        wire.grant(caller.prefix, call.grant),
        wire.call(caller.prefix, call.key, call.user),
    }
    assert 0 < min(kept.values()) <= seconds


async def test_one_that_stops_ends_what_it_does_and_takes_no_more(redis: str) -> None:
    go = asyncio.Event()

    async def body(fruit: str) -> int:
        await go.wait()
        return 30

    async with calling(redis, count(body)) as caller:
        async with at_work(caller) as worker:
            await caller.send(caller.call(COUNT))
            await until(lambda: worker.running)
            asyncio.get_running_loop().call_later(0.3, go.set)
        assert (await caller.reply()).value == 30
        assert not await caller.redis.zcard(wire.workers(caller.prefix))
        assert not await caller.redis.xinfo_consumers(caller.broker.queue_name, wire.GROUP)


# What it refuses


def forged(caller: Caller, **changes: Any) -> bytes:
    """A call that was changed after it had been signed."""
    kind, data, signature = msgpack.unpackb(caller.call(COUNT).pack(KEY))
    return msgpack.packb([kind, msgpack.packb(msgpack.unpackb(data) | changes), signature])


def signed(caller: Caller, **fields: Any) -> bytes:
    """A call with fields that no caller of ours would send, signed all the same."""
    data = msgpack.packb(vars(caller.call(COUNT)) | fields)
    return msgpack.packb([Delegated.KIND, data, KEY.sign(Delegated.KIND, data)])


UNSIGNED = f"A call was refused. It {IS_NOT_SIGNED_WITH_THE}."
# What is sent, the words of the audit row, and whether the caller is told.
REFUSED: dict[str, tuple[Any, str, bool]] = {
    "no message": (
        lambda one: b"hello",
        f"A call was refused. {IT_IS_NOT_A_MESSAGE_OF}.",
        False,
    ),
    "cut off": (
        lambda one: one.call(COUNT).pack(KEY)[:-9],
        f"A call was refused. {IT_IS_NOT_A_MESSAGE_OF}.",
        False,
    ),
    "signed with another key": (lambda one: one.call(COUNT).pack(Key(b"o" * 32)), UNSIGNED, False),
    "another form": (
        lambda one: forged(one, form={"tool": "count-fruit", "args": {"fruit": "gold"}}),
        UNSIGNED,
        False,
    ),
    "another user": (lambda one: forged(one, user="ben"), UNSIGNED, False),
    "approved by nobody": (lambda one: forged(one, approved=["worker: it runs a program"]), UNSIGNED, False),
    "a later end": (lambda one: forged(one, expires=9e9), UNSIGNED, False),
    "an answer": (
        lambda one: Ended("g", "k", "d", "ok", 1, "", [], []).pack(KEY),
        "A call was refused. It is a message of kind ended, which is not expected here.",
        False,
    ),
    "other fields": (
        lambda one: signed(one, admin=True),
        "A call was refused. The fields of a message of kind call are wrong.",
        False,
    ),
    "wrong type": (
        lambda one: signed(one, depth="0"),
        "A call was refused. The field depth of a message of kind call has the wrong type.",
        False,
    ),
    "no time": (
        lambda one: signed(one, expires=float("nan")),
        "A call was refused. The field expires of a message of kind call has the wrong type.",
        False,
    ),
    "too long": (
        lambda one: b"x" * 5_000_000,
        "A call was refused. It has 5,000,000 bytes; at most 4,194,304 are read.",
        False,
    ),
    "the grant of another prefix": (
        lambda one: one.call(COUNT, prefix="other"),
        "A call was refused. It was granted for the prefix other; this worker uses PREFIX.",
        False,
    ),
    "a reply to elsewhere": (
        lambda one: one.call(COUNT, replies="sg:tools:calls"),
        f"A call was refused. The key for its reply {IS_NOT_A_CALL}er's stream.",
        False,
    ),
    "the grant of another form": (
        lambda one: one.call(COUNT, digest=form('(count-fruit :fruit "gold")').digest),
        "count-fruit was refused: its grant is for another form.",
        True,
    ),
    "no form": (
        lambda one: one.call(COUNT, form={"args": {}}),
        'A call in JSON must name its tool: {"tool": "echo", "args": {…}}.',
        True,
    ),
    "expired": (
        lambda one: one.call(COUNT, expires=time.time() - 1),
        "count-fruit was not run: no worker was free in time.",
        True,
    ),
    "another table": (
        lambda one: one.call(COUNT, schema_hash="0" * 64),
        "CATALOG_STALE: the caller's list of tools is out of date; it must read the catalog again.",
        True,
    ),
}


async def test_what_is_refused_leaves_a_row_and_runs_nothing(redis: str) -> None:
    body = Spy()
    said: dict[str, tuple[str, bool]] = {}
    async with calling(redis, count(body)) as caller, at_work(caller) as worker:
        for name, (make, _, _) in REFUSED.items():
            before = await caller.redis.xlen(caller.replies)
            await caller.send(make(caller))
            await caller.settled()
            (row,) = worker.door.audit.rows()
            worker.door.audit._rows.clear()
            assert (row["route"], row["stage"]) == ("remote", "host")
            told = await caller.redis.xlen(caller.replies) > before
            said[name] = row["message"].replace(caller.prefix, "PREFIX"), told
    assert said == {name: (sentence, told) for name, (_, sentence, told) in REFUSED.items()}
    assert not body.ran


async def test_who_floods_the_queue_does_not_flood_the_audit(redis: str) -> None:
    async with calling(redis, count()) as caller, at_work(caller) as worker:
        for _ in range(MOST_ROWS + 20):
            await caller.send(b"junk")
        assert (await caller.ask(COUNT)).value == 30
        await caller.settled()
        assert len(worker.door.audit.rows()) == MOST_ROWS + 1


async def test_the_caller_of_an_older_table_is_told_of_the_newer_one(redis: str) -> None:
    async with calling(redis, count()) as caller, at_work(caller):
        call = caller.call(COUNT, schema_hash="0" * 64)
        assert await caller.ask(call) == Stale(call.grant, caller.table.schema_hash)


async def test_of_a_call_of_another_table_no_argument_is_recorded(redis: str) -> None:
    async with calling(redis, count()) as caller, at_work(caller) as worker:
        await caller.ask(caller.call('(count-fruit :pin "1234")', schema_hash="0" * 64))
        (row,) = worker.door.audit.rows()
    assert (row["tool"], row["form"]) == ("count-fruit", "(count-fruit)")


async def test_a_grant_is_used_once(redis: str) -> None:
    body = Spy()
    async with calling(redis, count(body)) as caller, at_work(caller) as worker:
        call = caller.call(COUNT)
        assert (await caller.ask(call)).status == "ok"
        await caller.send(call)
        await caller.settled()
        assert worker.door.audit.rows()[-1]["message"] == "A call was refused. Its grant was used before."
        assert (body.calls, await caller.redis.xlen(caller.replies)) == (1, 1)


async def test_a_grant_is_used_once_though_redis_was_made_to_forget_it(redis: str) -> None:
    body = Spy()
    async with calling(redis, count(body, effects=["memory"])) as caller, at_work(caller) as worker:
        call = caller.call(COUNT)
        assert (await caller.ask(call)).status == "ok"
        await caller.redis.delete(wire.grant(caller.prefix, call.grant))
        await caller.redis.delete(wire.call(caller.prefix, call.key, call.user))
        await caller.send(call)
        await caller.settled()
        assert worker.door.audit.rows()[-1]["message"] == "A call was refused. Its grant was used before."
    assert body.calls == 1


async def test_a_grant_that_was_taken_back_is_not_used(redis: str) -> None:
    body = Spy()
    async with calling(redis, count(body)) as caller:
        call = caller.call(COUNT)
        await caller.redis.set(wire.grant(caller.prefix, call.grant), "revoked")
        await caller.send(call)
        async with at_work(caller) as worker:
            await caller.settled()
            assert (worker.door.audit.rows(), body.ran) == ([], False)


# What is asked


async def test_a_question_of_its_rules_goes_back_and_what_was_allowed_holds_for_this_call(redis: str) -> None:
    async with calling(redis, count(effects=["runs"])) as caller, at_work(caller) as worker:
        call = caller.call(COUNT)
        asked = await caller.ask(call)
        assert asked == Asks(call.grant, f"worker: {IT_RUNS_A_PROGRAM}", IT_RUNS_A_PROGRAM)
        again = dataclasses.replace(call, grant="2" * 32, approved=[asked.question])
        assert (await caller.ask(again)).value == 30
        other = caller.call('(count-fruit :fruit "gold")')
        assert isinstance(await caller.ask(other), Asks)
        assert [row["status"] for row in worker.door.audit.rows()] == ["pending", "ok", "pending"]


@pytest.mark.parametrize(("status", "value"), [("ok", 30), ("denied", None)])
async def test_a_body_that_asks_waits_for_the_answer(status: str, value: Any, redis: str) -> None:
    begun = []

    async def body(fruit: str, ctx: Any) -> int:
        begun.append(fruit)
        await ctx.permission.request("take them", "they are not ours")
        return 30

    async with calling(redis, count(body, effects=["memory"])) as caller, at_work(caller):
        call = caller.call(COUNT)
        asked = await caller.ask(call)
        assert asked == Asks(call.grant, "take them", "they are not ours", -1)
        said = {"id": "i", "tool": "count-fruit", "status": status, "value": None, "message": "no"}
        await caller.tell(NestedAnswer(call.grant, -1, {**said, "side_effects": [], "audit": {}}))
        ended = await caller.reply()
        assert (ended.status, ended.value, begun) == (status, value, ["pears"])


# What goes back to the caller


async def test_a_call_of_a_body_goes_back_to_its_caller(redis: str) -> None:
    async def body(fruit: str, ctx: Any) -> str:
        result = await ctx.dispatch(CallForm("ask-shop", {"fruit": fruit}))
        return f"{result.status} {result.value}"

    async with calling(redis, count(body)) as caller, at_work(caller):
        call = caller.call(COUNT)
        nested = await caller.ask(call)
        inner = CallForm("ask-shop", {"fruit": "pears"})
        said = {"tool": "ask-shop", "args": {"fruit": "pears"}}
        assert nested == Nested(call.grant, 1, said, f"{inner.digest[:16]}.1", False)
        result = {"id": "i", "tool": "ask-shop", "status": "ok", "value": 7, "message": ""}
        answer = NestedAnswer(call.grant, 1, {**result, "side_effects": ["paid"], "audit": {}})
        await caller.tell(answer, Key(b"o" * 32))  # not believed
        await caller.tell(answer)
        ended = await caller.reply()
    assert (ended.value, ended.side_effects) == ("ok 7", [])


@pytest.mark.parametrize("service", SERVICES)
async def test_services_stay_with_the_caller_and_say_so(service: str) -> None:
    from quoth.tools.remote.away import _STAYING

    with pytest.raises(ToolError) as said:
        await _STAYING[service].anything("x")
    assert str(said.value) == f"{SERVICES[service]} on a worker. Run the tool that needs it at its caller."


async def test_a_body_that_needs_memory_fails_with_that_sentence(redis: str) -> None:
    async def body(fruit: str, ctx: Any) -> Any:
        return await ctx.memory.get_block("fruit")

    async with calling(redis, count(body)) as caller, at_work(caller):
        ended = await caller.ask(COUNT)
    assert (ended.status, ended.message) == (
        "error",
        "Memory is not available on a worker. Run the tool that needs it at its caller.",
    )


# A caller that does not wait


async def test_a_call_given_up_before_it_began_is_not_made(redis: str) -> None:
    body = Spy()
    async with calling(redis, count(body)) as caller:
        call = caller.call(COUNT)
        await caller.tell(Cancel(call.grant))
        await caller.send(call)
        async with at_work(caller):
            ended = await caller.reply()
    assert (ended.status, body.ran) == ("cancelled", False)
    assert ended.message == "count-fruit was not run: its caller no longer waits for it."


@pytest.mark.parametrize("stops", [True, False])
async def test_a_call_given_up_in_its_midst_is_stopped_if_it_may_not_go_on_behind_the_scenes(
    redis: str, stops: bool
) -> None:
    go = asyncio.Event()

    async def body(fruit: str) -> int:
        await go.wait()
        return 30

    async with calling(redis, count(body, no_background=stops)) as caller, at_work(caller) as worker:
        call = caller.call(COUNT)
        await caller.send(call)
        await until(lambda: worker.running)
        await caller.tell(Cancel(call.grant))
        await asyncio.sleep(2 * TAKEOVER / 6)
        go.set()
        ended = await caller.reply()
    assert ended.status == ("cancelled" if stops else "ok")


# A worker that ends in the midst of a call


async def gone(caller: Caller, times: int = 1, begun: Delegated | None = None) -> None:
    """Workers have taken what waits, begun its body perhaps, and were killed."""
    from quoth.tools.catalog.connection import sync_client

    for number in range(times):
        broker = CallBroker(caller.url, caller.prefix, f"gone-{number}", TAKEOVER / 3)
        delivery: Any = await anext(broker.listen())
        if begun is not None:
            client = sync_client(caller.url)
            records = CallRecords(broker, client, caller.url, caller.prefix)
            await records.take(delivery, begun)
            records.begin(delivery, call_of(begun))
            client.close()
        await broker.connection_pool.disconnect()


def call_of(said: Delegated) -> Any:
    return away.call_of(said, form(COUNT))


async def test_another_worker_makes_it_though_nothing_new_comes(redis: str) -> None:
    async with calling(redis, count(effects=["reads"])) as caller:
        await caller.send(caller.call(COUNT))
        await gone(caller)
        async with at_work(caller):
            assert (await caller.reply()).value == 30


async def test_a_call_that_runs_is_not_taken_over(redis: str) -> None:
    calls: list[str] = []

    async def body(fruit: str) -> int:
        calls.append(fruit)
        await asyncio.sleep(2.5 * TAKEOVER)
        return 30

    async with (
        calling(redis, count(body, effects=["reads"])) as caller,
        at_work(caller),
        at_work(caller),
    ):
        assert (await caller.ask(COUNT)).value == 30
    assert calls == ["pears"]


async def test_a_body_that_had_begun_is_asked_about_and_each_time_anew(redis: str) -> None:
    body = Spy()
    async with calling(redis, count(body, effects=["memory"])) as caller:
        await caller.send(call := caller.call(COUNT))
        await gone(caller, begun=call)
        async with at_work(caller):
            asked = await caller.reply()
            assert (asked.reason, body.ran) == (BEGUN, False)
        again = dataclasses.replace(call, grant="2" * 32, approved=[asked.question])
        await caller.send(again)
        await gone(caller, begun=again)  # the person had said yes, and that one is killed, too
        async with at_work(caller):
            anew = await caller.reply()
            assert (anew.reason, body.ran) == (BEGUN, False)
            assert anew.question != asked.question
            final = dataclasses.replace(call, grant="3" * 32, approved=[asked.question, anew.question])
            assert (await caller.ask(final)).status == "ok"
    assert body.calls == 1


async def test_a_body_that_had_begun_is_asked_about_also_by_a_worker_with_other_tools(redis: str) -> None:
    body = Spy()
    async with calling(redis, count(body, effects=["memory"])) as caller:
        old = caller.call(COUNT, schema_hash="0" * 64)
        await caller.send(old)
        await gone(caller, begun=old)
        async with at_work(caller):
            asked = await caller.reply()
            assert (type(asked), asked.reason) == (Asks, BEGUN)
            again = dataclasses.replace(old, grant="2" * 32, approved=[asked.question])
            assert isinstance(await caller.ask(again), Stale)
    assert not body.ran


@pytest.mark.parametrize(
    ("effects", "known", "asked"),
    [("memory", "other", True), ("memory", "", False), ("reads", "other", False)],
)
async def test_what_was_sent_before_redis_started_again_may_have_begun(
    redis: str, effects: str, known: str, asked: bool
) -> None:
    body = Spy(30)
    async with calling(redis, count(body, effects=[effects])) as caller:
        await caller.send(call := caller.call(COUNT))
        if known:
            await caller.redis.hset(wire.server(caller.prefix), mapping={"run": known, "since": 0})
        async with at_work(caller):
            reply = await caller.reply()
            assert (isinstance(reply, Asks), body.ran) == (asked, not asked)
            if asked:
                again = dataclasses.replace(call, grant="2" * 32, approved=[reply.question])
                assert (await caller.ask(again)).value == 30
                assert (await caller.ask(caller.call(COUNT))).value == 30


async def test_a_redis_that_forgets_nothing_is_believed(redis: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redis, "config_get", always := AsyncMock())
    always.return_value = {"appendonly": "yes", "appendfsync": "always"}
    async with calling(redis, count(effects=["memory"])) as caller:
        await caller.send(caller.call(COUNT))
        await caller.redis.hset(wire.server(caller.prefix), mapping={"run": "other", "since": 0})
        async with at_work(caller):
            assert (await caller.reply()).value == 30


async def test_a_kept_result_answers_whatever_the_tools_are_by_now(redis: str) -> None:
    async with calling(redis, count(effects=["memory"])) as caller:
        async with at_work(caller):
            await caller.ask(call := caller.call(COUNT))
        caller.table = table_of(count(effects=["reads"]))
        async with at_work(caller):
            assert (await caller.ask(dataclasses.replace(call, grant="2" * 32))).value == 30


async def test_a_worker_that_leaves_the_calls_to_others_is_not_waited_for(
    redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.tools.remote.worker.ALIVE_SECONDS", 0.01)
    async with calling(redis, count()) as caller, at_work(caller) as worker:
        alive = partial(caller.redis.zcard, wire.workers(caller.prefix))
        await caller.ask(COUNT)
        assert await alive() == 1
        worker.paused = True
        await until_async(alive)
        worker.paused = False
        assert (await caller.ask(COUNT)).value == 30


async def test_a_body_that_had_begun_is_remembered_by_a_worker_that_came_too_late(redis: str) -> None:
    body = Spy()
    async with calling(redis, count(body, effects=["memory"])) as caller:
        await caller.send(call := caller.call(COUNT, expires=time.time() + TAKEOVER / 2))
        await gone(caller, begun=call)
        async with at_work(caller):
            late = await caller.reply()
            assert (late.status, late.message) == (
                "timeout",
                f"count-fruit was not run again: {BEGUN}; there is no time left to ask.",
            )
            again = dataclasses.replace(call, grant="2" * 32, expires=time.time() + 30)
            assert (await caller.ask(again)).reason == BEGUN
    assert not body.ran


async def test_a_call_sent_again_is_answered_by_the_result_that_was_kept(redis: str) -> None:
    body = Spy(30)
    async with calling(redis, count(body, effects=["memory"])) as caller, at_work(caller) as worker:
        call = caller.call(COUNT)
        assert (await caller.ask(call)).value == 30
        again = dataclasses.replace(call, grant="2" * 32)
        said = await caller.ask(again)
        assert (said.grant, said.value, body.calls) == (again.grant, 30, 1)
        assert worker.door.audit.rows()[-1]["stage"] == "receipt"


async def test_a_kept_result_that_is_not_signed_is_not_believed(redis: str) -> None:
    body = Spy()
    async with calling(redis, count(body)) as caller, at_work(caller):
        call = caller.call(COUNT)
        record = wire.call(caller.prefix, call.key, call.user)
        await caller.redis.hset(
            record, "ended", Ended("g", call.key, call.digest, "ok", 99, "", [], []).pack(Key(b"o" * 32))
        )
        said = await caller.ask(call)
    assert (said.status, body.ran) == ("error", False)
    assert said.message == (f"The kept result of count-fruit was rejected. It {IS_NOT_SIGNED_WITH_THE}.")


async def test_a_body_that_could_not_begin_without_redis_begins_when_it_is_back(
    redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, begin, away = Spy(30), CallRecords.begin, [True]

    def shaky(records: CallRecords, delivery: Delivery, call: Call) -> None:
        begin(records, delivery, call)  # it is written, and the answer is lost
        if away and away.pop():
            raise ServerError(f"The Redis {CANNOT_BE_USED}", THE_CONNECTION_WAS_LOST)

    monkeypatch.setattr(CallRecords, "begin", shaky)
    async with calling(redis, count(body, effects=["memory"])) as caller, at_work(caller) as worker:
        assert (await caller.ask(COUNT)).value == 30
        assert [row["status"] for row in worker.door.audit.rows()] == ["error", "ok"]
    assert body.calls == 1


async def test_two_deliveries_of_one_call_do_not_run_at_once(redis: str) -> None:
    calls: list[str] = []

    async def body(fruit: str) -> int:
        calls.append(fruit)
        await asyncio.sleep(0.3)
        return 30

    async with calling(redis, count(body, effects=["memory"])) as caller, at_work(caller):
        call = caller.call(COUNT)
        again = dataclasses.replace(call, grant="2" * 32)
        await caller.send(call)
        await caller.send(again)
        said = [await caller.reply(), await caller.reply()]
    assert ([one.value for one in said], calls) == ([30, 30], ["pears"])
    assert {one.grant for one in said} == {call.grant, again.grant}


async def test_a_call_that_ended_three_workers_is_not_tried_again(redis: str) -> None:
    body = Spy()
    async with calling(redis, count(body, effects=["reads"])) as caller:
        call = caller.call(COUNT)
        entry = await caller.send(call)
        await gone(caller, times=3)
        async with at_work(caller) as worker:
            said = await caller.reply()
            rows = worker.door.audit.rows()
        sentence = "count-fruit ended 3 workers and is not tried again."
        assert (said.status, said.message, body.ran) == ("error", sentence, False)
        assert [row["message"] for row in rows] == [sentence]
        ((_, dead),) = await caller.redis.xrange(wire.dead(caller.prefix))
        assert (dead[b"entry"].decode(), dead[b"tries"]) == (entry, b"3")


async def test_two_dead_workers_do_not_bury_a_call(redis: str) -> None:
    async with calling(redis, count(effects=["reads"])) as caller:
        await caller.send(caller.call(COUNT))
        await gone(caller, times=2)
        async with at_work(caller):
            assert (await caller.reply()).value == 30


async def test_a_worker_that_was_stopped_can_neither_begin_nor_end_what_another_has(redis: str) -> None:
    from quoth.tools.catalog.connection import sync_client

    async with calling(redis, count()) as caller:
        call = caller.call(COUNT)
        await caller.send(call)
        client = sync_client(caller.url)
        found: list[tuple[CallRecords, Delivery]] = []
        for name in ("stopped", "other"):
            broker = CallBroker(caller.url, caller.prefix, name, 0.05)
            records = CallRecords(broker, client, caller.url, caller.prefix)
            delivery: Any = await anext(broker.listen())
            assert (await records.take(delivery, call)).how == "ours"
            found.append((records, delivery))
            if name == "stopped":
                assert await broker.renew([delivery.entry]) == []
                records.begin(delivery, call_of(call))  # it could, while it had the call
            else:
                assert await broker.renew([delivery.entry]) == []
        stopped, other = found
        with pytest.raises(LostError, match="Another worker has taken over this call"):
            stopped[0].begin(stopped[1], call_of(call))
        assert (await stopped[0].take(stopped[1], call)).how == "lost"
        assert not await stopped[0].settle(stopped[1], call, "ended", ended=b"x", reply=b"x")
        assert not await caller.redis.xlen(caller.replies)
        other[0].begin(other[1], call_of(call))
        assert await other[0].settle(other[1], call, "ended", ended=b"y", reply=b"y")
        assert await caller.redis.xlen(caller.replies) == 1
        client.close()


async def test_a_call_that_waits_for_another_leaves_it_its_place(redis: str) -> None:
    async def outer(fruit: str, ctx: Any) -> Any:
        return (await ctx.dispatch(CallForm("inner"))).value

    async with calling(redis, count(outer), tool("inner", lambda: 30)) as caller, at_work(caller, jobs=1):
        call = caller.call(COUNT)
        nested = await caller.ask(call)
        inner = await caller.ask("(inner)")
        assert inner.value == 30
        result = {"id": "i", "tool": "inner", "status": "ok", "value": inner.value, "message": ""}
        await caller.tell(
            NestedAnswer(call.grant, nested.number, {**result, "side_effects": [], "audit": {}})
        )
        assert (await caller.reply()).value == 30
        assert [(await caller.ask("(inner)")).value for _ in range(3)] == [30, 30, 30]
