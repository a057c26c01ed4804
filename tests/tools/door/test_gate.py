"""The gate: what it may answer, what becomes of a call whose gate fails, and that a late gate is gone."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    A_GATE_MUST_ANSWER,
    DEFINES_NO_FUNCTION_CHECK,
    IT_DID_NOT_ANSWER_WITHIN,
    ITS_NAME_MUST_END,
)
from words import Spy, complaint, files, gateway, tool

from quoth import PolicyOptions
from quoth.tools.call.call import ALLOW, GateDecision, ToolResult, Verdict, allow, ask, deny
from quoth.tools.call.context import ToolContext
from quoth.tools.door import gate as gates
from quoth.tools.door.gate import ANSWERS
from quoth.tools.errors import UsageError


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "GATE_SECONDS", 0.1)
    monkeypatch.setattr(gates, "GRACE_SECONDS", 0.05)


class Answers:
    """A gate whose ``check`` is this function."""

    def __init__(self, check: Callable[..., Any]) -> None:
        self.check: Any = check


def says(answer: Any) -> Answers:
    async def check(*_: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return Answers(check)


def gated(gate: Any, failure: str = "closed") -> tuple[ToolResult, Spy, str]:
    """The result of a call that the gate judges, its body, and what the audit says of the gate."""
    body = Spy("done")
    here = gateway(tool(body=body, gate=True, gate_failure=failure), gate=gate)
    result = here.pass_through("(probe)")
    return result, body, here.rows[-1]["gate"]


# What a gate answers, and for each: the status of the call, its message, what the audit says.
SAID: dict[str, tuple[Any, str, str, str]] = {
    "allow": (ALLOW, "ok", "", "allow"),
    "(allow)": (allow(), "ok", "", "allow"),
    "approved": (GateDecision(True), "ok", "", "allow"),
    "deny": (deny("off topic"), "denied", "probe was denied: off topic.", "deny: off topic"),
    "not approved": (GateDecision(False, "off topic"), "denied", "probe was denied: off topic.",
                     "deny: off topic"),
    "no reason": (GateDecision(False), "denied", "probe was denied: no reason was given.", "deny"),
    "ask": (ask("sure?"), "pending", "probe waits for a person's approval: sure?.", "ask: sure?"),
}  # fmt: skip


@pytest.mark.parametrize("failure", ["open", "closed"])
@pytest.mark.parametrize("answer", SAID)
def test_what_a_gate_answers_holds_however_it_may_fail(answer: str, failure: str) -> None:
    said, status, message, row = SAID[answer]
    result, body, told = gated(says(said), failure)
    assert (result.status, result.message, told) == (status, message, row)
    assert body.ran is (status == "ok")


def test_a_plain_function_is_a_gate_too_and_runs_beside_the_loop() -> None:
    threads: list[Any] = []

    def check(*_: Any) -> GateDecision:
        threads.append(threading.current_thread())
        return GateDecision(True)

    assert gated(Answers(check))[0].ok
    assert threads != [threading.main_thread()]


# Gates that fail


async def slow(*_: Any) -> Verdict:
    await asyncio.sleep(60)
    return ALLOW


async def late(*_: Any) -> Verdict:
    """It answers when it is stopped."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(60)
    return deny("late")


async def stubborn(*_: Any) -> Verdict:
    """It does not stop at all."""
    while True:
        try:
            await asyncio.sleep(60)
        except BaseException:
            continue


async def blocking(*_: Any) -> Verdict:
    """It keeps everything else waiting."""
    time.sleep(0.12)
    return deny("late")


def slow_thread(*_: Any) -> Verdict:
    time.sleep(0.3)
    return deny("late")


