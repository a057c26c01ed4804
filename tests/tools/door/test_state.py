"""Small decisions of the door, each by itself: what runs beside others, and what may begin again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sentences import IT_ASKS_FIRST, NESTED_DEEPER_THAN, NO_REASON_WAS_GIVEN
from words import Spy, files, form, gateway, shipped, tool

from quoth.tools.call.call import ALLOW, Call, Verdict, ask, deny, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import BEGUN_BEFORE, NoLimits
from quoth.tools.call.redaction import SENT
from quoth.tools.call.workspace import Workspace
from quoth.tools.door.asking import weigh
from quoth.tools.door.state import CallState, Outcome
from quoth.tools.registry.table import CognitiveTool


def state_of(made: CognitiveTool, effects: int = 0, call: Call | None = None, **marks: Any) -> CallState:
    """What the door knows of a call of this tool whose body has had so many effects."""
    context = ToolContext(Workspace("."), side_effects=["wrote a.txt"] * effects)
    state = CallState(call or new_call(form("(probe)")), context, None, made)  # type: ignore[arg-type]
    for name, value in marks.items():
        setattr(state, name, value)
    return state


OURS = {"_body": lambda: None, "effects": ("writes",)}
PLAIN, REMOTE = (CognitiveTool("probe", "Probe.", **OURS, **more) for more in ({}, {"remote": "catalog"}))
SHIPS = CognitiveTool("probe", "Probe.", **OURS, module="quoth.tools.builtin.files")
AGAIN = CognitiveTool("probe", "Probe.", _body=lambda: None, effects=("reads",))


@pytest.mark.parametrize(
    ("made", "effects", "marks", "why", "must_not"),
    [
        (PLAIN, 0, {}, "", False),
        (PLAIN, 1, {}, "", True),
        (PLAIN, 0, {"acted": True}, "", True),
        (PLAIN, 1, {"effects_of_calls": 1}, "", False),  # those calls have receipts
        (PLAIN, 2, {"effects_of_calls": 1}, "", True),
        (SHIPS, 2, {"acted": True}, "", False),
        (AGAIN, 0, {"waits": True}, "", False),
        (AGAIN, 1, {"waits": True, "effects_of_calls": 1}, "", True),
        (AGAIN, 0, {"waits": True, "acted": True}, "", True),
        (PLAIN, 0, {"waits": True}, "", True),
        (REMOTE, 5, {"acted": True, "waits": True}, "it writes", False),
        (REMOTE, 0, {}, BEGUN_BEFORE, True),
    ],
)
def test_a_body_that_may_have_acted_does_not_begin_again(
    made: CognitiveTool, effects: int, marks: dict[str, Any], why: str, must_not: bool
) -> None:
    assert AGAIN.may_begin_again
    assert not PLAIN.may_begin_again
    assert state_of(made, effects, **marks).must_not_begin_again(why) == must_not


class Counts(NoLimits):
    """Limits that leave something, or fail."""

    def __init__(self, left: Any) -> None:
        self.said = left

    def left(self, tool: CognitiveTool, call: Call) -> Any:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


READS = {"effects": ["reads"]}


@pytest.mark.parametrize(
    ("options", "parts", "beside"),
    [
        (READS, {}, True),
        ({"effects": ["reads", "net"]}, {}, False),
        ({"effects": []}, {}, False),
        (READS | {"cost": "expensive"}, {}, False),
        (READS | {"gate": True}, {}, False),
        (READS | {"ends_turn": True}, {}, False),
        (READS | {"cooldown": 1}, {}, False),
        (READS | {"daily_limit": 1}, {}, False),
        (READS, {"gate_programs": [None]}, False),
        (READS, {"limits": Counts(())}, True),
        (READS, {"limits": Counts((1,))}, False),
        (READS, {"limits": Counts(ValueError("no"))}, False),
    ],
)
def test_what_only_reads_and_is_neither_judged_nor_counted_may_run_beside(
    options: dict[str, Any], parts: dict[str, Any], beside: bool
) -> None:
    door = gateway(tool(**options), **parts).door
    assert door.may_run_beside(new_call(form("(probe)"))) == beside
    assert not door.may_run_beside(new_call(form("(other)")))


@pytest.mark.parametrize(
    ("verdict", "outcome", "questions"),
    [
        (ALLOW, None, []),
        (ask("sure?."), None, ["sure?"]),
        (Verdict("ask"), None, [f"{IT_ASKS_FIRST}"]),
        (deny("no."), Outcome("denied", message="probe was denied: no."), []),
        (Verdict("deny"), Outcome("denied", message=f"probe was denied: {NO_REASON_WAS_GIVEN}."), []),
        (
            deny("no, pin 1234", told="no"),
            Outcome("denied", message="probe was denied: no.", note="probe was denied: no, pin 1234."),
            [],
        ),
    ],
)
def test_a_verdict_ends_a_call_or_asks(verdict: Verdict, outcome: Any, questions: list[str]) -> None:
    state = state_of(PLAIN)
    assert weigh(state, "guard", verdict) == outcome
    assert (state.verdicts, state.questions) == ({"guard": verdict}, questions)


def test_a_call_by_an_unknown_route_or_too_deep_is_denied() -> None:
    body = Spy("done")
    here = gateway(tool(body=body), max_depth=2)
    assert here.pass_through("(probe)", depth=2).ok
    assert here.pass_through("(probe)", depth=3).message == f"probe is {NESTED_DEEPER_THAN} 2 calls."
    assert here.pass_through("(probe)", route="side").status == "denied"
    assert body.calls == 1


@pytest.mark.parametrize("route", ["python", "reply"])
def test_a_tool_that_is_elsewhere_is_told_to_who_wrote_the_call(route: str) -> None:
    shipped(".")
    said = gateway(tool()).pass_through('(read-file "a")', route=route).message
    assert ("pass it in tools=[…]" in said) == (route == "python")


def test_a_dry_run_lets_readers_pass(tmp_path: Path) -> None:
    for effects, status in ((["reads"], "ok"), (["writes"], "denied")):
        here = gateway(tool(effects=effects), workspace=tmp_path, given={"dry": True})
        assert here.pass_through("(probe)").status == status


def test_a_key_that_was_sent_is_hidden_in_a_value_but_not_in_ones_own_files(tmp_path: Path) -> None:
    SENT.learn("k9-very-secret-1234")
    files(tmp_path, {"a.txt": "It is k9-very-secret-1234.\n"})
    here = shipped(tmp_path, tool("probe", lambda: {"said": ["k9-very-secret-1234"]}))
    assert here.pass_through("(probe)").value == {"said": ["[secret]"]}
    assert here.pass_through('(read-file "a.txt")').value == "It is k9-very-secret-1234.\n"
