"""Runs people's files again after they changed: tool files, what these import, and rules.

Knows files and modules; it must not know tools, doors or Redis. A reload runs the code that stands in the
files now: also a module that a file imports is run again, and from its source, since Python tells a compiled
file from an older one by whole seconds alone. What ran before goes on with the modules it has.
"""

from __future__ import annotations

import importlib
import linecache
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Generic, TypeVar

from quoth.tools.registry.code_version import is_local, local_files

Made = TypeVar("Made")
Seen = tuple[int, int, int]  # when a file was changed, its size, which file it is


class Reloader(Generic[Made]):
    """``make`` runs the files, and what it made last is ``made``. ``changed`` is asked now and then."""

    def __init__(self, make: Callable[[], Made], files: Iterable[Path]) -> None:
        self._make = make
        self._files = list(files)
        self._before = {*sys.modules}
        self._seen = self._look(self._files)
        self._moving: dict[Path, Seen | None] = {}
        self.made = make()
        self._look_again(self._seen)

    def changed(self) -> bool:
        """Whether a file has changed since it was run, and not since this was asked last: what is still
        being written is left alone."""
        now = self._look(self._seen)
        moving, self._moving = self._moving, now
        return now != self._seen and now == moving

    def reload(self) -> Made:
        """Run the files as they are now. What fails leaves all as it was, and the error is raised; the same
        files are not ``changed`` then."""
        before = self._look(self._seen)
        try:
            with self._anew():
                self.made = self._make()
        finally:
            self._look_again(before)
        return self.made

    def _look_again(self, before: dict[Path, Seen | None]) -> None:
        """Watch the files that matter now, as they were before they were run."""
        found = {*self._files, *self._imported()}
        self._seen = {path: before.get(path, _look(path)) for path in found}
        self._moving = {}

    def _imported(self) -> Iterator[Path]:
        """The local files that were imported, and those that a file which failed wants to import."""
        for module in self._local().values():
            yield Path(str(module.__file__)).absolute()
        for path in self._files:
            yield from local_files(path)

    def _local(self) -> dict[str, ModuleType]:
        """The modules that are not installed, and were imported for the files or by their functions."""
        return {
            name: module
            for name, module in list(sys.modules.items())
            if name not in self._before
            and (file := getattr(module, "__file__", None))
            and is_local(Path(file))
        }

    @contextmanager
    def _anew(self) -> Iterator[None]:
        """Within it local modules are imported again; an error brings the old ones back."""
        old = self._local()
        for name in old:
            del sys.modules[name]
        importlib.invalidate_caches()
        linecache.checkcache()
        compiled = sys.dont_write_bytecode, sys.pycache_prefix
        sys.dont_write_bytecode, sys.pycache_prefix = True, os.devnull
        try:
            yield
        except BaseException:
            for name in self._local():
                del sys.modules[name]
            sys.modules.update(old)
            raise
        finally:
            sys.dont_write_bytecode, sys.pycache_prefix = compiled

    @staticmethod
    def _look(paths: Iterable[Path]) -> dict[Path, Seen | None]:
        return {path: _look(path) for path in paths}


def _look(path: Path) -> Seen | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
