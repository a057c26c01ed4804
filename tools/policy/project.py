"""Where the workspace is: the project's root, found upwards from the current folder, as git does.

Every command asks here, so that rules, memory and sessions are the same in each subfolder.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from quoth.tools.errors import UsageError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.storage.paths import (
    WORKTREES,
    config_dir,
    is_missing,
    private_folder,
    real_path,
    state_dir,
    store_path,
)

# Where policy files are. It imports little, so that a command that only lists tools starts fast.


FILE_NAME = "policy.hy"
STARTUP_NAME = "init.hy"  # the REPL evaluates it at its start
WORKSPACE_FOLDER = ".quoth"
OWN_NAME = f"{WORKSPACE_FOLDER}/{FILE_NAME}"


def user_policy() -> Path:
    """The user's policy: ``$QUOTH_CONFIG/policy.hy``, or in the platform's configuration folder."""
    return config_dir() / FILE_NAME


def workspace_policy(root: Path) -> Path:
    """The path of the workspace's own policy, which applies once it is trusted."""
    return root / WORKSPACE_FOLDER / FILE_NAME


def policy_files(root: Path, *given: str | Path | None) -> tuple[Path, ...]:
    """The files and folders that a tool must not write: all policies, the files evaluated beside them, and
    ``given``."""
    startup = config_dir() / STARTUP_NAME
    return (user_policy(), startup, root / WORKSPACE_FOLDER, *(Path(file) for file in given if file))


def has_rules(root: Path, given: str | Path | None = None) -> bool:
    """Whether there is a policy file for this workspace; it need not be trusted."""
    return given is not None or not (is_missing(user_policy()) and is_missing(workspace_policy(root)))


MARKERS = (WORKSPACE_FOLDER, ".git")  # the first counts wherever it is; `.git` may be a file, in a worktree
GIVEN, HERE, OWN_STORE = "given", "here", "own store"
NAME_IT = 'Name the workspace: --workspace DIR, in Python workspace="DIR".'


@dataclass(frozen=True)
class Project:
    """The ``root`` of the workspace, and ``why``: GIVEN, the marker that is in it, HERE (nothing was found)
    or OWN_STORE, in a subfolder of the project ``above`` that had sessions before the project was found."""

    root: Path
    here: Path
    why: str
    above: Path | None = None

    @property
    def passes_rules_over(self) -> bool:
        """Whether the project above has rules, which do not apply in this subfolder."""
        return self.above is not None and not is_missing(workspace_policy(self.above))

    def require_rules(self) -> None:
        """Raise UsageError if rules of the project above would be ignored."""
        if self.passes_rules_over:
            raise UsageError(
                f"{self.root} has its own sessions, so the rules of the project {self.above} would not apply"
                " here. To move the sessions to the project: quoth sessions --adopt. To work without its"
                " rules: --workspace ."
            )


def find_project(start: str | os.PathLike[str] = ".") -> Project:
    """The project of a folder: the nearest folder upwards that has a ``.quoth``, otherwise a ``.git``,
    otherwise the folder itself. Raises UsageError for a root of another user, or one that cannot be read."""
    here = _real(start)
    require_no_worktree(here)
    found: dict[str, Path] = {}
    stranger = ""
    for folder in _upwards(here):
        stranger = stranger or _other_owner(folder)
        for marker in MARKERS:
            if (found and marker == ".git") or is_missing(folder / marker):
                continue
            if other := stranger or _other_owner(folder / marker):
                raise UsageError(
                    f"{folder} may be the root of this project, because it has a {marker}, but {other}."
                    f" {NAME_IT} DIR is {folder}, or . for only this folder."
                )
            found[marker] = folder
        if WORKSPACE_FOLDER in found:
            break
    why = next((marker for marker in MARKERS if marker in found), HERE)
    root = found.get(why, here)
    store = store_path(here) if root != here else None
    if store is not None and not is_missing(store) and is_missing(_mark(store)):
        return Project(here, here, OWN_STORE, above=root)
    return Project(root, here, why)


def require_no_worktree(folder: Path) -> None:
    """Raise UsageError for a folder in a worktree of a session: the rules of its project would not apply."""
    place = real_path(state_dir() / WORKTREES)
    if place in folder.parents and len(parts := folder.relative_to(place).parts) > 1:
        raise UsageError(
            f"{folder} belongs to the worktree of session {parts[1]}. Change to the folder of its project; to"
            f" continue there: quoth resume {parts[1]} TEXT"
        )


def mark_narrowed(root: Path) -> None:
    """Record that a subfolder was named as a workspace before it had a store, to distinguish it from one that
    had sessions before its project was found. Ignored if the record cannot be written."""
    store = store_path(root)
    if is_missing(store):
        with suppress(UsageError, OSError):
            if find_project(root).root != real_path(root):
                private_folder(store.parent)
                _mark(store).touch()


def _mark(store: Path) -> Path:
    return store.with_suffix(".narrowed")


def given_project(folder: str | os.PathLike[str]) -> Project:
    """The folder that a person or a program has named, unchanged."""
    return Project(Path(folder), Path(), GIVEN)


def below(root: Path) -> str:
    """The current folder as a path below the root; empty at the root and outside it."""
    try:
        inner = real_path(Path.cwd()).relative_to(real_path(root)).as_posix()
    except (OSError, ValueError):  # the current folder may have been removed
        return ""
    return "" if inner == "." else inner


def _real(start: str | os.PathLike[str]) -> Path:
    try:
        return Path(os.path.realpath(start))
    except OSError as error:  # the current folder may have been removed
        raise UsageError(f"The current folder cannot be used: {error.strerror}. {NAME_IT}") from None


def _upwards(here: Path) -> Iterator[Path]:
    """The folder and its parents that can be a root: on the same file system, below home and ``/``."""
    homes, device = _homes(), _stat(here).st_dev
    for folder in (here, *here.parents):
        if folder == folder.parent or folder in homes or _stat(folder).st_dev != device:
            return
        yield folder


def _homes() -> set[Path]:
    """The home folders of this user: by the environment and by the machine's user database."""
    homes = [os.environ.get("HOME", "")]
    with suppress(KeyError):  # a container's user may have a number without a name
        homes.append(pwd.getpwuid(os.geteuid()).pw_dir)
    return {real_path(home) for home in homes if home.startswith("/")}


def _other_owner(path: Path) -> str:
    """A sentence with the owner, if it is another user; a link counts by its own owner."""
    owner = _stat(path).st_uid
    if owner == os.geteuid():
        return ""
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        name = f"user {owner}"
    return f"{path} belongs to {name}"


def _stat(path: Path) -> os.stat_result:
    try:
        return path.lstat()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be examined, so the workspace is not known: {error.strerror}. {NAME_IT}"
        ) from None