LATE = f"{IT_DID_NOT_ANSWER_WITHIN} 0.1 s"
FAILING: dict[str, tuple[Any, str]] = {
    "slow": (Answers(slow), LATE),
    "late": (Answers(late), LATE),
    "stubborn": (Answers(stubborn), LATE),
    "blocking": (Answers(blocking), LATE),
    "slow in a thread": (Answers(slow_thread), LATE),
    "raising": (says(OSError("down")), "OSError: down"),
    "raising what ends a program": (says(SystemExit()), "RuntimeError: it raised SystemExit"),
    "cancelling itself": (says(asyncio.CancelledError()), "It cancelled its own task"),
    "None": (says(None), f"it answered None; {A_GATE_MUST_ANSWER} {ANSWERS}"),
    "True": (says(True), f"it answered True; {A_GATE_MUST_ANSWER} {ANSWERS}"),
    "a text": (says("yes"), f"it answered 'yes'; {A_GATE_MUST_ANSWER} {ANSWERS}"),
    "not quite approved": (
        says(GateDecision("no")),  # type: ignore[arg-type]
        f"it answered GateDecision(approved='no', reason=''); {A_GATE_MUST_ANSWER} {ANSWERS}",
    ),
    "no kind of verdict": (
        says(Verdict("perhaps")),  # type: ignore[arg-type]
        f"it answered Verdict(kind='perhaps', reason='', rule=''); {A_GATE_MUST_ANSWER} {ANSWERS}",
    ),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of the stubborn one's end
@pytest.mark.parametrize("failing", FAILING)
def test_a_gate_that_fails_follows_the_tools_own_word(failing: str) -> None:
    gate, reason = FAILING[failing]
    told = re.sub(
        r"^(OSError|RuntimeError): .*", r"\1", reason.replace("It cancelled its own task", "ToolError")
    )
    result, body, row = gated(gate, "closed")
    assert (result.status, body.ran) == ("denied", False)
    assert result.message == f"probe was denied: the gate failed ({told})."
    assert row == f"deny: the gate failed ({reason})"
    result, body, row = gated(gate, "open")
    assert (result.status, result.value, body.ran) == ("ok", "done", True)
    assert (result.message, result.follow_up) == (
        f"The gate failed ({told}); probe continues, as it is :gate-failure :open.",
        None,
    )
    assert row == f"failed open: {reason}"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("gate", [slow, late, stubborn])
async def test_a_late_gate_leaves_no_task_behind(gate: Any) -> None:
    before = asyncio.all_tasks()
    here = gateway(tool(gate=True, gate_failure="open"), gate=Answers(gate))
    assert (await here.enter("(probe)")).ok
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_what_a_late_gate_does_changes_nothing() -> None:
    ended = threading.Event()

    def check(tool: Any, call: Any, ctx: ToolContext) -> Verdict:
        try:
            ended.wait(0.2)
        finally:
            ctx.say("I am late.")
            ended.set()
        return deny("late")

    here = gateway(tool(body=lambda: ended.wait(5), gate=True, gate_failure="open"), gate=Answers(check))
    result = await here.enter("(probe)")
    assert (result.status, result.value, result.follow_up) == ("ok", True, None)


def seed_000(tool: Any, ctx: ToolContext) -> GateDecision:
    return GateDecision(tool.cost != "cheap", f"{tool.cost} for {ctx.user}")


def other_names(definition: Any, seen: ToolContext) -> GateDecision:
    return seed_000(definition, seen)


def three_other_names(definition: Any, wanted: Any, seen: ToolContext) -> GateDecision:
    assert str(wanted.form) == "(probe)"
    return seed_000(definition, seen)


def any_order(ctx: ToolContext, tool: Any) -> GateDecision:
    return seed_000(tool, ctx)


def some_more(tool: Any, *, context: ToolContext) -> GateDecision:
    return seed_000(tool, context)


TAKING: list[Callable[..., Any]] = [seed_000, other_names, three_other_names, any_order, some_more]


@pytest.mark.parametrize("check", TAKING)
@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_gate_is_called_with_the_arguments_it_takes(check: Callable[..., Any], asynchronous: bool) -> None:
    @functools.wraps(check)
    async def later(*args: Any, **named: Any) -> Any:
        return check(*args, **named)

    gate = Answers(later if asynchronous else check)
    here = gateway(tool(gate=True, cost="cheap"), gate=gate, given={"user": "ann"})
    assert here.pass_through("(probe)").message == "probe was denied: cheap for ann."


def test_a_gate_that_takes_something_else_fails() -> None:
    _, body, row = gated(Answers(lambda one: ALLOW))
    assert not body.ran
    assert row.startswith("deny: the gate failed (TypeError: ")


def test_a_gate_is_asked_only_for_tools_that_want_it() -> None:
    def never(*_: Any) -> Verdict:
        raise AssertionError("asked")

    here = gateway(tool(), gate=Answers(never))
    assert here.pass_through("(probe)").ok
    assert here.rows[0]["gate"] == ""


def test_a_tool_that_wants_a_gate_runs_where_there_is_none_and_the_audit_says_so() -> None:
    result, body, row = gated(None)
    assert (result.status, result.message, body.ran, row) == ("ok", "", True, "no gate")


# The gate in a file


def opened(tmp_path: Path, text: str, name: str = "gate.hy") -> Any:
    return PolicyOptions(gate=files(tmp_path, {name: text}) / name).open_gate()


@pytest.mark.parametrize("how", ["", ":async"])
def test_a_gate_is_written_in_hy(tmp_path: Path, how: str) -> None:
    text = f"""
(import quoth [GateDecision allow ask deny])
(defn {how} check [tool call ctx]
  (match (.get call.form.args "x")
    1 (GateDecision True)
    2 (allow)
    3 (ask "sure?")
    4 (deny f"no {{tool.name}} for {{ctx.user}}")
    _ (GateDecision False "off topic")))
"""
    here = gateway(
        tool(params={"x": {"type": int}}, gate=True),
        gate=opened(tmp_path, text),
        given={"user": "ann"},
    )
    found = [here.pass_through(f"(probe {number})") for number in range(1, 6)]
    assert [result.status for result in found] == ["ok", "ok", "pending", "denied", "denied"]
    assert [row["gate"] for row in here.rows] == [
        "allow", "allow", "ask: sure?", "deny: no probe for ann", "deny: off topic",
    ]  # fmt: skip


SHAPE = "(defn :async check [tool call ctx] …)"


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("(setv x 1)", "gate.hy", f"{{}} {DEFINES_NO_FUNCTION_CHECK}: {SHAPE}."),
        ("(defn chekc [a b c])", "gate.hy", f"{{}} defines no function check: {SHAPE}. Did you mean chekc?"),
        ("(setv check 1)", "gate.hy", f"{{}} {DEFINES_NO_FUNCTION_CHECK}: {SHAPE}."),
        (
            "\n(defn check [asked])",
            "gate.hy",
            f"{{}}:2: check takes [asked]; it must take {SHAPE}.",
        ),
        ("(defn check [tool", "gate.hy", "{}:1:"),
        ("(import nothing-such)", "gate.hy", "{}:1:1: ModuleNotFoundError: No module named 'nothing_such'"),
        ("", "gate.py", f"{{}} is not a gate file: {ITS_NAME_MUST_END}."),
    ],
)
def test_a_file_that_holds_no_gate_is_told(tmp_path: Path, text: str, name: str, message: str) -> None:
    said = complaint(UsageError, lambda: opened(tmp_path, text, name))
    assert said.startswith(message.format(tmp_path / name))


def test_a_gate_that_is_none_is_told() -> None:
    assert complaint(UsageError, lambda: PolicyOptions(gate=3)) == (  # type: ignore[arg-type]
        "gate is an object with a method check, or the path of a file, not 3."
    )
