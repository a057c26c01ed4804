"""The door: every stage, its order, and one result with one audit row for every call."""

from __future__ import annotations

import asyncio
import functools
import re
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    COULD_NOT_BE_WRITTEN,
    DID_NOT_ANSWER,
    DID_NOT_ANSWER_WITHIN,
    DID_NOT_FINISH_WITHIN,
    IS_NESTED_DEEPER_THAN,
    IT_IS_CALLED_AS,
    IT_STILL_COUNTS,
    IT_USES_THE_NETWORK,
    IT_WRITES_FILES,
    ITS_GUARD_REFUSED_THESE_ARGUMENTS,
    THE_CALL_WAS_DONE_BUT,
    THERE_IS_NO_TOOL_NAMED,
)
from words import Gateway, PausableClock, Spy, gateway, shipped, tool

from quoth.tools import ToolNotFound, ToolRateLimited
from quoth.tools.call.call import ALLOW, Call, ToolResult, Verdict, ask, deny, new_call
from quoth.tools.call.context import ToolContext, current_context
from quoth.tools.call.ports import MemoryAudit, Receipt, Refusal, Reservation
from quoth.tools.call.workspace import Workspace
from quoth.tools.door import execution, recording, stages
from quoth.tools.door.door import Door
from quoth.tools.door.stages import STAGES
from quoth.tools.errors import STATUSES, ToolError, ToolFailure, UnknownToolError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import Code
from quoth.tools.policy.limits import StoreLimits
from quoth.tools.registry.table import ToolTable
from quoth.tools.sandbox.pool import SandboxLimits
from quoth.tools.storage.database import Store


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines of the door itself, short enough for a test to pass them."""
    monkeypatch.setattr(execution, "GRACE_SECONDS", 0.2)


class Says:
    """A policy, limits, gate or consent that says one thing, and remembers in ``diary`` that it was asked."""

    def __init__(self, answer: Any, diary: list[str] | None = None, name: str = "") -> None:
        self.answer = answer
        self.diary = diary if diary is not None else []
        self.name = name

    def _say(self) -> Any:
        self.diary.append(self.name)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def judge(self, *_: Any) -> Any:
        return self._say()

    def reserve(self, *_: Any) -> Any:
        return self._say()

    async def check(self, *_: Any) -> Any:
        return self._say()

    async def request(self, *_: Any) -> Any:
        return self._say()

    def find(self, *_: Any) -> Any:
        return self._say()

    def begun(self, *_: Any) -> bool:
        return False

    def begins(self, *_: Any, **__: Any) -> None:
        """Nothing is kept."""

    def keep(self, *_: Any, **__: Any) -> None:
        """Nothing is kept."""


# One result, one row


def test_a_call_passes_and_leaves_an_audit_row() -> None:
    body = Spy("done")
    here = gateway(tool(body=body))
    result = here.pass_through("(probe)")
    assert (result.status, result.value, body.calls) == ("ok", "done", 1)
    (row,) = here.rows
    assert (row["tool"], row["status"], row["digest"]) == ("probe", "ok", result.audit["digest"])
    assert row["ts"].endswith("+00:00")
    assert row["duration_ms"] >= 0


def test_a_denying_guard_stops_the_body() -> None:
    body = Spy()
    result = gateway(tool(body=body, guard=Spy(False))).pass_through("(probe)")
    assert result.status == "denied"
    assert not body.ran


def test_the_row_says_who_called_what_when_and_how_it_ended() -> None:
    def body(ctx: ToolContext) -> None:
        ctx.effect("wrote:a")

    here = gateway(tool(body=body))
    before = datetime.now(UTC)
    result = here.pass_through("(PROBE)", user="ann", session="s1", route="repl", round=3, order=2)
    (row,) = here.rows
    assert before.replace(microsecond=0) <= datetime.fromisoformat(row.pop("ts")) <= datetime.now(UTC)
    assert isinstance(row.pop("duration_ms"), int)
    assert row == {
        "id": result.id,
        "tool": "probe",
        "digest": CallForm("probe").digest,
        "status": "ok",
        "stage": "body",
        "route": "repl",
        "session": "s1",
        "user": "ann",
        "parent": None,
        "depth": 0,
        "round": 3,
        "place": 2,
        "side_effects": ("wrote:a",),
        "policy": "allow",
        "rule": "",
        "guard": "",
        "gate": "",
        "consent": "",
        "message": "",
        "form": "(probe)",
        "repairs": "",
        "confidence": None,
        "details": {},
        "schema_hash": here.door.table.schema_hash,
    }
    assert result.side_effects == ("wrote:a",)


def test_the_duration_is_measured() -> None:
    result = gateway(tool(body=lambda: time.sleep(0.05))).pass_through("(probe)")
    assert result.audit["duration_ms"] >= 50


class Thinks(Says):
    async def request(self, *about: Any) -> Any:
        await asyncio.sleep(0.2)
        return await super().request(*about)


def test_the_time_in_which_a_person_is_asked_is_not_of_the_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "ASKED_FROM", 0.1)
    here = gateway(tool(effects=["writes"], body=lambda: time.sleep(0.05)), consent=Thinks(ALLOW))
    audit = here.pass_through("(probe)").audit
    assert 50 <= audit["duration_ms"] < 200 <= audit["asked_ms"]


def test_nor_is_it_of_the_call_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "ASKED_FROM", 0.1)

    async def body(ctx: Any) -> None:
        await ctx.call("inner")

    inner = tool("inner", effects=["writes"])
    here = gateway(tool(body=body), inner, consent=Thinks(ALLOW))
    here.pass_through("(probe)")
    assert [(row["tool"], row["duration_ms"] < 200 <= row["details"]["asked_ms"]) for row in here.rows] == [
        ("inner", True),
        ("probe", True),
    ]


def test_a_row_holds_no_declared_secret() -> None:
    here = gateway(tool(params={"text": {"secret": True}}, body=lambda text: text))
    assert here.pass_through('(probe "hunter2")').value == "hunter2"
    assert here.rows[0]["form"] == '(probe :text "[secret]")'
    assert "hunter2" not in str(here.rows)


def test_the_digest_is_that_of_the_canonical_call_however_it_was_spelt() -> None:
    here = gateway(tool(params={"a": {}, "b": {"type": int, "default": 1}}, body=lambda: None))
    spellings = ['(probe "x" 2)', '(PROBE :B 2 :a "x")', '(:tool "probe" :args (:b 2 :a "x"))']
    digests = {here.pass_through(text).audit["digest"] for text in spellings}
    assert digests == {CallForm("probe", {"a": "x", "b": 2}).digest}


def endings() -> list[tuple[str, str, Callable[[], Gateway], str]]:
    """Every status, the stage it ends at, a gateway where the call gets it, and the whole message."""

    def here(**parts: Any) -> Callable[[], Gateway]:
        options = {key: parts.pop(key) for key in list(parts) if key not in ("policy", "limits")}
        return lambda: gateway(tool(**options), **parts)

    failing = Spy(ToolError("It is broken."))
    return [
        ("ok", "body", here(), ""),
        ("error", "body", here(body=failing), "It is broken."),
        (
            "invalid",
            "validation",
            here(params={"x": {}}),
            f"probe: :x is missing. {IT_IS_CALLED_AS} (probe :x str).",
        ),
        (
            "unknown",
            "look-up",
            lambda: gateway(tool("prope")),
            f"{THERE_IS_NO_TOOL_NAMED} probe. Did you mean prope?",
        ),
        ("denied", "policy", here(policy=Says(deny("not you"))), "probe was denied: not you."),
        ("denied", "guard", here(guard=Spy(deny("not so."))), "probe was denied: not so."),
        (
            "denied",
            "gate",
            lambda: gateway(tool(gate=True), gate=Says(deny("no"))),
            "probe was denied: no.",
        ),
        (
            "limited",
            "limits",
            here(limits=Says(Refusal("3 calls a day"))),
            "probe is limited: 3 calls a day.",
        ),
        (
            "pending",
            "consent",
            here(effects=["writes"]),
            f"probe waits for a person's approval: {IT_WRITES_FILES}.",
        ),
        (
            "timeout",
            "body",
            here(body=functools.partial(asyncio.sleep, 5), timeout=0.05),
            f"probe {DID_NOT_FINISH_WITHIN} 0.05 s.",
        ),
    ]


@pytest.mark.parametrize(("status", "stage", "make", "message"), endings())
def test_every_ending_has_its_status_its_sentence_and_one_row(
    status: str, stage: str, make: Callable[[], Gateway], message: str
) -> None:
    here = make()
    result = here.pass_through("(probe)")
    assert (result.status, result.message) == (status, message)
    (row,) = here.rows
    assert (row["status"], row["stage"], row["id"]) == (status, stage, result.id)
    assert result.audit["status"] == status
    assert (result.value is None) or result.ok


def test_a_cancelled_call_has_its_row_and_the_cancellation_passes() -> None:
    here = gateway(tool(body=functools.partial(asyncio.sleep, 60)))

    async def go() -> None:
        call = asyncio.create_task(here.enter("(probe)"))
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(go())
    (row,) = here.rows
    assert (row["status"], row["stage"]) == ("cancelled", "body")


def test_a_call_refused_by_its_host_has_a_row_too() -> None:
    here = gateway(tool())
    call = new_call(CallForm("probe"))
    result = here.door.refuse(call, ToolContext(Workspace(".")), "limited", "The run has had its calls.")
    assert (result.status, result.message) == ("limited", "The run has had its calls.")
    (row,) = here.rows
    assert (row["status"], row["stage"], row["id"]) == ("limited", "host", call.id)


def test_the_statuses_tested_here_are_all_there_are() -> None:
    tested = {status for status, *_ in endings()} | {"cancelled"}
    assert tested == set(STATUSES)


# The order of the stages


def test_the_stages_stand_in_their_order() -> None:
    assert [name for name, _ in STAGES] == (
        ["look-up", "validation", "receipt", "limits", "policy", "guard", "plan", "gate", "consent", "body"]
    )


def walk(stop: str, answer: Any = None) -> tuple[list[str], ToolResult]:
    """Who was asked, in order, when the stage ``stop`` ends the call."""
    diary: list[str] = []
    refusals = {
        "receipt": Receipt("c1", "ok", "before", ""),
        "limits": Refusal("too often"),
        "policy": deny("p"),
        "guard": False,
        "gate": deny("g"),
        "consent": deny("c"),
    }
    said: dict[str, Any] = {
        "receipt": None,
        "limits": Reservation(),
        "policy": ALLOW,
        "guard": True,
        "gate": ask("sure?"),
        "consent": ALLOW,
        "body": "done",
    }
    if stop in refusals:
        said[stop] = answer if answer is not None else refusals[stop]

    def part(name: str) -> Says:
        return Says(said[name], diary, name)

    def guard() -> Any:
        diary.append("guard")
        return said["guard"]

    def body() -> Any:
        diary.append("body")
        return said["body"]

    class PlanMode:
        def changing(self, *_: Any, **more: Any) -> int:
            return 0

        def note(self, *_: Any) -> str:
            diary.append("plan")
            return "It is a step now."

    planned: dict[str, Any] = {"effects": ["writes"]} if stop == "plan" else {}
    name = "other" if stop == "look-up" else "probe"
    text = f"({name} 1)" if stop == "validation" else f"({name})"
    here = gateway(
        tool(guard=guard, body=body, gate=True, **planned),
        given={"planning": PlanMode()} if planned else {},
        receipts=part("receipt"),
        limits=part("limits"),
        policy=part("policy"),
        gate=part("gate"),
        consent=part("consent"),
    )
    result = here.pass_through(text)
    assert here.rows[0]["stage"] == stop
    return diary, result


ASKED = ["receipt", "limits", "policy", "guard", "gate", "consent", "body"]


@pytest.mark.parametrize("stop", [name for name, _ in STAGES])
def test_a_stage_that_ends_the_call_leaves_the_later_ones_unasked(stop: str) -> None:
    diary, result = walk(stop)
    if stop in ("look-up", "validation"):
        assert diary == []
    elif stop == "receipt":  # what a rule or guard denies by now is answered by no receipt
        assert diary == ["receipt", "policy", "guard"]
    elif stop == "plan":  # neither a reviewer nor a person judges what is not made
        assert diary == ["receipt", "limits", "policy", "guard", "plan"]
    else:
        assert diary == ASKED[: ASKED.index(stop) + 1]
    assert result.ok is (stop in ("body", "receipt"))


def test_the_questions_of_policy_guard_and_gate_reach_the_person_together() -> None:
    asked: list[str] = []

    class Person:
        async def request(self, tool: Any, call: Call, reason: str) -> Verdict:
            asked.append(reason)
            return ALLOW

    here = gateway(
        tool(guard=Spy(ask("it is large.")), gate=True, effects=["writes", "net"]),
        gate=Says(ask("")),
        consent=Person(),
    )
    assert here.pass_through("(probe)").ok
    assert asked == [f"{IT_WRITES_FILES} and {IT_USES_THE_NETWORK}; it is large; it asks first"]


# Policy and limits


@pytest.mark.parametrize(
    ("effects", "status"),
    [
        ([], "ok"),
        (["reads"], "ok"),
        (["writes"], "pending"),
        (["reads", "writes"], "pending"),
        (["runs"], "pending"),
        (["net"], "pending"),
        (["memory"], "ok"),
        (["reads", "messages"], "ok"),
        (["memory", "net"], "pending"),
    ],
)
def test_what_can_change_something_asks_but_memory_and_messages_have_permissions_of_their_own(
    effects: list[str], status: str
) -> None:
    body = Spy("done")
    result = gateway(tool(body=body, effects=effects)).pass_through("(probe)")
    assert result.status == status
    assert body.ran is (status == "ok")


WRONG_VERDICTS = [None, True, False, "allow", 1]


@pytest.mark.parametrize("answer", WRONG_VERDICTS)
def test_a_policy_that_gives_no_verdict_denies(answer: Any) -> None:
    body = Spy()
    result = gateway(tool(body=body), policy=Says(answer)).pass_through("(probe)")
    assert (result.status, result.message) == (
        "denied",
        "probe was denied: the policy failed (TypeError).",
    )
    assert not body.ran


def test_a_policy_that_raises_denies() -> None:
    body = Spy()
    result = gateway(tool(body=body), policy=Says(OSError("no file."))).pass_through("(probe)")
    assert (result.status, result.message) == (
        "denied",
        "probe was denied: the policy failed (OSError).",
    )
    assert not body.ran


def test_a_verdict_of_an_unheard_of_kind_denies() -> None:
    body = Spy()
    strange = Verdict("allowed")  # type: ignore[arg-type]
    assert gateway(tool(body=body), policy=Says(strange)).pass_through("(probe)").status == "denied"
    assert not body.ran


def test_limits_that_cannot_be_counted_refuse() -> None:
    body = Spy()
    result = gateway(tool(body=body), limits=Says(OSError("locked"))).pass_through("(probe)")
    assert (result.status, result.message) == (
        "limited",
        "probe is limited: its calls could not be counted (OSError: locked).",
    )
    assert not body.ran


@pytest.mark.parametrize("promise", [{"cooldown": 1}, {"daily_limit": 1}])
def test_a_limit_that_nobody_counts_is_not_ignored(promise: dict[str, Any]) -> None:
    body = Spy()
    result = gateway(tool(body=body, **promise)).pass_through("(probe)")
    assert (result.status, result.message) == (
        "limited",
        "probe is limited: its :cooldown or :daily-limit cannot be counted here, so it is not run.",
    )
    assert not body.ran


# The guard

DEADLINE = f"its guard {DID_NOT_ANSWER_WITHIN} 0.2 s"
SHAPE = 'a guard returns True, False, (deny "why") or (ask "why")'


def never() -> None:
    while True:
        time.sleep(0.001)


async def never_async() -> None:
    await asyncio.sleep(60)


async def never_lets_go() -> None:
    for _ in range(2):  # the deadline of the door, and the end of the test
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


async def true_async() -> bool:
    return True


async def raise_async() -> bool:
    raise ValueError("async")


async def exit_async() -> bool:
    raise SystemExit(3)


def without_place(message: str | None) -> str:
    """A message without the file and line of a test's own guard or body."""
    return re.sub(r", at \S+/\w+\.py:\d+", "", message or "")


