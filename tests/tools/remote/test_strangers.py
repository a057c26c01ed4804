"""Whoever can write to Redis but has no key: what they put there is refused, and stops no call."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import pytest
from caller import KEY, TAKEOVER, Caller, at_work, calling, until, until_async
from machines import two_machines
from sentences import IT_IS_NOT_A_MESSAGE_OF, IT_WAS_BEGUN_BEFORE_AND
from words import tool

from quoth.tools.call.call import deny
from quoth.tools.lisp.forms import CallForm
from quoth.tools.remote import wire
from quoth.tools.remote.broker import CallBroker
from quoth.tools.remote.wire import Delegated, WireError, unpack

COUNT = '(count-fruit :fruit "pears")'
LAST_NUMBER = "18446744073709551615-18446744073709551615"  # behind it, nothing can be added to a stream
NO_MESSAGE = f"{IT_IS_NOT_A_MESSAGE_OF}."


def count(body: Any = lambda fruit: 30, **options: Any) -> Any:
    return tool("count-fruit", body, params={"fruit": {"type": str}}, **options)


@pytest.mark.parametrize("still_waits", [True, False])
async def test_no_other_worker_makes_a_call_again(
    redis: str, monkeypatch: pytest.MonkeyPatch, still_waits: bool
) -> None:
    paid: list[int] = []
    goes_on = asyncio.Event()

    async def pay() -> str:
        paid.append(1)
        await goes_on.wait()
        return "paid"

    async with two_machines(redis) as machines:
        machines.person.answer = deny("not twice")
        first = await machines.start_worker(tool("pay", pay, effects=["memory"]))
        call = asyncio.create_task(machines.call("(pay)"))
        await until(lambda: paid)
        queue = wire.queue(machines.prefix)
        ((_, entry),) = await machines.redis.xrange(queue)
        if not still_waits:
            goes_on.set()
            assert (await call).value == "paid"
            # Nobody answers any more: the other worker need not wait for long.
            monkeypatch.setattr("quoth.tools.remote.away.LOOK_SECONDS", 0.1)
            monkeypatch.setattr("quoth.tools.remote.away.ANSWER_SECONDS", 0.1)
        # Somebody lets Redis forget what was done, and sends it once more; another worker has seen nothing.
        for kind in ("grant", "call"):
            async for key in machines.redis.scan_iter(f"{machines.prefix}:tools:{kind}:*"):
                await machines.redis.delete(key)
        first.paused = True
        await machines.start_worker()
        await machines.redis.xadd(queue, entry)
        rows = machines.there.rows
        await until(lambda: len(rows()) > (0 if still_waits else 1))
        said = rows()[-1]["message"]
        goes_on.set()
        if still_waits:
            assert (await call).status == "denied"
            assert machines.person.asked == [IT_WAS_BEGUN_BEFORE_AND]
        else:
            assert said == (
                "pay was not run: its caller did not confirm that it may begin, and it may have been"
                " run before."
            )
    assert paid == [1]


BOMBS = {
    "lists": b"\x93\xa4call\xdd" + (100_000).to_bytes(4) + b"\x90" * 100_000,
    "lists in lists": b"\x93" * 1000,
    "too many parts": b"\xdd" + (100_000).to_bytes(4) + b"\x90" * 100_000,
    "numbers": b"\xdd" + (100_000).to_bytes(4) + b"\x01" * 100_000,
    "something behind it": b"\x93\xa4call\xc4\x01d\xc4\x01s" + b"\x90" * 100_000,
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=list(BOMBS))
def test_nothing_is_made_of_a_message_that_nobody_has_signed(bomb: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(WireError) as refused:
            unpack(KEY, bomb, Delegated)
        assert tracemalloc.get_traced_memory()[1] < 100_000 + 4 * len(bomb)
    finally:
        tracemalloc.stop()
    assert str(refused.value) == NO_MESSAGE


@pytest.mark.parametrize("where", ["call", "grant", "inbox", "replies", "replies at their end"])
async def test_what_stands_in_the_place_of_a_key_stops_no_call(redis: str, where: str) -> None:
    async with calling(redis, count()) as caller:
        call = caller.call(COUNT)
        prefix = caller.prefix
        places = {
            "call": wire.call(prefix, call.key, call.user),
            "grant": wire.grant(prefix, call.grant),
            "inbox": wire.inbox(prefix, call.grant),
        }
        if where == "replies at their end":
            await caller.redis.xadd(caller.replies, {"m": b"junk"}, id=LAST_NUMBER)
        else:
            await caller.redis.sadd(places.get(where, caller.replies), "junk")
        async with at_work(caller, jobs=1):
            await caller.send(call)
            await caller.settled()
            assert (await caller.reply()).value == 30


async def test_a_worker_is_seen_to_live_whatever_stands_among_the_workers(redis: str) -> None:
    async with calling(redis, count()) as caller:
        workers = wire.workers(caller.prefix)
        await caller.redis.set(workers, "junk")
        async with at_work(caller) as worker:

            async def unseen() -> bool:
                return bool(await caller.redis.type(workers) != b"zset")

            await until_async(unseen)
            assert await caller.redis.zscore(workers, worker.name)


async def test_an_inbox_that_is_none_lets_no_worker_lose_its_calls(redis: str) -> None:
    begun: list[str] = []

    async def body(fruit: str) -> int:
        begun.append(fruit)
        await asyncio.sleep(2.5 * TAKEOVER)
        return 30

    async with calling(redis, count(body)) as caller, at_work(caller) as one, at_work(caller) as other:
        await caller.send(call := caller.call(COUNT))
        await until(lambda: begun)
        inbox = wire.inbox(caller.prefix, call.grant)
        await caller.redis.set(inbox, "junk")
        await until_async(lambda: caller.redis.exists(inbox))
        assert (await caller.reply()).value == 30
        rows = [*one.door.audit.rows(), *other.door.audit.rows()]
    assert begun == ["pears"]
    assert f"A message to a running call was rejected. {NO_MESSAGE}" in [row["message"] for row in rows]


async def test_a_body_whose_call_cannot_be_sent_is_told(redis: str) -> None:
    caller: Caller

    async def body(fruit: str, ctx: Any) -> str:
        await caller.redis.set(caller.replies, "junk")
        return str((await ctx.dispatch(CallForm("ask-shop"))).message)

    async with calling(redis, count(body)) as caller, at_work(caller):
        said = await caller.ask(COUNT)
    assert (said.status, said.message) == ("error", "ask-shop was not called. Redis refuses the message.")


async def test_an_entry_longer_than_the_memory_ends_no_worker(
    redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = CallBroker._next
    lengths: list[int] = []

    async def short_of_memory(broker: CallBroker) -> Any:
        found = await read(broker)
        lengths.append(len(found.data) if found is not None else 0)
        if lengths[-1] > 5_000_000:
            raise MemoryError
        return found

    monkeypatch.setattr(CallBroker, "_next", short_of_memory)
    async with calling(redis, count()) as caller, at_work(caller, jobs=1) as worker:
        await caller.send(b"x" * 5_000_001)
        assert (await caller.ask(COUNT)).value == 30
        await caller.settled()
        rows = [row["message"] for row in worker.door.audit.rows()]
    assert f"A call was refused. {NO_MESSAGE}" in rows
    assert [one for one in lengths if one > 5_000_000] == [5_000_001]
