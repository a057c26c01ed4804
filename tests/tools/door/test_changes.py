"""What a call would change is told by its tool, without making the call: only a person sees it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    DOES_NOT_CONTAIN_THAT_TEXT,
    IS_OUTSIDE_THE_WORKSPACE,
    IT_WOULD_FAIL_NOW,
    THERE_IS_NO_FILE,
)
from words import complaint, form, gateway, load, tool

from quoth.tools.call.call import Call, Change, Changes
from quoth.tools.call.workspace import Workspace
from quoth.tools.door import changes as room
from quoth.tools.door.changes import changes_of
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.loading import load_tools
from quoth.tools.registry.table import CognitiveTool

PATH = {"path": {"type": str}, "text": {"type": str, "default": ""}}


@cache
def shipped(name: str) -> CognitiveTool:
    return load_tools(()).get(name)


def asked(here: Path, text: str) -> Changes | None:
    """What a call of a tool that ships would change."""
    wanted = form(text)
    return changes_of(shipped(wanted.tool), Call("c", wanted), Workspace(here))


def told(changes: Callable[..., Any], here: Path = Path()) -> Changes | None:
    made = tool(params=PATH, changes=changes)
    return changes_of(made, Call("c", form('(probe :path "a.txt" :text "new")')), Workspace(here))


@pytest.mark.parametrize(
    ("call", "change"),
    [
        ('(write-file :path "a.txt" :content "x")', Change("a.txt", "one\ntwo\n", "x")),
        ('(write-file :path "new/b.txt" :content "x")', Change("new/b.txt", None, "x")),
        ('(write-file :path "b.bin" :content "x")', Change("b.bin", None, "x", binary=2)),
        ('(edit-file :path "a.txt" :old "two" :new "2")', Change("a.txt", "one\ntwo\n", "one\n2\n")),
    ],
)
def test_a_file_is_compared_with_what_would_stand_there(tmp_path: Path, call: str, change: Change) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "b.bin").write_bytes(b"\0\1")
    assert asked(tmp_path, call) == Changes((change,))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.txt", "b.bin"]
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    ("call", "trouble"),
    [
        (
            '(edit-file :path "a.txt" :old "three" :new "2")',
            f"a.txt {DOES_NOT_CONTAIN_THAT_TEXT}; read the file and copy it exactly.",
        ),
        ('(edit-file :path "none" :old "a" :new "b")', f"{THERE_IS_NO_FILE} none."),
        ('(write-file :path "../a.txt" :content "")', f"../a.txt {IS_OUTSIDE_THE_WORKSPACE} {{here}}."),
        ('(write-file :path "key" :content "")', "key is a secret of quoth's, which no tool may read."),
    ],
)
def test_a_call_that_would_fail_is_told_before_it_is_allowed(tmp_path: Path, call: str, trouble: str) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "a.txt").write_text("one\n")
    (here / "key").write_text("hunter2")
    wanted = form(call)
    found = changes_of(shipped(wanted.tool), Call("c", wanted), Workspace(here, secret=[here / "key"]))
    assert found == Changes(trouble=f"{IT_WOULD_FAIL_NOW}: {trouble.format(here=here)}")


SHAPE = "Its changes are not known: its :changes must return [[path old-text new-text] …]"


@pytest.mark.parametrize(
    ("changes", "trouble"),
    [
        (lambda: None, f"{SHAPE}, for at most 100 files."),
        (lambda: [["a", "b", "c"]] * 101, f"{SHAPE}, for at most 100 files."),
        (lambda: [["a", "b"]], f"{SHAPE}."),
        (lambda: [["a", 1, "c"]], f"{SHAPE}; a text is a string, or None for a missing file."),
        (lambda: [[b"a", "b", "c"]], f"{SHAPE}; a text is a string, or None for a missing file."),
        (lambda: 1 / 0, "Its changes are not known: ZeroDivisionError: division by zero."),
        (lambda: exit(3), "Its changes are not known: RuntimeError: it raised SystemExit."),
    ],
)
def test_a_tool_that_tells_nonsense_stops_no_question(changes: Callable[..., Any], trouble: str) -> None:
    assert told(changes) == Changes(trouble=trouble)


def test_a_tool_that_takes_too_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import Event

    monkeypatch.setattr(room, "SECONDS", 0.01)
    ended = Event()
    try:
        assert told(lambda: ended.wait(60)) == Changes(
            trouble="Its changes could not be computed within 0.01 s."
        )
    finally:
        ended.set()


def test_a_tool_that_does_not_tell_is_asked_nothing(tmp_path: Path) -> None:
    assert asked(tmp_path, '(read-file :path "a.txt")') is None
    wanted = form('(write-file :path "a.txt" :content "x" :permission? "more")')
    assert changes_of(shipped("write-file"), Call("c", wanted), Workspace(tmp_path)) is None


@pytest.mark.parametrize(
    "write",
    [
        lambda ctx: ctx.workspace.write("a.txt", b"mine"),
        lambda ctx: ctx.workspace.remove("a.txt", b"one\n"),
    ],
)
def test_nothing_is_written_while_a_question_is_prepared(tmp_path: Path, write: Callable[[Any], Any]) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    found = told(lambda ctx: write(ctx), tmp_path)
    assert found is not None
    assert found.trouble.startswith(f"{IT_WOULD_FAIL_NOW}: files cannot be ")
    assert (tmp_path / "a.txt").read_text() == "one\n"


def test_what_a_person_was_shown_counts_as_read_by_nobody(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    workspace = Workspace(tmp_path)
    edit = form('(edit-file :path "a.txt" :old "one" :new "two")')
    assert changes_of(shipped("edit-file"), Call("c", edit), workspace)
    assert not workspace._seen
    workspace.saw("me", "a.txt", b"one\n")
    assert workspace._seen


def test_the_call_itself_asks_for_no_changes(tmp_path: Path) -> None:
    def changes() -> Any:
        raise AssertionError("only a question asks")

    made = tool(params=PATH, changes=changes)
    assert gateway(made, workspace=tmp_path).pass_through('(probe :path "a.txt")').ok


TOOL = """(require quoth [def-cognitive-tool])
(def-cognitive-tool stamp "Stamp a file."
  :parameters [path {:type path}  mark {:type str}]
  :effects    [:writes]
  :changes    CHANGES
  :body       None)
"""


def test_a_tool_of_ones_own_tells_what_it_would_change(tmp_path: Path) -> None:
    (tmp_path / "stamp.hy").write_text(TOOL.replace("CHANGES", '[[path None mark] ["log" None path]]'))
    made = load(tmp_path / "stamp.hy").get("stamp")
    call = Call("c", form('(stamp :path "src/../a.txt" :mark "x")'))
    assert changes_of(made, call, Workspace(tmp_path)) == Changes(
        (Change("a.txt", None, "x"), Change("log", None, "a.txt"))
    )


def test_changes_that_await_are_refused_at_the_definition(tmp_path: Path) -> None:
    (tmp_path / "stamp.hy").write_text(TOOL.replace("CHANGES", "(await (later))"))
    said = complaint(UsageError, lambda: load(tmp_path / "stamp.hy"))
    assert "stamp: :changes may only read files, and cannot await." in said


def test_an_error_of_a_tool_is_its_own_sentence() -> None:
    def changes() -> Any:
        raise ToolError("The moon is full.")

    assert told(changes) == Changes(trouble=f"{IT_WOULD_FAIL_NOW}: The moon is full.")
