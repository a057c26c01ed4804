"""Files that other programs obey: an editor, a shell, git run what these say. Which files these are, by the
structure of their paths, and a bounded walk that finds them.

It knows names and the file system; it must not know rules, tools or programs.
"""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from quoth.tools.storage.paths import is_missing
from quoth.tools.text import excerpt, file_name

# Names with a dot that are data, and those that every run of a test or a linter writes.
DATA = frozenset((".gitignore", ".gitattributes", ".editorconfig", ".dockerignore", ".prettierrc"))
CACHES = frozenset((".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".coverage"))
PLAIN = DATA | CACHES
WITHOUT_DOT = re.compile(r"(?is)mise\.([^.]+\.)?toml|.*\.code-workspace")
MOST_NAMES = 200_000
MOST_REPOSITORIES = 100
SHOWN = 5

Signature = tuple[int, ...]


def obeyed_parts(parts: Sequence[str]) -> list[int]:
    """The numbers of the parts of a path below the root that have other programs obey the file."""
    last = len(parts) - 1
    return [
        number
        for number, part in enumerate(parts)
        if (part.startswith(".") and not (number == last and part in DATA))
        or (number == last and WITHOUT_DOT.fullmatch(part))
    ]


def repository_made(root: Path, parts: Sequence[str]) -> str:
    """The folder that is a repository of git once the file of this path is written; "" if none is."""
    folder = str(root)
    for number, part in enumerate(parts):
        if _is_repository(partial(_will_have, folder, part)):
            return "/".join(parts[:number]) or "."
        folder = f"{folder}/{part}"
    return ""


def _will_have(folder: str, part: str, name: str) -> bool:
    return name.lower() == part.lower() or not is_missing(f"{folder}/{name}")


def _is_repository(has: Callable[[str], bool]) -> bool:
    """Whether git obeys the config of a folder that has these names, or of the one that commondir names."""
    return has("HEAD") and (has("commondir") or (has("objects") and has("refs")))


@dataclass
class FoundFiles:
    """What a walk has found below a root. ``links`` are the repositories whose ``.git`` is a link, ``obeyed``
    the files that other programs obey. ``missed`` says what was not looked at, "" for nothing."""

    root: Path
    repositories: list[Path] = field(default_factory=list)
    links: list[Path] = field(default_factory=list)
    obeyed: dict[str, Signature] = field(default_factory=dict)
    missed: str = ""

    def shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def look(root: Path) -> FoundFiles:
    """Walk the names below a real folder, those near the root first, without following links and without
    looking into repositories' own folders."""
    found = FoundFiles(root)
    most = MOST_NAMES
    waiting = deque([("", False)])
    while waiting:
        folder, of = waiting.popleft()
        try:
            with os.scandir(f"{root}/{folder}") as listing:
                entries = list(listing)
        except PermissionError:
            if (root / folder).lstat().st_uid == os.getuid():  # a program may open it for itself
                found.missed = f"{file_name(folder)} cannot be read"
            continue
        except OSError:
            continue
        most -= len(entries)
        if most < 0:
            found.missed = f"the workspace has more than {MOST_NAMES} names"
            return found
        if _is_repository({entry.name for entry in entries}.__contains__):
            found.repositories.append(root / folder)
            continue
        prefix = f"{folder}/" if folder else ""
        for entry in entries:  # there may be thousands: most names are quickly known
            name, inner = entry.name, entry.is_dir(follow_symlinks=False)
            if name.lower() == ".git":
                found.repositories.append(root / folder / name)
                if entry.is_symlink():
                    found.links.append(root / folder / name)
                _sign(found, prefix + name, entry)
            elif inner:
                waiting.append((prefix + name, of or (name[0] == "." and name not in CACHES)))
            elif of or (name[0] == "." and name not in PLAIN) or WITHOUT_DOT.fullmatch(name):
                _sign(found, prefix + name, entry)
    if len(found.repositories) > MOST_REPOSITORIES:
        found.missed = f"the workspace has more than {MOST_REPOSITORIES} repositories"
    return found


def _sign(found: FoundFiles, path: str, entry: os.DirEntry[str]) -> None:
    try:
        seen = entry.stat(follow_symlinks=False)
    except OSError:
        return
    whole = () if stat.S_ISDIR(seen.st_mode) else (seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
    found.obeyed[path] = (seen.st_mode, seen.st_ino, *whole)


def news(before: FoundFiles, after: FoundFiles) -> str:
    """The files that other programs obey that are new or changed, as a text for people; "" for none."""
    made = [f"{after.shown(path)} (a git repository)" for path in after.repositories
            if path not in before.repositories]  # fmt: skip
    changed = {path for path, signature in after.obeyed.items() if before.obeyed.get(path) != signature}
    known = {path.partition(" (")[0] for path in made}
    paths = [path for path in sorted(changed) if path not in known]
    names = list(dict.fromkeys([*made, *_grouped(paths)]))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(excerpt(file_name(name)) for name in names[:SHOWN]) + more


def _grouped(paths: Sequence[str]) -> Iterator[str]:
    """Each path; of several in one folder that is obeyed as a whole, the folder."""
    folders = [_folder_of(path) for path in paths]
    for path, folder in zip(paths, folders, strict=True):
        yield f"{folder}/" if folder and folders.count(folder) > 1 else path


def _folder_of(path: str) -> str:
    parts = path.split("/")
    for number, part in enumerate(parts[:-1], 1):
        if part.startswith(".") and part not in CACHES:
            return "/".join(parts[:number])
    return ""
