"""An approval is for one call, once: whatever is called, in whatever order, and wherever a process dies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from examples import many
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sentences import IT_WRITES_FILES
from words import Desk, PausableClock, SharedStore, Spy, desk, script, tool

from quoth.tools.call.ports import BEGUN_BEFORE, MemoryAudit
from quoth.tools.catalog.connection import redis_url
from quoth.tools.consent.decisions import APPROVAL_SECONDS
from quoth.tools.consent.requests import request_digest
from quoth.tools.consent.rows import PENDING_SECONDS
from quoth.tools.errors import UsageError
from quoth.tools.history.audit import StoreAudit
from quoth.tools.lisp.forms import CallForm, canonical
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.shared.server import SharedRedis
from quoth.tools.storage.database import Store


def probe(body: Callable[..., Any], version: str = "1") -> CognitiveTool:
    params = {"x": {"type": Any, "default": None}}
    return tool("probe", body, params=params, effects=["writes"], source=version)


def at_desk(store: Store, made: CognitiveTool, clock: PausableClock | None = None) -> Desk:
    return desk(store, made, clock=clock, audit=MemoryAudit())


# Whatever is called


class Asked(NamedTuple):
    """All that an approval is bound to."""

    x: Any
    user: str
    session: str
    version: str


likenesses = st.sampled_from(
    [1, 1.0, True, "1", [1], {"1": 1}, 0, -0.0, 0.0, False, None, "", [], {}, "None", "a b", 'a" :y "b', "é"]
)
values = st.recursive(
    likenesses | st.text(max_size=3) | st.integers(-2, 2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
few = st.sampled_from(["", "a", "b", "a b", "ab", '"', "é"])
asked = st.builds(Asked, values, few, few, st.sampled_from(["1", "2"]))


def spelt(this: Asked) -> tuple[str, ...]:
    return (canonical(CallForm("probe", {"x": this.x})), *this[1:])


@given(asked, asked)
def test_what_is_asked_differently_has_another_digest(one: Asked, two: Asked) -> None:
    digests = {
        (request_digest(CallForm("probe", {"x": each.x}), each.version, each.session), each.user)
        for each in (one, two)
    }
    assert len(digests) == len({spelt(one), spelt(two)})


@given(asked, asked, st.sampled_from(["once", "duration", "deny"]))
def test_a_decision_on_one_call_never_passes_another(one: Asked, two: Asked, kind: str) -> None:
    assume(
        canonical(CallForm("probe", {"x": one.x})) != canonical(CallForm("probe", {"x": two.x}))
        or one[1:] != two[1:]
    )
    store, body = Store(":memory:"), Spy("done")
    desks = {version: at_desk(store, probe(body, version)) for version in ("1", "2")}

    def make(this: Asked) -> str:
        call = CallForm("probe", {"x": this.x})
        return desks[this.version].pass_through(call, user=this.user, session=this.session).status

    assert make(one) == "pending"
    desks[one.version].decide(kind)
    assert make(two) == "pending"
    assert not body.ran
    assert make(one) == ("denied" if kind == "deny" else "ok")
    store.close()


# In whatever order


class Deciding(RuleBasedStateMachine):
    """Calls, decisions and time in any order, beside a model of what may happen: for each call the decisions
    that are left, in their order, and the grants."""

    @initialize()
    def open(self) -> None:
        self.store, self.clock = self.opened(), PausableClock()
        self.ran: list[tuple[Any, str]] = []
        self.desks = {version: at_desk(self.store, self.made(version), self.clock) for version in "12"}
        self.left: dict[Asked, list[tuple[str, float, Any]]] = {}
        self.granted: dict[Asked, list[float]] = {}
        self.may_run = 0
        self.of: dict[str, Asked] = {}

    def opened(self) -> Store:
        return Store(":memory:")

    def made(self, version: str) -> CognitiveTool:
        return probe(lambda x: self.ran.append((x, version)), version)

    @rule(
        who=st.sampled_from(["ann", "bob"]),
        session=st.sampled_from(["s", "t"]),
        x=st.sampled_from([1, 2]),
        version=st.sampled_from("12"),
        times=st.integers(1, 3),
    )
    def call(self, who: str, session: str, x: int, version: str, times: int) -> None:
        this = Asked(x, who, session, version)
        for _ in range(times):
            before = len(self.ran)
            expected, made = self.expect(this)
            here = self.desks[version]
            result = here.pass_through(CallForm("probe", {"x": x}), user=who, session=session)
            assert result.status == expected
            assert self.ran[before:] == ([(made, version)] if expected == "ok" else [])
            for one in here.waiting:
                self.of.setdefault(one.id, this)

    def expect(self, this: Asked) -> tuple[str, Any]:
        now = self.clock.now
        decided = [one for one in self.left.get(this, []) if one[1] > now]
        self.left[this] = decided[1:]
        if decided:
            kind, _, edited = decided[0]
            return ("denied", None) if kind == "deny" else ("ok", edited if kind == "edit" else this.x)
        if any(until > now for until in self.granted.get(this, [])):
            self.may_run += 1
            return "ok", this.x
        return "pending", None

    @precondition(lambda self: any(here.waiting for here in self.desks.values()))
    @rule(
        place=st.integers(0, 7),
        kind=st.sampled_from(["once", "once", "duration", "edit", "deny"]),
        seconds=st.sampled_from([60.0, 3600.0]),
        edited=st.sampled_from([1, 2, 3]),
    )
    def decide(self, place: int, kind: str, seconds: float, edited: int) -> None:
        waiting = self.desks["1"].waiting
        one = waiting[place % len(waiting)]
        this, now = self.of[one.id], self.clock.now
        form = CallForm("probe", {"x": edited}) if kind == "edit" else None
        self.desks[this.version].decide(kind, one.id, form=form, seconds=seconds)
        if kind == "duration":
            self.granted.setdefault(this, []).append(now + seconds)
        else:
            lasts = PENDING_SECONDS if kind == "deny" else APPROVAL_SECONDS
            self.left.setdefault(this, []).append((kind, now + lasts, edited))
            self.may_run += kind != "deny"

    @precondition(lambda self: self.of)
    @rule(place=st.integers(0, 7), kind=st.sampled_from(["once", "deny"]))
    def decide_again(self, place: int, kind: str) -> None:
        closed = sorted(set(self.of) - {one.id for one in self.desks["1"].waiting})
        if closed:
            with pytest.raises(UsageError):
                self.desks["1"].decide(kind, closed[place % len(closed)])

    @rule(seconds=st.sampled_from([1.0, 59.0, 60.0, 3600.0, 86400.0, 7 * 86400.0]))
    def wait(self, seconds: float) -> None:
        self.clock.wait(seconds)

    @invariant()
    def nothing_ran_more_often_than_it_was_approved(self) -> None:
        if hasattr(self, "ran"):
            assert len(self.ran) <= self.may_run

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()


TestDeciding = Deciding.TestCase
TestDeciding.settings = settings(stateful_step_count=25)


def test_the_same_holds_in_a_redis(redis: str) -> None:
    class Shared(Deciding):
        def opened(self) -> Store:
            return SharedStore(":memory:", SharedRedis(redis_url(redis), f"once{id(self)}"))

    few = settings(stateful_step_count=25, max_examples=max(1, many(1) // 10))
    run_state_machine_as_test(Shared, settings=few)  # type: ignore[no-untyped-call]


# Wherever a process dies

DIES = """
import asyncio, os, signal, sys
from pathlib import Path
from quoth.tools.history.audit import StoreAudit
from quoth.tools.catalog.connection import redis_url
from quoth.tools.catalog.payload import KEY_BYTES, Key
from quoth.tools.consent.broker import Broker
from quoth.tools.shared.requests import RedisRequests
from quoth.tools.shared.server import SharedRedis
from quoth.tools.call.context import ToolContext
from quoth.tools.registry.define import define_tool, registering_in
from quoth.tools.door.door import Door; from quoth.tools.call.call import new_call
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.limits import EffectsPolicy
from quoth.tools.history.receipts import StoreReceipts
from quoth.tools.storage.database import Store
from quoth.tools.registry.table import ToolTable
from quoth.tools.call.workspace import Workspace

