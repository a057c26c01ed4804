"""Requests in a Redis: decided on another machine, used once, and never by who has no key."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    CANNOT_BE_USED,
    IS_NOT_SIGNED_WITH_THE,
    ITS_CALLS_CANNOT_BE_COUNTED,
    NO_SERVER_ANSWERS_THERE,
    THE_REDIS_AT,
)
from words import Desk, PausableClock, SharedStore, Spy, complaint, desk, tool

from quoth.tools.catalog.connection import redis_url
from quoth.tools.catalog.payload import KEY_BYTES, Key
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import ServerError, UsageError
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.shared.limits import RedisLimits
from quoth.tools.shared.requests import KIND, SIGNATURE, RedisRequests
from quoth.tools.shared.server import SharedRedis

Machines = Callable[..., SharedStore]


@pytest.fixture
def machine(shared: SharedRedis, tmp_path: Path) -> Iterator[Machines]:
    """Machines with stores of their own, which share a Redis and a key."""
    opened: list[SharedStore] = []

    def made(name: str = "caller", key: bytes = b"k") -> SharedStore:
        store = SharedStore(tmp_path / f"{name}.sqlite", shared)
        store.key = Key(key * KEY_BYTES)
        opened.append(store)
        return store

    yield made
    for store in opened:
        store.close()


def probe(body: Any = None) -> CognitiveTool:
    params = {"x": {"type": int, "default": 0}}
    return tool("probe", body or Spy("done"), params=params, effects=["writes"])


def place(here: Desk, store: SharedStore) -> str:
    """The key of the only row in Redis that waits."""
    (asked,) = here.waiting
    return store.redis.key("requests", "row", asked.id)


# On several machines


def test_what_is_asked_on_one_machine_is_decided_on_another_and_used_once(machine: Machines) -> None:
    body = Spy("done")
    caller, other = desk(machine(), probe(body)), desk(machine("other"), clock=PausableClock())
    assert caller.pass_through("(probe)").status == "pending"
    assert [one.form for one in other.waiting] == ["(probe)"]
    other.decide()
    assert other.waiting == caller.waiting == []
    assert [caller.pass_through("(probe)").status for _ in range(2)] == ["ok", "pending"]
    assert body.calls == 1
    assert [row["route"] for row in other.rows] == ["decision"]


def test_of_machines_that_decide_at_once_one_does(machine: Machines) -> None:
    caller = desk(machine(), probe())
    caller.pass_through("(probe)")
    (asked,) = caller.waiting
    stores, said = [machine(name) for name in ("a", "b", "c", "d")], list[str]()

    def decide(store: SharedStore) -> None:
        try:
            said.append(desk(store).decide(request=asked.id).decider)
        except UsageError as error:
            said.append(str(error).partition(",")[0])

    threads = [threading.Thread(target=decide, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == [f"Request {asked.id} was approved before"] * 3 + ["ann"]
    recorded = [row for store in stores for row in desk(store).rows]
    assert [row["consent"] for row in recorded] == [f"approved once by ann (request {asked.id})"]


def test_who_was_slower_sees_what_another_has_used(
    machine: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = Spy("done")
    here, twin = desk(machine(), probe(body)), desk(machine("twin"), probe(body))
    here.pass_through("(probe)")
    here.decide()
    quicker, write = list[str](), RedisRequests._write

    def slower(rows: RedisRequests, *given: Any) -> bool:
        if not quicker:
            quicker.append("begins")
            other = threading.Thread(target=lambda: quicker.append(twin.pass_through("(probe)").status))
            other.start()
            other.join()
        return write(rows, *given)

    monkeypatch.setattr(RedisRequests, "_write", slower)
    assert (here.pass_through("(probe)").status, quicker, body.calls) == ("pending", ["begins", "ok"], 1)


def test_of_two_processes_one_uses_an_approval(machine: Machines, redis: str, tmp_path: Path) -> None:
    store = machine()
    approved = desk(store, probe())
    for x in range(5):
        approved.pass_through(f"(probe {x})")
        approved.decide()
    context = get_context("fork")
    together, said = context.Barrier(2), context.SimpleQueue()

    def race(name: str) -> None:
        own = SharedStore(tmp_path / f"{name}.sqlite", SharedRedis(redis_url(redis), store.redis.prefix))
        body = Spy()
        here = desk(own, probe(body))
        together.wait()
        statuses = [here.pass_through(f"(probe {x})").status for x in range(5)]
        said.put((statuses, body.calls))

    both = [context.Process(target=race, args=(name,)) for name in "ab"]
    for process in both:
        process.start()
    found = [said.get() for _ in both]
    for process in both:
        process.join()
    statuses = [status for of_one, _ in found for status in of_one]
    assert sorted(statuses) == ["ok"] * 5 + ["pending"] * 5
    assert sum(ran for _, ran in found) == 5


# Who has no key


def decided(packed: bytes) -> bytes:
    return packed.replace(b'"state": "pending"', b'"state": "decided"').replace(
        b'"decision": ""', b'"decision": "once"'
    )


FORGERIES: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("altered", decided),
    ("signed with another key", lambda packed: signed(Key(b"x" * KEY_BYTES), decided(packed))),
    ("of another kind", lambda packed: signed(Key(b"k" * KEY_BYTES), decided(packed), "call")),
    ("cut off", lambda packed: packed[:-20]),
    ("empty", lambda _: b""),
    ("no row at all", lambda _: b"approved"),
]


def signed(key: Key, packed: bytes, kind: str = KIND) -> bytes:
    return key.sign(kind, packed[SIGNATURE:]) + packed[SIGNATURE:]


@pytest.mark.parametrize("forge", [one[1] for one in FORGERIES], ids=[one[0] for one in FORGERIES])
def test_an_approval_that_is_forged_counts_as_none(
    machine: Machines, forge: Callable[[bytes], bytes]
) -> None:
    store, body = machine(), Spy()
    here = desk(store, probe(body))
    here.pass_through("(probe)")
    (asked,) = here.waiting
    client, row = store.redis._opened(), place(here, store)
    client.set(row, forge(client.get(row)))
    assert here.waiting == []
    assert complaint(UsageError, lambda: here.decide(request=asked.id)) == (
        f"Request {asked.id} at {store.redis.url.shown} {IS_NOT_SIGNED_WITH_THE}, or was"
        " put back to an earlier state; it counts as undecided."
    )
    assert here.pass_through("(probe)").status == "pending"
    assert [one.reason for one in here.waiting] == [
        f"it writes files; request {asked.id} was altered without the key and does not count"
    ]
    assert not body.ran


def test_an_approval_that_is_copied_is_still_one(machine: Machines) -> None:
    store, body = machine(), Spy()
    here = desk(store, probe(body))
    here.pass_through("(probe 1)")
    approved = place(here, store)
    here.decide()
    here.pass_through("(probe 2)")
    client, (other,) = store.redis._opened(), here.waiting
    client.set(place(here, store), client.get(approved))
    assert "not signed" in complaint(UsageError, lambda: here.broker.find(other.id))
    texts = ["(probe 2)", "(probe 1)", "(probe 1)"]
    assert [here.pass_through(text).status for text in texts] == ["pending", "ok", "pending"]
    assert body.calls == 1


def test_an_approval_that_was_used_is_not_used_again_when_it_is_put_back(machine: Machines) -> None:
    store, body = machine(), Spy()
    here = desk(store, probe(body))
    here.pass_through("(probe)")
    row, client = place(here, store), store.redis._opened()
    here.decide()
    before = client.get(row)
    assert here.pass_through("(probe)").ok
    client.set(row, before)
    assert here.pass_through("(probe)").status == "pending"
    assert body.calls == 1
    assert "does not count" in here.waiting[0].reason


def test_a_grant_is_for_who_asked_whatever_stands_in_redis(machine: Machines) -> None:
    store, body = machine(), Spy()
    here = desk(store, probe(body))
    here.pass_through("(probe)", user="ann", session="s")
    here.decide("scope")
    client, key = store.redis._opened(), store.redis.key
    (own,) = client.keys(key("requests", "of", "*"))
    here.pass_through("(probe)", user="eve", session="s")
    for other in client.keys(key("requests", "of", "*")):
        client.zunionstore(other, [own, other])
    assert here.pass_through("(probe)", user="eve", session="s").status == "pending"
    assert here.pass_through("(probe)", user="ann", session="s").ok


def test_machines_with_other_keys_see_none_of_each_others_requests(machine: Machines) -> None:
    mine, theirs = desk(machine(), probe()), desk(machine("other", b"z"), probe())
    mine.pass_through("(probe)")
    assert theirs.waiting == []
    assert theirs.pass_through("(probe)").status == "pending"
    assert len(mine.waiting) == len(theirs.waiting) == 1


def test_no_secret_of_a_call_stays_in_redis_when_it_is_decided(machine: Machines) -> None:
    store = machine()
    here = desk(store, tool("login", params={"pin": {"secret": True}}, effects=["net"]))
    here.pass_through('(login "hunter2")')
    assert "hunter2" in str(store.raw())
    here.decide()
    assert "hunter2" not in str(store.raw())


def test_all_that_is_kept_is_forgotten_by_itself(machine: Machines) -> None:
    store = machine()
    here = desk(store, probe())
    for _ in range(2):
        here.pass_through("(probe)")
        here.decide()
        here.pass_through("(probe)")
    client = store.redis._opened()
    lasting = [key for key in client.keys(store.redis.key("*")) if client.ttl(key) < 0]
    assert sorted(lasting) == [store.redis.key("requests", name).encode() for name in ("all", "seq")]


# The clock, and a Redis that is not there


def test_an_approval_is_over_by_the_clock_of_redis(
    machine: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, body = machine(), Spy()
    here = desk(store, probe(body))
    here.broker._rows = RedisRequests(store.redis, store.key, lambda: store)
    here.pass_through("(probe)")
    here.decide("duration", seconds=0.001)
    monkeypatch.setattr("time.time", lambda: 0.0)  # on this machine it is not over
    seconds, micros = store.redis._opened().time()
    over = here.broker.requests(every=True)[0].expires
    while seconds + micros / 1e6 <= over:
        seconds, micros = store.redis._opened().time()
    assert here.pass_through("(probe)").status == "pending"
    assert not body.ran


GONE = "redis://127.0.0.1:1"
UNUSABLE = f"{THE_REDIS_AT} {GONE} {CANNOT_BE_USED}: {NO_SERVER_ANSWERS_THERE}."


def test_without_the_redis_a_call_that_is_asked_about_or_limited_is_refused(machine: Machines) -> None:
    body, gone = Spy(), SharedRedis(redis_url(GONE))
    store = machine()
    store.redis = gone
    result = desk(store, probe(body)).pass_through("(probe)")
    assert (result.status, result.message) == (
        "denied",
        f"probe was denied: consent could not be asked ({UNUSABLE[:-1]}).",
    )
    limited = desk(store, tool("probe", body, daily_limit=1), limits=RedisLimits(gone))
    result = limited.pass_through("(probe)")
    assert (result.status, result.message) == (
        "limited",
        f"probe is limited: {ITS_CALLS_CANNOT_BE_COUNTED}. {UNUSABLE}",
    )
    assert complaint(ServerError, lambda: limited.waiting) == UNUSABLE
    assert complaint(ServerError, lambda: limited.broker.decide("abcde", Decision())) == UNUSABLE
    assert not body.ran
    assert desk(store, tool("free", body), limits=RedisLimits(gone)).pass_through("(free)").ok
