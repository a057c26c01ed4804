"""The canonical form of a call, which rules, requests, receipts and the body see: its arguments are named and
validated, each path is resolved once. Also which arguments of a call are paths, their targets, and the
files that other programs obey.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

from quoth.tools.call.workspace import ELSEWHERE, Workspace
from quoth.tools.errors import InvalidCallError, ToolError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import print_string
from quoth.tools.registry.param_types import WorkspacePath, paths_at, with_paths
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.storage.paths import is_missing
from quoth.tools.text import excerpt, file_name

PATHS = {"path", "file", "folder", "dir", "directory", "cwd", "source", "target", "destination"}


def workspace_of(tool: CognitiveTool, workspace: Workspace) -> Workspace:
    """The workspace that a tool's paths refer to: this one, or that of the worker that runs its calls."""
    return ELSEWHERE if tool.remote else workspace


def paths_in(value: Any) -> Iterator[str]:
    """The paths in a value: itself, or the items of a list or dictionary."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple, Mapping)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from paths_in(item)


def paths_of(tool: CognitiveTool, args: Mapping[str, Any]) -> list[str]:
    """The paths in the arguments whose types contain paths."""
    return [path for param in tool.path_params for path in paths_at(param.type, args.get(param.name))]


def resolved(
    tool: CognitiveTool, form: CallForm, args: Mapping[str, Any], workspace: Workspace
) -> tuple[CallForm, dict[str, Any]]:
    """A validated call with each path in its canonical spelling, in the form and in the arguments. A
    default path that is a link, or leads out of the workspace, is added to the form, so that an approval
    of the form is bound to that place. Raises InvalidCallError."""
    found, given = dict(args), dict(form.args)
    seen: dict[str, WorkspacePath] = {}
    place = workspace_of(tool, workspace)

    def spelt(path: str) -> WorkspacePath:
        if path not in seen:  # looked up once: form and arguments never differ
            seen[path] = place.canonical(path)
        return seen[path]

    for param in tool.path_params:
        name = param.name
        if name not in args:
            continue
        try:
            found[name] = with_paths(param.type, args[name], spelt)
        except ToolError as error:
            raise InvalidCallError(f"{tool.name}: :{name}: {error}") from None
        if name in given or found[name] != args[name]:
            given[name] = with_paths(param.type, args[name], lambda path: str(spelt(path)))
    return CallForm(tool.name, given), found


def checked(tool: CognitiveTool, form: CallForm, workspace: Workspace) -> tuple[CallForm, dict[str, Any]]:
    """A call as the door sees it: its form with named arguments, and all its arguments as JSON data.
    Raises InvalidCallError."""
    return resolved(tool, *tool.checked(form), workspace)


def arguments(tool: CognitiveTool, form: CallForm, workspace: Workspace) -> dict[str, Any]:
    """All arguments of a form, as JSON data. Raises InvalidCallError."""
    return checked(tool, form, workspace)[1]


def bound_form(tool: CognitiveTool, form: CallForm, workspace: Workspace) -> CallForm:
    """The form as the door sees it, with named arguments. Raises InvalidCallError."""
    return checked(tool, form, workspace)[0]


def as_written(tool: CognitiveTool, args: Mapping[str, Any]) -> tuple[str, ...]:
    """A note for each path argument whose original spelling differs from the one that is judged and shown."""
    return tuple(
        f":{param.name} was written {print_string(path.written)}"
        for param in tool.path_params
        if not param.secret
        for path in paths_at(param.type, args.get(param.name))
        if isinstance(path, WorkspacePath) and path.written != path
    )


def is_path(name: str, value: Any) -> bool:
    """Whether a text is probably the path of a file or folder, guessed from its argument's name: for tools
    whose parameter types do not say so."""
    return isinstance(value, str) and bool(value) and name.rpartition("-")[2] in PATHS


def path_arguments(tool: CognitiveTool, args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are paths: by their type, or by ``is_path`` if they have none. For a value of
    another type, the paths in it."""
    typed = {param.name: param.type for param in tool.path_params}
    return {
        name: value if isinstance(value, str) else paths_at(typed[name], value)
        for name, value in args.items()
        if name in typed or is_path(name, value)
    }


