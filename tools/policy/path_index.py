"""Finds the rules that a path may match, among many that each name folders or files.

It knows paths and what is on the disk; it must not know rules or verdicts. It only leaves out what cannot
match: what it finds is tested as if there were no index.

Each place that a rule names is looked up once. What was found holds for at most HELD_SECONDS, and only while
each folder on the way is as it was, by its inode and times: no name in it can have been made, removed or put
in another's place. A place that is reached through a link, or lies outside, is found for every path. So a
call costs one look for its own path and one for each such folder, however many the places are.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from quoth.tools.errors import ToolError
from quoth.tools.policy.predicates import ABSOLUTE, EvaluationContext

HELD_SECONDS = 2.0  # what no folder tells, such as a mount, is seen after that
TICK_NS = 100_000_000  # a folder that changed so lately may change again, and its times stay the same
COARSE_TICK_NS = 3_000_000_000  # the same where the file system counts whole seconds
MAX_PATH = 250  # characters: what is longer, or holds a NUL, may be refused before any part is looked for

T = TypeVar("T")
Stamp: TypeAlias = "tuple[int, int, int, int] | None"  # device, inode and times; None for what is not there


class _Known(NamedTuple, Generic[T]):
    """What was found of all places below one root, until a time."""

    root: str
    until: float
    stamps: dict[str, Stamp]  # of the root, and of each folder on the way
    always: list[T]
    spelt: dict[str, list[T]]  # by the path from the root
    there: dict[tuple[int, int], list[T]]  # by device and inode


class PathIndex(Generic[T]):
    """Items, each with the places it names: a path may match it only if it is one of them or lies below."""

    def __init__(self, items: Iterable[tuple[T, Iterable[str]]]) -> None:
        self._items: dict[str, list[T]] = {}  # by place as written
        for item, places in items:
            for place in places:
                self._items.setdefault(place, []).append(item)
        self._every = [item for found in self._items.values() for item in found]
        self._known: _Known[T] | None = None

    def find(self, paths: Sequence[object], facts: EvaluationContext) -> Sequence[T]:
        """The items that one of these paths may match, some perhaps twice; all where that cannot be told."""
        if not paths:
            return ()
        known = self._held(facts.root)
        found = known.always
        for path in paths:
            if not isinstance(path, str):
                return self._every
            try:
                place = facts.trail(path)
            except ToolError:
                return self._every
            if place is None:  # outside of the workspace
                continue
            root = known.stamps[facts.root]
            for identity in place.ids if root is None else (root[:2], *place.ids):
                if identity in known.there:
                    found = found + known.there[identity]
            spelt = ""
            for part in ("", *place.parts):
                spelt = f"{spelt}/{part}" if spelt else part
                if spelt in known.spelt:
                    found = found + known.spelt[spelt]
        return found

    def _held(self, root: str) -> _Known[T]:
        """What is known of the places, looked up anew where it may not hold any more."""
        known = self._known
        if known is None or known.root != root or time.monotonic() >= known.until or _changed(known.stamps):
            known = self._known = self._looked_up(root)
        return known

    def _looked_up(self, root: str) -> _Known[T]:
        until, now = time.monotonic() + HELD_SECONDS, time.time_ns()
        seen = {root: _look(root)}
        stamps = {root: _stamp(seen[root])}
        always: list[T] = []
        spelt: dict[str, list[T]] = {}
        there: dict[tuple[int, int], list[T]] = {}
        at_root = seen[root]
        room = 0 if at_root is not None and stat.S_ISLNK(at_root.st_mode) else MAX_PATH - len(root)
        for place, items in self._items.items():
            parts = [part for part in place.split("/") if part not in ("", ".")]
            path, found = root, seen[root]
            sure = place[:1] not in ABSOLUTE and ".." not in parts
            sure = sure and len(place) < room and place.isprintable()
            for part in parts if sure else ():
                if found is None or not stat.S_ISDIR(found.st_mode):
                    found = None  # there is nothing below, until its own folder changes
                    break
                stamps.setdefault(path, _stamp(found))
                if not _settled(found.st_ctime_ns, now):
                    until = min(until, time.monotonic() + TICK_NS / 1e9)
                    sure = False
                    break
                path = f"{path}/{part}"
                try:
                    found = seen[path] if path in seen else seen.setdefault(path, _look(path))
                except (OSError, ValueError):
                    sure = False
                    break
                if found is not None and stat.S_ISLNK(found.st_mode):
                    sure = False
                    break
            if not sure:
                always += items
                continue
            spelt.setdefault("/".join(parts), []).extend(items)
            if found is not None:
                there.setdefault((found.st_dev, found.st_ino), []).extend(items)
        return _Known(root, until, stamps, always, spelt, there)


def _look(path: str) -> os.stat_result | None:
    """What is there; None for nothing. Raises OSError and ValueError where that cannot be told."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _stamp(found: os.stat_result | None) -> Stamp:
    return None if found is None else (found.st_dev, found.st_ino, found.st_ctime_ns, found.st_mtime_ns)


def _settled(changed: int, now: int) -> bool:
    """Whether the next change of a folder that changed then will change its times."""
    return now - changed > (TICK_NS if changed % 1_000_000_000 else COARSE_TICK_NS)


def _changed(stamps: dict[str, Stamp]) -> bool:
    try:
        return any(_stamp(_look(folder)) != stamp for folder, stamp in stamps.items())
    except (OSError, ValueError):
        return True
