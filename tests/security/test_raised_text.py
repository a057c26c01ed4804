"""What a person's side, a gate, a guard or a policy raises never reaches the model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dry_runs import House
from words import Gateway, Spy, desk, gateway, tool

from quoth.tools.call.context import ToolContext
from quoth.tools.call.question import Question
from quoth.tools.door.user_gates import GateProgram
from quoth.tools.errors import ToolError
from quoth.tools.storage.database import Store

SECRET = "ann lives at 12 Elm Street"
ERRORS = [OSError(SECRET), ToolError(SECRET), TimeoutError(SECRET), KeyError(SECRET), RuntimeError(SECRET)]


class RaisesAtOnce:
    """A policy, gate or person that raises before there is anything to wait for."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def judge(self, *_: Any) -> Any:
        raise self._error

    check = request = answer = judge


class Raises(RaisesAtOnce):
    async def request(self, *_: Any) -> Any:
        raise self._error

    answer = request


PARTS: dict[str, Callable[[Exception], Gateway]] = {
    "guard": lambda error: gateway(tool(guard=Spy(error))),
    "policy": lambda error: gateway(tool(), policy=Raises(error)),
    "gate": lambda error: gateway(tool(gate=True), gate=Raises(error)),
    "open gate": lambda error: gateway(tool(gate=True, gate_failure="open"), gate=Raises(error)),
    "consent": lambda error: gateway(tool(effects=["writes"]), consent=Raises(error)),
}


@pytest.mark.parametrize(
    ("part", "error"),
    # What a guard says by a ToolError is for models.
    [(part, error) for part in PARTS for error in ERRORS if (part, type(error)) != ("guard", ToolError)],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_the_text_is_in_the_audit_and_not_in_the_result(part: str, error: Exception) -> None:
    here = PARTS[part](error)
    result = here.pass_through("(probe)")
    assert result.status == ("ok" if part == "open gate" else "denied")
    assert SECRET not in f"{result.message} {result.follow_up} {result.value}"
    assert "failed (" in result.message or "asked (" in result.message
    assert SECRET in str(here.rows)


def test_the_last_words_of_a_gate_program_that_fails_are_not_told() -> None:
    program = GateProgram([sys.executable, "-c", "raise OSError('hunter' + '2')"])
    here = gateway(tool(), gate_programs=[program])
    name = Path(sys.executable).name
    assert (
        here.pass_through("(probe)").message
        == f"probe was denied: the gate failed ({name} exited with code 1)."
    )
    assert f"{name} exited with code 1: OSError: hunter2" in str(here.rows)


def test_a_dry_run_does_not_tell_it_either() -> None:
    house = House()
    plan = house.plan("(probe)", tool(guard=Spy(OSError(SECRET))))
    house.loop.run_until_complete(house.sandbox.aclose())
    house.loop.close()
    assert "its guard failed (OSError" in plan["text"]
    assert SECRET not in str(plan)


@pytest.mark.parametrize("person", [Raises, RaisesAtOnce])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_request_whose_person_fails_is_over(store: Store, person: Any, error: Exception) -> None:
    here = desk(store, tool(effects=["writes"]), person=person(error))
    result = here.pass_through("(probe)")
    assert (result.status, here.waiting) == ("denied", [])
    assert SECRET not in result.message
    later = desk(store, tool(effects=["writes"]))
    assert later.pass_through("(probe)").status == "pending"
    assert len(later.waiting) == 1


@pytest.mark.parametrize("person", [Raises, RaisesAtOnce])
def test_a_question_whose_person_fails_is_over(store: Store, person: Any) -> None:
    async def body(ctx: ToolContext) -> str:
        assert ctx.permission is not None
        return await ctx.permission.ask(Question("Which one?"))

    here = desk(store, tool(body=body), person=person(OSError(SECRET)))
    result = here.pass_through("(probe)")
    assert (result.status, here.waiting) == ("denied", [])
    assert SECRET not in result.message
