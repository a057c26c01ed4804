"""Files that are replaced whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from quoth.tools.storage.atomic import replace_file


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