GUARDS: list[tuple[Any, str, str]] = [
    (Spy(True), "ok", ""),
    (Spy(ALLOW), "ok", ""),
    (true_async, "ok", ""),
    (functools.partial(true_async), "ok", ""),
    (Spy(False), "denied", ITS_GUARD_REFUSED_THESE_ARGUMENTS),
    (Spy(deny("too big.")), "denied", "too big"),
    (Spy(deny()), "denied", "no reason was given"),
    (Spy(None), "denied", f"its guard returned None; {SHAPE}"),
    (Spy(1), "denied", f"its guard returned 1; {SHAPE}"),
    (Spy("yes"), "denied", f"its guard returned 'yes'; {SHAPE}"),
    (Spy([]), "denied", f"its guard returned []; {SHAPE}"),
    (Spy(ValueError("odd.")), "denied", "its guard failed (ValueError)"),
    (Spy(ValueError()), "denied", "its guard failed (ValueError)"),
    (Spy(ToolError("a sentence.")), "denied", "its guard failed (ToolError: a sentence)"),
    (Spy(SystemExit(0)), "denied", "its guard failed (RuntimeError)"),
    (Spy(KeyboardInterrupt()), "denied", "its guard failed (RuntimeError)"),
    (Spy(StopIteration(3)), "denied", "its guard failed (RuntimeError)"),
    (Spy(TimeoutError("mine")), "denied", "its guard failed (ToolError)"),
    (raise_async, "denied", "its guard failed (ValueError)"),
    (exit_async, "denied", "its guard failed (RuntimeError)"),
    (never, "denied", DEADLINE),
    (never_async, "denied", DEADLINE),
    (never_lets_go, "denied", DEADLINE),
    (True, "denied", "its guard failed (TypeError)"),
]


