"""The session that a command takes where none is named, after each kind of session: the latest of its user
with what the command needs, and never a chat's, a worker's or another user's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sentences import NOTHING_WAITS_IN_THIS_WORKSPACE, THEN_CONTINUE_WITH, TO_CONTINUE
from words import Said, async_agent, complaint, files, form, lines, quoth

from quoth import Agent
from quoth.agent.session.index import NEEDS, Having, fork_session, latest_session
from quoth.agent.terminal.input import user_name
from quoth.agent.worker.assembly import Files, door_of
from quoth.tools.call.call import new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.errors import UsageError
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

WRITE = '(write-file :path "{}.txt" :content "x")'
PLAN = lines("* PLAN one", "#+begin_src hy", "{}", "#+end_src")
FAR = """
(require quoth [def-cognitive-tool])
(def-cognitive-tool mark "Write a file." :effects [:writes]
  :body (.write ctx.workspace "far.txt" b"x"))
"""
KINDS = ("run", "fly", "repl", "call", "eval")


def work(here: Path, kind: str, session: str, user: str = "ann", *more: str) -> Said:
    """Write a file, as a session of this kind, which the user opens."""
    writes = WRITE.format(session)
    files(here, {"r.txt": f"{writes}\n---\nDone.", f"{session}.org": PLAN.format(writes)})
    words = {
        "run": ("run", "Go.", "--model", "scripted:r.txt"),
        "fly": ("fly", f"{session}.org"),
        "repl": (),
        "call": ("call", writes),
        "eval": ("eval", writes),
    }[kind]
    typed = f"{writes}\n" if kind == "repl" else None
    return quoth(*words, "--session", session, "--user", user, *more, cwd=here, stdin=typed)


async def chat(here: Path, user: str = "ann") -> str:
    """Write a file in a chat that the user's gateway serves; its session."""
    replies = WRITE.format("chat"), "Done."
    async with async_agent(here, *replies, consent="yes", user=user) as host:
        return (await host.for_chat("7").say("Go.", speaker="eve")).session


async def serve(here: Path, store: Store, session: str, user: str) -> None:
    """Take a call of somebody's session elsewhere, as a worker of this workspace does."""
    found = Files([str(files(here, {"far.hy": FAR}) / "far.hy")], here)
    call = new_call(form("(mark)"), route="remote", user=user, session=session)
    result = await door_of(found.offer(), lambda: store).dispatch(call, ToolContext(found.workspace()))
    assert (result.status, (here / "far.txt").read_text()) == ("ok", "x")


def taken(here: Path, command: str, *more: str, user: str = "ann") -> str:
    """The session that a command says it has taken; empty if it took none."""
    said = quoth(command, "--user", user, *more, cwd=here)
    first = next((line for line in said.err.splitlines() if line.startswith("quoth: Session ")), "")
    return first.removeprefix("quoth: Session ").partition(":")[0]


MORE = {"undo": ("--dry-run",), "replay": ("--last",), "lift": ("--last",), "resume": ("--last",)}


@pytest.mark.parametrize("kind", KINDS)
async def test_each_command_takes_the_users_latest_session_of_whatever_kind(
    tmp_path: Path, kind: str
) -> None:
    assert work(tmp_path, "run", "first", "ann", "--yes").code == 0
    assert work(tmp_path, kind, "mine", "ann", "--yes").code == 0
    assert work(tmp_path, kind, "hers", "bob", "--yes").code == 0
    assert await chat(tmp_path) == "chat-7"
    for command in sorted(NEEDS.keys() - {"resume"}):
        more = MORE.get(command, ())
        assert (command, taken(tmp_path, command, *more)) == (command, "mine")
        assert (command, taken(tmp_path, command, *more, user="bob")) == (command, "hers")


