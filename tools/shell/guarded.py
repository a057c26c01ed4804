"""Protects a workspace's repositories, and the files that other programs obey, from a confined program: which
of them it may not write, and messages about the ones that it has written. They include submodules that were
not fetched: git outside looks for a repository there, and would run commands from its settings. Also finds
the files that the rules forbid reading.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from quoth.tools.call.canonical import MOST_NAMES, MOST_REPOSITORIES, FoundFiles, look, news
from quoth.tools.shell.plain_git import IndexReader, common_folders, may_have_links, settings
from quoth.tools.shell.private_git import PrivateGit, Unusable, reason
from quoth.tools.shell.view import Boundary, homes, real
from quoth.tools.storage.paths import is_missing
from quoth.tools.text import file_name


class Unfetched(NamedTuple):
    """Folders that a program may not write; some may be missing. ``why`` says why one cannot be protected, ""
    if all can."""

    folders: tuple[Path, ...] = ()
    why: str = ""


def unfetched(root: Path, repositories: Iterable[Path]) -> Unfetched:
    """The unfetched submodules below a real folder, of these repositories and of one above it."""
    folders, why = [], ""
    above = (folder / ".git" for folder in root.parents if not is_missing(folder / ".git"))
    for place in (*repositories, *itertools.islice(above, 1)):
        try:
            named = sorted(_links(place))
        except (OSError, ValueError):
            named, why = [], f"git cannot read the index of {_shown(place, root)}"
        for folder in named:
            if not folder.is_relative_to(root) or not is_missing(folder / ".git"):
                continue
            there = next(part for part in (folder, *folder.parents) if not is_missing(part))
            if Path(os.path.realpath(folder)) == folder and (there == folder or there.is_dir()):
                folders.append(folder)
            else:
                why = f"{_shown(there, root)} is in the place of the submodule {_shown(folder, root)}"
    if len(folders) > MOST_REPOSITORIES:
        why = f"more than {MOST_REPOSITORIES} submodules were not fetched"
    return Unfetched(tuple(folders), why)


def make_missing(folders: Iterable[Path]) -> None:
    """Create missing folders, as git does, so that they can be made read-only. They are not removed: the
    kernel would remove the mount of another program that still runs with the folder."""
    for folder in folders:
        if is_missing(folder):
            folder.mkdir(parents=True)


def _links(place: Path) -> Iterator[Path]:
    """The folders that the index of a repository names; ``place`` is the ``.git`` of a work tree, or a bare
    repository, which names none."""
    git = place
    if place.is_file():
        with place.open(encoding="utf-8", errors="surrogateescape") as file:
            named = file.read(4096).removeprefix("gitdir:").strip()
        git = Path(os.path.realpath(place.parent / named))
    if place.name.lower() != ".git" or not may_have_links(git / "index"):
        return
    with tempfile.TemporaryDirectory(prefix="quoth-") as folder:
        reader = IndexReader(git, Path(folder))
        for name in reader.links(git / "index"):
            yield place.parent / name


def _shown(path: Path, root: Path) -> str:
    return os.path.relpath(path, root)


READ_ONLY = ", and is read-only here: stage and commit outside."


class Guarded:
    """A boundary in which every repository is read-only, except a private copy of the workspace's own.
    ``why`` says why there is no copy, if git has a folder."""

    def __init__(self, boundary: Boundary, copies: bool) -> None:
        root = real(boundary.root)
        self._found = look(root)
        own = root / ".git"
        self.git: PrivateGit | None = None
        self.why = ""
        shown: tuple[Path, ...] = ()
        if own.is_symlink() or own.is_file() or not own.exists():
            shown, self.why = _of_others(root)
        elif copies:
            try:
                self.git = PrivateGit(own)
            except (Unusable, OSError) as error:
                self.why = f"Git's folder is not copied, because {reason(error)}{READ_ONLY}"
        kept = [place for place in self._found.repositories if place != own or self.git is None]
        if not copies:  # a place that cannot be made read-only would be denied
            kept = [place for place in kept if place != own]
        submodules = unfetched(root, self._found.repositories).folders
        try:
            make_missing(submodules)
        except OSError:
            self.close()
            raise
        self.boundary = replace(
            boundary,
            protected=(*boundary.protected, *kept, *submodules),
            readable=(*boundary.readable, *shown),
        )

    def env(self) -> dict[str, str]:
        """The variables for git; inside the boundary a parent folder may be on another disk."""
        across = {"GIT_DISCOVERY_ACROSS_FILESYSTEM": "1"} if self.why else {}
        return settings() if self.git else across

    def finish(self) -> list[str]:
        """Carry git's data back; returns messages about it, and about written files that other programs
        obey."""
        said = self.git.carry() if self.git else []
        if new := news(self._found, look(self._found.root)):
            said.append(f"It wrote files that other programs obey: {new}. Review them before these run.")
        return said

    def close(self) -> None:
        if self.git:
            self.git.drop()


def unguarded(root: Path, copies: bool, boundary: str = "Landlock") -> str:
    """Why the boundary does not protect the repositories of a workspace; "" if it does."""
    found = look(real(root))
    if found.missed:
        return f"not every repository in this workspace can be protected ({found.missed})"
    if found.repositories and not copies:
        return f"{boundary} cannot protect the repository {file_name(found.shown(found.repositories[0]))}"
    links = [*found.links, *(link for link in _links_of(found) if link not in found.links)]
    if links:
        return f"{file_name(found.shown(links[0]))} is a link, which cannot be protected"
    if found.root in found.repositories:
        return "the workspace is itself a bare repository, which cannot be protected"
    return unfetched(found.root, found.repositories).why


def _links_of(found: FoundFiles) -> list[Path]:
    """The links in the workspace's ``.git`` that lead into the workspace."""
    own = found.root / ".git"
    if not own.is_dir():
        return []
    return [entry for entry in own.iterdir() if entry.is_symlink() and real(entry).is_relative_to(found.root)]


