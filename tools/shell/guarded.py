"""What keeps a workspace's repositories and the files that others obey from a confined program: which of them
it may not write, and what is said of those that it has written.

It knows private copies and the walk of names; it must not know kernels or calls.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from quoth.tools.call.obeyed import Found, look, news
from quoth.tools.shell.plain_git import common_folders, settings
from quoth.tools.shell.private_git import PrivateGit, Unusable, reason
from quoth.tools.shell.submodules import make_missing, unfetched
from quoth.tools.shell.view import Boundary, homes, real
from quoth.tools.text import file_name

READ_ONLY = ", and is read-only here: stage and commit outside."


class Guarded:
    """A boundary in which every repository that is there is read-only, but for a private copy of the
    workspace's own. ``why`` says why there is none, where git has a folder."""

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
        if not copies:  # what cannot be made read-only would be denied
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
        """The variables for git; a folder above may be on another disk, as seen inside."""
        across = {"GIT_DISCOVERY_ACROSS_FILESYSTEM": "1"} if self.why else {}
        return settings() if self.git else across

    def finish(self) -> list[str]:
        """Carry git's data back; what a person should know of that, and of files that others obey."""
        said = self.git.carry() if self.git else []
        if new := news(self._found, look(self._found.root)):
            said.append(f"Other programs obey what it wrote: {new}. Look at that before they do.")
        return said

    def close(self) -> None:
        if self.git:
            self.git.drop()


def unguarded(root: Path, copies: bool, boundary: str = "Landlock") -> str:
    """Why the boundary does not keep the repositories of a workspace from being written; "" where it does."""
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


def _links_of(found: Found) -> list[Path]:
    """The links in the workspace's ``.git`` that lead into the workspace."""
    own = found.root / ".git"
    if not own.is_dir():
        return []
    return [entry for entry in own.iterdir() if entry.is_symlink() and real(entry).is_relative_to(found.root)]


def _of_others(root: Path) -> tuple[tuple[Path, ...], str]:
    """The folders of git outside of the workspace that it belongs to, and what a program may do there: read.
    As git does it, they are looked for upwards; never home or above, beyond a mount, or of another owner."""
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
            return (git, *common_folders(folder)), f"Git's folder lies outside of the workspace{READ_ONLY}"
        if git.is_dir() and folder != root:
            return (git,), f"The repository is that of {folder}, a folder above the workspace{READ_ONLY}"
    return (), ""