@pytest.mark.parametrize(("guard", "status", "reason"), GUARDS)
def test_only_a_clear_yes_of_the_guard_lets_the_call_on(
    guard: Any, status: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason == DEADLINE:
        monkeypatch.setattr(stages, "GUARD_SECONDS", 0.2)
    body = Spy("done")
    result = gateway(tool(body=body, guard=guard)).pass_through("(probe)")
    denied = f"probe was denied: {reason}." if reason else ""
    assert (result.status, without_place(result.message)) == (status, denied)
    assert body.ran is (status == "ok")


def test_a_guard_that_takes_what_nobody_gives_denies() -> None:
    body = Spy()
    here = gateway(tool(body=body, guard=lambda nobody: True))
    assert here.pass_through("(probe)").status == "denied"
    assert "missing 1 required positional argument: 'nobody'" in str(here.rows)
    assert not body.ran


def test_a_guard_that_asks_waits_for_a_person() -> None:
    body = Spy()
    here = gateway(tool(body=body, guard=Spy(ask("really?"))))
    assert here.pass_through("(probe)").message == "probe waits for a person's approval: really?."
    assert not body.ran
    here.door.consent = Says(ALLOW)
    assert here.pass_through("(probe)").ok


def test_a_person_cannot_allow_what_the_guard_denies() -> None:
    here = gateway(tool(guard=Spy(False), effects=["writes"]), consent=Says(ALLOW))
    assert here.pass_through("(probe)").status == "denied"


# What the person in a chat is told


def follow_up(body: Callable[..., Any], **parts: Any) -> tuple[str, str | None]:
    """What the model and what the person is told of a call with that body."""
    result = gateway(tool(body=body, daily_limit=3), **parts).pass_through("(probe)", user="ann")
    assert "follow_up" not in result.to_json()
    return result.message, result.follow_up


def test_the_person_hears_what_the_body_says_and_the_model_what_the_host_adds(store: Store) -> None:
    def saying(ctx: ToolContext) -> str:
        ctx.say("Filed.")
        ctx.say("It is named sun.")
        return "sun"

    limits = StoreLimits(lambda: store)
    assert follow_up(saying, limits=limits) == (
        "Filed.\nIt is named sun.\n2 of 3 left today",
        "Filed.\nIt is named sun.",
    )
    assert follow_up(lambda: "sun", limits=limits) == ("1 of 3 left today", None)


def test_a_call_that_fails_tells_both_why_and_that_it_counts(store: Store) -> None:
    def failing(ctx: ToolContext) -> None:
        ctx.say("Soon.")
        raise ToolError(f"The search server {DID_NOT_ANSWER}.")

    limits = StoreLimits(lambda: store)
    said = f"The search server {DID_NOT_ANSWER}. {IT_STILL_COUNTS}: 2 of 3 left today."
    assert follow_up(failing, limits=limits) == (said, said)
    said = f"probe failed: ValueError: no. {IT_STILL_COUNTS}: 1 of 3 left today."
    assert tuple(map(without_place, follow_up(Spy(ValueError("no")), limits=limits))) == (said, said)
    denied = follow_up(Spy(), policy=Says(deny("not here")), limits=limits)
    assert denied == ("probe was denied: not here.",) * 2


def test_a_call_is_as_sure_as_its_context_and_so_are_those_in_it() -> None:
    inner = tool("inner", lambda ctx: ctx.confidence)

    async def body(ctx: ToolContext) -> Any:
        assert ctx.dispatch is not None
        return [ctx.confidence, (await ctx.dispatch(CallForm("inner"))).value]

    here = gateway(tool(body=body), inner)
    assert here.pass_through("(probe)").value == [None, None]
    assert here.pass_through("(probe)", confidence=0.7).value == [0.7, 0.7]
    here.given["confidence"] = 1
    assert here.pass_through("(probe)").value == [1.0, 1.0]
    assert here.pass_through("(probe)", confidence=0.7).value == [0.7, 0.7]
    assert [row["confidence"] for row in here.rows] == [None, None, 0.7, 0.7, 1.0, 1.0, 0.7, 0.7]


# For programs


async def executed(here: Gateway, name: str, /, **args: Any) -> ToolResult:
    context = ToolContext(
        Workspace(here.workspace), user="ann", session="s", user_message="Look.", confidence=1
    )
    return await here.door.execute(name, context, **args)


async def test_a_program_makes_a_call_by_name_and_hears_of_its_end() -> None:
    def body(name: str, call: Call) -> list[Any]:
        return [name, call.user, call.session, call.message, call.route, call.confidence]

    here = gateway(tool("say-it", body, params={"name": {}}), tool("fails", Spy(ToolError("No."))))
    result = await executed(here, "Say_It", name="x")
    assert result.value == ["x", "ann", "s", "Look.", "python", 1.0]
    for name, args, status in (("say-it", {}, "invalid"), ("fails", {}, "error")):
        assert (await executed(here, name, **args)).status == status
    assert [row["status"] for row in here.rows] == ["ok", "invalid", "error"]


async def test_a_program_is_told_of_a_tool_that_there_is_not() -> None:
    assert ToolNotFound is UnknownToolError
    here = gateway(tool("probe"))
    with pytest.raises(ToolNotFound, match=rf"{THERE_IS_NO_TOOL_NAMED} prope\. Did you mean probe\?"):
        await executed(here, "prope")
    assert [row["status"] for row in here.rows] == ["unknown"]


async def test_a_program_is_told_when_there_is_room_again(store: Store) -> None:
    body, clock = Spy("done"), PausableClock()
    here = gateway(tool("probe", body, daily_limit=3), limits=StoreLimits(lambda: store, clock=clock))
    for _ in range(3):
        assert (await executed(here, "probe")).ok
    with pytest.raises(ToolRateLimited) as caught:
        await executed(here, "probe")
    said = "probe is limited: 3 of 3 used today, next tomorrow at 00:00 UTC, in 12 hours."
    assert str(caught.value) == said
    assert caught.value.room_at == datetime(2026, 3, 11, tzinfo=UTC)
    assert (body.calls, here.rows[-1]["message"]) == (3, said)
    here.door.limits = Says(OSError("locked"))
    with pytest.raises(ToolRateLimited, match="could not be counted") as caught:
        await executed(here, "probe")
    assert caught.value.room_at is None


# Consent


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        (ALLOW, "ok", ""),
        (deny("not today"), "denied", "probe was denied: not today."),
        (deny(), "denied", "probe was denied: no reason was given."),
        (None, "pending", f"probe waits for a person's approval: {IT_WRITES_FILES}."),
        (ask("later"), "pending", "probe waits for a person's approval: later."),
        (ask(), "pending", f"probe waits for a person's approval: {IT_WRITES_FILES}."),
        (True, "denied", "probe was denied: consent could not be asked (TypeError)."),
        (OSError("no one"), "denied", "probe was denied: consent could not be asked (OSError)."),
    ],
)
def test_consent_decides_what_was_asked(answer: Any, status: str, message: str) -> None:
    body = Spy("done")
    here = gateway(tool(body=body, effects=["writes"]), consent=Says(answer))
    result = here.pass_through("(probe)")
    assert (result.status, result.message) == (status, message)
    assert body.ran is (status == "ok")
    assert len(here.rows) == 1


