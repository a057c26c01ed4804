"""Law: the project has a root. Its rules, memory and sessions are the same from each of its subfolders."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import command, quoth, script
from powerless import Powerless, powerless
from sentences import CANNOT_BE_USED, CANNOT_BE_WRITTEN, IS_OUTSIDE_THE_WORKSPACE
from words import files, lines

from quoth.tools.storage.paths import store_path

KEPT = '(write-file :path "kept/a.txt" :content "x")'
FREE = '(write-file :path "free.txt" :content "x")'
RULE = '(deny (write-file :path (under "kept")))'
PLAN = lines("* PLAN one", "#+begin_src hy", KEPT, "#+end_src")
TOOL = '(require quoth [def-cognitive-tool])\n(def-cognitive-tool two "Two." :effects [] :body 2)\n'


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A project with a trusted rule, and a subfolder."""
    repo = files(tmp_path / "repo", {".quoth/policy.hy": RULE, ".git/HEAD": "x", "sub/here.txt": "here"})
    assert quoth("trust", "--yes", cwd=repo).code == 0
    return repo


def first_line(repo: Path, inner: str = "sub") -> str:
    return f"quoth: workspace {repo} (you are in {inner}/; paths in forms begin at {repo})\n"


ROUTES = {
    "call": (["call", KEPT, "--yes"], ""),
    "eval": (["eval", KEPT, "--yes"], ""),
    "run": (["run", "Write.", "--model", "scripted:r.txt", "--yes"], ""),
    "fly": (["fly", "plan.org", "--yes"], ""),
    "repl": (["--yes"], f"{KEPT}\n"),
}


@pytest.mark.parametrize("route", ROUTES)
def test_a_rule_holds_in_a_subfolder(repo: Path, route: str) -> None:
    files(repo / "sub", {"r.txt": f"{KEPT}\n---\nDone.", "plan.org": PLAN})
    words, stdin = ROUTES[route]
    said = quoth(*words, cwd=repo / "sub", stdin=stdin)
    assert said.err.startswith(first_line(repo))
    assert [*repo.rglob("a.txt")] == []
    assert [row["status"] for row in audit(repo) if row["tool"] == "write-file"] == ["denied"]


def audit(folder: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in quoth("audit", "--json", cwd=folder).out.splitlines()]


def test_a_rule_holds_for_a_python_program_that_names_no_workspace(repo: Path) -> None:
    text = "from quoth import Agent\nprint(Agent({}consent='yes').call({!r}).status)"
    said = [script(text.format(given, KEPT), cwd=repo / "sub").out for given in ("", "workspace='.', ")]
    assert said == ["denied\n", "ok\n"]
    assert [str(path.relative_to(repo)) for path in repo.rglob("a.txt")] == ["sub/kept/a.txt"]


def test_paths_in_forms_begin_at_the_root_and_files_of_the_command_line_where_one_is(repo: Path) -> None:
    text = PLAN.replace("kept/a.txt", "flown.txt")
    files(repo / "sub", {"two.hy": TOOL, "p.hy": "(deny (two))", "plan.org": text, "in.txt": "Say hello."})
    sub = repo / "sub"
    assert quoth("call", FREE, "--yes", cwd=sub).code == 0
    assert quoth("fly", "plan.org", "--yes", cwd=sub).code == 0
    assert ((repo / "free.txt").read_text(), (repo / "flown.txt").read_text()) == ("x", "x")
    assert quoth("call", "(two)", "--tools", "two.hy", cwd=sub).out == "2\n"
    said = quoth("call", "(two)", "--tools", "two.hy", "--policy", "p.hy", cwd=sub)
    assert said.err.endswith("quoth: two was denied: p.hy:1 says (deny (two)).\n")
    files(sub, {"m.org": "* TODO Call\nSCHEDULED: <2020-01-01 Wed>\n"})
    assert "Call" in quoth("remind", "m.org", cwd=sub).out
    assert quoth("new", "tool", "mine", cwd=sub).out.startswith("Wrote mine.hy.")


