"""Git worktrees for agents that work beside each other: makes them, commits, compares and merges their files.

A worktree is named after its session. Its folder is in the state folder, outside every workspace, and its
branch is ``quoth/NAME``. On disk, in this order: branch, git's folder of the worktree, its files, its index;
without an index a worktree is incomplete. Of a merge: a note with both commits, the files, the index, the
branch; a merge that was broken off is rolled back, or finished if the index was written.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from quoth.tools.errors import ToolError
from quoth.tools.shell.own_git import (
    SECONDS,
    Changed,
    OwnGit,
    Repository,
    content_of,
    is_missing_side,
    shown_change,
)
from quoth.tools.shell.plain_git import HALFWAY
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.file_lock import hold
from quoth.tools.storage.paths import NAMES_OF_WORKTREES, private_folder, worktrees_dir
from quoth.tools.text import file_name

PREFIX = "quoth/"  # of branches
TURN_SECONDS = 60.0  # for other changes of this project's worktrees
LOCK_SECONDS = 3.0  # git outside locks the index for a moment
SHOWN = 5
MOST_SHOWN = 99  # files of a difference in a request for approval


@dataclass(frozen=True)
class Worktree:
    """The worktree of one session. ``tip`` is the last commit on its branch, empty if the branch is missing.
    ``ahead`` is the number of its commits that the current branch of the project lacks; ``uncommitted``
    the number of its changed files that are in no commit."""

    name: str
    folder: Path
    tip: str = ""
    ahead: int = 0
    uncommitted: int = 0
    state: str = ""  # "", "incomplete", "no folder", "merge broken off"

    @property
    def branch(self) -> str:
        return f"{PREFIX}{self.name}"


class Worktrees:
    """The worktrees of a project's sessions. All methods raise ToolError."""

    def __init__(self, home: Path) -> None:
        """Find the repository of the project ``home``."""
        self.repo = Repository(home)
        self.home = self.repo.home
        self.folder = worktrees_dir(self.home)

    def _place(self, name: str) -> Path:
        """The folder of a worktree, which need not exist."""
        if not NAMES_OF_WORKTREES.fullmatch(name):
            raise ToolError(f"{file_name(name)} is not the name of a worktree.")
        return self.folder / name

    # References

    def tip(self, name: str) -> str:
        """The last commit on the branch of a worktree; empty if the branch is missing."""
        return self._branches().get(name, "")

    def _branches(self) -> dict[str, str]:
        wanted = ("--format=%(refname) %(objectname)", f"refs/heads/{PREFIX}")
        rows = (row.rpartition(" ") for row in self.repo.real("for-each-ref", *wanted).splitlines())
        return {ref.removeprefix(f"refs/heads/{PREFIX}"): commit for ref, _, commit in rows}

    def _admin(self, folder: Path) -> Path | None:
        """Git's own folder of a worktree: the one that names it. The file ``.git`` in the worktree is not
        asked, because a program in it may have changed that."""
        for back in self.repo.common.glob("worktrees/*/gitdir"):
            with contextlib.suppress(OSError):
                if back.read_text().strip() == str(folder / ".git"):
                    return back.parent
        return None

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        busy = f"Another process is changing the worktrees of {self.home}; try again."
        with hold(f"worktrees of {self.home}", busy, TURN_SECONDS):
            if self._removing.exists():  # a process was killed
                packed = self.repo.common / "packed-refs"
                locks = [packed.with_suffix(".new"), packed.with_suffix(".lock")]
                _unlock_left(locks, self._removing.stat().st_mtime)
                self._removing.unlink()
            yield

    # Worktrees

    def names(self) -> list[str]:
        there = self.folder.iterdir() if self.folder.is_dir() else ()
        names = {*(entry.name for entry in there if entry.is_dir()), *self._branches()}
        return sorted(filter(NAMES_OF_WORKTREES.fullmatch, names))

    def known(self, name: str) -> Worktree:
        """The worktree with this name, as it is now. Raises ToolError with the names that exist."""
        branches = self._branches()
        folder = self._place(name)
        if name not in branches and not folder.is_dir():
            others = ", ".join(self.names()[:SHOWN])
            raise ToolError(
                f"No worktree is named {name}." + (f" The names are: {others}." if others else "")
            )
        tip = branches.get(name, "")
        ahead = int(self.repo.real("rev-list", "--count", f"{self.repo.head()}..{tip}")) if tip else 0
        admin = self._admin(folder)
        complete = admin is not None and (admin / "index").exists() and folder.is_dir()
        if self._note(name).exists():
            state = "merge broken off"
        else:
            state = "" if complete and tip else "no folder" if tip and not folder.is_dir() else "incomplete"
        uncommitted = 0
        if complete and tip and admin is not None:
            with self.repo.own(folder, admin / "index") as git:
                uncommitted = len(git.changed(tip))
        return Worktree(name, folder, tip, ahead, uncommitted, state)

    def open(self, name: str) -> tuple[Worktree, bool]:
        """The worktree with this name, made if there is none; and whether it was made. A new one begins with
        the last commit on its branch, if it has one, otherwise with the project's current commit."""
        folder, branch = self._place(name), f"{PREFIX}{name}"
        with self._alone():
            self._unlock_branch(name)
            head, tip, admin = self.repo.head(), self.tip(name), self._admin(folder)
            if tip and admin is not None and (admin / "index").exists() and folder.is_dir():
                self._require_branch(name, admin)
                (folder / ".git").write_text(f"gitdir: {admin}\n")  # a program may have changed it
                return Worktree(name, folder, tip), False
            if admin is None and folder.is_dir() and any(one.name != ".git" for one in folder.iterdir()):
                raise ToolError(f"git does not know the worktree {folder} any more; move its files away.")
            private_folder(self.folder)
            self._clear(name)
            where = [str(folder), branch] if tip else ["-b", branch, str(folder), head]
            try:
                self.repo.real("worktree", "add", "--no-checkout", "-f", *where)
                self._check_out(folder, tip or head)
            except BaseException:
                self._clear(name)
                if not tip:
                    with contextlib.suppress(ToolError):
                        self._remove_branch(name, head)
                raise
            return Worktree(name, folder, tip or head), True

    def _check_out(self, folder: Path, commit: str) -> None:
        admin = self._admin(folder)
        if admin is None:
            raise ToolError(f"git has no record of the worktree {folder}.")
        with self.repo.own(folder) as git:
            git("read-tree", commit)
            git("checkout-index", "--all", "--force", "--quiet", "-u")
            git.keep_index(admin / "index")

    def _clear(self, name: str) -> None:
        """Remove the folder of a worktree, and git's own folder of it; its branch stays."""
        folder = self._place(name)
        admin = self._admin(folder)
        nameless = self.repo.common / "worktrees" / name
        if admin is None and nameless.is_dir() and not (nameless / "gitdir").exists():
            admin = nameless  # git was killed before it wrote the name
        for place in (folder, admin):
            if place is not None and place.is_dir():
                shutil.rmtree(place, onerror=_writable)
                if place.exists():
                    raise ToolError(f"{place} cannot be removed.")

    def _require_branch(self, name: str, admin: Path) -> None:
        """Raise ToolError if a person has checked out something else there."""
        head = (admin / "HEAD").read_text().strip().removeprefix("ref: refs/heads/")
        if head != f"{PREFIX}{name}":
            raise ToolError(
                f"{file_name(head)} is checked out in the worktree {self._place(name)}, and quoth works only"
                f" on its own branch. Commit your changes, then type there: git switch {PREFIX}{name}"
            )

    def _unlock_branch(self, name: str) -> None:
        """Remove the lock of a branch of ours, which a killed git has left: only we change it, one by one."""
        (self.repo.common / f"refs/heads/{PREFIX}{name}.lock").unlink(missing_ok=True)

    @property
    def _removing(self) -> Path:
        """A note that a branch is being removed, for which git locks the branches of the person, too."""
        return self.folder / ".removing"

    def _remove_branch(self, name: str, commit: str) -> None:
        private_folder(self.folder)
        self._removing.touch()
        try:
            self.repo.real("update-ref", "-d", f"refs/heads/{PREFIX}{name}", commit)
        except ToolError:
            self._removing.unlink()
            raise
        self._removing.unlink()

    def remove(self, name: str) -> None:
        """Remove a worktree with its branch, and what is in neither another branch nor a commit."""
        with self._alone():
            self._finish(name)
            self._clear(name)
            self._unlock_branch(name)
            if tip := self.tip(name):
                self._remove_branch(name, tip)

    def outside(self) -> int:
        """The number of changed files in the project that are in no commit."""
        with self.repo.own(self.repo.top, self.repo.git / "index") as git:
            return len(git.changed(self.repo.head()))

    def commit(self, name: str, message: str) -> str:
        """Commit all changes in a worktree, without ignored files and without repositories in it; returns the
        last commit on its branch."""
        folder = self._place(name)
        with self._alone():
            self._unlock_branch(name)
            admin, tip = self._admin(folder), self.tip(name)
            if admin is None or not tip or not (admin / "index").exists() or not folder.is_dir():
                return tip
            self._require_branch(name, admin)
            with self.repo.own(folder, admin / "index") as git:
                if not (changed := git.changed(tip)):
                    return tip
                there = {path for path in changed if _is_file(folder, path)}
                for paths, how in ((changed - there, "--force-remove"), (there, "--add")):
                    listed = b"".join(os.fsencode(path) + b"\0" for path in paths)
                    git("update-index", "-z", how, "--replace", "--stdin", stdin=listed)
                tree = git.line("write-tree")
                if tree == git.line("rev-parse", f"{tip}^{{tree}}"):
                    return tip
                made = git.line("commit-tree", tree, "-p", tip, stdin=message.encode())
                why = f"commit (quoth): {message.partition(chr(10))[0][:60]}"
                self.repo.real("update-ref", "-m", why, f"refs/heads/{PREFIX}{name}", made, tip)
                git.keep_index(admin / "index")
                return made

    # Comparing and merging

    def merged(self, name: str, commit: str) -> tuple[str, str, list[Changed]]:
        """The current commit of the project, the tree that a merge of ``commit`` gives, and its changes.
        Raises ToolError for conflicts, naming the files."""
        head = self.repo.head()
        with self.repo.own(self.repo.top) as git:
            said = git("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", head, commit,
                       codes=(0, 1))  # fmt: skip
            tree, *conflicts = os.fsdecode(said).rstrip("\0").split("\0")
            if conflicts := sorted({one for one in conflicts if one}):
                files = ", ".join(map(file_name, conflicts[:SHOWN]))
                more = f" and {len(conflicts) - SHOWN} more" if len(conflicts) > SHOWN else ""
                raise ToolError(
                    f"{PREFIX}{name} conflicts with the current branch in {files}{more}. Nothing was"
                    f" changed. To merge it yourself: git merge {PREFIX}{name}"
                )
            changes = git.differing(head, tree)
            if wrong := next((one.path for one in changes if not _is_inside(one.path)), ""):
                raise ToolError(f"{PREFIX}{name} has a path that git refuses: {file_name(wrong)}.")
            return head, tree, changes

    def differences(self, name: str, commit: str) -> tuple[str, str, list[Changed]]:
        """The same, if a merge is possible now."""
        if self._note(name).exists() and self.finish(name):
            raise ToolError(f"The merge of {PREFIX}{name} was broken off, and is finished now.")
        if (tip := self.tip(name)) != commit:
            raise ToolError(_moved(name, tip))
        self._require_quiet()
        head, tree, changes = self.merged(name, commit)
        if self._is_in(commit, head):
            raise ToolError(f"{PREFIX}{name} has nothing to merge.")
        self.require_clean(head, changes)
        return head, tree, changes

    def shown(self, name: str, commit: str) -> list[list[str | bytes | None]]:
        """The changes of a merge for a person: path in the project, text before, text after."""
        _, _, changes = self.differences(name, commit)
        with self.repo.own(self.repo.top) as git:
            found = [
                shown_change(self._in_project(one), git.blob(one.before), git.blob(one.after))
                for one in changes[:MOST_SHOWN]
            ]
        if more := len(changes) - MOST_SHOWN:
            found += [[f"{more} more files", None, f"See: quoth worktrees diff {name}\n"]] if more > 0 else []
        return found

    def _in_project(self, one: Changed) -> Changed:
        """A change with its path from the project, which may be a folder of the repository: an approval is
        bound to the file that is there."""
        return one._replace(path=os.path.relpath(self.repo.top / one.path, self.home))

    def since_base(self, commit: str) -> list[tuple[str, bytes | None, bytes | None]]:
        """The files that a commit has changed since it left the current branch: path, before, after."""
        base = self.repo.real("merge-base", self.repo.head(), commit)
        with self.repo.own(self.repo.top) as git:
            changes = git.differing(base, commit)
            return [(one.path, git.blob(one.before), git.blob(one.after)) for one in changes]

    def merge(self, name: str, commit: str, message: str) -> tuple[str, int]:
        """Merge the commit of a worktree into the project's current branch and its files, all or nothing;
        returns the new commit and the number of changed files. Files with changes that are in no commit stay;
        if one of them would change, nothing does."""
        with self._alone():
            if done := self._finish(name):
                return done, 0
            head, tree, changes = self.differences(name, commit)
            with self.repo.own(self.repo.top, self.repo.git / "index") as git:
                new = commit
                if not self._is_in(head, commit):
                    new = git.line("commit-tree", tree, "-p", head, "-p", commit, stdin=message.encode())
                self._apply(git, name, head, new)
            return new, len(changes)

    def _is_in(self, commit: str, other: str) -> bool:
        """Whether a commit is an ancestor of another, or the same."""
        return self.repo.real("merge-base", commit, other) == commit

    def _require_quiet(self) -> None:
        found = [entry.name for entry in self.repo.git.iterdir()]
        stopped = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")
        if halfway := [one for one in found if HALFWAY.fullmatch(one) or one in stopped]:
            raise ToolError(
                f"The repository {self.repo.top} is in the middle of another operation ({halfway[0]}): finish"
                " or abort it first (git status says how)."
            )

    def require_clean(self, head: str, changes: Sequence[Changed]) -> None:
        """Raise ToolError if a merge would change a file of the project that has changes in no commit."""
        with self.repo.own(self.repo.top, self.repo.git / "index") as git:
            mixed = {one.path for one in changes} & git.changed(head)
            gone = {one.path for one in changes if is_missing_side(one.after)}
            added = [one.path for one in changes if is_missing_side(one.before)]
            mixed.update(other for path in added for other in self._in_the_way(path, gone))
            ignored = git.ignored_changes()
            mixed.update(
                one.path
                for one in changes
                if one.path in ignored
                and content_of(self.repo.top / one.path) not in (None, git.on_disk(one)[0])
            )
            if mixed:
                files = ", ".join(map(file_name, sorted(mixed)[:SHOWN]))
                raise ToolError(
                    f"Commit or put aside your own changes first, because it would change {files}."
                )

    def _in_the_way(self, path: str, gone: set[str]) -> Iterator[str]:
        """The project's files, ignored ones too, that git would remove to write a new file at ``path``,
        except the ``gone`` ones, which the merge removes."""
        place = self.repo.top / path
        for folder in Path(path).parents[:-1]:
            around = self.repo.top / folder
            if str(folder) not in gone and (around.is_symlink() or around.is_file()):
                yield str(folder)
        if place.is_dir() and not place.is_symlink():
            below = (Path(where, name) for where, _, names in os.walk(place) for name in names)
            yield from {str(file.relative_to(self.repo.top)) for file in below} - gone
        elif content_of(place) and path not in gone:
            yield path

    def _note(self, name: str) -> Path:
        return self._place(name).with_name(f"{name}.merging")

    def _apply(self, git: OwnGit, name: str, head: str, new: str) -> None:
        """Bring the project's files, its index and its branch from ``head`` to ``new``. ``git`` has a copy of
        the index. Git outside sees the index locked meanwhile."""
        self.require_clean(head, git.differing(head, new))
        private_folder(self.folder)
        note, begun = self._note(name), False
        replace_file(note, [json.dumps({"head": head, "new": new}).encode()])
        try:
            with self._index_lock(name) as lock:
                if self.repo.head() != head:
                    raise ToolError(
                        "The project's branch was changed meanwhile; nothing was merged. Try again."
                    )
                begun = True
                git.refresh()
                git("read-tree", "-m", "-u", head, new)
                git.copy_index(lock)
                lock.replace(self.repo.git / "index")
        except BaseException:
            if begun:
                self._roll_back(head, new)  # if it cannot, the note stays
            note.unlink()
            raise
        self.repo.real("update-ref", "-m", f"merge {PREFIX}{name} (quoth)", "HEAD", new, head)
        note.unlink()

    @contextlib.contextmanager
    def _index_lock(self, name: str) -> Iterator[Path]:
        """Git's own lock of the index. It is a second name of a file of ours, so that a lock which a killed
        process left is known as ours."""
        mine, lock = self._mine(name), self.repo.git / "index.lock"
        mine.touch()
        deadline = time.monotonic() + LOCK_SECONDS
        try:
            while True:
                try:
                    os.link(mine, lock)
                    break
                except FileExistsError:
                    if time.monotonic() > deadline:
                        raise ToolError(
                            f"git outside has locked the index ({lock}); nothing was merged."
                        ) from None
                    time.sleep(0.02)
            try:
                yield lock
            finally:
                self._unlock(name)
        finally:
            mine.unlink(missing_ok=True)

    def _mine(self, name: str) -> Path:
        return self.repo.git / f"index.quoth-{name}"

    def _unlock(self, name: str) -> None:
        mine, lock = self._mine(name), self.repo.git / "index.lock"
        with contextlib.suppress(FileNotFoundError):
            if lock.samefile(mine):
                lock.unlink()

    def finish(self, name: str) -> str:
        """Finish or roll back a merge that was broken off. Returns the new commit if it is finished."""
        with self._alone():
            return self._finish(name)

    def _unlock_head(self, since: float) -> None:
        """Remove the locks of the current branch that a killed git has left since then."""
        branch = self.repo.real("rev-parse", "--symbolic-full-name", "HEAD")
        locks = [self.repo.git / "HEAD.lock", self.repo.common / f"{branch}.lock"]
        _unlock_left(locks, since)

    def _finish(self, name: str) -> str:
        """Finish or roll back a merge that was broken off. Returns the new commit if it is finished."""
        note = self._note(name)
        if not note.exists():
            return ""
        said = json.loads(note.read_bytes())
        head, new = str(said["head"]), str(said["new"])
        self._unlock(name)
        self._mine(name).unlink(missing_ok=True)
        self._unlock_head(note.stat().st_mtime)
        now = self.repo.head()
        finished = now == new
        if now == head:
            with self.repo.own(self.repo.top, self.repo.git / "index") as git:
                finished = not git.lacks(git.differing(head, new))
            if finished:
                self.repo.real("update-ref", "-m", f"merge {PREFIX}{name} (quoth)", "HEAD", new, head)
            else:
                self._roll_back(head, new)
        note.unlink()
        return new if finished else ""

    def _roll_back(self, head: str, new: str) -> None:
        """Put the files back that a merge has changed. Raises ToolError if a person has changed one since."""
        with self.repo.own(self.repo.top) as git:
            changes = git.differing(head, new)
            for one in changes:
                old, wanted, now = (*git.on_disk(one), content_of(self.repo.top / one.path))
                if now not in (None, old) and not (wanted or b"").startswith(now):
                    raise ToolError(
                        f"{file_name(one.path)} was changed after a merge was broken off. Put your change"
                        " aside, then repeat the command."
                    )
            git("read-tree", head)
            for one in changes:
                if is_missing_side(one.before) and content_of(self.repo.top / one.path) is not None:
                    (self.repo.top / one.path).unlink(missing_ok=True)
                    _prune((self.repo.top / one.path).parent, self.repo.top)
            listed = b"".join(
                os.fsencode(one.path) + b"\0" for one in changes if not is_missing_side(one.before)
            )
            git("checkout-index", "--force", "--quiet", "-z", "--stdin", stdin=listed)