def test_consent_is_not_asked_when_nothing_is_in_question() -> None:
    person = Says(deny("no"))
    assert gateway(tool(), consent=person).pass_through("(probe)").ok
    assert person.diary == []


# The body


async def value_async() -> str:
    return "done"


async def own_timeout() -> None:
    async with asyncio.timeout(0.01):
        await asyncio.sleep(60)


async def cancels_itself() -> None:
    raise asyncio.CancelledError


async def cancels_its_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(60)


def recurse() -> None:
    recurse()


LATE = f"probe {DID_NOT_FINISH_WITHIN} 0.1 s."
NO_DATA = (
    "which is not data; a tool returns None, True or False, numbers, texts, paths, dates, lists, sets, "
    "dictionaries, dataclasses or pydantic models."
)
BODIES: list[tuple[Any, str, Any, str]] = [
    (value_async, "ok", "done", ""),
    (functools.partial(value_async), "ok", "done", ""),
    (lambda: value_async(), "ok", "done", ""),
    (lambda: None, "ok", None, ""),
    (
        lambda: (1, {2}, b"a\xff", {3: datetime(2026, 1, 2)}),
        "ok",
        [1, [2], "Yf8=", {"3": "2026-01-02T00:00:00"}],
        "",
    ),
    (
        lambda: Verdict("deny", "x"),
        "ok",
        {
            "kind": "deny",
            "reason": "x",
            "rule": "",
            "each_time": False,
            "origin": "",
            "told": "",
            "request": "",
        },
        "",
    ),
    (lambda: float("nan"), "ok", "nan", ""),
    (lambda: Code("(+ 1 2)"), "ok", "(+ 1 2)", ""),
    (lambda: "\ud800é", "ok", "\\ud800é", ""),
    (lambda: object, "error", None, f"probe returned a class, {NO_DATA}"),
    (lambda: [[object()]], "error", None, f"probe returned an object, {NO_DATA}"),
    (
        lambda: 10**5000,
        "error",
        None,
        "The value is a number of more than 4000 digits; return it in another shape.",
    ),
    (Spy(ToolError("There is no such page.")), "error", None, "There is no such page."),
    (Spy(ValueError("bad")), "error", None, "probe failed: ValueError: bad."),
    (Spy(ValueError("bad.\nmore")), "error", None, "probe failed: ValueError: bad."),
    (Spy(ValueError("")), "error", None, "probe failed: ValueError."),
    (Spy(ValueError("x" * 1000)), "error", None, f"probe failed: ValueError: {'x' * 287}…."),
    (Spy(ToolFailure("pending", "It waits.")), "pending", None, "It waits."),
    (recurse, "error", None, "probe failed: RecursionError: maximum recursion depth exceeded."),
    (Spy(SystemExit(3)), "error", None, "probe failed: RuntimeError: it raised SystemExit."),
    (Spy(KeyboardInterrupt()), "error", None, "probe failed: RuntimeError: it raised KeyboardInterrupt."),
    (Spy(GeneratorExit()), "error", None, "probe failed: RuntimeError: it raised GeneratorExit."),
    (Spy(asyncio.CancelledError()), "error", None, "probe failed: RuntimeError: it raised CancelledError."),
    (Spy(StopIteration("s")), "error", None, "probe failed: RuntimeError: StopIteration: s."),
    (exit_async, "error", None, "probe failed: RuntimeError: it raised SystemExit."),
    (Spy(TimeoutError("mine")), "error", None, "TimeoutError: mine."),
    (own_timeout, "error", None, "TimeoutError."),
    (cancels_itself, "error", None, "It cancelled its own task."),
    (cancels_its_task, "error", None, "It cancelled its own task."),
    (never, "timeout", None, LATE),
    (never_async, "timeout", None, LATE),
    (never_lets_go, "timeout", None, LATE),
]


