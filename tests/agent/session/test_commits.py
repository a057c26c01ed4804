"""What a step costs the disk: counted, and who is told of what only then."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import disks
import pytest
from sentences import COULD_NOT_BE_WRITTEN, THE_CALL_WAS_DONE_BUT, THE_DISK_IS_FULL
from words import Agent, grouped, scripted, tool

from quoth.tools.history.transcript import Transcript
from quoth.tools.storage import log_sync
from quoth.tools.storage.database import Store

UNWRITTEN = f"{THE_CALL_WAS_DONE_BUT} receipt {COULD_NOT_BE_WRITTEN}"
UNSAID = f"The transcript {COULD_NOT_BE_WRITTEN}"
FULL = f"{THE_DISK_IS_FULL}."


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[disks.CountingDisk]:
    """The disk that every store is on."""
    counting = disks.CountingDisk("counting")
    monkeypatch.setattr(log_sync, "sync_file", counting.sync)
    with disks.every_store_on(counting, monkeypatch):
        yield counting


def run(folder: Path, *replies: str, look: Callable[[], str] = lambda: "seen", **more: Any) -> Any:
    """A run of ann's with these replies; what it ended with."""
    tools = [
        tool("look", look, effects=["reads"], allow_repeat=True),
        tool("put", lambda: "put", effects=["writes"], allow_repeat=True),
    ]
    folder.mkdir()
    given = {"model": scripted(*replies, "Done."), "consent": "yes", "session": "s", "user": "ann", **more}
    with Agent(**grouped(workspace=folder, tools=tools, **given)) as agent:
        return agent.run("Go.")


@pytest.mark.parametrize(("step", "syncs"), [("(look)", 1), ("(put)", 2), ("(look) (look)", 2)])
def test_a_step_is_synced_once_and_a_change_before_and_after(
    tmp_path: Path, disk: disks.CountingDisk, step: str, syncs: int
) -> None:
    counts = []
    for number, steps in enumerate((1, 3)):
        before = disk.synced
        assert run(tmp_path / str(number), *[step] * steps).status == "done"
        counts.append(disk.synced - before)
    assert counts[1] - counts[0] == 2 * syncs


@pytest.mark.parametrize(
    ("program", "syncs"), [("(look)", 1), ("(do (look) (look))", 1), ("(do (look) (put))", 3)]
)
def test_a_persons_program_is_synced_once_and_around_each_change(
    tmp_path: Path, disk: disks.CountingDisk, program: str, syncs: int
) -> None:
    tools = [tool("look", lambda: "seen", effects=["reads"]), tool("put", lambda: "put", effects=["memory"])]
    with Agent(**grouped(workspace=tmp_path, tools=tools, session="s")) as agent:
        assert agent.eval("(look)").ok
        before = disk.synced
        assert agent.eval(program).ok
        assert disk.synced - before == syncs


def test_a_model_is_not_told_what_is_not_on_disk(tmp_path: Path, disk: disks.CountingDisk) -> None:
    def look() -> str:
        disk.error = OSError(errno.ENOSPC, "no space")
        return "seen"

    model = scripted("(look)", "Done.")
    reply = run(tmp_path / "later", model=model, look=look)
    assert (reply.status, reply.error, len(model.seen)) == ("failed", f"{UNWRITTEN}: {FULL}", 1)
    model = scripted("Done.")
    reply = run(tmp_path / "first", model=model)
    assert (reply.status, reply.error, len(model.seen)) == ("failed", f"{UNSAID}: {FULL}", 0)


def test_two_that_write_to_one_session_in_turn_keep_its_chain(tmp_path: Path) -> None:
    """What a process remembers of the last event holds only until another writes."""
    stores = [Store(tmp_path / "s.sqlite") for _ in range(2)]
    for number in range(6):
        transcript = Transcript(lambda store=stores[number % 2]: store)  # type: ignore[misc]
        transcript.add("s", "stimulus", {"text": f"line {number}", "user": "ann"}, run=f"r{number}")
        transcript.add("s", "reply", {"text": "Yes."}, run=f"r{number}")
    Transcript(lambda: stores[0]).remove("s")
    Transcript(lambda: stores[1]).add("s", "stimulus", {"text": "anew", "user": "ann"}, run="r1")
    transcript = Transcript(lambda: stores[0])
    transcript.verify("s")
    assert [event.seq for event in transcript.events("s")] == [1]
    for store in stores:
        store.close()


def test_the_agents_of_a_process_share_one_connection_to_their_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path | str] = []
    real = Store.__init__

    def init(self: Store, path: Path | str, **more: Any) -> None:
        opened.append(path)
        real(self, path, **more)

    monkeypatch.setattr(Store, "__init__", init)
    agents = [Agent(workspace=tmp_path, session=name, model=scripted("Done.")) for name in ("a", "b", "c")]
    for agent in agents:
        agent._agent.host.parts.store()
    for agent in agents:
        assert agent.run("Go.").status == "done"
        agent.close()  # the others go on
    assert len(opened) == 1
    with Agent(workspace=tmp_path, session="a", model=scripted("Done.")) as again:
        again.run("Go.")
    assert len(opened) == 2