@pytest.mark.parametrize("kind", ["run", "call", "eval", "repl"])
async def test_resume_takes_what_waits_for_its_user_alone(tmp_path: Path, kind: str) -> None:
    assert work(tmp_path, kind, "mine").code in (0, 3)  # the REPL ends well
    assert work(tmp_path, "call", "hers", "bob").code == 3
    assert work(tmp_path, "run", "later", "ann", "--yes").code == 0
    async with async_agent(tmp_path, WRITE.format("chat"), "It waits.", user="ann") as host:
        assert (await host.for_chat("7").say("Go.")).status == "pending"
    said = quoth("resume", "--user", "eve", cwd=tmp_path)
    assert (said.code, said.err) == (
        2,
        "quoth: No session of eve waits. Waiting sessions of others and of chats: mine (of ann), hers (of "
        "bob),"
        " chat-7 (of ann). To resume one of them: quoth resume ID\n",
    )
    assert taken(tmp_path, "resume") == "mine"
    assert taken(tmp_path, "resume", user="bob") == "hers"


def test_resume_names_the_flight_that_waits(tmp_path: Path) -> None:
    assert work(tmp_path, "fly", "mine").code == 3
    said = quoth("resume", "--user", "ann", cwd=tmp_path)
    plan = tmp_path / "mine.org"
    told = f"No run or call of ann waits, but a flight does. {TO_CONTINUE} it: quoth fly {plan} --user ann"
    assert (said.code, said.err) == (2, f"quoth: {told}\n")
    said = quoth("resume", "--user", "bob", cwd=tmp_path)
    assert said.err == f"quoth: {NOTHING_WAITS_IN_THIS_WORKSPACE}.\n"
    assert quoth("fly", str(plan), "--user", "ann", "--yes", cwd=tmp_path).code == 0
    said = quoth("resume", "--user", "ann", cwd=tmp_path)
    assert said.err == f"quoth: {NOTHING_WAITS_IN_THIS_WORKSPACE}.\n"


def test_an_approved_flight_goes_on_as_its_user(tmp_path: Path, store: Store) -> None:
    said = work(tmp_path, "fly", "mine")
    plan = tmp_path / "mine.org"
    assert said.err.endswith(f"quoth: {THEN_CONTINUE_WITH}: quoth fly mine.org --user ann\n")
    (request,) = json.loads(quoth("pending", "--json", cwd=tmp_path).out)
    told = quoth("approve", request["id"], cwd=tmp_path)
    assert told.err == f"quoth: To continue: quoth fly {plan} --user ann\n"
    assert quoth("fly", *told.err.split()[5:], cwd=tmp_path).code == 0
    assert (latest(store, "ann"), latest(store, user_name())) == ("mine", "")


def test_a_flight_that_is_approved_and_resumed_at_once_is_its_users(tmp_path: Path, store: Store) -> None:
    work(tmp_path, "fly", "mine")
    (request,) = json.loads(quoth("pending", "--json", cwd=tmp_path).out)
    assert quoth("approve", request["id"], "--resume", cwd=tmp_path).code == 0
    assert (latest(store, "ann"), latest(store, user_name())) == ("mine", "")


def test_a_command_says_what_it_took_and_leaves_stdout_to_the_result(tmp_path: Path) -> None:
    work(tmp_path, "call", "mine", "ann", "--yes")
    said = quoth("undo", "--user", "ann", "--json", "--yes", cwd=tmp_path)
    assert said.err == "quoth: Session mine: the latest of ann that has written a file.\n"
    assert json.loads(said.out)["session"] == "mine"
    named = quoth("log", "mine", "--user", "ann", cwd=tmp_path)
    assert named.err == ""


def test_where_nothing_fits_the_command_takes_nothing(tmp_path: Path) -> None:
    work(tmp_path, "call", "hers", "bob", "--yes")
    quoth("call", '(echo :text "a")', "--session", "mine", "--user", "ann", cwd=tmp_path)
    said = quoth("undo", "--user", "ann", "--yes", cwd=tmp_path)
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        "quoth: ann has no session that has written a file in this workspace. Name one; quoth sessions --all"
        " lists them.\n"
    )
    assert (tmp_path / "hers.txt").exists()
    assert taken(tmp_path, "log") == "mine"