def _unlock_left(locks: Sequence[Path], since: float) -> None:
    """Remove locks that a killed git has left since then. The lock of a living git goes within
    LOCK_SECONDS."""
    deadline = time.monotonic() + LOCK_SECONDS
    while (left := [lock for lock in locks if lock.exists()]) and time.monotonic() < deadline:
        time.sleep(0.05)
    for lock in left:
        with contextlib.suppress(FileNotFoundError):
            if 0 <= lock.stat().st_mtime - since < SECONDS:
                lock.unlink()


def _is_file(folder: Path, path: str) -> bool:
    """Whether a path below a folder is a file or a link there, and behind no other link."""
    place = folder / path
    behind = any((folder / one).is_symlink() for one in Path(path).parents[:-1])
    return not behind and (place.is_symlink() or place.is_file())


def _moved(name: str, tip: str) -> str:
    if not tip:
        return f"No worktree is named {name}: its branch {PREFIX}{name} is missing."
    return f"{PREFIX}{name} is now at commit {tip}, not at the one that was named. Look at it again."


def _is_inside(path: str) -> bool:
    """Whether a path of a tree leads to a file of the work tree: git itself looks only when it writes."""
    return {"", ".", "..", ".git"}.isdisjoint(path.lower().split("/"))


def _prune(folder: Path, top: Path) -> None:
    while folder != top:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def _writable(do: object, path: str, error: object) -> None:
    """Remove a file in a folder that its owner may not write: a program may have closed it."""
    with contextlib.suppress(OSError):
        Path(path).parent.chmod(0o700)
        Path(path).unlink() if not Path(path).is_dir() else shutil.rmtree(path)
