"""Which files of the workspace the rules keep from being read, so that no program sees them either.

A bounded walk of names asks the rules about each file. It must not know rules, kernels or calls; files that a
program makes itself are not covered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from quoth.tools.call.obeyed import MOST_NAMES
from quoth.tools.text import file_name

MOST = 200  # places that are hidden from one program
SHOWN = 3


def unread(root: Path, may_read: Callable[[str], bool]) -> list[Path]:
    """The files below a real folder that may not be read, without following links and without git's own
    folder; a folder in which none may be read is one place. What is beyond MOST_NAMES is not looked at: in
    such a workspace each program is asked about (guarded.py)."""
    folders: list[tuple[str, list[str], list[str]]] = []
    names = 0
    for folder, inner, files in os.walk(root):
        inner[:] = [name for name in inner if name != ".git"]
        folders.append((folder, inner, files))
        names += len(inner) + len(files)
        if names > MOST_NAMES:
            break
    kept: dict[str, list[Path]] = {}  # by folder: what is hidden in it
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