@pytest.mark.parametrize(("body", "status", "value", "message"), BODIES)
def test_whatever_a_body_does_is_one_uniform_result(body: Any, status: str, value: Any, message: str) -> None:
    here = gateway(tool(body=body, timeout=0.1 if status == "timeout" else 30))
    result = here.pass_through("(probe)")
    assert (result.status, result.value, without_place(result.message)) == (status, value, message)
    assert len(here.rows) == 1


def test_a_value_without_a_bottom_is_an_error() -> None:
    endless: list[Any] = []
    endless.append(endless)
    result = gateway(tool(body=lambda: endless)).pass_through("(probe)")
    assert (result.status, result.message) == ("error", f"The value {IS_NESTED_DEEPER_THAN} 100.")


def living(name: str) -> Iterator[threading.Thread]:
    return (thread for thread in threading.enumerate() if thread.name == name and thread.is_alive())


def test_a_body_that_loops_for_ever_is_stopped_and_not_only_left() -> None:
    def endless_loop() -> None:
        while True:
            pass

    here = gateway(tool(body=endless_loop, timeout=0.1))
    assert here.pass_through("(probe)").status == "timeout"
    for _ in range(200):
        if not any(living("quoth-endless_loop")):
            break
        time.sleep(0.02)
    assert not any(living("quoth-endless_loop"))


