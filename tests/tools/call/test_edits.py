"""No acknowledged edit is lost: many who write one file, an editor that changes it meanwhile, and what of a
file stays when it is replaced."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentences import HAS_CHANGED_SINCE_IT_WAS_READ, READ_IT_AGAIN_THEN_CHANGE
from words import Spy, agent, complaint, files, lines, shipped

from quoth import Agent
from quoth.tools.call.call import ALLOW
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import TURNS, Workspace
from quoth.tools.errors import ToolError
from quoth.tools.storage.file_lock import hold
from quoth.tools.storage.paths import state_dir

SLOTS = 16
MANY = f"""(pmap (fn [i] (edit-file :path "{{}}" :old (+ "slot " (str i) ";") :new (+ "done " (str i) ";")))
  (range {SLOTS}))"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    slots = lines(f"slot {i};" for i in range(SLOTS))
    return files(tmp_path / "home", {"a.txt": slots, "notes.txt": "as it was\n", "sub/b.txt": "b\n"})


class Yes:
    """Consent that is always given."""

    async def request(self, *_: Any) -> Any:
        return ALLOW


# Many at once


@pytest.mark.parametrize("path", ["a.txt", "./a.txt", "sub/../a.txt", "link.txt"])
def test_sixteen_edits_at_once_are_all_in_the_file(home: Path, path: str) -> None:
    (home / "link.txt").symlink_to("a.txt")
    with Agent(workspace=home, model=None, consent="yes") as quoth:
        result = quoth.eval(MANY.format(path))
    assert (result.status, len(result.value)) == ("ok", SLOTS), result.message
    assert (home / "a.txt").read_text() == lines(f"done {i};" for i in range(SLOTS))


EDITOR = """
import asyncio, sys
from quoth import Agent
with Agent(workspace=sys.argv[1], model=None, consent="yes") as quoth:
    print("ready", flush=True)
    sys.stdin.readline()
    for i in range(int(sys.argv[2]), 16, 2):
        result = quoth.call(f'(edit-file :path "a.txt" :old "slot {i};" :new "done {i};")')
        assert result.ok, result.message
"""


def test_two_processes_that_edit_one_file_lose_nothing(home: Path) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", EDITOR, home, str(first)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for first in (0, 1)
    ]
    for process in started:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.wait(60) for process in started] == [0, 0]
    for process in started:
        process.communicate()
    assert (home / "a.txt").read_text() == lines(f"done {i};" for i in range(SLOTS))


def test_the_locks_are_few_and_none_is_in_the_workspace(home: Path) -> None:
    workspace = Workspace(home)
    for i in range(4 * TURNS):
        with workspace.alone(f"file {i}"):
            pass
    assert len(list((state_dir() / "locks").iterdir())) <= TURNS
    assert sorted(path.name for path in home.iterdir()) == ["a.txt", "notes.txt", "sub"]


def test_who_waits_too_long_for_a_turn_is_told_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.tools.call.workspace.TURNS", 1)
    monkeypatch.setattr("quoth.tools.call.workspace.TURN_SECONDS", 0.05)
    with hold("turn 0", "no"):
        result = shipped(home, consent=Yes()).pass_through(
            '(edit-file :path "notes.txt" :old "was" :new "is")'
        )
    assert result.message == "notes.txt is locked by other writers; try again."
    assert (home / "notes.txt").read_text() == "as it was\n"


# Changed meanwhile

CHANGED = f"notes.txt {HAS_CHANGED_SINCE_IT_WAS_READ}. {READ_IT_AGAIN_THEN_CHANGE}."


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_text("the editor's\n"),
        lambda file: (file.unlink(), file.write_text("the editor's\n")),
        lambda file: (
            file.with_name("new").write_text("the editor's\n"),
            file.with_name("new").replace(file),
        ),
        lambda file: file.unlink(),
    ],
    ids=["written over", "made anew", "put in its place", "removed"],
)
def test_what_an_editor_did_between_read_and_replace_is_not_lost(
    home: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], Any]
) -> None:
    true_write = Workspace.write

    def write(self: Workspace, *args: Any, **more: Any) -> bool:
        change(home / "notes.txt")
        return true_write(self, *args, **more)

    monkeypatch.setattr(Workspace, "write", write)
    result = shipped(home, consent=Yes()).pass_through('(edit-file :path "notes.txt" :old "was" :new "is")')
    assert (result.status, result.message, result.side_effects) == ("error", CHANGED, ())
    assert not (home / "notes.txt").exists() or (home / "notes.txt").read_text() == "the editor's\n"
    assert not list(home.glob(".*"))


READ = '(read-file :path "notes.txt")'
WRITE = '(write-file :path "notes.txt" :content "mine")'
EDIT = '(edit-file :path "notes.txt" :old " it" :new " IT")'
# What the agent did, then an editor changes the file, and what becomes of writing it.
AFTER = [
    ([READ], CHANGED),
    (['(read-file :path "notes.txt" :limit 1)'], CHANGED),
    (['(read-file :path "./sub/../notes.txt")'], CHANGED),
    ([WRITE], CHANGED),
    ([EDIT], CHANGED),
    ([], ""),  # it never looked: all of the file is given
    (['(read-file :path "sub/b.txt")'], ""),
]


