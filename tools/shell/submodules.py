"""Submodules that were not fetched: folders in which git outside looks for a repository, since an index names
them as one. A program that made one there would have git run what its settings say.

It knows repositories and their indexes; it must not know boundaries or calls.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from quoth.tools.call.obeyed import MOST_REPOSITORIES
from quoth.tools.shell.plain_git import IndexReader, may_have_links
from quoth.tools.storage.missing import is_missing


class Unfetched(NamedTuple):
    """Folders that a program may not write; some may be missing. ``why`` says why it cannot be kept from one,
    "" if it can."""

    folders: tuple[Path, ...] = ()
    why: str = ""


def unfetched(root: Path, repositories: Iterable[Path]) -> Unfetched:
    """The submodules below a real folder that were not fetched, of these repositories and of one above it."""
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
    """Make those that are missing, as git does, so that they can be made read-only. They stay: with a folder,
    the kernel would take the mount from another program that still runs."""
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
