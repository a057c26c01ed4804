"""The workspace: one folder, no way out of it, and no half-written file in it."""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import (
    A_PATH_CANNOT_CONTAIN_A,
    BELONGS_TO_QUOTH_ITSELF_AND,
    CANNOT_BE_WRITTEN,
    HAS_CHANGED_SINCE_IT_WAS_READ,
    IS_NOT_A_REGULAR_FILE,
    IS_OUTSIDE_THE_WORKSPACE,
    LIST_FILES_SHOWS_WHAT_IS,
    READ_IT_AGAIN_THEN_CHANGE,
)
from words import complaint, files

from quoth.tools.call import workspace as workspace_module
from quoth.tools.call.call import ALLOW
from quoth.tools.call.context import ToolContext, enter_context, inside_workspace
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A workspace with a file and a folder, beside something that is none of its business."""
    files(tmp_path, {"home/a.txt": "inside", "home/sub/b.txt": "deeper", "outside.txt": "secret"})
    (tmp_path / "away").mkdir()
    files(tmp_path / "away", {"c.txt": "secret"})
    return tmp_path / "home"


def read(workspace: Workspace, path: str) -> bytes:
    with workspace.open_read(path) as file:
        return file.read()


@pytest.mark.parametrize("path", ["a.txt", "./a.txt", "sub/../a.txt", "sub//../a.txt", "a.txt/"])
def test_a_file_is_read_however_its_path_is_written(home: Path, path: str) -> None:
    assert read(Workspace(home), path) == b"inside"
    assert read(Workspace(home), str(home / "a.txt")) == b"inside"


ESCAPES: list[tuple[str, Callable[[Path], Any] | None]] = [
    ("../outside.txt", None),
    ("sub/../../outside.txt", None),
    ("/etc/passwd", None),
    ("//etc/passwd", None),
    ("~/x", None),
    ("~root/x", None),
    ("..", None),
    ("/", None),
    ("../home-too/x", None),
    ("link.txt", lambda home: (home / "link.txt").symlink_to(home.parent / "outside.txt")),
    ("link/c.txt", lambda home: (home / "link").symlink_to(home.parent / "away")),
    ("up/outside.txt", lambda home: (home / "up").symlink_to("..")),
    ("chain", lambda home: ((home / "chain").symlink_to("two"), (home / "two").symlink_to("../outside.txt"))),
]


@pytest.mark.parametrize(("path", "make"), ESCAPES)
def test_no_path_leads_out(home: Path, path: str, make: Callable[[Path], Any] | None) -> None:
    if make:
        make(home)
    workspace = Workspace(home)
    sentence = f"{path} {IS_OUTSIDE_THE_WORKSPACE} {home}."
    assert complaint(ToolError, lambda: workspace.open_read(path)) == sentence
    assert complaint(ToolError, lambda: workspace.write(path, b"x")) == sentence
    assert complaint(ToolError, lambda: list(workspace.walk(path))) == sentence
    assert (home.parent / "outside.txt").read_text() == "secret"
    assert not (home.parent / "home-too").exists()


@pytest.mark.parametrize("path", ["a\0b", "\0", "a.txt\0../../x"])
def test_a_path_with_a_nul_is_refused(home: Path, path: str) -> None:
    workspace = Workspace(home)
    for act in (workspace.open_read, lambda path: workspace.write(path, b"")):
        assert complaint(ToolError, lambda act=act: act(path)) == f"{A_PATH_CANNOT_CONTAIN_A}."


def test_half_a_character_in_a_path_is_an_error_with_a_sentence(home: Path) -> None:
    assert "\\ud800 cannot be resolved: " in complaint(ToolError, lambda: Workspace(home).open_read("\ud800"))


def test_a_link_that_goes_in_circles_is_an_error(home: Path) -> None:
    (home / "round").symlink_to("round")
    said = complaint(ToolError, lambda: Workspace(home).open_read("round"))
    assert said.startswith("round")


def test_a_link_that_stays_inside_is_followed(home: Path) -> None:
    (home / "alias").symlink_to("sub/b.txt")
    assert read(Workspace(home), "alias") == b"deeper"
    assert Workspace(home).write("alias", b"new") is False
    assert (home / "alias").is_symlink()
    assert (home / "sub/b.txt").read_bytes() == b"new"


class Swapped(Workspace):
    """A workspace where somebody acts between the look at a path and its use."""

    def __init__(self, root: Path, act: Callable[[], Any]) -> None:
        super().__init__(root)
        self.act = act

    def resolve(self, path: str) -> Path:
        real = super().resolve(path)
        self.act()
        return real


def swap(place: Path, target: Path) -> Callable[[], Any]:
    """Put a link to ``target`` in the place of a file or folder."""

    def act() -> None:
        if not place.is_symlink():
            place.rename(place.with_name(place.name + ".old"))
            place.symlink_to(target)

    return act


def test_a_file_swapped_for_a_link_in_between_is_not_followed(home: Path) -> None:
    workspace = Swapped(home, swap(home / "a.txt", home.parent / "outside.txt"))
    complaint(ToolError, lambda: read(workspace, "a.txt"))
    workspace = Swapped(home, lambda: None)
    assert complaint(ToolError, lambda: read(workspace, "a.txt")).endswith(
        f"{IS_OUTSIDE_THE_WORKSPACE} {home}."
    )


def test_a_file_swapped_for_a_link_in_between_is_not_written_through(home: Path) -> None:
    workspace = Swapped(home, swap(home / "a.txt", home.parent / "outside.txt"))
    assert complaint(ToolError, lambda: workspace.write("a.txt", b"x")) == f"a.txt {IS_NOT_A_REGULAR_FILE}."
    assert (home.parent / "outside.txt").read_text() == "secret"


def test_a_folder_swapped_for_a_link_in_between_is_not_entered(home: Path) -> None:
    files(home.parent / "away", {"b.txt": "secret"})
    workspace = Swapped(home, swap(home / "sub", home.parent / "away"))
    complaint(ToolError, lambda: read(workspace, "sub/b.txt"))
    workspace = Swapped(home, lambda: None)
    (home / "sub").unlink()
    (home / "sub.old").rename(home / "sub")
    workspace = Swapped(home, swap(home / "sub", home.parent / "away"))
    complaint(ToolError, lambda: workspace.write("sub/b.txt", b"x"))
    assert (home.parent / "away/b.txt").read_text() == "secret"


def test_the_swap_of_this_test_does_lead_out_for_a_careless_reader(home: Path) -> None:
    workspace = Swapped(home, swap(home / "a.txt", home.parent / "outside.txt"))
    assert workspace.resolve("a.txt").read_text() == "secret"


# What is no file


def test_a_folder_is_told_from_a_file(home: Path) -> None:
    workspace = Workspace(home)
    for path in ("sub", ".", ""):
        said = complaint(ToolError, lambda path=path: workspace.open_read(path))
        assert said == f"{path} is a folder; {LIST_FILES_SHOWS_WHAT_IS}."
        assert complaint(ToolError, lambda path=path: workspace.write(path, b"")) == f"{path} is a folder."


def test_a_pipe_or_socket_is_refused_without_waiting(home: Path) -> None:
    os.mkfifo(home / "pipe")
    workspace = Workspace(home)
    assert complaint(ToolError, lambda: workspace.open_read("pipe")) == f"pipe {IS_NOT_A_REGULAR_FILE}."
    assert complaint(ToolError, lambda: workspace.write("pipe", b"")) == f"pipe {IS_NOT_A_REGULAR_FILE}."
    assert complaint(ToolError, lambda: list(workspace.walk("pipe"))) == f"pipe {IS_NOT_A_REGULAR_FILE}."
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(home / "sock"))
        assert complaint(ToolError, lambda: workspace.open_read("sock")).startswith("sock")


def test_a_device_is_refused() -> None:
    said = complaint(ToolError, lambda: Workspace("/dev").open_read("zero"))
    assert said == f"zero {IS_NOT_A_REGULAR_FILE}."


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("a.tx", " Did you mean a.txt?"),
        ("A.TXT", " Did you mean a.txt?"),
        ("sub/b.text", " Did you mean sub/b.txt?"),
        ("zzz", ""),
        ("no/where", ""),
    ],
)
def test_a_missing_file_is_told_with_the_nearest_name(home: Path, path: str, hint: str) -> None:
    assert complaint(ToolError, lambda: Workspace(home).open_read(path)) == f"There is no file {path}.{hint}"
    assert complaint(ToolError, lambda: list(Workspace(home).walk(path))) == f"There is no file {path}.{hint}"


def test_a_file_used_as_a_folder_is_told(home: Path) -> None:
    assert complaint(ToolError, lambda: Workspace(home).open_read("a.txt/x")) == "a.txt/x: not a directory."
    assert complaint(ToolError, lambda: Workspace(home).write("a.txt/x", b"")) == "a.txt/x: not a directory."


def test_a_name_too_long_is_told(home: Path) -> None:
    name = "x" * 300
    sentence = f"{name} cannot be resolved: file name too long."
    workspace = Workspace(home)
    assert complaint(ToolError, lambda: workspace.open_read(name)) == sentence
    assert complaint(ToolError, lambda: workspace.write(name, b"")) == sentence
    assert complaint(ToolError, lambda: list(workspace.walk(name))) == sentence


# Writing


def test_writing_makes_a_file_and_its_folders_and_says_whether_it_is_new(home: Path) -> None:
    workspace = Workspace(home)
    assert workspace.write("new/deep/x.txt", b"one") is True
    assert workspace.write("new/deep/x.txt", b"two") is False
    assert (home / "new/deep/x.txt").read_bytes() == b"two"


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o777, 0o200])
def test_a_replaced_file_keeps_its_mode(home: Path, mode: int) -> None:
    (home / "a.txt").chmod(mode)
    Workspace(home).write("a.txt", b"x")
    assert stat.S_IMODE((home / "a.txt").stat().st_mode) == mode


def test_a_file_is_removed_only_as_it_was_read(home: Path) -> None:
    space = Workspace(home)
    space.write("new.txt", b"new")
    assert complaint(ToolError, lambda: space.remove("new.txt", b"old")) == (
        f"new.txt {HAS_CHANGED_SINCE_IT_WAS_READ}. {READ_IT_AGAIN_THEN_CHANGE}."
    )
    space.remove("new.txt", b"new")
    assert not (home / "new.txt").exists()


def test_a_new_file_heeds_the_umask(home: Path) -> None:
    before = os.umask(0o027)
    try:
        Workspace(home).write("x.txt", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((home / "x.txt").stat().st_mode) == 0o640


@pytest.mark.parametrize("name", ["é" * 120, "🙂" * 60, "x" * 255])
def test_a_long_name_can_be_written(home: Path, name: str) -> None:
    assert Workspace(home).write(name, b"x") is True


def test_a_write_that_fails_leaves_the_old_file_and_no_scratch(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    said = complaint(ToolError, lambda: Workspace(home).write("a.txt", b"half"))
    assert said == "a.txt: no space left on device."
    assert (home / "a.txt").read_bytes() == b"inside"
    assert sorted(os.listdir(home)) == ["a.txt", "sub"]


def test_many_writers_of_one_file_leave_one_whole_file(home: Path) -> None:
    workspace = Workspace(home)
    texts = [bytes([65 + n]) * 100_000 for n in range(8)]
    faults: list[BaseException] = []

    def write(text: bytes) -> None:
        try:
            for _ in range(5):
                workspace.write("a.txt", text)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=write, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert (home / "a.txt").read_bytes() in texts
    assert sorted(os.listdir(home)) == ["a.txt", "sub"]


def test_secret_files_are_neither_read_nor_written_nor_found(home: Path) -> None:
    files(home, {"catalog.key": "hush"})
    (home / "alias").symlink_to("catalog.key")
    workspace = Workspace(home, secret=[home / "alias"])
    for path in ("catalog.key", "alias", "sub/../catalog.key"):
        said = complaint(ToolError, lambda path=path: workspace.open_read(path))
        assert said == f"{path} is a secret of quoth's, which no tool may read."
        said = complaint(ToolError, lambda path=path: workspace.write(path, b"x"))
        assert said == f"{path} {BELONGS_TO_QUOTH_ITSELF_AND}."
        assert not [*workspace.walk(path)]
    assert home / "catalog.key" not in workspace.walk(".")


def test_protected_folders_are_read_but_never_written(home: Path) -> None:
    files(home, {"state/store": "kept"})
    (home / "alias").symlink_to("state")
    workspace = Workspace(home, protected=(home / "state",))
    for path in ("state/store", "state/new", "alias/store", "sub/../state/x/y"):
        said = complaint(ToolError, lambda path=path: workspace.write(path, b"x"))
        assert said == f"{path} {BELONGS_TO_QUOTH_ITSELF_AND}."
    assert read(workspace, "state/store") == b"kept"
    assert not (home / "state/x").exists()
    for path in (".git/config", "sub/.git", "sub/.GIT/hooks/pre-commit", "sub/../.git/commondir"):
        said = complaint(ToolError, lambda path=path: workspace.write(path, b"x"))
        assert said == f"{path} belongs to git itself and {CANNOT_BE_WRITTEN} by a tool."
    workspace.write(".gitignore", b"x")


# Walking


def test_a_walk_is_sorted_and_follows_no_link(home: Path) -> None:
    files(home, {"z.txt": "", "b/c.txt": "", ".git/config": "", "node_modules/x": "", "b/__pycache__/y": ""})
    (home / "loop").symlink_to(".")
    (home / "away").symlink_to("../away")
    (home / "out.txt").symlink_to("../outside.txt")
    os.mkfifo(home / "pipe")
    workspace = Workspace(home)
    shown = [workspace.shown(path) for path in workspace.walk(".")]
    assert shown == ["a.txt", "z.txt", "b/c.txt", "sub/b.txt"]


def test_a_skipped_folder_is_walked_when_it_is_named(home: Path) -> None:
    files(home, {".git/config": ""})
    workspace = Workspace(home)
    assert [workspace.shown(path) for path in workspace.walk(".git")] == [".git/config"]


def test_a_walk_of_a_file_is_that_file(home: Path) -> None:
    assert list(Workspace(home).walk("a.txt")) == [home / "a.txt"]


# The guard's word


def test_inside_workspace_is_a_verdict(home: Path) -> None:
    context = ToolContext(Workspace(home))
    assert enter_context(context).run(inside_workspace, "a.txt") is ALLOW
    verdict = enter_context(context).run(inside_workspace, "../x")
    assert (verdict.kind, verdict.reason) == ("deny", f"../x {IS_OUTSIDE_THE_WORKSPACE} {home}.")
    assert inside_workspace("a.txt").kind == "deny"  # outside of any call


@given(
    st.lists(st.sampled_from(["..", ".", "sub", "a.txt", "~", "/", "", "link", "x"]), max_size=6).map(
        "/".join
    )
)
def test_whatever_the_path_what_is_resolved_is_inside(path: str) -> None:
    workspace = Workspace("/usr/share")
    try:
        real = workspace.resolve(path)
    except ToolError as error:
        said = str(error)
    else:
        said = ""
        assert real == workspace.root or workspace.root in real.parents
    assert said in ("", f"{path} {IS_OUTSIDE_THE_WORKSPACE} /usr/share.")


def test_a_new_file_does_not_replace_one_that_an_editor_makes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_the_last_moment(*given: Any) -> bool:
        files(tmp_path, {"a.txt": "the editor's"})
        return replace_in(*given)

    replace_in = workspace_module.replace_in
    monkeypatch.setattr(workspace_module, "replace_in", at_the_last_moment)
    said = complaint(ToolError, lambda: Workspace(tmp_path).write("a.txt", b"ours", before=b""))
    assert said == f"a.txt {HAS_CHANGED_SINCE_IT_WAS_READ}. {READ_IT_AGAIN_THEN_CHANGE}."
    assert (tmp_path / "a.txt").read_text() == "the editor's"