@pytest.mark.parametrize(("before", "sentence"), AFTER)
def test_a_file_that_was_read_is_written_only_as_long_as_it_is_the_same(
    home: Path, before: list[str], sentence: str
) -> None:
    with Agent(workspace=home, model=None, consent="yes") as quoth:
        for form in before:
            assert quoth.call(form).ok
        (home / "notes.txt").write_text("as the editor wrote it")
        result = quoth.call(WRITE)
        assert result.message == sentence
        assert (home / "notes.txt").read_text() == ("as the editor wrote it" if sentence else "mine")
        assert quoth.call(READ).ok  # and so it can go on
        assert quoth.call(WRITE).ok
        assert quoth.call(WRITE).ok


def test_a_file_that_was_read_and_removed_since_can_be_made_again(home: Path) -> None:
    with Agent(workspace=home, model=None, consent="yes") as quoth:
        assert quoth.call(READ).ok
        (home / "notes.txt").unlink()
        assert quoth.call(WRITE).value == "Created notes.txt, 4 bytes."


def test_what_another_agent_has_read_says_nothing(home: Path) -> None:
    workspace = Workspace(home)
    workspace.saw("ann", "notes.txt", b"long ago")
    assert complaint(ToolError, lambda: workspace.write("notes.txt", b"x", reader="ann")) == CHANGED
    assert not workspace.write("notes.txt", b"x", reader="bob")
    assert not workspace.write("notes.txt", b"y")


def test_what_is_changed_while_a_person_is_asked_is_asked_again(home: Path) -> None:
    class Editor(Yes):
        async def request(self, *_: Any) -> Any:
            (home / "notes.txt").write_text("the editor's\n")
            return ALLOW

    with agent(home, READ, WRITE, "I see.", consent=Editor()) as quoth:
        reply = quoth.run("Write my notes.")
    assert reply.status == "pending"
    assert "The change differs from the one you were shown." in reply.text
    assert (home / "notes.txt").read_text() == "the editor's\n"


# What stays of a file

MODES = [0o600, 0o640, 0o644, 0o755, 0o666, 0o4755]


@pytest.mark.parametrize("mode", MODES, ids=oct)
def test_mode_and_owner_stay(home: Path, mode: int) -> None:
    file = home / "notes.txt"
    if os.geteuid() == 0:
        os.chown(file, 1234, 4321)
    file.chmod(mode)
    before = file.stat()
    assert shipped(home, consent=Yes()).pass_through(EDIT).ok
    after = file.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_an_owner_that_cannot_be_kept_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = os.stat(home / "notes.txt")
    (home / "notes.txt").chmod(0o4755)
    true_stat = os.fstat

    class Other:
        st_uid, st_gid = found.st_uid + 1, found.st_gid + 1

    def refuse(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    monkeypatch.setattr(
        os, "fstat", lambda fd: Other() if sys._getframe(1).f_code.co_name == "kept" else true_stat(fd)
    )
    result = shipped(home, consent=Yes()).pass_through(EDIT)
    assert result.message == f"notes.txt belonged to user {found.st_uid} and now belongs to you."
    assert (home / "notes.txt").stat().st_mode & 0o7777 == 0o755  # and nobody else's to run as


@pytest.mark.parametrize("mode", [0o444, 0o400, 0o555, 0o000], ids=oct)
@pytest.mark.parametrize("form", [EDIT, WRITE], ids=["edit", "write"])
def test_a_read_only_file_is_not_replaced(home: Path, form: str, mode: int) -> None:
    (home / "notes.txt").chmod(mode)
    result = shipped(home, consent=Yes()).pass_through(form)
    assert result.status == "error"
    if mode or os.geteuid() == 0 or form == WRITE:  # else it cannot even be read
        assert "notes.txt is read-only" in result.message
        assert "chmod u+w" in result.message
    (home / "notes.txt").chmod(0o644)
    assert (home / "notes.txt").read_text() == "as it was\n"
    assert not list(home.glob(".*"))


@pytest.mark.parametrize("form", [EDIT, WRITE], ids=["edit", "write"])
@pytest.mark.parametrize(("names", "told"), [(1, "another name"), (2, "2 other names")])
def test_a_hard_link_that_is_not_kept_is_told(home: Path, form: str, names: int, told: str) -> None:
    others = [home.parent / f"other{i}.txt" for i in range(names)]
    for other in others:
        os.link(home / "notes.txt", other)
    result = shipped(home, consent=Yes()).pass_through(form)
    assert result.ok
    assert result.message == f"notes.txt had {told} (a hard link), which still has the old text."
    assert all(other.read_text() == "as it was\n" for other in others)  # outside, and out of reach


def test_a_body_of_a_user_may_write_within_its_own_turn(home: Path) -> None:
    spy, workspace = Spy(), Workspace(home)
    with workspace.alone("notes.txt"), workspace.alone("notes.txt"):
        workspace.write("notes.txt", b"x", say=lambda text: spy())
    assert (home / "notes.txt").read_text() == "x"
    assert not spy.ran
    assert ToolContext(workspace).said == []
