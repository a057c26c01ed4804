"""A store that fails for a moment breaks off what it could not record, as a kill does; resume goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import disks
import pytest
from sentences import (
    CANNOT_BE_USED,
    COULD_NOT_BE_WRITTEN,
    NO_SERVER_ANSWERS_THERE,
    THE_CALL_WAS_DONE_BUT,
    THE_DISK_IS_FULL,
)
from words import scripted, tool

from quoth import Agent
from quoth.agent.run.run import UNWRITTEN
from quoth.neuro.backends.select import ScriptedBackend
from quoth.tools.call.ports import BEGUN_BEFORE
from quoth.tools.errors import ServerError
from quoth.tools.registry.table import CognitiveTool

LOST = f"{THE_CALL_WAS_DONE_BUT} receipt {COULD_NOT_BE_WRITTEN}: {THE_DISK_IS_FULL}."


class MomentaryDisk(disks.FullDisk):
    """A disk that refuses one write after ``fill``, and then has room again."""

    def take(self) -> None:
        try:
            super().take()
        except apsw.FullError:
            self.room = None
            raise


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[MomentaryDisk]:
    with disks.every_store_on(MomentaryDisk("momentary"), monkeypatch) as made:
        yield made


class Office:
    """A workspace with tools that note what they do; ``mark`` fills the disk the first time."""

    def __init__(self, folder: Path, disk: MomentaryDisk) -> None:
        self.folder, self.disk = folder, disk
        self.done: list[str] = []

    @property
    def tools(self) -> list[CognitiveTool]:
        def mark() -> str:
            self.done.append("mark")
            self.disk.fill()
            return "marked"

        async def deep(ctx: Any) -> str:
            from quoth.tools.lisp.forms import CallForm

            try:
                await ctx.dispatch(CallForm("mark"))
            except Exception:
                self.done.append("caught")
            return "swallowed"

        def after() -> str:
            self.done.append("after")
            return "after"

        return [
            tool("mark", mark, effects=["writes"]),
            tool("deep", deep, effects=["writes"]),
            tool("after", after, effects=["writes"]),
        ]

    def agent(self, *replies: str, consent: Any = "yes") -> Agent:
        return Agent(
            workspace=self.folder,
            session="s",
            user="ann",
            tools=self.tools,
            model=scripted(*replies),
            consent=consent,
        )

    def resumed(self, *replies: str) -> list[str]:
        """What resume says, with nobody there to ask."""
        with self.agent(*replies, consent=None) as agent:
            return [getattr(one, "message", "") or one.said for one in agent.resume()]


@pytest.fixture
def office(tmp_path: Path, disk: MomentaryDisk) -> Office:
    return Office(tmp_path, disk)


@pytest.mark.parametrize(
    "program",
    [
        "(do (mark) (after))",
        "(do (try (mark) (except [error Exception] None)) (after))",
        "(do (pmap (fn [n] (try (mark) (except [error Exception] None))) [1]) (after))",
        '(do (try (eval "(mark)") (except [error Exception] None)) (after))',
        "(do (deep) (after))",
    ],
)
def test_a_program_ends_where_a_call_of_it_could_not_be_recorded(office: Office, program: str) -> None:
    with office.agent() as agent:
        result = agent.eval(program)
    assert (result.status, result.message) == ("error", LOST)
    assert [one for one in office.done if one != "caught"] == ["mark"]
    (said,) = office.resumed()
    assert BEGUN_BEFORE in said
    assert "after" not in office.done


def test_a_run_makes_no_further_call_of_the_reply(office: Office) -> None:
    with office.agent("(mark)\n(after)", "Done.") as agent:
        reply = agent.run("Go.")
    assert (reply.status, reply.error, office.done) == ("failed", LOST, ["mark"])
    (said,) = office.resumed("Done.")
    assert BEGUN_BEFORE in said


def test_a_run_whose_end_could_not_be_recorded_has_its_answer_and_is_not_done(
    tmp_path: Path, disk: MomentaryDisk
) -> None:
    """The disk is full after so many more writes than there were at the last reply."""
    met = 0
    for room in range(12):

        def last(_: Any, room: int = room) -> str:
            disk.room = disk.written + room
            return "Done."

        with Agent(workspace=tmp_path, session=f"s{room}", model=ScriptedBackend(last)) as agent:
            reply = agent.run("Go.")
            disk.room = None
        assert (reply.status, reply.error) == ("done", "") or reply.error.endswith(f"{THE_DISK_IS_FULL}.")
        if UNWRITTEN in reply.error:
            met += 1
            assert (reply.status, reply.text) == ("failed", "Done.")
    assert met


def test_a_run_ends_where_its_sub_agent_could_not_be_recorded(office: Office) -> None:
    with office.agent('(cognitive-loop :task "Mark it.")', "(mark)", "(after)", "Done.", "Done.") as agent:
        reply = agent.run("Go.")
    assert (reply.status, reply.error, office.done) == ("failed", LOST, ["mark"])
    (said,) = office.resumed("Done.", "Done.")
    assert BEGUN_BEFORE in said


def test_a_server_that_fails_is_an_error_of_the_call_alone(office: Office) -> None:
    def fail() -> None:
        raise ServerError(f"The Redis {CANNOT_BE_USED}", NO_SERVER_ANSWERS_THERE)

    with Agent(workspace=office.folder, tools=[tool("fail", fail)], consent="yes") as agent:
        result = agent.eval("(try (fail) (except [error Exception] 7))")
    assert (result.status, result.value) == ("ok", 7)
