"""A session that is at work is not removed or rewritten, and one that was removed begins again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Running, Terminal
from sentences import IS_IN_USE_BY
from words import Said, complaint, grouped, quoth, scripted, started, tool, wait_until

from quoth import Agent
from quoth.agent.client import AsyncAgent
from quoth.tools.errors import BusyError
from quoth.tools.history.audit import StoreAudit
from quoth.tools.history.transcript import Transcript
from quoth.tools.registry.table import ToolTable
from quoth.tools.storage.database import Store
from quoth.tools.storage.file_lock import not_in_use
from quoth.tools.storage.paths import store_path

WAITS = """
(require quoth [def-cognitive-tool])
(import time pathlib [Path])
(def-cognitive-tool waits "Wait until there is a file named go." :parameters [] :effects [:writes]
  :body (do (.write-text (Path "begun") "")
            (while (not (.exists (Path "go"))) (time.sleep 0.01))
            "done"))
"""
MINE = ("--session", "s", "--tools", "waits.hy", "--yes")
PLAN = "#+TITLE: P\n\n* PLAN Wait\n#+begin_src hy\n(waits)\n#+end_src\n"
ROUTES = {
    "call": (["call", "(waits)", *MINE], "a call"),
    "eval": (["eval", "(waits)", *MINE], "a call"),
    "run": (["run", "Go.", "--model", "scripted:replies.txt", *MINE], "a run"),
    "fly": (["fly", "p.org", *MINE], "a flight"),
    "REPL": ([*MINE], "a call"),
}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name, text in {"waits.hy": WAITS, "replies.txt": "(waits)\n---\nDone.\n", "p.org": PLAN}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def store(here: Path) -> Iterator[Store]:
    opened = Store(store_path(here))
    yield opened
    opened.close()


def refused(here: Path, *words: str) -> str:
    said = quoth(*words, cwd=here)
    assert said.code == 2
    return said.err


def whole(store: Store) -> bool:
    """Whether the audit and all transcripts are as they were written."""
    return StoreAudit(lambda: store).verify().ok


@pytest.mark.parametrize("route", ROUTES)
def test_a_session_at_work_is_not_removed_and_its_removal_says_who_is_at_work(
    here: Path, store: Store, route: str
) -> None:
    words, kind = ROUTES[route]
    with started(*words, cwd=here) as work:
        if route == "REPL":
            work.stdin.write("(waits)\n")
            work.stdin.flush()
        wait_until((here / "begun").exists)
        said = f"quoth: Session s {IS_IN_USE_BY} process {work.process.pid} ({kind}). Try again when that has"
        assert refused(here, "rm", "s", "--yes") == f"{said} ended.\n"
        (here / "go").touch()
        work.stdin.close()
        assert ended(work).code == 0
    assert whole(store)
    assert quoth("rm", "s", "--yes", cwd=here).out == "Removed session s.\n"
    assert whole(store)


def ended(work: Running) -> Said:
    code = work.process.wait(60)
    return Said(code, work.stdout.read(), work.stderr.read())


def test_calls_beside_each_other_and_beside_a_run_stay_possible(here: Path, store: Store) -> None:
    with started("run", "Go.", "--model", "scripted:replies.txt", *MINE, cwd=here) as run:
        wait_until((here / "begun").exists)
        (here / "begun").unlink()
        with started("call", "(waits)", *MINE, cwd=here) as call:
            wait_until((here / "begun").exists)
            assert quoth("eval", "(+ 1 2)", "--session", "s", cwd=here).out == "3\n"
            (here / "go").touch()
            assert ended(call).out == "done\n"
        assert ended(run).out == "Done.\n"
    assert whole(store)


async def test_calls_of_one_agent_may_be_gathered(tmp_path: Path) -> None:
    together = asyncio.Barrier(5)
    table = ToolTable((tool("meet", together.wait, effects=["writes"]),))
    async with AsyncAgent(**grouped(workspace=tmp_path, session="s", tools=table, consent="yes")) as agent:
        found = await asyncio.gather(*(agent.call("(meet)") for _ in range(5)))
    assert [one.status for one in found] == ["ok"] * 5


def test_nothing_is_written_to_a_session_while_it_is_removed(here: Path, store: Store) -> None:
    with not_in_use(store.path, "s"):
        for words in (
            ["call", "(echo :text 1)"],
            ["eval", "(+ 1 2)"],
            ["fly", "p.org", "--tools", "waits.hy"],
            ["run", "Go.", "--model", "scripted:replies.txt"],
        ):
            assert "Session s is being removed or rewritten by process" in refused(
                here, *words, "--session", "s"
            )
        with Agent(workspace=here, session="s") as agent:
            assert "being removed" in complaint(BusyError, lambda: agent.call("(echo :text 1)"))
    assert Transcript(lambda: store).sessions() == []


def test_a_session_that_is_removed_between_two_calls_begins_again(here: Path, store: Store) -> None:
    with Agent(workspace=here, session="s", model=scripted("One.", "Two.")) as agent:
        agent.call("(list-files)")
        agent.say("Hello.")
        assert quoth("rm", "s", "--yes", cwd=here).code == 0
        agent._agent.host.use_plan_mode(False)  # what changes an opening does not bring the session back
        assert Transcript(lambda: store).sessions() == []
        agent.call("(list-files)")
        assert [event.kind for event in Transcript(lambda: store).events("s")] == [
            "session",
            "call",
            "receipt",
        ]
        assert agent.say("Who am I?").text == "Two."
    assert whole(store)
    assert quoth("log", "s", cwd=here).err == ""
    assert quoth("replay", "s", cwd=here).code == 0


def test_a_conversation_at_a_prompt_says_that_its_session_was_removed(here: Path) -> None:
    (here / "replies.txt").write_text("One.\n---\nTwo.\n")
    with Terminal("--session", "s", "--model", "scripted:replies.txt", cwd=here) as terminal:
        terminal.type("Hello.\n")
        terminal.see("One.")
        assert quoth("rm", "s", "--yes", cwd=here).code == 0
        terminal.type("And now?\n")
        terminal.see("Session s was removed. A new conversation begins in it.")
        terminal.see("Two.")


def test_undo_import_and_new_memory_wait_for_who_is_at_work(here: Path, store: Store) -> None:
    assert (
        quoth("call", '(write-file :path "a.txt" :content "one")', "--session", "s", "--yes", cwd=here).code
        == 0
    )
    quoth("memory", "edit", "me", "--new", "--text", "Ann", cwd=here)
    (here / "s.quoth").write_text(quoth("export", "s", cwd=here).out)
    (here / "m.quoth").write_text(quoth("memory", "export", cwd=here).out)
    with started("call", "(waits)", *MINE, cwd=here) as call:
        wait_until((here / "begun").exists)
        for words in (["undo", "s", "--yes"], ["import", "s.quoth"]):
            assert f"Session s {IS_IN_USE_BY} process" in refused(here, *words)
        assert f"This workspace {IS_IN_USE_BY} process" in refused(
            here, "memory", "import", "m.quoth", "--replace"
        )
        assert quoth("gc", "--days", "1", "--yes", cwd=here).code == 0
        (here / "go").touch()
        assert ended(call).code == 0
    assert quoth("undo", "s", "--yes", cwd=here).code == 0
    assert not (here / "a.txt").exists()
    assert quoth("memory", "import", "m.quoth", "--replace", cwd=here).code == 0
    assert whole(store)
