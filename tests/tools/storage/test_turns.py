"""Many that could go on at once in an event loop go on in turns of it, in the order in which they came."""

from __future__ import annotations

import asyncio

from quoth.tools.storage.log_sync import own_turn


async def turns_of(tasks: int, cancelled: frozenset[int] = frozenset()) -> dict[int, int]:
    """For each of so many that want to go on at once the turn of the loop in which it does."""
    loop = asyncio.get_running_loop()
    count, going, found = 0, True, dict[int, int]()

    def tick() -> None:
        nonlocal count
        count += 1
        if going:
            loop.call_soon(tick)

    async def go_on(number: int) -> None:
        await own_turn()
        found[number] = count

    tick()
    started = [asyncio.create_task(go_on(number)) for number in range(tasks)]
    await asyncio.sleep(0)
    for number in cancelled:
        started[number].cancel()
    await asyncio.gather(*started, return_exceptions=True)
    going = False
    return found


async def test_each_has_a_turn_of_its_own_in_order() -> None:
    found = await turns_of(50)
    assert list(found) == list(range(50))
    assert len(set(found.values())) == 50


async def test_who_is_cancelled_holds_up_nobody() -> None:
    assert list(await turns_of(6, frozenset({1, 2, 5}))) == [0, 3, 4]


async def test_one_alone_does_not_wait() -> None:
    async def none_else() -> None:
        await own_turn()

    asking = none_else()
    try:
        asking.send(None)
    except StopIteration:
        pass
    else:
        raise AssertionError("it waits")
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def test_the_loops_of_a_process_have_turns_of_their_own() -> None:
    for _ in range(2):
        assert len(asyncio.run(turns_of(3))) == 3