folder, point = Path(sys.argv[1]), sys.argv[2]
store = Store(folder / "s.sqlite")


def reached(label):
    if label == point:
        os.kill(os.getpid(), signal.SIGKILL)


class Policy(EffectsPolicy):
    def judge(self, *given):
        reached("before the approval is used")
        return super().judge(*given)


class Asks(Broker):
    async def request(self, *given):
        said = await super().request(*given)
        reached("after the approval was used")
        return said


class Audit(StoreAudit):
    def write(self, row):
        reached("before the audit row")
        super().write(row)
        reached("after the audit row")


class Receipts(StoreReceipts):
    def keep(self, *given, **more):
        reached("before the receipt")
        super().keep(*given, **more)


def body():
    reached("in the body")
    with (folder / "ran").open("a") as out:
        out.write("ran\\n")
    reached("in the body, when it is done")


with registering_in(ToolTable()) as table:
    define_tool("probe", "A tool for a test.", parameters={}, body=body, effects=["writes"])
audit = Audit(lambda: store)
clock = lambda: 1_773_144_000.0
rows = None
if len(sys.argv) > 4:
    redis = SharedRedis(redis_url(sys.argv[4]), sys.argv[5])
    rows = RedisRequests(redis, Key(b"k" * KEY_BYTES), lambda: store, clock=clock)