def test_a_synchronous_body_does_not_hold_up_the_others() -> None:
    gone_on = threading.Event()

    async def go() -> list[ToolResult]:
        here = gateway(
            tool("waits", body=lambda: gone_on.wait(20)),
            tool("sets", body=gone_on.set),
        )
        return await asyncio.gather(here.enter("(waits)"), here.enter("(sets)"))

    waited, _ = asyncio.run(go())
    assert waited.value is True


def test_a_failing_call_does_not_hurt_its_siblings() -> None:
    here = gateway(
        tool("raises", body=Spy(ValueError("bad"))),
        tool("exits", body=Spy(SystemExit(1))),
        tool("leaves", body=exit_async),
        tool("cancels", body=cancels_its_task),
        tool("hangs", body=never_async, timeout=0.1),
        tool("fine", body=value_async),
        tool("slow", body=functools.partial(asyncio.sleep, 0.3, "late")),
    )

    async def go() -> list[ToolResult]:
        names = ["raises", "exits", "leaves", "cancels", "hangs", "nobody", "fine", "slow", "fine"]
        return await asyncio.gather(*(here.enter(f"({name})") for name in names))

    results = asyncio.run(go())
    assert [result.status for result in results] == (
        ["error", "error", "error", "error", "timeout", "unknown", "ok", "ok", "ok"]
    )
    assert [result.value for result in results[-3:]] == ["done", "late", "done"]
    assert sorted(row["id"] for row in here.rows) == sorted(result.id for result in results)


