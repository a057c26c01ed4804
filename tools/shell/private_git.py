"""A private copy of the workspace's ``.git`` for one confined program, of which only data comes back.

git outside runs commands from the settings of a repository, and a program that uses git must write into
``.git``. So it writes into a copy, beside the real objects. After the program, the index, HEAD, branches,
tags and their logs are carried back, each by git's own lock and rename, all or none; the rest is dropped.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from quoth.tools.shell.plain_git import HALFWAY, IndexReader, is_data, not_data
from quoth.tools.storage.paths import state_dir
from quoth.tools.text import excerpt, file_name

PREFIX = "git-"
COPIED = re.compile(r"refs|logs|info|rr-cache|sequencer|rebase-.*")  # of folders; the others are read-only
SHARED = ("objects", "lfs")  # the real ones
KEPT = {"HEAD", "packed-refs", "refs", "index"}  # files that may not change outside meanwhile
MOST_FILES = 50_000
MOST_BYTES = 512 << 20
LOCK_SECONDS = 2.0  # an editor's git locks the index for a moment
Signature = tuple[int, ...]


class Unusable(Exception):
    """Why a repository cannot be copied, or its copy cannot be carried back: part of a sentence."""


class PrivateGit:
    """The copy for one program. Call ``carry`` once the program has ended, and ``drop`` in any case."""

    def __init__(self, git: Path) -> None:
        """Copy ``git``. Raises Unusable and OSError."""
        _clear()
        _require_usual(git)
        state_dir().mkdir(mode=0o700, parents=True, exist_ok=True)
        self._git = git
        self._put_some = False
        new = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=state_dir()))
        self._lock = _locked(new)  # until it is dropped: other processes remove copies without a lock
        self._folder = new.rename(new.with_name(new.name[1:]))
        self.copy = self._folder / "git"
        self.real: dict[str, bool] = {}  # real files that are shown, and whether they are writable
        try:
            self.copy.mkdir()
            self._before = self._copied()
            self._index = self._folder / "index"
            if (git / "index").exists():
                shutil.copyfile(self.copy / "index", self._index)
            self._written = _signatures(self.copy, self.real)
        except BaseException:
            self.drop()
            raise

    def drop(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)

    def _copied(self) -> dict[str, Signature]:
        """Copy the files that a program may write; returns the signatures of the originals."""
        for entry in os.scandir(self._git):
            if entry.is_dir(follow_symlinks=False):
                (self.copy / entry.name).mkdir()
                if not COPIED.fullmatch(entry.name):
                    self.real[entry.name] = entry.name in SHARED
            elif entry.name == "config":
                (self.copy / "config").touch()
                self.real["config"] = False
        copied, total, folders = {}, 0, {""}
        for name, entry in _files(self._git, self.real):
            if entry.is_symlink():
                raise Unusable(f"{excerpt(file_name(name))} is a link")
            if entry.is_file(follow_symlinks=False) and not name.endswith(".lock"):
                if (folder := name.rpartition("/")[0]) not in folders:
                    (self.copy / folder).mkdir(parents=True, exist_ok=True)
                    folders.add(folder)
                copied[name] = _copy(entry.path, f"{self.copy}/{name}")
                total += copied[name].st_size
                if total > MOST_BYTES:
                    raise Unusable(f"it has more than {MOST_BYTES >> 20} MB beside its objects")
        return {name: _signature(seen) for name, seen in copied.items()}

    # After the program

    def carry(self) -> list[str]:
        """Carry the data of the copy back; returns sentences about data that was dropped."""
        try:
            now = _signatures(self.copy, self.real)
            changed = {name for name in {**now, **self._written} if now.get(name) != self._written.get(name)}
            ours = {name for name in changed if _comes_back(name, now)}
            reader = IndexReader(self._git, self._folder) if "index" in ours else None
            if reader and reader.same(self.copy / "index", self._index):
                ours.remove("index")
            if ours:
                self._require_data(ours, now)
                if reader and "index" in now and not reader.is_plain(self.copy / "index"):
                    raise Unusable("git refuses a name in the index, or the index is incomplete")
                if reader:
                    self._require_no_links(reader)
                with self._locks({*ours, "HEAD", "index"}) as locks:
                    self._require_unchanged(reader)
                    self._put(ours, now, locks)
        except (Unusable, OSError, ValueError) as error:
            why = reason(error)
            if self._put_some:
                return [f"Only a part of the program's changes by git was kept: {why}. Run git fsck."]
            return [
                f"None of the program's changes by git was kept: {why}. HEAD, branches and the index are as"
                " before; the files of the workspace are as the program left them."
            ]
        return _left_out({_whole(name) for name in changed - ours if not name.endswith(".lock")} - {"index"})

    def _require_data(self, ours: set[str], now: Mapping[str, Signature]) -> None:
        names = {name.partition("/")[0] for name in now} | set(os.listdir(self._git))  # noqa: PTH208
        if halfway := min(filter(HALFWAY.fullmatch, names), default=""):
            raise Unusable(
                f"a rebase, a sequence of picks or a bisect stopped half-way (.git/{halfway}). Finish or"
                ' abort it in the same call, as in ["sh" "-c" "git rebase main || git rebase --abort"],'
                " or run it outside"
            )
        if "HEAD" not in now or not (self.copy / "refs").is_dir() or (self.copy / "refs").is_symlink():
            raise Unusable("the program removed HEAD or all references")
        for name in ours & now.keys():
            if name.startswith("logs/") or name == "index":
                continue
            if why := not_data(name, (self.copy / name).read_bytes()):
                raise Unusable(f"{excerpt(file_name(name))} {why}")

    def _require_no_links(self, reader: IndexReader) -> None:
        """Raise Unusable if an index names a repository: git outside would run commands from its settings."""
        if made := min(reader.links(self.copy / "index") - reader.links(self._index), default=""):
            raise Unusable(
                f"the index names {excerpt(made)}, which is a separate repository. Exclude it, for example by"
                " .gitignore, or add it outside"
            )

    def _require_unchanged(self, reader: IndexReader | None) -> None:
        others = set(os.listdir(self._git)) - KEPT  # noqa: PTH208
        now = {name: seen for name, seen in _signatures(self._git, others).items() if name[-5:] != ".lock"}
        before = {name: seen for name, seen in self._before.items() if name.partition("/")[0] in KEPT}
        if now.pop("index", None) != before.pop("index", None):
            reader = reader or IndexReader(self._git, self._folder)
            before["index"] = () if reader.same(self._git / "index", self._index) else (1,)
            now["index"] = ()
        if now != before:
            raise Unusable("HEAD, a branch or the index was changed outside meanwhile")

    @contextlib.contextmanager
    def _locks(self, names: set[str]) -> Iterator[dict[str, Path]]:
        """git's own locks of these files, each with the new content; removed at the end."""
        locks: dict[str, Path] = {}
        deadline = time.monotonic() + LOCK_SECONDS
        try:
            for name in sorted(names):
                target = self._git / name
                if any(parent.is_file() for parent in target.parents if parent.is_relative_to(self._git)):
                    continue  # branch a is removed to make room for a/b: its own lock is enough
                target.parent.mkdir(parents=True, exist_ok=True)
                lock = target.with_name(f"{target.name}.lock")
                _take(lock, deadline)
                locks[name] = lock
                source = self.copy / name
                if source.is_file() and not source.is_symlink():
                    shutil.copyfile(source, lock, follow_symlinks=False)
                    with contextlib.suppress(FileNotFoundError):
                        lock.chmod(stat.S_IMODE(target.stat().st_mode))
            yield locks
        finally:
            for lock in locks.values():
                with contextlib.suppress(OSError):
                    lock.unlink()

    def _put(self, ours: set[str], now: Mapping[str, Signature], locks: Mapping[str, Path]) -> None:
        """Write the packed references first, so that none is missing meanwhile, and HEAD last."""
        self._put_some = True
        order = sorted(ours, key=lambda name: (name == "HEAD", name == "index", name))
        if "packed-refs" in ours & now.keys():
            locks["packed-refs"].replace(self._git / "packed-refs")
            order.remove("packed-refs")
        for name in order:
            if name not in now:  # first, because a branch may now have the name of a folder
                (self._git / name).unlink(missing_ok=True)
                if name in locks:
                    locks[name].unlink(missing_ok=True)
                _prune((self._git / name).parent, self._git)
        for name in order:
            if name in now:
                target = self._git / name
                target.parent.mkdir(parents=True, exist_ok=True)
                if name in locks:
                    locks[name].replace(target)
                else:
                    shutil.copyfile(self.copy / name, target)