def touched(tool: CognitiveTool, args: Mapping[str, Any], workspace: Workspace) -> list[str]:
    """The files and folders a call names, links resolved: relative if in the workspace, else absolute."""
    found, place = [], workspace_of(tool, workspace)
    for value in path_arguments(tool, args).values():
        for path in paths_in(value):
            with contextlib.suppress(ToolError):
                found.append(str(place.canonical(path)))
    return found


def guessed_targets(tool: CognitiveTool, args: Mapping[str, Any], workspace: Workspace) -> dict[str, str]:
    """The targets of arguments that are paths only by ``is_path``, if the target differs from the text.
    The form does not contain the target, so an approval, also of a plan, is bound to this too."""
    found = {}
    workspace = workspace_of(tool, workspace)
    for name, value in path_arguments(tool, args).items():
        if isinstance(value, str) and not isinstance(value, WorkspacePath):
            with contextlib.suppress(ToolError):
                if value.startswith("~") or workspace.goes_through_link(value):
                    found[name] = workspace.spelling(workspace.locate(value))
    return found


# Files that other programs obey: an editor, a shell or git runs commands from them. They are recognised by
# the structure of their paths; a bounded walk finds them.


# Names with a dot that are data, and caches that every run of a test or a linter writes.
DATA = frozenset((".gitignore", ".gitattributes", ".editorconfig", ".dockerignore", ".prettierrc"))
CACHES = frozenset((".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".coverage"))
PLAIN = DATA | CACHES
WITHOUT_DOT = re.compile(r"(?is)mise\.([^.]+\.)?toml|.*\.code-workspace")
MOST_NAMES = 200_000
MOST_REPOSITORIES = 100
SHOWN = 5

Signature = tuple[int, ...]


def obeyed_parts(parts: Sequence[str]) -> list[int]:
    """The indexes of the parts of a path below the root by which other programs obey the file."""
    last = len(parts) - 1
    return [
        number
        for number, part in enumerate(parts)
        if (part.startswith(".") and not (number == last and part in DATA))
        or (number == last and WITHOUT_DOT.fullmatch(part))
    ]


def repository_made(root: Path, parts: Sequence[str]) -> str:
    """The folder that becomes a git repository once the file of this path is written; "" for none."""
    folder = str(root)
    for number, part in enumerate(parts):
        if _is_repository(partial(_will_have, folder, part)):
            return "/".join(parts[:number]) or "."
        folder = f"{folder}/{part}"
    return ""


def _will_have(folder: str, part: str, name: str) -> bool:
    return name.lower() == part.lower() or not is_missing(f"{folder}/{name}")


def _is_repository(has: Callable[[str], bool]) -> bool:
    """Whether git obeys the config of a folder with these names, or of the folder that commondir names."""
    return has("HEAD") and (has("commondir") or (has("objects") and has("refs")))


@dataclass
class FoundFiles:
    """The result of a walk below a root. ``links`` are the repositories whose ``.git`` is a link, ``obeyed``
    the files that other programs obey. ``missed`` says why a part was skipped, "" if none was."""

    root: Path
    repositories: list[Path] = field(default_factory=list)
    links: list[Path] = field(default_factory=list)
    obeyed: dict[str, Signature] = field(default_factory=dict)
    missed: str = ""

    def shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def look(root: Path) -> FoundFiles:
    """Walk the names below a real folder, the nearest to the root first, without following links and without
    entering the folders of repositories."""
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
        for entry in entries:  # there may be thousands; most are decided by their name
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
    """The new or changed files that other programs obey, as a text for people; "" for none."""
    made = [f"{after.shown(path)} (a git repository)" for path in after.repositories
            if path not in before.repositories]  # fmt: skip
    changed = {path for path, signature in after.obeyed.items() if before.obeyed.get(path) != signature}
    known = {path.partition(" (")[0] for path in made}
    paths = [path for path in sorted(changed) if path not in known]
    names = list(dict.fromkeys([*made, *_grouped(paths)]))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(excerpt(file_name(name)) for name in names[:SHOWN]) + more


def _grouped(paths: Sequence[str]) -> Iterator[str]:
    """Each path; if several are in one folder that is obeyed as a whole, the folder instead."""
    folders = [_folder_of(path) for path in paths]
    for path, folder in zip(paths, folders, strict=True):
        yield f"{folder}/" if folder and folders.count(folder) > 1 else path


def _folder_of(path: str) -> str:
    parts = path.split("/")
    for number, part in enumerate(parts[:-1], 1):
        if part.startswith(".") and part not in CACHES:
            return "/".join(parts[:number])
    return ""
