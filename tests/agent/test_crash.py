"""What is left of a session when its process, its disk or its power goes: nothing acknowledged is lost,
nothing is done twice, and it goes on. The harness is vocabulary/crash.py; here is a small part of it, and ten
times as much with --hypothesis-profile=explore."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import crash
import disks
import pytest
from examples import many
from hypothesis import given
from hypothesis import strategies as st
from sentences import (
    COULD_NOT_BE_WRITTEN,
    IS_BEING_DRIVEN_BY_ANOTHER,
    THE_CALL_WAS_DONE_BUT,
    THE_DISK_IS_FULL,
)
from words import (
    CTRL_C,
    Agent,
    Terminal,
    complaint,
    files,
    grouped,
    quoth,
    scripted,
    started,
    tool,
    wait_until,
)

from quoth.agent.cli import common
from quoth.agent.cli import main as cli
from quoth.agent.client import AsyncAgent
from quoth.agent.events import AgentEvent
from quoth.agent.run.observation import BEGUN, NOT_MADE
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import StoreError
from quoth.tools.history.audit import StoreAudit
from quoth.tools.history.transcript import Transcript
from quoth.tools.registry.table import ToolTable
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

FULL = f"{THE_DISK_IS_FULL}."


Crashes = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def crashes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crashes]:
    """Asks the harness, which has imported everything once, what it finds."""
    with started(crash.__file__, "--serve", cwd=tmp_path_factory.mktemp("crashes")) as harness:

        def ask(*words: str) -> dict[str, Any]:
            if "--every" in words:
                at = words.index("--every") + 1
                words = (*words[:at], str(max(1, int(words[at]) * 30 // many(1))), *words[at + 1 :])
            print(*words, "", sep="\t", file=harness.stdin, flush=True)
            found: dict[str, Any] | None = json.loads(harness.stdout.readline() or "null")
            assert found, harness.stderr.readlines()
            return found

        yield ask


def wrong(found: dict[str, Any]) -> list[str]:
    return [f"{case['point']} {case['label']}: {what}" for case in found["cases"] for what in case["wrong"]]


@pytest.mark.parametrize(
    ("how", "every", "points"),
    [
        ("kill", 139, 280),
        ("talk", 89, 150),
        ("power", 397, 500),
        ("full", 307, 450),
        ("int", 199, 280),
        ("int2", 211, 280),
    ],
)
def test_a_session_that_is_ended_at_any_point_comes_out_as_if_nothing_had_happened(
    crashes: Crashes, how: str, every: int, points: int
) -> None:
    found = crashes("--how", how, "--every", str(every))
    assert wrong(found) == []
    assert found["points"] >= points  # the hooks are in place
    assert len(found["cases"]) >= points // every


def test_a_kill_between_a_sync_and_those_who_wait_for_it_loses_nothing(crashes: Crashes) -> None:
    found = crashes("--label", "the disk is waited for", "--first", "4", "--every", "31")
    assert wrong(found) == []
    assert {case["label"].split()[0] for case in found["cases"]} == {"before", "after"}


def test_the_harness_finds_a_product_that_forgets_what_has_begun(crashes: Crashes) -> None:
    twice = "was done 2 times, and allowed again 0 times"
    found = crashes(
        "--broken", "begun", "--label", "in the body, after the effect", "--every", "5", "--until", twice
    )
    assert any(twice in what for what in wrong(found))


def test_the_harness_finds_a_product_that_does_not_sync(crashes: Crashes) -> None:
    lost = "was told and is not there|was done"
    found = crashes("--broken", "sync", "--how", "power", "--every", "150", "--until", lost)
    assert any(re.search(lost, what) for what in wrong(found))


# * Many sessions write together

MANY = ("--sessions", "3")
TWO = ("--sessions", "2", "--processes", "2")


@pytest.mark.parametrize(
    ("how", "points"),
    [
        (("--how", "kill", *MANY, "--every", "307"), 500),
        (("--how", "full", *MANY, "--every", "503"), 800),
        (("--how", "power", *MANY, "--every", "503"), 800),
        (("--how", "power", *MANY, "--label", "before a sync of wal", "--every", "19"), 800),
        (("--how", "kill", *TWO, "--every", "211"), 300),
    ],
    ids=[
        "killed",
        "a full disk",
        "power cut",
        "power cut with a torn last group",
        "one of two processes killed",
    ],
)
def test_sessions_that_write_together_lose_nothing_of_each_other(
    crashes: Crashes, how: tuple[str, ...], points: int
) -> None:
    found = crashes(*how)
    assert wrong(found) == []
    assert found["points"] >= points
    assert found["cases"]


TOLD = "one who waits is told"


def test_a_kill_between_a_group_and_those_who_are_told_of_it_loses_nothing(crashes: Crashes) -> None:
    found = crashes(*MANY, "--label", TOLD, "--every", "12")
    assert wrong(found) == []
    assert TOLD in {case["label"].split(" ", 1)[1] for case in found["cases"]}


@pytest.mark.parametrize(
    ("broken", "how", "seen"),
    [
        # what was told is gone, or with it all that had happened
        ("commit", (*MANY, "--label", TOLD, "--every", "12"), "was told and is not there|unfinished"),
        ("full", ("--how", "full", *MANY, "--every", "190"), "was told and is not there"),
        ("sync", ("--how", "power", *MANY, "--every", "190"), "was told and is not there"),
        ("known", (*TWO, "--every", "75"), "the other processes ended with"),
    ],
)
def test_the_harness_finds_a_product_whose_sessions_cost_each_other_something(
    crashes: Crashes, broken: str, how: tuple[str, ...], seen: str
) -> None:
    found = crashes(*how, "--broken", broken, "--until", seen)
    assert any(re.search(seen, what) for what in wrong(found)), wrong(found)


# * One process at a time


SLOW = """
(import time pathlib [Path])
(defn reply [messages]
  (.write-text (Path "asked") "x")
  (while (not (.exists (Path "go")))
    (time.sleep 0.01))
  "Done.")
