"""The buffers of an editor before the disk: what is read, written and compared, and what is never asked."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from editing import Editing
from hypothesis import given
from hypothesis import strategies as st
from sentences import BELONGS_TO_QUOTH_ITSELF_AND, HAS_CHANGED_SINCE_IT_WAS_READ
from words import complaint, files

from quoth.tools.call.buffers import buffer_of
from quoth.tools.call.keeping import FileWrite, kept_by
from quoth.tools.call.workspace import MAX_BYTES, Workspace, change_file
from quoth.tools.errors import ToolError

UNSAVED = "has unsaved changes in the editor"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    files(
        tmp_path,
        {"home/a.txt": "one\n", "home/key": "secret", "home/.git/config": "[core]\n", "out.txt": "x"},
    )
    return tmp_path / "home"


def edited(home: Path, **texts: str) -> tuple[Workspace, Editing]:
    workspace = Workspace(home, secret=[home / "key"])
    workspace.buffers = editor = Editing(**texts)
    return workspace, editor


def read(workspace: Workspace, path: str) -> bytes:
    with workspace.open_read(path) as file:
        return file.read()


def test_a_buffer_is_read_and_written_before_the_disk(home: Path) -> None:
    workspace, editor = edited(home, a_txt="one\nunsaved\n")
    assert read(workspace, "a.txt") == b"one\nunsaved\n"
    assert read(workspace.on_disk(), "a.txt") == b"one\n"
    assert workspace.write("a.txt", b"two\n", before=b"one\nunsaved\n") is False
    assert ((home / "a.txt").read_text(), editor.texts) == ("two\n", {})


def test_the_disk_alone_does_not_pass_for_what_was_read(home: Path) -> None:
    workspace, editor = edited(home, a_txt="one\nunsaved\n")
    said = complaint(ToolError, lambda: workspace.write("a.txt", b"two\n", before=b"one\n"))
    assert HAS_CHANGED_SINCE_IT_WAS_READ in said
    assert [one for one in editor.asked if one.startswith("write")] == []
    workspace.saw("me", "a.txt", read(workspace, "a.txt"))
    editor.texts["a.txt"] = "typed meanwhile\n"
    said = complaint(ToolError, lambda: workspace.write("a.txt", b"two\n", reader="me"))
    assert HAS_CHANGED_SINCE_IT_WAS_READ in said


def test_a_file_that_a_program_has_changed_is_not_overwritten_with_what_an_editor_shows(home: Path) -> None:
    workspace, editor = edited(home, a_txt="one\n")
    assert read(workspace, "a.txt") == b"one\n"
    (home / "a.txt").write_text("one\nby a program\n")  # the editor has not read it again
    assert read(workspace, "a.txt") == b"one\nby a program\n"
    workspace.write("a.txt", b"two\nby a program\n", before=b"one\nby a program\n")
    assert ((home / "a.txt").read_text(), editor.texts) == ("two\nby a program\n", {"a.txt": "one\n"})
    editor.texts["a.txt"] = "typed\n"
    assert read(workspace, "a.txt") == b"typed\n"


def test_a_new_file_is_made_by_the_editor_in_a_new_folder(home: Path) -> None:
    workspace, editor = edited(home)
    assert workspace.write("new/b.txt", b"two\n") is True
    assert ((home / "new/b.txt").read_text(), "write b.txt" in editor.asked) == ("two\n", True)


def test_a_buffer_without_a_file_exists_and_is_not_overwritten_unread(home: Path) -> None:
    workspace, _ = edited(home, b_txt="draft\n", c_txt="")
    assert (workspace.exists("b.txt"), read(workspace, "b.txt")) == (True, b"draft\n")
    assert not workspace.exists("c.txt"), "editors open an empty buffer for a missing file"
    said = complaint(ToolError, lambda: workspace.write("b.txt", b"two\n", before=b""))
    assert HAS_CHANGED_SINCE_IT_WAS_READ in said
    assert UNSAVED in complaint(ToolError, lambda: workspace.remove("b.txt", b"draft\n"))
    assert workspace.write("b.txt", b"two\n", before=b"draft\n") is False


def test_the_keeper_gets_the_text_of_the_buffer_and_the_editors_own_change(home: Path) -> None:
    workspace, editor = edited(home, a_txt="one\nunsaved\n")
    editor.formats = lambda text: text.replace("two", "TWO")
    kept: list[FileWrite] = []
    said: list[str] = []
    with kept_by(lambda write: kept.append(write) or ""):  # type: ignore[func-returns-value]
        workspace.write("a.txt", b"two\n", before=b"one\nunsaved\n", reader="me", say=said.append)
    first, second = kept
    assert first.before is not None
    assert second.before is not None
    assert (first.before.data, second.before.data) == (b"one\nunsaved\n", b"two\n")
    assert first.after == second.before.digest
    assert said == ["a.txt was changed by the editor as it was saved."]
    workspace.write("a.txt", b"three\n", reader="me")  # the reader knows the saved text


def test_an_editor_that_only_reads_keeps_its_unsaved_text(home: Path) -> None:
    workspace, editor = edited(home, a_txt="one\nunsaved\n")
    editor.read_only = True
    said = complaint(ToolError, lambda: workspace.write("a.txt", b"two\n", before=b"one\nunsaved\n"))
    assert (
        said
        == "a.txt has unsaved changes in the editor, so it was not changed on the disk. Save it there first."
    )
    assert (home / "a.txt").read_text() == "one\n"
    editor.texts.clear()
    workspace.write("a.txt", b"two\n", before=b"one\n")
    assert (home / "a.txt").read_text() == "two\n"


def test_a_file_is_not_removed_while_its_buffer_differs(home: Path) -> None:
    workspace, editor = edited(home, a_txt="unsaved\n")
    assert HAS_CHANGED_SINCE_IT_WAS_READ in complaint(ToolError, lambda: workspace.remove("a.txt", b"one\n"))
    assert UNSAVED in complaint(ToolError, lambda: workspace.remove("a.txt", b"unsaved\n"))
    editor.texts.clear()
    workspace.remove("a.txt", b"one\n")
    assert not (home / "a.txt").exists()


@pytest.mark.parametrize(
    "path",
    ["key", ".git/config", ".quoth/policy.hy", "../out.txt", "link.txt", "way/out.txt", "guarded/b.txt"],
)
def test_the_editor_is_not_asked_for_what_tools_may_not_write(home: Path, path: str) -> None:
    (home / "link.txt").symlink_to(home.parent / "out.txt")
    (home / "way").symlink_to(home.parent)
    workspace, editor = edited(home)
    workspace.protect([home / "guarded"])
    for work in (
        lambda: read(workspace, path),
        lambda: workspace.exists(path),
        lambda: workspace.write(path, b"two\n"),
        lambda: workspace.remove(path, b"x"),
    ):
        with contextlib.suppress(ToolError):
            work()
    assert editor.asked == []


def test_a_protected_file_is_refused_with_its_sentence(home: Path) -> None:
    workspace, _ = edited(home)
    assert BELONGS_TO_QUOTH_ITSELF_AND in complaint(ToolError, lambda: workspace.write("key", b"x"))


@pytest.mark.parametrize("data", [b"\0\1", b"\xff\xfe", b"x" * (MAX_BYTES + 1)])
def test_binary_and_large_files_are_those_of_the_disk(home: Path, data: bytes) -> None:
    (home / "a.txt").write_bytes(data)
    workspace, editor = edited(home, a_txt="mangled")
    assert read(workspace, "a.txt") == data
    workspace.write("a.txt", b"two\n", before=data)
    assert (editor.asked, (home / "a.txt").read_bytes()) == ([], b"two\n")


def test_a_file_with_another_name_is_written_to_the_disk(home: Path) -> None:
    (home.parent / "other").hardlink_to(home / "a.txt")
    workspace, editor = edited(home)
    workspace.write("a.txt", b"two\n", before=b"one\n")
    assert ((home.parent / "other").read_text(), "write a.txt" in editor.asked) == ("one\n", False)


def test_a_binary_text_is_written_to_the_disk(home: Path) -> None:
    workspace, editor = edited(home)
    workspace.write("a.txt", b"\0", before=b"one\n")
    assert ((home / "a.txt").read_bytes(), "write a.txt" in editor.asked) == (b"\0", False)


def test_marks_and_line_ends_that_editors_hide_are_kept(home: Path) -> None:
    old = b"\xef\xbb\xbfone\r\ntwo\r\n"
    (home / "a.txt").write_bytes(old)
    workspace, _ = edited(home)
    assert read(workspace, "a.txt") == old
    workspace.write("a.txt", old.replace(b"two", b"three"), before=old, reader="me")
    assert (home / "a.txt").read_bytes() == b"\xef\xbb\xbfone\r\nthree\r\n"
    workspace.write("a.txt", b"\xef\xbb\xbffour\n", reader="me")  # the editor saves its own line ends
    assert (home / "a.txt").read_bytes() == b"\xef\xbb\xbffour\r\n"
    assert workspace.has_seen("me", "a.txt")
    workspace.write("a.txt", b"five\n", reader="me")


@given(text=st.text(st.sampled_from("ab\n\r\ufeff")), disk=st.text(st.sampled_from("ab\n\r\ufeff")))
def test_a_buffer_comes_back_from_its_content_on_the_disk(text: str, disk: str) -> None:
    buffer = buffer_of(text, disk.encode())
    assert buffer.as_edited(buffer.data) == text
    assert buffer.as_saved(text) == buffer.data
    assert buffer_of(disk, disk.encode()).saved


def test_an_editor_that_fails_is_named_with_the_file(home: Path) -> None:
    workspace, editor = edited(home)

    def fails(*_: object, **__: object) -> str:
        raise TimeoutError("the editor did not answer within 4 s")

    editor.read = fails  # type: ignore[method-assign]
    sentence = "a.txt: the editor did not answer within 4 s."
    assert complaint(ToolError, lambda: workspace.open_read("a.txt")) == sentence
    assert complaint(ToolError, lambda: workspace.write("a.txt", b"two\n")) == sentence
    assert complaint(ToolError, lambda: workspace.exists("b.txt")) == sentence.replace("a.txt", "b.txt")
    assert (home / "a.txt").read_text() == "one\n"
    assert os.listdir(home / ".git") == ["config"]


def test_files_of_quoths_own_work_are_changed_on_the_disk(home: Path) -> None:
    workspace, editor = edited(home, a_txt="unsaved\n")
    change_file(workspace, "a.txt", lambda data: (data + b"two\n", None))
    assert ((home / "a.txt").read_text(), editor.asked) == ("one\ntwo\n", [])