async def test_the_list_shows_and_marks_the_sessions_that_would_be_taken(tmp_path: Path) -> None:
    work(tmp_path, "call", "wrote", "ann", "--yes")
    for name in ("hidden", "looked"):
        quoth("call", '(echo :text "a")', "--session", name, "--user", "ann", cwd=tmp_path)
    work(tmp_path, "run", "hers", "bob", "--yes")
    await chat(tmp_path)
    rows = quoth("sessions", "--user", "ann", cwd=tmp_path).out.splitlines()
    assert [row.split()[0] for row in rows] == ["wrote", "looked", "hers", "chat-7"]
    assert [row.partition("(latest for ")[2] for row in rows] == ["undo, diff)", "log, replay, lift)", "", ""]
    listed = json.loads(quoth("sessions", "--user", "ann", "--json", cwd=tmp_path).out)
    assert [one["latest_for"] for one in listed] == [["undo", "diff"], ["log", "replay", "lift"], [], []]


# Who a session belongs to


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(store_path(tmp_path))


def latest(store: Store, user: str, having: Having = "work") -> str:
    try:
        return latest_session(store, user, having)
    except UsageError:
        return ""


def test_of_a_shared_session_each_user_has_their_own_last_act(tmp_path: Path, store: Store) -> None:
    for session, user in (("both", "ann"), ("own", "ann"), ("both", "bob")):
        work(tmp_path, "call", session, user, "--yes")
    assert [latest(store, user) for user in ("ann", "bob", "eve")] == ["own", "both", ""]
    assert [latest(store, user, "writes") for user in ("ann", "bob", "eve")] == ["own", "both", ""]


def test_an_imported_session_is_nobodys_until_it_is_opened_here(tmp_path: Path, store: Store) -> None:
    work(tmp_path, "call", "mine", "ann", "--yes")
    work(tmp_path, "call", "away", "ann", "--yes")
    assert quoth("export", "away", "away.lisp", cwd=tmp_path).code == 0
    assert quoth("rm", "away", "--yes", cwd=tmp_path).code == 0
    assert quoth("import", "away.lisp", cwd=tmp_path).code == 0
    assert latest(store, "ann") == "mine"
    quoth("call", '(echo :text "a")', "--session", "away", "--user", "ann", cwd=tmp_path)
    assert latest(store, "ann") == "away"


async def test_a_fork_of_a_chat_is_a_chats(tmp_path: Path, store: Store) -> None:
    work(tmp_path, "call", "mine", "ann", "--yes")
    fork_session(store, await chat(tmp_path))
    assert latest(store, "ann") == "mine"


async def test_what_a_worker_did_here_is_no_session(tmp_path: Path, store: Store) -> None:
    work(tmp_path, "call", "mine", "ann", "--yes")
    await serve(tmp_path, store, "far", "ann")
    await serve(tmp_path, store, "mine", "bob")  # a session elsewhere may have the same name
    assert [latest(store, user, one) for user in ("ann", "bob") for one in ("work", "writes", "waits")] == [
        "mine",
        "mine",
        "",
        "",
        "",
        "",
    ]


async def test_a_damaged_session_is_not_in_the_way(tmp_path: Path, store: Store) -> None:
    work(tmp_path, "call", "mine", "ann", "--yes")
    work(tmp_path, "call", "torn", "ann", "--yes")
    store.execute("UPDATE events SET form = '(session' WHERE session = 'torn' AND kind = 'session'")
    assert latest(store, "ann") == "mine"


def test_python_and_the_repl_ask_the_same(tmp_path: Path) -> None:
    work(tmp_path, "call", "mine", "ann", "--yes")
    with Agent(workspace=tmp_path, user="ann") as mine, Agent(workspace=tmp_path, user="eve") as other:
        assert [mine.latest_session(one) for one in ("work", "writes")] == ["mine", "mine"]
        assert complaint(UsageError, lambda: other.latest_session("work")).startswith("eve has no session")
    said = quoth("--user", "ann", cwd=tmp_path, stdin=",sessions\n")
    assert "(latest for log, replay, lift, undo, diff)" in said.out
