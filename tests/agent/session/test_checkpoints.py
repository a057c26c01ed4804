"""A long run that was broken off goes on from its last checkpoint as if all its events had been read; and
from its events alone where a checkpoint is not to be trusted."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from words import Agent, scripted, tool

from quoth.agent.run import driver
from quoth.agent.run.limits import RunLimits
from quoth.agent.session.past import Past
from quoth.agent.session.session import Session
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

STEPS = (
    "(look :at 1)",
    "(look :at 1)",  # a repetition
    "(look :at",  # a fault
    "(put :at 2)",
    "(look :at 3) (miss)",
    "(look :at 1)",  # no repetition: something was changed
    '(eval (+ 1 2)) (look :at "one")',
    "(look :at 8)",
)
PLACES = "SELECT seq FROM checkpoints ORDER BY seq"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "EVERY", 2)


def at(folder: Path, *replies: str, **options: Any) -> Agent:
    """An agent of ann's in session s, as if in a process of its own."""
    number = {"at": {"type": int}}
    tools = [
        tool(
            "look",
            lambda at: f"seen {at} " + "and more " * (at if at > 99 else 40),
            params=number,
            effects=["reads"],
        ),
        tool("put", lambda at: {"at": at, "all": [None, 0.5, "ü"]}, params=number, effects=["writes"]),
    ]
    given: dict[str, Any] = {"session": "s", "user": "ann", "consent": "yes", "tools": tools, **options}
    return Agent(workspace=folder, model=scripted(*replies), **given)


def rows(folder: Path, sql: str = PLACES, *values: Any) -> list[Any]:
    store = Store(store_path(folder))
    try:
        return store.execute(sql, values)
    finally:
        store.close()


def broken_off(folder: Path, *steps: str, **options: Any) -> None:
    """A run whose model was gone after these steps."""
    with at(folder, *steps, **options) as first:
        assert first.run("Look around.").status == "failed"


def gone_on_with(folder: Path, **options: Any) -> tuple[Any, list[bytes]]:
    """How the run ended when it was gone on with, and what its model was sent."""
    with at(folder, "(look :at 3)", "(put :at 9)", "(look :at 3)", "Done.", **options) as second:
        (reply,) = second.resume()
        sent = list(second._agent.models.backend().seen)
    told = reply.to_json()
    for call in told["calls"][-3:]:  # made in this process
        del call["id"], call["audit"]
    for times in (told["usage"], told.get("spent", {})):
        times["seconds"] = 0
    return told, sent


def both_ways(folder: Path, harm: Callable[[Path], Any], **options: Any) -> tuple[Any, Any]:
    """What became of the run, and what becomes of it in a copy of its store that was harmed."""
    home = store_path(folder).parent
    shutil.copytree(home, folder / "copy")
    found = gone_on_with(folder, **options)
    shutil.rmtree(home)
    shutil.copytree(folder / "copy", home)
    harm(folder)
    return found, gone_on_with(folder, **options)