def _of_others(root: Path) -> tuple[tuple[Path, ...], str]:
    """The git folders outside the workspace that it belongs to, read-only, with a sentence that says so. They
    are searched upwards as git does; never in home or above, beyond a mount, or of another owner."""
    last = {real(home) for home in homes()} | {Path("/")}
    for folder in (root, *root.parents):
        if (
            folder in last
            or folder.stat().st_dev != root.stat().st_dev
            or folder.stat().st_uid != os.getuid()
        ):
            break
        git = folder / ".git"
        if git.is_symlink():
            break
        if git.is_file():
            return (git, *common_folders(folder)), f"Git's folder is outside the workspace{READ_ONLY}"
        if git.is_dir() and folder != root:
            return (git,), f"The repository is in {folder}, a folder above the workspace{READ_ONLY}"
    return (), ""


MOST = 200  # places that are hidden from one program
SHOWN = 3


def unread(root: Path, may_read: Callable[[str], bool]) -> list[Path]:
    """The files below a real folder that may not be read, without following links and without git's own
    folder; a folder without readable files is one place. Names beyond MOST_NAMES are not examined: in such a
    workspace each program needs approval."""
    folders: list[tuple[str, list[str], list[str]]] = []
    names = 0
    for folder, inner, files in os.walk(root):
        inner[:] = [name for name in inner if name != ".git"]
        folders.append((folder, inner, files))
        names += len(inner) + len(files)
        if names > MOST_NAMES:
            break
    kept: dict[str, list[Path]] = {}  # by folder: its hidden places
    open_to_all: set[str] = set()  # folders in which something may be read
    for folder, inner, files in reversed(folders):
        hidden = [place for name in inner for place in kept.pop(f"{folder}/{name}", ())]
        seen = any(f"{folder}/{name}" in open_to_all for name in inner)
        prefix = folder[len(str(root)) :].strip("/")  # there may be thousands: no Path for each
        for name in files:
            if may_read(f"{prefix}/{name}" if prefix else name):
                seen = True
            else:
                hidden.append(Path(folder, name))
        if seen:
            open_to_all.add(folder)
        whole = hidden and not seen and folder != str(root)
        kept[folder] = [Path(folder)] if whole else hidden
    return kept.get(str(root), [])


def shown(root: Path, places: Sequence[Path]) -> str:
    """Some of these places, for a sentence."""
    names = [file_name(place.relative_to(root).as_posix()) for place in places[:SHOWN]]
    return ", ".join(names) + (f" and {len(places) - SHOWN} more" if len(places) > SHOWN else "")
