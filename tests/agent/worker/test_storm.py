"""Each call has one result and is made once, whatever becomes of workers and of Redis meanwhile. These are
small storms; tests/bench/storm.py is a large one, and --hypothesis-profile=explore has many.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from examples import many
from servers import own_redis
from weather import Storm

STORMS = many(1) // 30
CALLS = 24  # in each of them


async def blow(storm: Storm) -> None:
    await asyncio.gather(storm.worker_is_killed(0.0), storm.redis_is_killed(0.1))
    await storm.tools_change()
    await asyncio.gather(storm.worker_is_stopped(1.3), storm.worker_is_killed(0.0))
    await storm.worker_is_ended(0.0)


async def test_in_a_storm_every_call_has_one_result_and_is_made_once(tmp_path: Path) -> None:
    with own_redis("--appendonly", "yes", "--appendfsync", "always") as server:
        async with Storm(tmp_path, server, workers=2, callers=2, seconds=0.2, takeover=1) as storm:
            for _ in range(STORMS):
                await asyncio.gather(storm.calls(CALLS, at_once=8), blow(storm))
            assert [*storm.faults()] == []
            await storm.all_is_put_away()
            with storm.book.open("a") as book:
                book.write("0\n0\n")  # the eyes are open
            assert next(storm.faults()).startswith("enter-order 0 was done ")
        assert storm.connections() == 1