def without(folder: Path) -> None:
    rows(folder, "DELETE FROM checkpoints")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many replies each past had that a run went on from."""
    counted: list[int] = []
    latest = Session.latest_past

    def count(self: Session, run: str) -> tuple[Past, int]:
        past, place = latest(self, run)
        counted.append(len(past.exchanges))
        return past, place

    monkeypatch.setattr(Session, "latest_past", count)
    return counted


@pytest.mark.parametrize(
    "options",
    [{}, {"limits": RunLimits(tokens=10_000_000)}, {"limits": RunLimits(result_chars=300)}],
    ids=["plain", "bounded", "shortened"],
)
@pytest.mark.parametrize("steps", [STEPS, STEPS[:4], STEPS[:5]], ids=len)
def test_a_run_goes_on_from_its_checkpoint_as_from_all_its_events(
    tmp_path: Path, steps: tuple[str, ...], options: dict[str, Any]
) -> None:
    broken_off(tmp_path, *steps, **options)
    assert rows(tmp_path)
    found, anew = both_ways(tmp_path, without, **options)
    assert found == anew


@pytest.mark.parametrize("count", [5, 6, 7, 8, 9])
def test_a_shortened_conversation_goes_on_from_its_checkpoint_too(tmp_path: Path, count: int) -> None:
    steps, options = [f"(look :at {300 + n})" for n in range(count)], {"limits": RunLimits(context=6000)}
    broken_off(tmp_path, *steps, **options)
    assert rows(tmp_path, "SELECT seq FROM events WHERE kind = 'summary'")
    assert rows(tmp_path)
    found, anew = both_ways(tmp_path, without, **options)
    assert found == anew


def test_only_what_came_after_the_checkpoint_is_read(tmp_path: Path, read: list[int]) -> None:
    broken_off(tmp_path, *STEPS)
    gone_on_with(tmp_path)
    assert read == [2]  # nothing came after the last one: then nobody would be told how the run stood


def change_event(folder: Path) -> None:
    rows(folder, "UPDATE events SET digest = 'other' WHERE seq = ?", *rows(folder)[-2])


def make_older(folder: Path) -> None:
    rows(folder, "UPDATE checkpoints SET format = 0")


def lose_the_first(folder: Path) -> None:
    rows(folder, "DELETE FROM checkpoints WHERE seq = (SELECT min(seq) FROM checkpoints)")


@pytest.mark.parametrize(("harm", "least"), [(make_older, len(STEPS)), (change_event, 4)])
def test_a_checkpoint_that_is_not_to_be_trusted_is_left_aside(
    tmp_path: Path, harm: Callable[[Path], None], least: int, read: list[int]
) -> None:
    broken_off(tmp_path, *STEPS)
    found, anew = both_ways(tmp_path, harm)
    assert found == anew
    assert read[1] >= least > read[0] == 2


def spoil_the_first(folder: Path) -> None:
    rows(folder, "UPDATE checkpoints SET data = x'00' WHERE seq = (SELECT min(seq) FROM checkpoints)")


@pytest.mark.parametrize("harm", [lose_the_first, spoil_the_first])
def test_checkpoints_of_which_one_is_missing_or_broken_are_left_aside(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    broken_off(tmp_path, *STEPS)
    found, anew = both_ways(tmp_path, harm)
    assert found == anew


def test_a_checkpoint_behind_a_broken_one_is_replaced(tmp_path: Path) -> None:
    broken_off(tmp_path, *STEPS)
    spoil_the_first(tmp_path)
    with at(tmp_path, *["(put :at 1)"] * 4, limits=RunLimits(repeats=10)) as second:
        assert second.resume()[0].status == "failed"
    assert rows(tmp_path)
    assert rows(tmp_path, "SELECT seq FROM checkpoints WHERE data = x'00'") == []


def test_a_run_has_one_each_so_many_turns_and_none_when_it_is_done(tmp_path: Path) -> None:
    broken_off(tmp_path, *["(put :at 1)"] * 5, limits=RunLimits(repeats=10))
    assert len(rows(tmp_path)) == 2
    gone_on_with(tmp_path, limits=RunLimits(repeats=10))
    assert rows(tmp_path) == []


def test_a_session_that_is_removed_leaves_none(tmp_path: Path) -> None:
    broken_off(tmp_path, *STEPS)
    with at(tmp_path) as agent:
        agent._agent.transcript.remove("s")
    assert rows(tmp_path) == []


def test_a_secret_goes_with_the_run_and_is_hidden_behind_a_checkpoint_too(tmp_path: Path) -> None:
    login = tool("login", lambda pin: "in", params={"pin": {"secret": True}}, effects=["reads"])
    options = {"tools": [login, tool("look", lambda: "pin-7788 again", effects=["reads"])]}
    broken_off(tmp_path, '(login :pin "pin-7788")', *["(look)"] * 2, "(login", '(login :pin "b")', **options)
    assert len(rows(tmp_path)) == 2
    with at(tmp_path, "(look)", "Done.", **options) as second:
        assert second.resume()[0].status == "done"
    assert rows(tmp_path) == []
    assert rows(tmp_path, "SELECT seq FROM events WHERE instr(form, 'pin-7788') AND run != ''") == []


def texts(folder: Path) -> str:
    return "".join(zlib.decompress(data).decode() for (data,) in rows(folder, "SELECT data FROM checkpoints"))


def test_a_secret_of_an_earlier_run_of_the_conversation_is_in_no_checkpoint(tmp_path: Path) -> None:
    login = tool("login", lambda pin: "in", params={"pin": {"secret": True}}, effects=["reads"])
    look = tool("look", lambda at: f"seen {at}", params={"at": {"type": int}}, effects=["reads"])
    replies = ['(login :pin "pin-7788")', "Fine.", *[f"(look :at {n})" for n in range(5)]]
    with at(tmp_path, *replies, tools=[login, look]) as first:
        assert [first.say("Log in.").status, first.say("Look.").status] == ["done", "failed"]
    assert rows(tmp_path, "SELECT seq FROM events WHERE instr(form, 'pin-7788')") == []
    assert "pin-7788" not in texts(tmp_path)


def test_secrets_that_are_forgotten_leave_the_checkpoints_of_other_runs_too(tmp_path: Path) -> None:
    login = tool("login", lambda pin: "in", params={"pin": {"secret": True}}, effects=["reads"])
    options = {"tools": [login]}
    broken_off(tmp_path, *['(login :pin "pin-7788")'] * 2, "(login", **options)
    assert "pin-7788" in texts(tmp_path)
    rows(tmp_path, "UPDATE checkpoints SET run = 'r9'")  # as if one that went on with its conversation
    with at(tmp_path, "Done.", **options) as second:
        assert second.resume()[0].status == "done"
    assert rows(tmp_path) == []