def test_a_session_its_memory_and_its_requests_are_found_from_a_subfolder(repo: Path) -> None:
    files(repo, {"r.txt": f"{FREE}\n---\nDone."})
    asks = files(repo / "sub", {"ask.hy": "(ask (write-file))"})
    words = ("--model", f"scripted:{repo / 'r.txt'}", "--session", "s1", "--policy", str(asks / "ask.hy"))
    assert quoth("run", "Write.", *words, cwd=repo).code == 3
    assert quoth("memory", "edit", "note", "--new", "--text", "blue", cwd=repo).code == 0
    sub = repo / "sub"
    assert "blue" in quoth("memory", "show", "note", cwd=sub).out
    assert quoth("sessions", cwd=sub).out.startswith("s1 ")
    (request,) = json.loads(quoth("pending", "--json", cwd=sub).out)
    assert quoth("approve", request["id"], cwd=sub).code == 0
    assert quoth("resume", "s1", cwd=sub).out == "Done.\n"
    assert (repo / "free.txt").exists()
    assert quoth("undo", "s1", "--yes", cwd=sub).code == 0
    assert not (repo / "free.txt").exists()


def test_a_chat_is_of_the_project(repo: Path) -> None:
    files(repo / "sub", {"r.txt": "Hello."})
    line = json.dumps({"id": "1", "chat": "c1", "user": "ann", "text": "Hi."})
    words = ("chat", "--gateway", "stdio", "--model", "scripted:r.txt")
    assert "Hello." in quoth(*words, cwd=repo / "sub", stdin=f"{line}\n").out
    assert quoth("sessions", cwd=repo).out.startswith("chat-c1 ")


def test_the_model_is_told_where_the_user_is(repo: Path) -> None:
    files(repo / "sub", {"r.txt": "Done."})
    told = r"The user is in \"sub\"; paths in calls begin at \".\". You work in the folder \".\" (repo)"
    for session, folder, model in (("s1", repo / "sub", "r.txt"), ("s2", repo, "sub/r.txt")):
        words = ("--model", f"scripted:{model}", "--session", session)
        assert quoth("run", "Look.", *words, cwd=folder).code == 0
    assert told in quoth("log", "s1", "--hy", cwd=repo).out
    assert "The user is in" not in quoth("log", "s2", "--hy", cwd=repo).out


def test_a_named_workspace_narrows(repo: Path) -> None:
    sub = repo / "sub"
    said = quoth("call", '(read-file :path "here.txt")', "--workspace", ".", cwd=sub)
    assert (said.out, said.err) == ("here\n", "")
    said = quoth("call", '(read-file :path "../.git/HEAD")', "--workspace", ".", cwd=sub)
    assert said.err == f"quoth: read-file was denied: ../.git/HEAD {IS_OUTSIDE_THE_WORKSPACE} {sub}.\n"
    assert quoth("call", FREE, "--yes", "--workspace", str(repo), cwd=sub).err.startswith(first_line(repo))


def test_no_tool_makes_a_subfolder_a_project_without_these_rules(repo: Path) -> None:
    for name in ("sub/.quoth/policy.hy", "sub/.Quoth/x", "sub/.git/HEAD", "new/.quoth"):
        said = quoth("call", f'(write-file :path "{name}" :content "x")', "--yes", cwd=repo)
        assert said.err.endswith(f" itself and {CANNOT_BE_WRITTEN} by a tool.\n")
    assert [*repo.rglob("sub/.*"), *repo.rglob("new")] == []


def test_a_folder_that_was_removed_is_a_sentence_and_a_named_workspace_works_there(repo: Path) -> None:
    gone = repo / "gone"
    gone.mkdir()
    text = f'cd {gone}; rmdir {gone}; "$0" "$@" call \'(list-files :path "sub")\''
    words = ["sh", "-c", text, *command()]
    said = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr.startswith(f"quoth: The current folder {CANNOT_BE_USED}: No such file or directory.")
    words = ["sh", "-c", f"{text} --workspace {repo}", *command()]
    gone.mkdir()
    said = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert (said.stdout, said.stderr) == ('["sub/here.txt"]\n', "")


@pytest.mark.parametrize("words", ["--trace t.jsonl", "--tools a.hy", "--policy a.hy", "--model scripted:a"])
def test_a_relative_path_in_a_folder_that_was_removed_is_a_sentence(repo: Path, words: str) -> None:
    (gone := repo / "gone").mkdir()
    text = f'cd {gone}; rmdir {gone}; "$0" "$@" eval "(+ 1 1)" --workspace {repo} {words}'
    said = subprocess.run(["sh", "-c", text, *command()], capture_output=True, text=True, timeout=120)
    told = "quoth: The current folder was removed. Type: cd DIR, or give absolute paths.\n"
    assert (said.returncode, said.stdout, said.stderr) == (2, "", told)