def test_the_context_is_current_in_guard_and_body_and_only_there() -> None:
    seen: list[ToolContext] = []

    def look() -> bool:
        seen.append(current_context())
        return True

    async def look_async() -> bool:
        return look()

    result = gateway(tool(guard=look, body=look_async)).pass_through("(probe)")
    assert result.ok
    result = gateway(tool(guard=lambda: look_async(), body=lambda: look_async())).pass_through("(probe)")
    assert result.ok, result.message
    assert len(seen) == 4
    with pytest.raises(ToolError, match=r"^No call is running; this works only inside the guard or body"):
        current_context()


def test_what_a_body_says_and_does_travels_with_an_ok_result() -> None:
    def body(ctx: ToolContext) -> str:
        ctx.say("One.")
        ctx.effect("wrote:a")
        ctx.say("Two.")
        return "value"

    result = gateway(tool(body=body)).pass_through("(probe)")
    assert (result.value, result.message, result.side_effects) == ("value", "One.\nTwo.", ("wrote:a",))


def test_what_a_body_did_before_it_failed_is_told() -> None:
    def body(ctx: ToolContext) -> str:
        ctx.effect("wrote:a")
        raise ToolError("Then it broke.")

    here = gateway(tool(body=body))
    result = here.pass_through("(probe)")
    assert (result.status, result.side_effects) == ("error", ("wrote:a",))
    assert here.rows[0]["side_effects"] == ("wrote:a",)


def test_calls_do_not_share_what_they_say_and_do() -> None:
    def body(ctx: ToolContext) -> None:
        ctx.effect("wrote:a")

    here = gateway(tool(body=body))
    context = ToolContext(Workspace("."))

    async def go() -> list[ToolResult]:
        return [await here.door.dispatch(new_call(CallForm("probe")), context) for _ in range(2)]

    assert [result.side_effects for result in asyncio.run(go())] == [("wrote:a",)] * 2
    assert context.side_effects == []


# Depth, nesting, marks


def test_a_call_too_deep_is_denied() -> None:
    body = Spy("done")
    here = gateway(tool(body=body), max_depth=3)
    assert here.pass_through("(probe)", depth=3).ok
    result = here.pass_through("(probe)", depth=4)
    assert (result.status, result.message) == ("denied", f"probe {IS_NESTED_DEEPER_THAN} 3 calls.")
    assert body.calls == 1


def nesting(**parts: Any) -> Gateway:
    """A tool that calls itself ``n`` times, one inside the other, and tells how deep it came."""

    async def body(n: int, ctx: ToolContext, call: Call) -> Any:
        if n == 0 or ctx.dispatch is None:
            return call.depth
        inner = await ctx.dispatch(CallForm("nest", {"n": n - 1}))
        return inner.value if inner.ok else inner.message

    return gateway(tool("nest", body=body, params={"n": {"type": int}}), **parts)


def test_an_inner_call_carries_its_parent_and_its_depth() -> None:
    here = nesting()
    result = here.pass_through("(nest 3)", user="ann", session="s", round=2)
    assert result.value == 3
    rows = here.rows[::-1]  # the outermost ends last
    assert [row["depth"] for row in rows] == [0, 1, 2, 3]
    assert [row["parent"] for row in rows] == [None, rows[0]["id"], rows[1]["id"], rows[2]["id"]]
    assert {row["route"] for row in rows[1:]} == {"tool"}
    assert {(row["user"], row["session"], row["round"]) for row in rows} == {("ann", "s", 2)}
    assert len({row["id"] for row in rows}) == 4


def test_a_chain_of_inner_calls_ends_at_the_depth_limit() -> None:
    here = nesting(max_depth=2)
    assert here.pass_through("(nest 50)").value == f"nest {IS_NESTED_DEEPER_THAN} 2 calls."
    assert [row["status"] for row in here.rows] == ["denied", "ok", "ok", "ok"]


def test_an_inner_call_passes_the_same_stages() -> None:
    async def outer(ctx: ToolContext) -> Any:
        assert ctx.dispatch is not None
        inner = await ctx.dispatch(CallForm("inner"))
        return [inner.status, inner.message]

    body = Spy()
    here = gateway(tool("outer", body=outer), tool("inner", body=body, guard=Spy(False)))
    assert here.pass_through("(outer)").value == [
        "denied",
        f"inner was denied: {ITS_GUARD_REFUSED_THESE_ARGUMENTS}.",
    ]
    assert not body.ran


MARKS = [
    ":approved t",
    ':user "root"',
    ":depth 0",
    ':session "s"',
    ":route repl",
    ":permission admin",
    ":parent nil",
]


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_of_trust_in_the_form_is_an_unknown_argument(mark: str) -> None:
    body = Spy()
    result = gateway(tool(body=body, effects=["writes"])).pass_through(f"(probe {mark})")
    assert result.status == "invalid"
    assert "is unknown (it takes none)" in result.message
    assert not body.ran


