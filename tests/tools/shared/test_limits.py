"""Limits counted in a Redis: what is more than tests/tools/policy/test_limits.py says of every counter."""

from __future__ import annotations

import threading
import time

import pytest
from sentences import NO_SERVER_ANSWERS_THERE
from words import Spy, gateway, tool

from quoth.tools.catalog.connection import redis_url
from quoth.tools.policy.spending import Quota
from quoth.tools.shared.limits import RedisLimits
from quoth.tools.shared.server import SharedRedis


def test_machines_count_together(shared: SharedRedis, redis: str) -> None:
    others = [SharedRedis(redis_url(redis), shared.prefix) for _ in range(2)]
    body, said = Spy(), list[str]()

    def work(here: SharedRedis) -> None:
        machine = gateway(tool(body=body, daily_limit=3), limits=RedisLimits(here))
        said.extend(machine.pass_through("(probe)").status for _ in range(5))

    threads = [threading.Thread(target=work, args=(one,)) for one in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (body.calls, sorted(said)) == (3, ["limited"] * 7 + ["ok"] * 3)
    for one in others:
        one.close()


def test_a_call_that_a_worker_carries_on_counts_once(shared: SharedRedis) -> None:
    caller, worker = (gateway(tool(daily_limit=2, cooldown=60), limits=RedisLimits(shared)) for _ in "ab")
    assert caller.pass_through("(probe)", user="ann", key="s/1").ok
    assert worker.pass_through("(probe)", user="ann", key="s/1", resumed=True).ok
    assert worker.pass_through("(probe)", user="ann", key="s/2").status == "limited"


def test_a_window_is_over_by_the_clock_of_redis(shared: SharedRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    here = gateway(tool(), limits=RedisLimits(shared, [Quota("probe", 1, "hour")]))
    assert here.pass_through("(probe)").ok
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now + 7200)
    assert here.pass_through("(probe)").message.endswith("in 60 minutes.")


def test_a_day_is_that_of_redis_whatever_the_clock_here_says(
    shared: SharedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1e9)
    here = gateway(tool(daily_limit=1), limits=RedisLimits(shared, zone="Asia/Kathmandu"))
    assert [here.pass_through("(probe)").status for _ in range(2)] == ["ok", "limited"]


def test_what_was_counted_is_forgotten_with_its_window(shared: SharedRedis) -> None:
    limits = RedisLimits(shared, [Quota("probe", 2, "hour"), Quota("probe", 2, 90, "all")])
    gateway(tool(daily_limit=2, cooldown=60), limits=limits).pass_through("(probe)", user="ann")
    client = shared._opened()
    lasts = {key: client.ttl(key) for key in client.keys(shared.key("limits", "*"))}
    assert lasts.pop(shared.key("limits", "slots").encode()) == -1
    assert len(lasts) == 5
    assert all(0 < seconds <= 10 * 86400 for seconds in lasts.values())


def test_a_redis_that_is_lost_before_the_body_begins_ends_the_call(shared: SharedRedis) -> None:
    def lose() -> bool:
        shared.close()
        shared.url = redis_url("redis://127.0.0.1:1")
        return True

    body = Spy()
    result = gateway(tool(body=body, guard=lose, cooldown=60), limits=RedisLimits(shared)).pass_through(
        "(probe)"
    )
    assert (result.status, result.message) == (
        "limited",
        "probe is limited: its calls could not be counted (The Redis at redis://127.0.0.1:1 cannot be used:"
        f" {NO_SERVER_ANSWERS_THERE}).",
    )
    assert not body.ran