broker = Asks(lambda: store, table, Workspace(folder), audit=audit, clock=clock, rows=rows)
door = Door(table, policy=Policy(), consent=broker, audit=audit, receipts=Receipts(lambda: store))
key = {"key": sys.argv[3]} if sys.argv[3] else {}
asyncio.run(door.dispatch(new_call(CallForm("probe"), **key), ToolContext(Workspace(folder))))
raise SystemExit("it was not killed")
"""
BEGUN = "it writes files; approved and begun at 2026-03-10 12:00 UTC, and how that ended is not known"
RESUMED = f"{IT_WRITES_FILES}; {BEGUN_BEFORE}; approved and begun at 2026-03-10 12:00 UTC"


@pytest.mark.parametrize(
    ("point", "ran", "state", "told"),
    [
        ("before the approval is used", 0, "decided", ""),
        ("after the approval was used", 0, "used", BEGUN),
        ("in the body", 0, "used", BEGUN),
        ("in the body, when it is done", 1, "used", BEGUN),
        ("before the receipt", 1, "used", BEGUN),
        ("before the audit row", 1, "used", BEGUN),
        ("after the audit row", 1, "used", IT_WRITES_FILES),
    ],
)
@pytest.mark.parametrize("carried_on", [False, True])
def test_an_approval_is_used_at_most_once_wherever_a_process_is_killed(
    store: Store, tmp_path: Path, point: str, ran: int, state: str, told: str, carried_on: bool
) -> None:
    def body() -> None:
        with (tmp_path / "ran").open("a") as out:
            out.write("ran\n")

    def times() -> int:
        return len((tmp_path / "ran").read_text().splitlines()) if (tmp_path / "ran").exists() else 0

    here = desk(store, tool("probe", body, effects=["writes"]))
    first = here.pass_through("(probe)")
    here.decide()
    key = {"key": first.id} if carried_on else {}
    place = [store.redis.url.full, store.redis.prefix] if isinstance(store, SharedStore) else []
    died = script(DIES, tmp_path, point, key.get("key", ""), *place, cwd=tmp_path)
    assert (died.code, died.err) == (-9, "")
    assert (times(), [one.state for one in here.broker.requests(every=True)]) == (ran, [state])
    again = here.pass_through("(probe)", **key)
    if state == "decided":
        assert (again.status, times()) == ("ok", 1)
    elif carried_on and point in ("before the audit row", "after the audit row"):
        assert (again.status, times()) == ("ok", 1)  # answered by its receipt
        assert here.waiting == []
    else:
        if carried_on and point in ("in the body", "in the body, when it is done", "before the receipt"):
            told = RESUMED
        assert (again.status, times(), here.waiting[0].reason) == ("pending", ran, told)
        here.decide()
        assert here.pass_through("(probe)", **key).ok
        assert times() == ran + 1
    assert here.pass_through("(probe)").status == "pending"
    assert StoreAudit(lambda: store).verify().ok
