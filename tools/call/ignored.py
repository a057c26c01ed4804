"""Files that .gitignore files name: lists and searches skip them, unless a call asks for all.

Git's rules apply: .gitignore files of nested folders, ``!`` for exceptions, .git/info/exclude; a repository
in a folder has its own rules. A skipped folder is skipped with its content, unless a call names the folder.
A .gitignore file may be hostile: its size, and the time for all its patterns, are bounded.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from functools import cached_property
from pathlib import Path

from quoth.tools.call.keeping import beginning_of
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.storage.atomic import is_scratch
from quoth.tools.storage.paths import is_missing
from quoth.tools.text import count

# Folders that a listing or search enters only if a call names them, like hidden ones (.git, .venv).
SKIPPED = {"node_modules", "__pycache__"}
NAME, EXCLUDE = ".gitignore", ".git/info/exclude"
MAX_BYTES, MAX_LINES = 200_000, 2_000  # of one .gitignore file; the rest is ignored
SECONDS, ALL_SECONDS = 0.2, 2.0  # for one name, and for all slow names: such patterns are hostile
_ANYWHERE = "^(?:.+/)?"  # the beginning of a pattern that matches at any depth
_END = "(?:/|$)"
_REPEATS = re.compile(r"(?<!\\)[+*]")
_CLASS = r"\[:[a-z]{5,6}:\]"
_SETS = re.compile(rf"\\.|\[[!^]?\]?(?:{_CLASS}|[^\]]){{1,50}}\]")  # a longer set is hostile
_CLASSES = {
    "[:alnum:]": "a-zA-Z0-9",
    "[:alpha:]": "a-zA-Z",
    "[:blank:]": " \t",
    "[:digit:]": "0-9",
    "[:graph:]": '"-~!',  # an exclamation mark at the beginning would negate the set
    "[:lower:]": "a-z",
    "[:print:]": " -~",
    "[:punct:]": ":-@[-`{-~!-.",
    "[:space:]": " \t-\r",
    "[:upper:]": "A-Z",
    "[:xdigit:]": "0-9A-Fa-f",
}
# Python warns that a set such as [[a] may change its meaning one day.
warnings.filterwarnings("ignore", "Possible (nested )?set", FutureWarning, re.escape(__name__))


@dataclass
class _Pattern:
    """The names that one line matches, and whether they are left ``out``. A ``safe`` pattern is fast for any
    name; others go to a library that can be stopped."""

    text: str
    out: bool

    @cached_property
    def safe(self) -> bool:
        return len(_REPEATS.findall(self.text.removeprefix(_ANYWHERE))) <= 2

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.text, re.DOTALL)

    def fits(self, path: str) -> bool:
        """Raises TimeoutError."""
        if self.safe:
            return self._compiled.fullmatch(path) is not None
        import regex

        return regex.fullmatch(self.text, path, regex.DOTALL, timeout=SECONDS) is not None


class _PatternFile:
    """The patterns of one file, for paths that begin with ``base``. Two combined patterns quickly exclude
    most paths: ``_names`` for the last part of a path, ``_paths`` for all of it."""

    def __init__(self, base: str, patterns: list[_Pattern]) -> None:
        self._base, self._patterns = len(base), patterns
        safe = dict.fromkeys(one.text for one in patterns if one.safe)
        names = [text for text in safe if text.startswith(_ANYWHERE) and _is_name(_last(text))]
        self._names = re.compile("|".join(map(_last, names)) or "(?!)", re.DOTALL)
        self._paths = re.compile("|".join(text for text in safe if text not in names) or "(?!)", re.DOTALL)
        self._unsafe = [one for one in patterns if not one.safe]

    def names(self, path: str) -> bool | None:
        """Whether a path is left out; None if no pattern matches. The path of a folder ends with a slash.
        Raises TimeoutError."""
        path = path[self._base :]
        name = path[path.rfind("/", 0, -1) + 1 :]
        if (
            self._names.fullmatch(name)
            or self._paths.fullmatch(path)
            or any(one.fits(path) for one in self._unsafe)
        ):
            return next((one.out for one in reversed(self._patterns) if one.fits(path)), None)
        return None


def _last(text: str) -> str:
    """A pattern that matches at any depth, without that prefix and without its end."""
    text = text.removeprefix(_ANYWHERE)
    return f"{text.removesuffix(_END)}/?" if text.endswith(_END) else text


def _is_name(text: str) -> bool:
    return "/" not in text.replace("[^/]", "").removesuffix("?").removesuffix("/")


@dataclass
class Ignored:
    """The .gitignore files of a root, and how many files and folders they left out."""

    root: Path
    heeded: bool = True
    slow: bool = False
    files: int = 0
    folders: int = 0
    _spent: float = 0.0
    _known: dict[str, tuple[_PatternFile, ...]] = field(default_factory=dict)

    def leaves_out(self, path: str, *, folder: bool = False) -> bool:
        """Whether a path, relative to the root, is left out; counts it if so."""
        out = self.heeded and self._named(f"{path}/" if folder else path, path.rpartition("/")[0])
        if out and folder:
            self.folders += 1
        elif out:
            self.files += 1
        return out

    def _named(self, path: str, folder: str) -> bool:
        files, said, begin = reversed(self._files_for(folder)), None, time.monotonic()
        try:
            said = next((found for file in files if (found := file.names(path)) is not None), None)
        except TimeoutError:
            self.slow = True
        if (took := time.monotonic() - begin) > 0.001:
            self._spent += took
            self.slow |= self._spent > ALL_SECONDS
        self.heeded = not self.slow
        return bool(said)

    def tell(self, say: Callable[[str], None]) -> None:
        """Say how many files and folders were left out, if any."""
        if self.slow:
            say(f"{NAME} was ignored: a pattern in it takes too long.")
        left = [count(many, kind) for many, kind in ((self.files, "file"), (self.folders, "folder")) if many]
        if left:
            say(f"Skipped {' and '.join(left)} named in {NAME}; :all True includes them.")

    def _files_for(self, folder: str) -> tuple[_PatternFile, ...]:
        """The files that apply in a folder, the nearest at the end."""
        if (known := self._known.get(folder)) is not None:
            return known
        above = self._files_for(folder.rpartition("/")[0]) if folder else ()
        own = self.root / folder
        if not folder or not is_missing(own / ".git"):
            above = _read(own / EXCLUDE, folder)
        self._known[folder] = found = (*above, *_read(own / NAME, folder))
        return found


def files_below(folder: Path, ignored: Ignored) -> Iterator[Path]:
    """The regular files below a folder of the root, sorted, files of a folder before its folders; without
    links, hidden folders and ignored files."""
    skipped = SKIPPED if ignored.heeded else ()
    todo = [folder]
    while todo:
        place = todo.pop()
        prefix = "" if place == ignored.root else f"{place.relative_to(ignored.root).as_posix()}/"
        folders = []
        for entry in _entries(place):
            if entry.is_file(follow_symlinks=False):
                if not ignored.leaves_out(prefix + entry.name):
                    yield Path(entry.path)
            elif entry.is_dir(follow_symlinks=False) and entry.name[0] != "." and entry.name not in skipped:
                folders.append(entry)
        kept = [one for one in folders if not ignored.leaves_out(prefix + one.name, folder=True)]
        todo += [Path(one.path) for one in reversed(kept)]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            shown = (entry for entry in found if not is_scratch(entry.name))
            return sorted(shown, key=lambda entry: entry.name)
    except OSError:
        return []


def _read(file: Path, folder: str) -> tuple[_PatternFile, ...]:
    """The patterns of a file; none if it is not a regular file."""
    data = beginning_of(file, MAX_BYTES)
    if not data:
        return ()
    lines = os.fsdecode(data.removeprefix(b"\xef\xbb\xbf")).split("\n")[:MAX_LINES]
    patterns = list(_patterns(line.removesuffix("\r") for line in lines))
    return (_PatternFile(f"{folder}/" if folder else "", patterns),) if patterns else ()


def _patterns(lines: Iterable[str]) -> Iterator[_Pattern]:
    """The patterns of lines; invalid lines are ignored."""
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    for line in lines:
        with contextlib.suppress(ValueError, re.error, RecursionError):
            text, out = GitIgnoreSpecPattern.pattern_to_regex(
                _SETS.sub(_spelt_out, line) if "[:" in line else line
            )
            if text is not None:
                re.compile(whole := _whole(text))
                yield _Pattern(whole, bool(out))


def _spelt_out(found: re.Match[str]) -> str:
    """A set of characters with its classes, which pathspec does not know, spelt out."""
    first, rest = found[0][0], found[0][1:]
    return first + re.sub(_CLASS, lambda one: _CLASSES.get(one[0], one[0]), rest)


def _whole(pattern: str) -> str:
    """A pattern of pathspec's, which also matches everything below, reduced to the path itself: its folder
    has been judged before."""
    if pattern in (".", "(?P<ps_d>/)"):  # everything, every folder
        return pattern.replace(".", ".+").replace("(?P<ps_d>/)", ".+/")
    everything_in = pattern.endswith("/") and not pattern.endswith(")")
    return pattern.replace("(?P<ps_d>/)", "/") + (".+" if everything_in else "")
