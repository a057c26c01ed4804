"""A boundary without namespaces: Landlock and seccomp by sandlock. Makes the command, and starts nothing."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from quoth.tools.shell.seccomp import filter_program
from quoth.tools.shell.view import (
    LIMITED,
    Access,
    Boundary,
    Launch,
    environment,
    limit_words,
    places,
    real,
    running,
)

CHILD = str(Path(__file__).with_name("landlock_child.py"))
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))
SCRATCH = "quoth-shell-"
GIT = (".git/hooks", ".git/config")  # git outside runs what these name


def library() -> str:
    """The folder that holds sandlock, "" if it is not installed."""
    found = find_spec("sandlock")
    return str(Path(found.origin).parent.parent) if found and found.origin else ""


def command(argv: Sequence[str], boundary: Boundary) -> Launch:
    _clear()
    scratch = tempfile.mkdtemp(prefix=f"{SCRATCH}{os.getpid()}-")
    limited = [*LIMITED, *limit_words(boundary, processes=False), *argv]
    rules = json.dumps(settings(boundary, scratch), separators=(",", ":"))
    program = filter_program(modes_only=True).hex()
    words = (sys.executable, "-I", "-S", CHILD, library(), program, rules, *limited)
    env = {**environment(boundary), "HOME": scratch, "TMPDIR": scratch}
    return Launch(words, env, close=lambda: shutil.rmtree(scratch, ignore_errors=True))


def _clear() -> None:
    """Remove the scratch folders of this user's processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*-*"):
        if not Path("/proc", folder.name.removeprefix(SCRATCH).partition("-")[0]).exists():
            shutil.rmtree(folder, ignore_errors=True)


def settings(boundary: Boundary, scratch: str) -> Mapping[str, object]:
    """What sandlock is told. A folder is granted whole: of what is covered, its neighbours are granted."""
    hooks, config = (real(boundary.root) / name for name in GIT)
    found = places(replace(boundary, protected=(*boundary.protected, hooks, config)))
    of: dict[Access, list[Path]] = {access: [] for access in Access}
    for place, access in found:
        of[access].append(place)
    readable = [*neighbours(Path("/"), {Path("/dev"), *of[Access.COVERED]}), *of[Access.READ]]
    if boundary.network:
        readable.append(real(Path("/etc/resolv.conf")))
    needed = {
        real(boundary.root) / ".git",
        config,
        *map(real, running(real(boundary.root))),
    }  # cannot be read only
    hidden = [*(place for place in of[Access.PROTECTED] if place not in needed), *of[Access.HIDDEN]]
    denied = [part for place in hidden for part in refused(place, set(of[Access.READ]))]
    writable = [*of[Access.WRITE], Path(scratch)]
    return {
        "fs_readable": [str(place) for place in readable],
        "fs_writable": [*map(str, writable), *(name for name in DEVICES if Path(name).exists())],
        "fs_denied": [str(place) for place in denied if not Path(scratch).is_relative_to(place)],
        "net_allow": ["*:*"] if boundary.network else [],
        "net_allow_bind": ["*"] if boundary.network else [],
        "max_memory": boundary.memory,
        "max_processes": boundary.processes,
        "cwd": str(real(boundary.cwd)),
    }


def refused(place: Path, shown: set[Path]) -> Iterator[Path]:
    """A place as a whole, or what lies beside the parts of it that are shown."""
    if any(part.is_relative_to(place) for part in shown):
        yield from neighbours(place, shown)
    else:
        yield place


def neighbours(folder: Path, without: set[Path]) -> Iterator[Path]:
    """What lies in a folder but for some places: whole folders where none of them is below."""
    if not os.access(folder, os.R_OK):
        return
    for entry in folder.iterdir():
        if entry.is_symlink() or entry in without:
            continue
        if any(place.is_relative_to(entry) for place in without):
            yield from neighbours(entry, without)
        elif os.access(entry, os.R_OK):
            yield entry