def reason(error: Exception) -> str:
    return (
        (getattr(error, "strerror", None) or str(error)).lower() if isinstance(error, OSError) else str(error)
    )


def _require_usual(git: Path) -> None:
    for name in ("HEAD", "objects", "refs"):
        if not (git / name).exists():
            raise Unusable(f"it has no {name}")
    if (git / "reftable").exists():
        raise Unusable("it keeps its branches in a reftable")
    if (git / "commondir").exists():
        raise Unusable("it is part of another repository")


def _copy(source: str, target: str) -> os.stat_result:
    """Copy a regular file; returns its status at that time. There may be thousands: no Path, no buffer."""
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        seen = os.fstat(reading)
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, seen.st_mode & 0o777)
        try:
            while data := os.read(reading, 1 << 20):
                while data:
                    data = data[os.write(writing, data) :]
        finally:
            os.close(writing)
    finally:
        os.close(reading)
    return seen


def _files(folder: Path, without: Collection[str] = ()) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """The entries below a folder that are not folders, with their relative names."""
    waiting, count = [(str(folder), "")], 0
    while waiting:
        place, prefix = waiting.pop()
        with os.scandir(place) as entries:
            for entry in entries:
                name = f"{prefix}{entry.name}"
                if name in without:
                    continue
                count += 1
                if count > MOST_FILES:
                    raise Unusable(f"it has more than {MOST_FILES} files beside its objects")
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, f"{name}/"))
                else:
                    yield name, entry


