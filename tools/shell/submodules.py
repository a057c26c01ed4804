"""Submodules that were not fetched: folders in which git outside looks for a repository, since an index names
them as one. A program that made one there would have git run what its settings say.

It knows repositories and their indexes; it must not know boundaries or calls.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from quoth.tools.shell.plain_git import IndexReader, may_have_links
from quoth.tools.storage.missing import is_missing


class Unfetched(NamedTuple):
    """What a program may not write, and why something cannot be kept from it; "" if nothing."""

    folders: tuple[Path, ...] = ()
    why: str = ""


def unfetched(root: Path, repositories: Iterable[Path]) -> Unfetched:
    """The submodules below a real folder that were not fetched, of these repositories."""
    folders, why = [], ""
    for place in repositories:
        try:
            named = sorted(_links(place))
        except (OSError, ValueError):
            named, why = [], f"git cannot read the index of {_shown(place, root)}"
        for folder in named:
            if not folder.is_relative_to(root) or not is_missing(folder / ".git"):
                continue
            if not is_missing(folder) and Path(os.path.realpath(folder)) == folder:
                folders.append(folder)
            else:
                what = "missing" if is_missing(folder) else "a link"
                why = f"the folder of the submodule {_shown(folder, root)} is {what}"
    return Unfetched(tuple(folders), why)


def _links(place: Path) -> Iterator[Path]:
    """The folders that the index of a repository names; ``place`` is the ``.git`` of a work tree, or a bare
    repository, which names none."""
    git = place
    if place.is_file():
        git = Path(os.path.realpath(place.parent / place.read_text().removeprefix("gitdir:").strip()))
    if place.name.lower() != ".git" or not may_have_links(git / "index"):
        return
    with tempfile.TemporaryDirectory(prefix="quoth-") as folder:
        reader = IndexReader(git, Path(folder))
        for name in reader.links(git / "index"):
            yield place.parent / name


def _shown(path: Path, root: Path) -> str:
    return os.path.relpath(path, root)
