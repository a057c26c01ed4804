"""Sub-agents in worktrees of their own: sessions, undo, approvals, and several at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from git_layouts import Place, repository
from words import agent, async_agent, complaint, files

from quoth.agent.run.runs import undo_of
from quoth.agent.run.worktrees import open_worktree
from quoth.agent.session.origins import past_calls
from quoth.neuro.backends.messages import Messages
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import UsageError
from quoth.tools.registry.table import ToolTable
from quoth.tools.shell.worktrees import Worktrees

WRITE = '(write-file :path "{0}.txt" :content "{0}\\n")'
LOOP = '(cognitive-loop :task "{}" :worktree True)'


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return repository(tmp_path)


def test_a_sub_agent_has_a_session_an_undo_and_a_branch_of_its_own(place: Place) -> None:
    with agent(place.shop, WRITE.format("new"), "Wrote it.", consent="yes", session="main") as made:
        result = made.call(LOOP.format("Write new."))
        assert result.ok, result.message
        answer, _, said = str(result.value).partition("\n\n")
        assert answer == "Wrote it."
        (name,) = Worktrees(place.shop).names()
        transcript = made._agent.transcript
        assert transcript.count(name, "stimulus") == 1
        assert transcript.count("main", "stimulus") == 0
        kept = made._agent.store.execute("SELECT session, path FROM writes")
        assert kept == [(name, "new.txt")]
        call = said.partition("To merge it: ")[2]
        assert not (place.shop / "new.txt").exists()
        assert made.call(call).ok
    assert (place.shop / "new.txt").read_text() == "new\n"
    assert place.sh("git status --short") == ""


def test_a_call_that_waits_in_a_worktree_goes_on_there(place: Place) -> None:
    with agent(place.shop, WRITE.format("new"), "Wrote it.", session="main") as made:
        waits = made.call(LOOP.format("Write new."))
        assert waits.status == "pending"
        (request,) = made._agent.broker.requests()
        (name,) = Worktrees(place.shop).names()
        assert request.session == name
        made._agent.broker.decide(request.id, Decision("once"))
        (done,) = made.resume()
        assert done.ok, done.message
        assert Worktrees(place.shop).names() == [name]
        assert Worktrees(place.shop).known(name).ahead == 1


PLAN = """* Build
:PROPERTIES:
:PARALLEL: t
:END:
All files are for the shop.
** PLAN first
Do task-0 now.
** PLAN second
:PROPERTIES:
:TOOLS: write-file
:END:
Do task-1 now.
** PLAN last
:PROPERTIES:
:AFTER: first second
:PARALLEL: nil
:END:
#+begin_src hy
(list-files)
#+end_src
"""


async def test_the_agents_below_a_parallel_headline_work_at_once(place: Place) -> None:
    plan = place.shop / "plan.org"
    plan.write_text(PLAN)
    met = asyncio.Barrier(2)

    async def reply(messages: Messages) -> str:
        said = str(messages.since(0))
        assert "All files are for the shop." in said
        task = next(word for word in said.split() if word.startswith("task-"))[:6]
        if "Created task" not in said:
            await asyncio.wait_for(met.wait(), 30)  # neither ends before the other has begun
        return "Done." if "Created task" in said else f'(write-file :path "{task}.txt" :content "x")'

    async with async_agent(place.shop, *[reply] * 4, consent="yes") as made:
        report = await made.fly(plan)
        trees = Worktrees(place.shop)
        assert report.status == "done", report
        assert [trees.known(name).ahead for name in trees.names()] == [1, 1]
        assert not (place.shop / "task-0.txt").exists()
        assert plan.read_text().count("(merge-worktree :name") == 2


async def test_several_work_at_once_and_conflicts_are_told(place: Place) -> None:
    def reply(messages: Messages) -> str:
        task = next(word for word in str(messages.since(0)).split() if word.startswith("task-"))[:6]
        wrote = "Created same" in str(messages.since(0))
        return "Done." if wrote else f'(write-file :path "same.txt" :content "{task}\\n")'

    async with async_agent(place.shop, *[reply] * 6, consent="yes") as made:
        results = await asyncio.gather(*(made.call(LOOP.format(f"Do task-{n} now.")) for n in range(3)))
        calls = [str(one.value).partition("To merge it: ")[2] for one in results]
        merges = [await made.call(call) for call in calls]
    assert [one.message for one in results if not one.ok] == []
    assert [one.status for one in merges] == ["ok", "error", "error"]
    assert "in same.txt" in merges[1].message
    assert (place.shop / "same.txt").read_text() == "task-0\n"


def test_a_project_that_is_a_link_in_the_commit_gets_no_worktree(place: Place) -> None:
    place.sh(
        "mkdir ../outside; ln -s ../outside sub; git add sub; git commit -qm link; rm sub; mkdir -p sub/in"
    )
    for folder in ("sub", "sub/in"):
        workspace = Workspace(place.shop / folder)
        said = complaint(UsageError, lambda workspace=workspace: open_worktree(workspace, "s1"))  # type: ignore[misc]
        assert "behind a link" in said
    assert list((place.shop.parent / "outside").iterdir()) == []


@pytest.mark.parametrize("folder", [".", "src"])
def test_a_merge_into_another_branch_is_asked_again(place: Place, folder: str) -> None:
    place.sh("git branch older; echo F >> src/b.txt; git commit -qam feature")
    project = place.shop / folder
    trees = Worktrees(project)
    made, _ = trees.open("s1")
    (made.folder / "src/b.txt").write_text("by the agent\n")
    with agent(project, session="main") as one:
        assert (
            one.call(f'(merge-worktree :name "s1" :commit "{trees.commit("s1", "Work")}")').status
            == "pending"
        )
        (request,) = one._agent.broker.requests()
        one._agent.broker.decide(request.id, Decision("once"))
        place.sh("git checkout -q older")
        (done,) = one.resume()
        assert done.status == "pending"
    assert trees.known("s1").ahead == 2


def test_a_session_goes_on_in_its_worktree(place: Place) -> None:
    """Also where nobody says so: its requests show the files there."""
    with agent(place.shop, WRITE.format("new"), "Done.", session="s1", worktree=True, consent="yes") as one:
        assert one.run("Write new.").ok
    with agent(place.shop, session="s1") as one:
        assert one._agent.workspace.root == Worktrees(place.shop).folder / "s1"
    with agent(place.shop, session="main") as one:
        assert one._agent.workspace.root == place.shop


def test_a_session_whose_worktree_was_removed_does_not_work_in_the_project(place: Place) -> None:
    with agent(place.shop, WRITE.format("new"), session="s1", worktree=True) as one:
        assert one.run("Write new.").status == "pending"
        (request,) = one._agent.broker.requests()
        one._agent.broker.decide(request.id, Decision("once"))
    Worktrees(place.shop).remove("s1")
    with agent(place.shop, WRITE.format("new"), "Done.", session="s1", consent="yes") as one:
        for work in (
            one.resume,
            lambda: one.run("Write new."),
            lambda: one.say("Write new."),
            lambda: one.call(WRITE.format("new")),
            lambda: undo_of(one._agent.host),
        ):
            assert "was removed" in complaint(UsageError, work)
    assert not (place.shop / "new.txt").exists()
    with agent(place.shop, "Done.", session="s1", worktree=True, consent="yes") as one:
        one.resume()
    assert (Worktrees(place.shop).folder / "s1" / "new.txt").exists()
    assert not (place.shop / "new.txt").exists()


def test_a_sub_agent_that_is_resumed_by_its_own_session_keeps_its_depth(place: Place) -> None:
    rules = '(deny (write-file :path "deep.txt") (depth > 0))\n(ask (write-file))\n(allow _)\n'
    policy = files(place.shop, {"rules.hy": rules}) / "rules.hy"
    with agent(place.shop, WRITE.format("new"), session="main", policy=policy) as made:
        assert made.call(LOOP.format("Write new.")).status == "pending"
        (request,) = made._agent.broker.requests()
        made._agent.broker.decide(request.id, Decision("once"))
    with agent(place.shop, WRITE.format("deep"), "Done.", session=request.session, policy=policy) as made:
        (reply,) = made.resume()
        assert [call.result.status for call in reply.calls] == ["ok", "denied"]
        assert [
            call.route for _, call, _ in past_calls(made._agent.transcript, request.session, ToolTable)
        ] == ["agent"] * 2


@pytest.mark.parametrize("route", ["reply", "call"])
def test_the_task_that_a_model_gives_is_not_a_persons_words(place: Place, route: str) -> None:
    form = LOOP.format("Write to ben@x.example.")
    replies = ["Done."] if route == "call" else [form, "Done.", "Done."]
    with agent(place.shop, *replies, session="main", consent="yes") as made:
        assert (made.call(form) if route == "call" else made.run("Begin.")).ok
        (name,) = Worktrees(place.shop).names()
        said = made._agent.host.parts.origins.live(name).origins.new_words(made._agent.user)
        assert ("ben@x.example" in said) == (route == "call")