"""


def test_a_second_process_is_told_that_the_session_is_driven_and_the_lock_ends_with_its_process(
    tmp_path: Path,
) -> None:
    files(tmp_path, {"slow.hy": SLOW})
    run = ("run", "Go.", "--session", "s", "--model", "scripted:slow.hy")
    with started(*run, cwd=tmp_path) as first:
        wait_until((tmp_path / "asked").exists)
        for words in (run, ("resume", "s")):
            said = quoth(*words, cwd=tmp_path)
            assert (said.code, said.err) == (2, f"quoth: Session s {IS_BEING_DRIVEN_BY_ANOTHER}.\n")
        first.process.kill()
        first.process.wait()
    (tmp_path / "go").touch()
    assert quoth("resume", "s", cwd=tmp_path).out == "Done.\n"


def test_ctrl_c_at_a_terminal_leaves_a_run_that_goes_on(tmp_path: Path) -> None:
    files(tmp_path, {"slow.hy": SLOW})
    with Terminal("run", "Go.", "--session", "s", "--model", "scripted:slow.hy", cwd=tmp_path) as terminal:
        wait_until((tmp_path / "asked").exists)
        terminal.type(CTRL_C)
        terminal.see("interrupted: The run was interrupted.")
        (tmp_path / "go").touch()  # the script has a thread that is waited for
        assert terminal.ended() == 130
    assert quoth("resume", "s", cwd=tmp_path).out == "Done.\n"


# * A full disk


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[disks.FullDisk]:
    """The disk that every store is on."""
    with disks.every_store_on(disks.FullDisk("full-here"), monkeypatch) as full:
        yield full


def story(folder: Path, disk: disks.FullDisk, when: str) -> Any:
    """A run whose disk is full from a moment on; what it ends with."""

    def mark() -> str:
        if when == "in a body":
            disk.fill()
        return "marked"

    def reply(messages: Any) -> str:
        if when == "while the model answers":
            disk.fill()
        return "(mark)" if len(messages) < 3 else "Done."

    def listen(event: AgentEvent) -> None:
        if (when, event.kind) in (("after a result", "result"), ("after a reply", "thought")):
            disk.fill()

    table = ToolTable((tool("mark", mark, effects=["writes"]),))
    from quoth.neuro.backends.select import ScriptedBackend

    with Agent(
        workspace=folder, session="s", user="ann", tools=table, model=ScriptedBackend(reply),
        consent="yes", on_event=listen,
    ) as agent:  # fmt: skip
        if when == "before the run":
            agent._agent.host.parts.store()
            disk.fill()
        return agent.run("Go.")


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("while the model answers", f"The transcript {COULD_NOT_BE_WRITTEN}: {FULL}"),
        ("in a body", f"{THE_CALL_WAS_DONE_BUT} receipt {COULD_NOT_BE_WRITTEN}: {FULL}"),
        ("after a result", f"The transcript {COULD_NOT_BE_WRITTEN}: {FULL}"),
    ],
)
def test_a_run_on_a_full_disk_ends_with_a_sentence_and_goes_on_when_there_is_room(
    tmp_path: Path, disk: disks.FullDisk, when: str, said: str
) -> None:
    reply = story(tmp_path, disk, when)
    assert (reply.status, reply.error) == ("failed", said)
    disk.room = None
    table = ToolTable((tool("mark", lambda: "marked", effects=["writes"]),))
    model = scripted("Done.") if when != "while the model answers" else scripted("(mark)", "Done.")
    with Agent(workspace=tmp_path, session="s", user="ann", tools=table, model=model, consent="yes") as agent:
        (again,) = agent.resume()
        if when == "in a body":  # how the call ended is not on record, and "yes" does not know
            (request,) = agent.broker.requests()
            agent.broker.decide(request.id, Decision())
            (again,) = agent.resume()
    assert (again.status, again.text) == ("done", "Done.")


def test_a_run_that_could_not_begin_says_why(tmp_path: Path, disk: disks.FullDisk) -> None:
    said = complaint(StoreError, lambda: story(tmp_path, disk, "before the run"))
    assert said == f"The transcript {COULD_NOT_BE_WRITTEN}: {FULL}"


def test_a_call_that_cannot_be_written_down_is_not_made(tmp_path: Path, disk: disks.FullDisk) -> None:
    reply = story(tmp_path, disk, "after a reply")
    assert reply.status == "failed"
    assert [call.result.status for call in reply.calls] == ["error"]
    disk.room = None
    store = Store(store_path(tmp_path))
    try:
        assert [row["stage"] for row in StoreAudit(lambda: store).rows()] == []
    finally:
        store.close()


def test_the_command_says_it_in_a_line(
    tmp_path: Path, disk: disks.FullDisk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def agent(options: Any, **more: Any) -> AsyncAgent:
        made = AsyncAgent(workspace=tmp_path, session="s", user="ann", model=scripted("Done."))
        disk.room = None
        made.host.parts.store()
        disk.fill()
        return made

    monkeypatch.setattr(common, "agent_of", agent)
    assert cli.main(["run", "Go."]) == 1
    assert capsys.readouterr().err == f"quoth: The transcript {COULD_NOT_BE_WRITTEN}: {FULL}\n"
    assert cli.main(["run", "Go.", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "status": "error",
        "message": f"The transcript {COULD_NOT_BE_WRITTEN}: {FULL}",
    }


# * A log that was cut short


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """The files of a store whose process was killed with all in the write-ahead log, and its events."""
    folder = tmp_path_factory.mktemp("killed")
    kept = folder / "kept"
    kept.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUOTH_STATE", str(folder / "state"))
        patch.setenv("QUOTH_CONFIG", str(folder / "config"))
        (folder / "work").mkdir()
        with marker(
            folder / "work", [], "(mark :text 1)", "(mark :text 2)\n(mark :text 3)", "Done."
        ) as agent:
            agent.run("Go.")
            for file in store_path(folder / "work").parent.iterdir():
                if not file.name.endswith("-shm"):
                    shutil.copy(file, kept / ("s.sqlite" + file.name.partition(".sqlite")[2]))
            events = [(event.seq, event.digest) for event in agent._agent.transcript.events("s")]
    assert (kept / "s.sqlite-wal").stat().st_size > 100_000
    return kept, events


def marker(folder: Path, done: list[int], *replies: str, **more: Any) -> Agent:
    def mark(text: int) -> str:
        done.append(text)
        return f"marked {text}"

    table = ToolTable((tool("mark", mark, params={"text": {"type": int}}, effects=["writes"]),))
    given = {"model": scripted(*replies), "consent": "yes", **more}
    return Agent(**grouped(workspace=folder, session="s", user="ann", tools=table, **given))


@given(share=st.floats(0.0, 1.0))
def test_a_log_that_is_cut_anywhere_is_a_shorter_log(
    killed: tuple[Path, list[Any]], tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    """What was acknowledged after the cut is gone; what is left is the beginning of what was, and whole."""
    kept, events = killed
    folder = tmp_path_factory.mktemp("cut")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUOTH_STATE", str(folder / "state"))
        (folder / "work").mkdir()
        path = store_path(folder / "work")
        path.parent.mkdir(parents=True)
        for file in kept.iterdir():
            shutil.copy(file, path.with_name(path.name + file.name.removeprefix("s.sqlite")))
        log = path.with_name(f"{path.name}-wal")
        with log.open("r+b") as cut:
            cut.truncate(int(log.stat().st_size * share))
        store = Store(path)
        try:
            transcript = Transcript(lambda: store)
            transcript.verify("s")
            left = list(transcript.events("s"))
            assert [(event.seq, event.digest) for event in left] == events[: len(left)]
            assert StoreAudit(lambda: store).verify().ok
        finally:
            store.close()
        if not any(event.kind == "stimulus" for event in left):
            return
        over = any(event.kind == "end" for event in left)
        finished = {event.key for event in left if event.kind == "receipt"}
        begun = Counter(event.key for event in left if event.kind == "call").keys() - finished
        done: list[int] = []
        said = sum(event.kind == "reply" for event in left)
        replies = ["(mark :text 1)", "(mark :text 2)\n(mark :text 3)", "Done."][said:]
        with marker(folder / "work", done, *replies, consent=None) as agent:
            if over:
                return
            status = "pending"
            while status == "pending":  # of what had begun, and of what is new, ann is asked
                (reply,) = agent.resume()
                status = reply.status
                for request in agent.broker.requests():
                    key = {1: "r1/1.0", 2: "r1/2.0", 3: "r1/2.1"}[int(request.form.split()[-1].rstrip(")"))]
                    assert ("begun before" in request.reason) == (key in begun)
                    agent.broker.decide(request.id, Decision("once", "ann"))
    assert (status, reply.text) == ("done", "Done.")
    wanted = {1: "r1/1.0", 2: "r1/2.0", 3: "r1/2.1"}
    assert done == [text for text, key in wanted.items() if key not in finished]


# * A conversation


def test_a_call_that_was_broken_off_has_a_result_that_says_so(tmp_path: Path) -> None:
    """The harness kills; here is what the model reads."""
    calls = [{"name": "mark", "arguments": {"text": number}} for number in (1, 2)]
    with marker(tmp_path, [], {"tool_calls": calls}, dialect="native") as agent:  # type: ignore[arg-type]
        begun = stop_after(agent, "approval")
        with pytest.raises(KilledError):
            agent.say("Go.")
    assert begun == ["r1/1.0"]
    model = scripted("It goes on.")
    with marker(tmp_path, [], model=model, dialect="native") as agent:
        agent.say("And now?")
        messages = json.loads(model.seen[0])
    (asked,) = [message for message in messages if message.get("calls")]
    results = {m["call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    assert results == {
        asked["calls"][0]["id"]: f"(mark :text 1) -> cancelled: {BEGUN}",
        asked["calls"][1]["id"]: f"(mark :text 2) -> cancelled: {NOT_MADE}",
    }
    assert [message["content"] for message in messages if message["role"] == "user"] == ["Go.", "And now?"]


def stop_after(agent: Agent, kind: str) -> list[str]:
    """Let nothing of the agent's be written down after the first event of that kind, as if it had been
    killed."""
    transcript, seen = agent._agent.transcript, list[str]()
    real: Callable[..., Any] = transcript.append

    def append(session: str, what: Any, data: Any, **marks: Any) -> Any:
        if seen:
            raise KilledError("killed")
        written = real(session, what, data, **marks)
        if what == kind:
            seen.append(marks.get("key", ""))
        return written

    transcript.append = append  # type: ignore[method-assign]
    return seen


class KilledError(BaseException):
    """Stands for the end of a process."""
