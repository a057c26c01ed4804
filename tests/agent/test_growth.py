"""A step costs the same however long its run has been: counted in calls of functions, and not in time."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from types import FrameType

import pytest
from words import scripted

from quoth.agent.client import AsyncAgent
from quoth.agent.run.limits import RunLimits
from quoth.neuro.backends.base import Completion
from quoth.neuro.backends.messages import Messages, NativeCall
from quoth.neuro.backends.openai import OpenAIBackend

STEPS = 240


class Counting(OpenAIBackend):
    """A model on no server: it writes its request as for one, asks for ``echo`` again and again, and notes
    how many functions had been called by then. With ``careless`` it looks at all that was said."""

    def __init__(self, careless: bool) -> None:
        super().__init__("gpt-5", "http://localhost:1/v1")
        self.calls = 0
        self.noted: list[int] = []
        self._careless = careless

    async def complete(self, messages: Messages, **more: object) -> Completion:
        self.noted.append(self.calls)
        self._asked(messages, 100, b"[]", "auto", False)
        if self._careless:
            assert all(message.get("role") for message in messages)
        number = len(self.noted)
        if number > STEPS:
            return Completion("Done.")
        arguments = f'{{"text": "line {number}"}}'
        return Completion("", calls=(NativeCall(id=f"c{number}", name="echo", arguments=arguments),))

    def count(self, frame: FrameType, event: str, what: object) -> None:
        self.calls += event in ("call", "c_call")

    def a_step(self, first: int, last: int) -> float:
        """How many functions the typical one of these steps called."""
        return statistics.median(self.noted[n + 1] - self.noted[n] for n in range(first, last))


async def counted(workspace: Path, careless: bool = False) -> Counting:
    model = Counting(careless)
    limits = RunLimits(steps=STEPS + 1, calls=STEPS)
    async with AsyncAgent(workspace=workspace, model=model, limits=limits) as agent:
        sys.setprofile(model.count)
        try:
            reply = await agent.run("Say every line.")
        finally:
            sys.setprofile(None)
    assert (reply.status, reply.text, len(reply.calls)) == ("done", "Done.", STEPS)
    return model


async def test_a_late_step_calls_no_more_functions_than_an_early_one(tmp_path: Path) -> None:
    model = await counted(tmp_path)
    early, late = model.a_step(20, 60), model.a_step(STEPS - 40, STEPS)
    assert early > 100
    assert late == pytest.approx(early, rel=0.03)


async def test_a_step_that_looks_at_all_that_was_said_would_be_found(tmp_path: Path) -> None:
    model = await counted(tmp_path, careless=True)
    assert model.a_step(STEPS - 40, STEPS) > 1.1 * model.a_step(20, 60)


async def test_a_late_message_of_a_chat_is_as_little_work_for_the_store_as_an_early_one(
    tmp_path: Path,
) -> None:
    work = 0

    def count() -> bool:
        nonlocal work
        work += 1
        return False

    async with AsyncAgent(workspace=tmp_path, model=scripted(*["Well."] * 90), user="ann") as host:
        chat, noted = host.for_chat("7"), [0]
        host.store._db.set_progress_handler(count, 20)  # of each 20 instructions of SQLite's programs
        for number in range(90):
            await chat.say("So?", turn=f"m{number}")
            noted.append(work)
        await chat.aclose()
    early, late = noted[30] - noted[10], noted[90] - noted[70]
    assert early > 200
    assert late < 1.6 * early  # what grows is the count of the runs