def test_doctor_says_where_the_workspace_is_and_why(repo: Path) -> None:
    (row,) = [row for row in json.loads(quoth("doctor", "--json", cwd=repo / "sub").out) if is_place(row)]
    assert (row["state"], row["detail"]) == ("ok", f"{repo} (it has a .quoth)")


def is_place(row: dict[str, str]) -> bool:
    return row["name"] == "workspace"


# A folder of another user


@pytest.fixture
def user() -> Iterator[Powerless]:
    """A user with a project that has a forbidding rule."""
    with powerless() as it:
        files(it.workspace, {".quoth/policy.hy": RULE, "sub/here.txt": "here"})
        yield it


NEEDS_ONE = [["call", KEPT], ["sessions"], ["run", "x"], ["trust", "--yes"], ["tools"], ["log"], []]


@pytest.mark.parametrize("words", NEEDS_ONE, ids=" ".join)
def test_nothing_runs_in_a_project_of_another_user_until_it_is_named(
    tmp_path: Path, words: list[str]
) -> None:
    repo = files(tmp_path / "repo", {".quoth/policy.hy": RULE, "sub/here.txt": "here"})
    if os.getuid() != 0:
        return  # only root can give a folder away
    for path in (repo, *repo.rglob("*")):
        os.chown(path, 65534, 65534)
    said = quoth(*words, cwd=repo / "sub", stdin="")
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        f"quoth: {repo} may be the root of this project, because it has a .quoth, but {repo}/sub belongs to"
        ' nobody. Name the workspace: --workspace DIR, in Python workspace="DIR".'
        f" DIR is {repo}, or . for only this folder.\n"
    )


def test_a_project_of_root_is_not_passed_over_by_nobody(user: Powerless) -> None:
    if os.getuid() != 0:
        return  # all is this user's own
    user.of_root = (user.workspace, user.workspace / ".quoth")
    said = user.quoth("call", KEPT, "--yes", inside="sub")
    assert said.err.startswith(
        f"quoth: {user.workspace} may be the root of this project, because it has a .quoth"
    )
    user.quoth("trust", "--yes", "--workspace", str(user.workspace), inside="sub")
    said = user.quoth("call", KEPT, "--yes", "--workspace", str(user.workspace), inside="sub")
    assert "write-file was denied" in said.err


def test_a_rule_holds_for_nobody_in_a_subfolder(user: Powerless) -> None:
    assert user.quoth("trust", "--yes", inside="sub").code == 0
    assert "write-file was denied" in user.quoth("call", KEPT, "--yes", inside="sub").err


def test_a_project_that_cannot_be_searched_stops_the_command(user: Powerless) -> None:
    user.quoth("trust", "--yes")
    inner = os.open(user.workspace / "sub", os.O_RDONLY)
    try:
        with user.closed(user.workspace):
            said = user.quoth("call", KEPT, "--yes", inside=f"../../../proc/{os.getpid()}/fd/{inner}")
    finally:
        os.close(inner)
    why = f"{user.workspace}/sub cannot be examined, so the workspace is not known: Permission denied."
    assert said.err.startswith(f"quoth: {why} Name the workspace: ")


# A subfolder with sessions of its own


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """A subfolder that had sessions before its project had a mark."""
    sub = files(tmp_path / "repo/sub", {"r.txt": "Done.\n---\nDone.", "a.txt": "a"})
    words = ("--model", "scripted:r.txt", "--session", "old")
    assert quoth("run", "Look.", *words, cwd=sub).code == 0
    assert quoth("memory", "edit", "note", "--new", "--text", "blue", cwd=sub).code == 0
    files(tmp_path / "repo", {".git/HEAD": "x"})
    return tmp_path / "repo"


def test_a_subfolder_keeps_its_sessions_which_is_said_once(grown: Path) -> None:
    said = quoth("sessions", cwd=grown / "sub")
    assert said.out.startswith("old ")
    assert said.err == (
        f"quoth: {grown}/sub is in the project {grown}, but has sessions of its own, so it stays a workspace."
        " To move them to the project: quoth sessions --adopt\n"
    )
    again = quoth("call", '(read-file :path "a.txt")', cwd=grown / "sub")
    assert (again.out, again.err) == ("a\n", "")