def _signatures(folder: Path, without: Collection[str] = ()) -> dict[str, Signature]:
    return {name: _signature(entry.stat(follow_symlinks=False)) for name, entry in _files(folder, without)}


def _signature(seen: os.stat_result) -> Signature:
    return (seen.st_mode, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)


def _comes_back(name: str, now: Mapping[str, Signature]) -> bool:
    """Whether a file in its present form is carried back; a link, a pipe or a huge file is not."""
    usual = name not in now or (stat.S_ISREG(now[name][0]) and now[name][2] <= MOST_BYTES)
    return usual and is_data(name)


def _whole(name: str) -> str:
    """A name for a message; for a file of a stopped operation, its folder."""
    first = name.partition("/")[0]
    return first if HALFWAY.fullmatch(first) else name


def _left_out(names: set[str]) -> list[str]:
    if not names:
        return []
    shown = ", ".join(f".git/{excerpt(file_name(name))}" for name in sorted(names)[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return [f"Only data is kept from .git; this was dropped: {shown}{more}."]


def _take(lock: Path, deadline: float) -> None:
    while True:
        try:
            os.close(os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            return
        except FileExistsError:
            if time.monotonic() > deadline:
                raise Unusable(f"git outside has locked {lock.name}") from None
            time.sleep(0.02)


def _prune(folder: Path, git: Path) -> None:
    """Remove empty folders, as git does, so that a branch may have the name."""
    while len(folder.relative_to(git).parts) > 2:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def _clear() -> None:
    """Remove the copies of processes that were killed; those of another container may share the folder."""
    for folder in state_dir().glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = _locked(folder)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _locked(folder: Path) -> int:
    """The folder, open and locked. Raises OSError if another process has the lock."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(opened)
        raise
    return opened
