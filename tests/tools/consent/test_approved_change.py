"""What was approved is what happens: a person's edit between approval and call is never replaced unseen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from words import form, quoth, scripted, tool

from quoth import Agent, AsyncAgent
from quoth.agent.terminal.ask import AskTerminal
from quoth.tools.call.context import ToolContext
from quoth.tools.consent.broker import DIFFERS
from quoth.tools.consent.decisions import ChangeDiffersError
from quoth.tools.consent.requests import Decision
from quoth.tools.consent.shown import of_text
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.table import CognitiveTool

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"
WRITE = '(write-file :path "a.txt" :content "new\\n")'
EDIT = '(edit-file :path "a.txt" :old "two" :new "TWO")'
STAMP = '(stamp :path "a.txt")'

Change = Callable[[Path], object]
CASES: dict[str, tuple[str, bytes | None, Change, str | None]] = {
    # the call, what the file holds, what a person does to it, and what it holds then; None: it is asked again
    "nothing": (WRITE, OLD.encode(), lambda file: None, "new\n"),
    "touched": (WRITE, OLD.encode(), lambda file: file.touch(), "new\n"),
    "edited": (WRITE, OLD.encode(), lambda file: file.write_text(OLD + "mine\n"), None),
    "removed": (WRITE, OLD.encode(), lambda file: file.unlink(), None),
    "appeared": (WRITE, None, lambda file: file.write_text("mine\n"), None),
    "still not there": (WRITE, None, lambda file: None, "new\n"),
    "binary": (WRITE, b"\0\1", lambda file: file.write_bytes(b"\0\2"), None),
    "beside": (
        EDIT,
        OLD.encode(),
        lambda file: file.write_text(f"zero\n{OLD}nine\n"),
        f"zero\n{OLD.replace('two', 'TWO')}nine\n",
    ),
    "inside": (EDIT, OLD.encode(), lambda file: file.write_text(OLD.replace("two", "two and more")), None),
    "taken away": (EDIT, OLD.encode(), lambda file: file.write_text(OLD.replace("two", "2")), None),
    "without :changes": (STAMP, OLD.encode(), lambda file: file.write_text(OLD + "mine\n"), None),
    "without :changes, large": (
        STAMP,
        b"x" * 9_000_000,
        lambda file: file.write_bytes(b"y" * 9_000_000),
        None,
    ),
}


async def stamp(path: str, ctx: ToolContext) -> str:
    ctx.workspace.write(path, b"stamped\n")
    return "stamped"


def stamps() -> CognitiveTool:
    return tool("stamp", stamp, params={"path": {"type": WorkspacePath}}, effects=["writes"])


class House:
    """A workspace in which one call waits, by one route."""

    def __init__(self, folder: Path, route: str, call: str) -> None:
        self.folder, self.route, self.call, self.begun = folder, route, call, False
        (folder / "plan.org").write_text(f"* PLAN Build: it\n#+begin_src hy\n{call}\n#+end_src\n")

    def agent(self) -> Agent:
        read = ['(read-file :path "a.txt")'] if (self.folder / "a.txt").exists() else []
        replies = scripted(*([] if self.begun else [*read, self.call]), "Done.", "Done.")
        return Agent(workspace=self.folder, session="s", user="ann", tools=[stamps()], model=replies)

    def begin(self) -> str:
        """The request that waits."""
        with self.agent() as agent:
            if self.route == "call":
                agent.call(self.call)
            elif self.route == "run":
                agent.run("Write it.")
            elif self.route == "program":
                agent.eval(f"(do {self.call} 1)")
            else:
                agent.fly(self.folder / "plan.org")
            (request,) = agent.broker.requests()
        self.begun = True
        return request.id

    def decide(self, request: str, kind: str = "once") -> None:
        with self.agent() as agent:
            agent.broker.decide(request, Decision(kind, "ann"))  # type: ignore[arg-type]

    def resume(self) -> list[str]:
        """The reasons of what waits then."""
        with self.agent() as agent:
            if self.route == "flight":
                agent.fly(self.folder / "plan.org")
            else:
                agent.resume()
            return [request.reason for request in agent.broker.requests()]


@pytest.mark.parametrize("route", ["call", "run", "program", "flight"])
@pytest.mark.parametrize("case", CASES)
def test_a_person_s_edit_is_never_replaced_unseen(case: str, route: str, tmp_path: Path) -> None:
    call, before, change, after = CASES[case]
    house, file = House(tmp_path, route, call), tmp_path / "a.txt"
    if (case, route) == ("binary", "run"):
        route = house.route = "call"  # a model has to read a file before it replaces it
    if before is not None:
        file.write_bytes(before)
    request = house.begin()
    house.decide(request)
    change(file)
    mine = file.read_bytes() if file.exists() else None
    waits = house.resume()
    if after is not None:
        assert (file.read_text(), waits) == (after, [])
        return
    assert (file.read_bytes() if file.exists() else None) == mine
    assert len(waits) == 1
    assert DIFFERS in waits[0]


@pytest.mark.parametrize("case", ["edited", "appeared", "removed", "binary", "inside", "without :changes"])
def test_an_approval_of_what_was_not_shown_decides_nothing(case: str, tmp_path: Path) -> None:
    call, before, change, _ = CASES[case]
    house, file = House(tmp_path, "call", call), tmp_path / "a.txt"
    if before is not None:
        file.write_bytes(before)
    request = house.begin()
    change(file)
    with pytest.raises(ChangeDiffersError):
        house.decide(request)
    with house.agent() as agent:
        agent.broker.proposal(request)  # a page shows it
    house.decide(request)


def test_a_grant_is_for_the_call_whatever_the_file_holds(tmp_path: Path) -> None:
    house = House(tmp_path, "call", WRITE)
    request = house.begin()
    house.decide(request, "duration")
    (tmp_path / "a.txt").write_text("mine\n")
    assert house.resume() == []
    assert (tmp_path / "a.txt").read_text() == "new\n"


def test_a_file_that_changes_while_the_body_runs_is_not_replaced(tmp_path: Path) -> None:
    async def slow(path: str, ctx: ToolContext) -> str:
        (tmp_path / "a.txt").write_text("mine\n")  # a person's editor
        ctx.workspace.write(path, b"one\n")
        return "done"

    made = tool("slow", slow, params={"path": {"type": WorkspacePath}}, effects=["writes"])
    (tmp_path / "a.txt").write_text(OLD)
    with Agent(workspace=tmp_path, session="s", user="ann", tools=[made], model=scripted()) as agent:
        agent.call('(slow :path "a.txt")')
        (request,) = agent.broker.requests()
        agent.broker.decide(request.id, Decision())
        (result,) = agent.resume()
    assert result.status == "error"
    assert (tmp_path / "a.txt").read_text() == "mine\n"


TWICE = '(do (write-file :path "a.txt" :content "1") (write-file :path "a.txt" :content "2"))'


@pytest.mark.parametrize("edited", [False, True])
def test_a_plan_replaces_what_its_dry_run_found_or_what_it_wrote(edited: bool, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(OLD)
    marks = ("--session", "s", "--user", "ann")
    assert quoth("eval", "--dry-run", TWICE, *marks, cwd=tmp_path).code == 0
    (request,) = json.loads(quoth("pending", "--json", "--user", "ann", cwd=tmp_path).out)
    assert quoth("approve", request["id"], "--user", "ann", cwd=tmp_path).code == 0
    if edited:
        (tmp_path / "a.txt").write_text("mine\n")
    made = quoth("eval", TWICE, *marks, cwd=tmp_path)
    assert made.code == (3 if edited else 0), made.err
    assert (tmp_path / "a.txt").read_text() == ("mine\n" if edited else "2")


def test_a_list_of_requests_renews_nothing_that_was_shown(tmp_path: Path) -> None:
    marks = ("--session", "s", "--user", "ann")
    (tmp_path / "a.txt").write_text(OLD)
    assert quoth("call", WRITE, *marks, cwd=tmp_path).code == 3
    (tmp_path / "a.txt").write_text("mine\n")
    (request,) = json.loads(quoth("pending", "--json", *marks, cwd=tmp_path).out)
    refused = quoth("approve", request["id"], "--json", *marks, cwd=tmp_path)
    assert (refused.code, json.loads(refused.out)["changes"][0]["path"]) == (1, "a.txt")
    assert quoth("approve", request["id"], *marks, cwd=tmp_path).code == 0, "the difference was shown"


def test_a_call_that_a_rule_allows_may_write_before_one_of_the_plan(tmp_path: Path) -> None:
    rules = tmp_path / "policy.hy"
    rules.write_text('(allow (write-file :path "a.txt" :content "1"))\n')
    (tmp_path / "a.txt").write_text(OLD)
    marks = ("--session", "s", "--user", "ann", "--policy", str(rules))
    assert quoth("eval", "--dry-run", TWICE, *marks, cwd=tmp_path).code == 0
    (request,) = json.loads(quoth("pending", "--json", "--user", "ann", cwd=tmp_path).out)
    assert quoth("approve", request["id"], "--user", "ann", cwd=tmp_path).code == 0
    made = quoth("eval", TWICE, *marks, cwd=tmp_path)
    assert (made.code, (tmp_path / "a.txt").read_text()) == (0, "2"), made.err


def test_an_insertion_is_approved_for_its_place(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"

    def inserted() -> list[list[str]]:
        lines = file.read_text().splitlines(keepends=True)
        return [["a.txt", "".join(lines), "".join([*lines[:3], "new\n", *lines[3:]])]]

    async def insert(path: str, ctx: ToolContext) -> None:
        ctx.workspace.write(path, inserted()[0][2].encode())

    made = tool(
        "insert", insert, params={"path": {"type": WorkspacePath}}, effects=["writes"], changes=inserted
    )
    file.write_text(OLD)
    with Agent(workspace=tmp_path, session="s", user="ann", tools=[made], model=scripted()) as agent:
        agent.call('(insert :path "a.txt")')
        (request,) = agent.broker.requests()
        file.write_text(f"zero\n{OLD}")
        with pytest.raises(ChangeDiffersError):
            agent.broker.decide(request.id, Decision())


@pytest.mark.parametrize("call", [WRITE, STAMP])
def test_a_file_that_changes_under_a_question_is_not_replaced(call: str, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"\0\1")

    def answer() -> str:
        file.write_bytes(b"\0\2")  # of the same size, so that the question reads the same
        return "y"

    class Lines:
        async def ask(self, question: str, text: str = "") -> str:
            return answer()

    with Agent(
        workspace=tmp_path,
        session="s",
        user="ann",
        tools=[stamps()],
        model=scripted(),
        consent=AskTerminal(Lines()),
    ) as agent:
        result = agent.call(call)
    assert result.status == "pending"
    assert file.read_bytes() == b"\0\2"


def test_what_a_tool_shows_binds_it_whatever_its_effects(tmp_path: Path) -> None:
    async def note(path: str, ctx: ToolContext) -> None:
        ctx.workspace.write(path, b"noted\n")

    def noted() -> list[list[str]]:
        return [["a.txt", (tmp_path / "a.txt").read_text(), "noted\n"]]

    made = tool("note", note, params={"path": {"type": WorkspacePath}}, effects=["runs"], changes=noted)
    (tmp_path / "a.txt").write_text(OLD)
    with Agent(workspace=tmp_path, session="s", user="ann", tools=[made], model=scripted()) as agent:
        agent.call('(note :path "a.txt")')
        (request,) = agent.broker.requests()
        (tmp_path / "a.txt").write_text("mine\n")
        with pytest.raises(ChangeDiffersError):
            agent.broker.decide(request.id, Decision())


async def test_the_event_loop_turns_while_a_change_is_found(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()

    async def note(path: str) -> None: ...

    def noted() -> list[list[str]]:
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(60)
        return [["a.txt", OLD, "noted\n"]]

    made = tool("note", note, params={"path": {"type": WorkspacePath}}, effects=["runs"], changes=noted)
    (tmp_path / "a.txt").write_text(OLD)
    async with AsyncAgent(workspace=tmp_path, session="s", tools=[made], model=scripted()) as agent:
        assert (await agent.call('(note :path "a.txt")')).status == "pending"
        (request,) = agent.broker.requests()
        _digest, lines = of_text(agent.broker._find(request.id).files)["a.txt"]
    assert lines, "the lines that would differ were found in time"


def test_an_edited_call_replaces_what_the_file_held_when_it_was_approved(tmp_path: Path) -> None:
    house, file = House(tmp_path, "call", WRITE), tmp_path / "a.txt"
    file.write_text(OLD)
    request = house.begin()
    edited = form('(write-file :path "a.txt" :content "edited\\n")')
    with house.agent() as agent:
        agent.broker.decide(request, Decision("edit", "ann", form=edited))
    file.write_text("mine\n")
    (reason,) = house.resume()
    assert DIFFERS in reason
    assert file.read_text() == "mine\n"


FLOWN = """* PLAN Build: first
#+begin_src hy
(write-file :path "a.txt" :content "1")
#+end_src
* PLAN Build: second
#+begin_src hy
(write-file :path "a.txt" :content "2")
#+end_src
"""


def test_an_approved_flight_replaces_what_was_shown_or_what_it_wrote(tmp_path: Path) -> None:
    (tmp_path / "plan.org").write_text(FLOWN)
    (tmp_path / "a.txt").write_text(OLD)
    assert quoth("approve", "plan.org", cwd=tmp_path).code == 0
    assert quoth("fly", "plan.org", cwd=tmp_path).code == 0
    assert (tmp_path / "a.txt").read_text() == "2"
    again = quoth("fly", "plan.org", "--again", cwd=tmp_path)
    assert (again.code, (tmp_path / "a.txt").read_text()) == (0, "2"), again.err
    (tmp_path / "a.txt").write_text("mine\n")
    assert quoth("fly", "plan.org", "--again", cwd=tmp_path).code == 3
    assert (tmp_path / "a.txt").read_text() == "mine\n"


def test_an_edit_after_a_flight_was_approved_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "plan.org").write_text(FLOWN)
    (tmp_path / "a.txt").write_text(OLD)
    assert quoth("approve", "plan.org", cwd=tmp_path).code == 0
    (tmp_path / "a.txt").write_text("mine\n")
    assert quoth("fly", "plan.org", cwd=tmp_path).code == 3
    assert (tmp_path / "a.txt").read_text() == "mine\n"