def test_nothing_runs_past_the_rules_of_the_project(grown: Path) -> None:
    files(grown, {".quoth/policy.hy": RULE})
    said = quoth("call", KEPT, "--yes", cwd=grown / "sub")
    assert (said.code, said.out) == (2, "")
    assert said.err.endswith(
        f"quoth: {grown}/sub has its own sessions, so the rules of the project {grown} would not apply"
        " here. To move the sessions to the project: quoth sessions --adopt. To work without its rules:"
        " --workspace .\n"
    )
    said = script(f"from quoth import Agent\nAgent().call({KEPT!r})", cwd=grown / "sub")
    assert "would not apply here" in said.err
    assert [*grown.rglob("kept")] == []


def test_adopted_sessions_and_memory_are_of_the_project(grown: Path) -> None:
    old = store_path(grown / "sub")
    said = quoth("sessions", "--adopt", cwd=grown / "sub")
    assert said.out == f"Moved 1 session and 1 block of memory to {grown}.\n"
    assert said.err.endswith(
        f"Paths in these sessions begin at sub/. Their audit, and what files held before:"
        f" {old.with_suffix('.adopted-1')}\n"
    )
    for folder in (grown, grown / "sub"):
        assert quoth("sessions", cwd=folder).out.startswith("old ")
        assert "blue" in quoth("memory", "show", "note", cwd=folder).out
    assert quoth("resume", "old", "More.", "--model", "scripted:r.txt", cwd=grown / "sub").out == "Done.\n"
    assert not old.exists()
    again = quoth("sessions", "--adopt", cwd=grown / "sub")
    assert again.err.endswith("is not a subfolder with sessions of its own: nothing is to be moved.\n")


def test_an_adoption_that_was_broken_off_before_its_end_is_done_again(grown: Path) -> None:
    old = store_path(grown / "sub")
    before = old.read_bytes()
    assert quoth("sessions", "--adopt", cwd=grown / "sub").code == 0
    old.write_bytes(before)  # as if it had not been put aside
    said = quoth("sessions", "--adopt", cwd=grown / "sub")
    assert said.out == f"Moved 0 sessions and 0 blocks of memory to {grown}.\n"
    assert quoth("sessions", cwd=grown / "sub").out.count("old ") == 1
    assert quoth("memory", "list", cwd=grown / "sub").out.count("note ") == 1


@pytest.mark.parametrize("how", ["command", "python"])
def test_a_subfolder_that_was_named_once_is_of_the_project_again(repo: Path, how: str) -> None:
    sub = repo / "sub"
    if how == "command":
        quoth("call", '(read-file :path "here.txt")', "--workspace", ".", "--session", "s1", cwd=sub)
    else:
        text = """from quoth import Agent
Agent(workspace=".", session="s1").call('(read-file :path "here.txt")')"""
        script(text, cwd=sub)
    assert "write-file was denied" in quoth("call", KEPT, "--yes", cwd=sub).err
    assert quoth("sessions", "--all", "--workspace", ".", cwd=sub).out.startswith("s1 ")
    assert quoth("sessions", "--adopt", cwd=sub).out.startswith("Moved 1 session and 0 blocks")
    assert "s1 " in quoth("sessions", "--all", cwd=repo).out


def test_what_waits_or_clashes_is_not_adopted(grown: Path) -> None:
    quoth("memory", "edit", "note", "--new", "--text", "red", cwd=grown)
    said = quoth("sessions", "--adopt", cwd=grown / "sub")
    assert said.err.endswith("The project's memory has other texts of the same name: 1 block (note).\n")
    quoth("memory", "forget", "note", "--yes", cwd=grown)
    quoth("run", "Other.", "--model", "scripted:sub/r.txt", "--session", "old", cwd=grown)
    said = quoth("sessions", "--adopt", cwd=grown / "sub")
    assert said.err.endswith("The project has other sessions of the same name: 1 session (old).\n")
    quoth("rm", "old", "--yes", cwd=grown)
    files(grown, {"ask.hy": "(ask (write-file))"})
    quoth("call", FREE, "--policy", "../ask.hy", "--session", "s2", "--no-input", cwd=grown / "sub")
    said = quoth("sessions", "--adopt", cwd=grown / "sub")
    assert "1 session (s2) waits here or was broken off" in said.err
    assert store_path(grown / "sub").exists()