def test_a_parameter_named_like_a_mark_is_plain_data() -> None:
    params: dict[str, dict[str, Any]] = {"approved": {"type": bool}, "user": {}, "depth": {"type": int}}

    def body(approved: bool, user: str, depth: int, call: Call) -> list[Any]:
        return [approved, user, depth, call.user, call.depth]

    here = gateway(tool(body=body, params=params, effects=["writes"]))
    text = '(probe :approved t :user "root" :depth 0)'
    assert here.pass_through(text, user="ann", depth=2).status == "pending"
    here.door.consent = Says(ALLOW)
    assert here.pass_through(text, user="ann", depth=2).value == [True, "root", 0, "ann", 2]


# Unheard-of calls


def test_an_unknown_tool_is_told_and_eval_is_offered_for_computing() -> None:
    here = shipped(".", sandbox_limits=SandboxLimits())
    assert here.pass_through("(sumup 1 2)").message == (
        f"{THERE_IS_NO_TOOL_NAMED} sumup. Available tools: "
        + ", ".join(here.door.table.names())
        + ". To compute something, give a Lisp program to eval: (eval (* 2 (+ 3 4)))."
    )
    assert here.pass_through("(ecko)").message == f"{THERE_IS_NO_TOOL_NAMED} ecko. Did you mean echo?"


@pytest.mark.parametrize(
    "call",
    [
        CallForm("\ud800"),
        CallForm("x" * 100_000),
        CallForm("a\nb\x1b[31m"),
        CallForm(""),
        CallForm("probe", {"\ud800": 1}),
        CallForm("probe", {"x": 10**5000}),
        CallForm("probe", {"x": object()}),
        CallForm("probe", {}, (1, 2, 3)),
    ],
)
def test_no_form_is_too_odd_for_a_result_and_a_row_on_disk(call: CallForm, tmp_path: Path) -> None:
    from quoth.tools.history.audit import StoreAudit

    store = Store(tmp_path / "s.sqlite")
    here = gateway(tool(), audit=StoreAudit(lambda: store))
    result = here.pass_through(call)
    assert result.status in ("unknown", "invalid"), result.message
    assert len(result.message) < 400
    assert re.fullmatch(r"[^\x00-\x1f]+", result.message)
    (row,) = here.rows
    assert (row["id"], row["status"]) == (result.id, result.status)
    assert len(row["tool"]) <= 200
    store.close()


def test_data_nested_beyond_reason_is_invalid() -> None:
    value: Any = 1
    for _ in range(20_000):
        value = [value]
    here = gateway(tool(params={"x": {"type": Any}}))
    assert here.pass_through(CallForm("probe", {"x": value})).status == "invalid"
    assert here.pass_through(CallForm("nobody", {"x": value})).status == "unknown"


# The audit itself, and the host's own failures


class BrokenAudit(MemoryAudit):
    def write(self, row: Any) -> None:
        raise OSError("disk is full")


def test_what_cannot_be_recorded_is_not_acknowledged() -> None:
    result = gateway(tool(body=Spy("done")), audit=BrokenAudit()).pass_through("(probe)")
    assert (result.status, result.value) == ("error", None)
    assert (
        result.message == f"{THE_CALL_WAS_DONE_BUT} audit row {COULD_NOT_BE_WRITTEN}: OSError: disk is full."
    )
    assert result.audit["status"] == "error"


class ClosedAudit(BrokenAudit):
    def prepare(self) -> None:
        raise OSError("it is closed")


def test_what_could_not_be_recorded_is_not_done() -> None:
    body = Spy("done")
    result = gateway(tool(body=body), audit=ClosedAudit()).pass_through("(probe)")
    assert result.status == "error"
    assert not body.ran


def test_a_failing_part_of_the_host_is_an_error_and_not_a_crash() -> None:
    class OddTable(ToolTable):
        def get(self, name: str) -> Any:
            raise ZeroDivisionError("odd")

    body = Spy()
    here = gateway(tool(body=body))
    here.door.table = OddTable()
    result = here.pass_through("(probe)")
    assert (result.status, result.message) == ("error", "probe stopped at look-up: ZeroDivisionError: odd.")
    assert here.rows[0]["stage"] == "look-up"
    assert not body.ran


def test_a_door_without_parts_has_the_careful_ones() -> None:
    door = Door(ToolTable())
    assert type(door.policy).__name__ == "EffectsPolicy"
    assert type(door.limits).__name__ == "NoLimits"
    assert type(door.consent).__name__ == "NobodyToAsk"
    assert door.gate is None


@pytest.mark.parametrize("part", ["policy", "limits", "consent", "audit", "receipts", "log"])
def test_none_stands_for_the_default_of_a_part(part: str) -> None:
    door: Any = Door(ToolTable(), **{part: None})
    assert type(getattr(door, part)) is type(getattr(Door(), part))


def test_a_door_to_other_tools_has_the_same_parts() -> None:
    door, other = Door(ToolTable()), ToolTable()
    made = door.with_tools(other)
    assert made.table is other
    assert (made.audit, made.consent, made.limits) == (door.audit, door.consent, door.limits)
