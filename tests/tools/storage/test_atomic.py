"""Files that are replaced whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quoth.tools.storage.atomic import is_scratch, new_file, replace_file


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("before", [None, b"old and longer"])
def test_all_pieces_stand_in_the_place_of_what_was_there(tmp_path: Path, before: bytes | None) -> None:
    if before is not None:
        (tmp_path / "a.txt").write_bytes(before)
    assert replace_file(tmp_path / "a.txt", [b"new, ", b"in pieces"])
    assert contents(tmp_path) == {"a.txt": b"new, in pieces"}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_mode_is_the_one_asked_for_whatever_the_umask_says(tmp_path: Path, mode: int) -> None:
    (tmp_path / "a.txt").write_bytes(b"old")
    umask = os.umask(0o077)
    try:
        replace_file(tmp_path / "a.txt", [b"new"], mode)
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == mode


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_without_a_mode_the_umask_says_it(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        replace_file(tmp_path / "a.txt", [b"new"])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("error", [ValueError("bad"), KeyboardInterrupt()])
def test_pieces_that_break_off_leave_all_as_it_was(tmp_path: Path, error: BaseException) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"new"
        raise error

    (tmp_path / "a.txt").write_bytes(b"old")
    with pytest.raises(type(error)):
        replace_file(tmp_path / "a.txt", pieces())
    assert contents(tmp_path) == {"a.txt": b"old"}


def test_a_full_disk_leaves_all_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "a.txt").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(tmp_path / "a.txt", [b"new"])
    assert contents(tmp_path) == {"a.txt": b"old"}


def test_who_is_no_longer_sure_when_all_is_on_disk_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"old")
    asked = []

    def sure() -> bool:
        asked.append(contents(tmp_path))
        return False

    assert not replace_file(tmp_path / "a.txt", [b"new"], sure=sure)
    assert [sorted(seen.values()) for seen in asked] == [[b"new", b"old"]]
    assert contents(tmp_path) == {"a.txt": b"old"}


# * What a kill leaves


def left_by_a_kill(folder: Path) -> str:
    """The name of the scratch file of a process that was killed while it wrote a file in the folder."""
    with writing(folder) as writer:
        (name,) = (name for name in contents(folder) if name.endswith(".quoth"))
        writer.kill()
        writer.wait()
    return name


@contextmanager
def writing(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has written half of ``big.txt`` in the folder."""
    program = (
        "import sys, time; from pathlib import Path; from quoth.tools.storage.atomic import replace_file\n"
        "def pieces():\n    yield b'half'\n    print('half', flush=True)\n    time.sleep(60)\n"
        "replace_file(Path(sys.argv[1]), pieces())"
    )
    command = [sys.executable, "-c", program, str(folder / "big.txt")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()


def test_the_next_write_in_a_folder_removes_what_a_kill_left(tmp_path: Path) -> None:
    name = left_by_a_kill(tmp_path)
    assert is_scratch(name)
    (tmp_path / "deeper").mkdir()
    replace_file(tmp_path / "deeper/a.txt", [b"new"])
    assert name in contents_of_files(tmp_path)
    replace_file(tmp_path / "a.txt", [b"new"])
    assert contents_of_files(tmp_path) == {"a.txt": b"new"}


def contents_of_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_file_that_is_still_being_written_is_left_alone(tmp_path: Path) -> None:
    with writing(tmp_path):
        replace_file(tmp_path / "a.txt", [b"new"])
        assert sorted(map(is_scratch, contents(tmp_path))) == [False, True]


def test_only_regular_files_of_ours_are_removed(tmp_path: Path) -> None:
    names = [".quoth", ".0123.quoth", "0123456789abcdef.quoth", ".0123456789abcdef.quoth.txt"]
    for name in names:
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / ".0123456789abcdea.quoth").mkdir()
    (tmp_path / ".0123456789abcdeb.quoth").symlink_to(tmp_path / ".quoth")
    os.mkfifo(tmp_path / ".0123456789abcdec.quoth")
    before = sorted(os.listdir(tmp_path))
    replace_file(tmp_path / "a.txt", [b"new"])
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "a.txt"])


def test_one_that_was_removed_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock

    def flock(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        for path in tmp_path.iterdir():  # another writer, just before
            path.unlink()
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    assert replace_file(tmp_path / "a.txt", [b"new"])
    assert contents(tmp_path) == {"a.txt": b"new"}


# * New files


def test_a_new_file_takes_the_place_of_nothing(tmp_path: Path) -> None:
    new_file(tmp_path / "a.txt", [b"one"], 0o640)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640
    with pytest.raises(FileExistsError):
        new_file(tmp_path / "a.txt", [b"two"])
    assert contents(tmp_path) == {"a.txt": b"one"}


def test_a_new_file_that_cannot_be_written_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            new_file(tmp_path / "a.txt", [b"one"])
    assert contents(tmp_path) == {}
    new_file(tmp_path / "a.txt", [b"one"])


def test_a_new_file_where_files_have_one_name_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*given: object, **more: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", link)
    new_file(tmp_path / "a.txt", [b"one"])
    with pytest.raises(FileExistsError):
        new_file(tmp_path / "a.txt", [b"two"])
    assert contents(tmp_path) == {"a.txt": b"one"}
