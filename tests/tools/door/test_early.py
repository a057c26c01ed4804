"""A body that is begun before its call's turn: which may be, and what becomes of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from words import Gateway, Spy, form, gateway, tool

from quoth.tools.call.call import ALLOW, Call, ToolResult, Verdict, deny, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import Refusal, Reservation
from quoth.tools.call.workspace import Workspace
from quoth.tools.door.early import EarlyBody
from quoth.tools.errors import ToolError

TEXT = {"text": {"type": str, "default": ""}}


def place(body: Any, folder: Path | str = ".", **more: Any) -> Gateway:
    """A gateway to a tool named probe that only reads."""
    parts = {name: more.pop(name) for name in ("policy", "limits") if name in more}
    return gateway(
        tool("probe", body, params=TEXT, **{"effects": ["reads"], **more}), workspace=folder, **parts
    )


def begin(at: Gateway, text: str = "(probe)", after: EarlyBody | None = None) -> tuple[Call, EarlyBody]:
    call = new_call(form(text))
    return call, at.door.begin(call, context(at), after)


def context(at: Gateway) -> ToolContext:
    return ToolContext(Workspace(at.workspace))


async def taken(at: Gateway, call: Call, early: EarlyBody) -> ToolResult:
    return await at.door.dispatch(call, context(at), early)


async def test_its_value_what_it_said_and_its_effects_are_those_of_the_call() -> None:
    def body(text: str, ctx: ToolContext) -> str:
        ctx.say("It was dark.")
        ctx.effect("looked:here")
        return "seen"

    at = place(body)
    call, early = begin(at)
    while early.running:
        await asyncio.sleep(0.001)
    assert at.rows == []
    result = await taken(at, call, early)
    assert (result.id, result.status, result.value, result.message) == (call.id, "ok", "seen", "It was dark.")
    assert result.side_effects == ("looked:here",)
    assert [(row["id"], row["status"], row["stage"]) for row in at.rows] == [(call.id, "ok", "body")]


async def test_what_it_raises_is_the_result_of_the_call() -> None:
    at = place(Spy(ToolError("It is gone.")))
    call, early = begin(at)
    result = await taken(at, call, early)
    assert (result.status, result.message) == ("error", "It is gone.")


class Counted:
    """Limits that hold for one user."""

    def reserve(self, tool: Any, call: Call) -> Reservation | Refusal:
        return Reservation()

    def left(self, tool: Any, call: Call) -> list[str]:
        return ["one"]


@pytest.mark.parametrize(
    ("more", "may"),
    [
        ({}, True),
        ({"effects": ["reads", "writes"]}, False),
        ({"effects": []}, False),
        ({"cost": "expensive"}, False),
        ({"gate": True}, False),
        ({"ends_turn": True}, False),
        ({"cooldown": 1}, False),
        ({"daily_limit": 9}, False),
        ({"limits": Counted()}, False),
    ],
)
def test_only_a_call_that_reads_and_nothing_else_may_be_begun(more: dict[str, Any], may: bool) -> None:
    at = place(Spy(), **more)
    assert at.door.may_begin(new_call(form("(probe)"))) is may
    assert not at.door.may_begin(new_call(form("(nothing)")))


@pytest.mark.parametrize("verdict", [deny("no"), ValueError("broken")])
async def test_a_guard_that_does_not_allow_a_call_keeps_its_body_from_beginning(verdict: Any) -> None:
    body = Spy()
    at = place(lambda text: body(), guard=Spy(verdict))
    call, early = begin(at)
    result = await taken(at, call, early)
    assert (result.status, body.ran, early.begun, early.refused) == ("denied", False, False, True)
    assert [row["status"] for row in at.rows] == ["denied"]


async def test_a_guard_that_changes_its_mind_stops_what_was_begun() -> None:
    answers, running = [True, False], asyncio.Event()

    async def body(text: str) -> None:
        running.set()
        await asyncio.Event().wait()

    at = place(body, guard=lambda: answers.pop(0))
    call, early = begin(at)
    await running.wait()
    assert (await taken(at, call, early)).status == "denied"
    assert (early.begun, early.running) == (True, False)


async def test_a_guard_that_makes_calls_makes_them_in_its_turn() -> None:
    async def asks(text: str, ctx: ToolContext) -> bool:
        assert ctx.dispatch is not None
        return (await ctx.dispatch(form("(other)"))).ok

    at = place(lambda text: "seen", guard=asks)
    tool("other", table=at.door.table)
    call, early = begin(at)
    async with asyncio.timeout(5):  # it would wait for itself for ever
        assert (await taken(at, call, early)).value == "seen"
    assert early.refused
    assert [row["tool"] for row in at.rows] == ["other", "probe"]


async def test_nothing_begins_that_the_audit_could_not_tell_of(monkeypatch: pytest.MonkeyPatch) -> None:
    body = Spy()
    at = place(lambda text: body())
    monkeypatch.setattr(at.door.audit, "prepare", Spy(OSError("the disk is full")))
    call, early = begin(at)
    assert (await taken(at, call, early)).message == "probe was not run: OSError: the disk is full."
    assert (body.ran, early.begun) == (False, False)


async def test_what_stands_behind_a_call_that_was_refused_is_not_begun_and_runs_in_its_turn() -> None:
    made: list[str] = []
    at = place(lambda text: made.append(text) or text, guard=lambda text: text != "x")
    first, early = begin(at, '(probe :text "x")')
    second, behind = begin(at, '(probe :text "y")', early)
    assert (await taken(at, first, early)).status == "denied"
    assert made == []
    assert ((await taken(at, second, behind)).value, behind.begun, made) == ("y", False, ["y"])


async def test_a_body_that_was_begun_for_other_arguments_is_not_taken() -> None:
    at = place(lambda text: text)
    _, early = begin(at, '(probe :text "x")')
    result = await taken(at, new_call(form('(probe :text "y")')), early)
    assert (result.value, early.running) == ("y", False)


@pytest.mark.parametrize("answer", [ALLOW, deny("no")])
async def test_its_question_to_a_person_waits_for_the_turn_of_the_call(answer: Verdict) -> None:
    asked, reached = Spy(), asyncio.Event()

    class Someone:
        async def request(self, *_: Any) -> Verdict:
            asked()
            return answer

    async def body(text: str, ctx: ToolContext) -> str:
        reached.set()
        await ctx.permission.request("more", "it is much")
        return "done"

    at = place(body)
    at.door.consent = Someone()
    call, early = begin(at)
    await reached.wait()
    await asyncio.sleep(0)
    assert asked.calls == 0
    result = await taken(at, call, early)
    assert (asked.calls, result.status) == (1, "ok" if answer is ALLOW else "denied")
    assert at.rows[-1]["consent"].startswith("allow" if answer is ALLOW else "deny")


async def begun_for_ever() -> tuple[Gateway, Call, EarlyBody]:
    """A call whose body was begun early, runs now, and does not end by itself."""
    running = asyncio.Event()

    async def body(text: str) -> None:
        running.set()
        await asyncio.Event().wait()

    at = place(body)
    call, early = begin(at)
    await running.wait()
    return at, call, early


async def test_a_body_that_nobody_takes_is_stopped_and_leaves_a_row() -> None:
    at, call, early = await begun_for_ever()
    await at.door.abandon(early)
    assert not early.running
    assert [(row["id"], row["status"], row["stage"], row["message"]) for row in at.rows] == [
        (call.id, "cancelled", "body", "probe was begun early, and its call was not made.")
    ]


async def test_a_call_that_is_cancelled_in_its_turn_stops_its_body() -> None:
    at, call, early = await begun_for_ever()
    turn = asyncio.create_task(taken(at, call, early))
    await asyncio.sleep(0)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert not early.running
    assert [row["status"] for row in at.rows] == ["cancelled"]
